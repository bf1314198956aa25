"""An estimator's own rule to stop: no better by `tol` for `n_iter_no_change` epochs.

`fit` applies it, `partial_fit` does not; so it is applied here, to the loss on the training rows
after each epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from sklearn.base import is_classifier

# Of margins y f(x), and of residuals |y - f(x)|; e is the estimator's epsilon.
CLASSIFIERS: dict[str, Callable[[Any], Any]] = {
    "hinge": lambda m: np.maximum(0, 1 - m),
    "squared_hinge": lambda m: np.maximum(0, 1 - m) ** 2,
    "perceptron": lambda m: np.maximum(0, -m),
    "log_loss": lambda m: np.logaddexp(0, -m),
    "modified_huber": lambda m: np.where(m >= -1, np.maximum(0, 1 - m) ** 2, -4 * m),
}
REGRESSORS: dict[str, Callable[[Any, float], Any]] = {
    "squared_error": lambda r, e: r**2 / 2,
    "huber": lambda r, e: np.where(r <= e, r**2 / 2, e * r - e**2 / 2),
    "epsilon_insensitive": lambda r, e: np.maximum(0, r - e),
    "squared_epsilon_insensitive": lambda r, e: np.maximum(0, r - e) ** 2,
}


class Convergence:
    """Counts the epochs since the training loss was last better by `tol`."""

    def __init__(self, model: Any) -> None:
        params = model.get_params(deep=False)
        tol, patience = params.get("tol"), params.get("n_iter_no_change")
        adaptive = params.get("learning_rate") == "adaptive"  # it slows down instead
        self._tol: float | None = None if patience is None or adaptive else tol
        # Nets stop after more than so many epochs, linear models after so many.
        self._patience = (patience or 0) + ("hidden_layer_sizes" in params)
        self.best, self.idle = inf, 0

    @property
    def reached(self) -> bool:
        """Whether `fit` would have stopped."""
        return self._tol is not None and self.idle >= self._patience

    def note_epoch(self, model: Any, X: Any, y: Any) -> None:
        """An epoch is over."""
        if self._tol is None or (loss := training_loss(model, X, y)) is None:
            return
        self.idle = self.idle + 1 if loss > self.best - self._tol else 0
        self.best = min(self.best, loss)


def training_loss(model: Any, X: Any, y: Any) -> float | None:
    """The loss that an estimator trains on, without its penalty; None where it is not known."""
    own = getattr(model, "loss_", None)  # of nets: the mean over the newest epoch
    if own is not None:
        return float(own)
    name = getattr(model, "loss", None)
    if is_classifier(model) and name in CLASSIFIERS:
        margins = model.decision_function(X)
        signs = np.asarray(y)[:, None] == model.classes_[None, :]
        if margins.ndim == 1:
            margins, signs = margins[:, None], signs[:, 1:]
        return float(CLASSIFIERS[name](np.where(signs, margins, -margins)).mean())
    if name in REGRESSORS and np.ndim(y) == 1:
        return float(
            REGRESSORS[name](np.abs(np.asarray(y) - model.predict(X)), _epsilon(model)).mean()
        )
    return None


def _epsilon(model: Any) -> float:
    return float(getattr(model, "epsilon", 0.0))
