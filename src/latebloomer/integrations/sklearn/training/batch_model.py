"""Training by `partial_fit`, and the estimator's own rule to stop."""

import inspect
from collections.abc import Callable, Mapping
from math import inf, nan
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.class_weight import compute_class_weight

from latebloomer.integrations.sklearn.splits import (
    RowNumbers,
    bytes_of,
    take_params,
    take_rows,
)
from latebloomer.integrations.sklearn.training.early_stopping import Patience
from latebloomer.integrations.sklearn.training.fold_model import FoldModel
from latebloomer.integrations.sklearn.training.known_predictions import (
    KnownPredictions,
    of_linear_classifier,
)
from latebloomer.racing.learners.full_training import PULLS

FEWEST_ROWS = 10  # minimum rows in a step, for an estimator that is trained by one pass
MOST_COPIED = 64 * 2**20  # maximum bytes of rows in one call of `partial_fit`
USUAL_BATCH = 200  # maximum rows in a net's batch with batch_size="auto"


class BatchModel(FoldModel):
    """Train by `partial_fit`, a batch of rows at a time; each epoch has a new order of rows.

    All steps of a pull are one call of scikit-learn's own estimators, with the rows of all steps,
    because on small data a call costs as much as several epochs. Its linear models and nets would
    mix the rows of these epochs, so their shuffling is turned off for the call. Other estimators
    may count their calls, so they get one call per step.

    `fit` stops if the loss on the training rows has not improved by `tol` for `n_iter_no_change`
    epochs, but `partial_fit` does not. So this class applies the rule after each pull: a pull of k
    epochs must improve the loss by k times `tol`; otherwise it counts as k epochs without
    improvement.
    """

    kept = (*FoldModel.kept, "best", "idle")

    def _describe(self, model: Any, params: dict[str, Any]) -> None:
        epochs = params.get("max_iter")
        self._size = batch_size(self._settings.batch, self._rows, epochs)
        self.full_steps = (epochs or 1) * -(-self._rows // self._size)
        self.how = f"partial_fit: {self._size} of {self._rows} rows a step, reshuffled every epoch"
        self._joins_steps = joins_steps(model, params)
        if self._joins_steps:
            self._lent = unshuffled(params, self._size)
        if params.get("class_weight") == "balanced":  # only `fit` accepts it
            classes = np.unique(self._fold.y)
            weights = compute_class_weight("balanced", classes=classes, y=self._fold.y)
            self._lent["class_weight"] = dict(zip(classes, weights, strict=True))
        takes_classes = "classes" in inspect.signature(model.partial_fit).parameters
        self._names_classes = takes_classes and self._settings.classes is not None
        patience, adaptive = params.get("n_iter_no_change"), params.get("learning_rate")
        # An adaptive rate is reduced instead.
        stops = patience is not None and adaptive != "adaptive"
        self._tol: float | None = params.get("tol") if stops else None
        # Nets stop after one epoch more than this number, linear models after this number.
        self._patience = (patience or 0) + ("hidden_layer_sizes" in params)
        if params.get("early_stopping") is True:  # `fit` would hold out rows for it
            self._lent["early_stopping"] = False
            if self._settings.best_iteration is not False:
                epoch = -(-self._rows // self._size)  # in steps
                self.patience = Patience(self._patience * epoch, params.get("tol") or 0.0)
                self._tol = None
        self.best, self.idle = inf, 0  # the lowest loss, and the number of epochs since then
        self._orders = EpochOrders(self._settings.seed, self._rows)

    def _train(self, steps: int) -> None:
        last, most = self.steps + steps, self._steps_of_a_call()
        while self.steps < last:
            count = min(most, last - self.steps)
            rows = self._rows_of(self.steps, count)
            params = take_params(self._params, rows, self._rows)
            if not self.steps and self._names_classes:
                params["classes"] = self._settings.classes
            X, y = take_rows(self._X, rows), take_rows(self._fold.y, rows)
            self._call(self._model.partial_fit, X, y, **params)
            self.steps += count
        self.finished = self._size == self._rows and self._converged(steps)

    def _steps_of_a_call(self) -> int:
        """Return the number of steps in one call: as many as may be copied, at least one."""
        if not self._joins_steps:
            return 1
        step = bytes_of(self._X) * self._size / self._rows
        return max(1, int(MOST_COPIED // max(1.0, step)))

    def iterations(self, steps: int) -> int:
        return -(-steps * self._size // self._rows)

    def _fitted_steps(self) -> int:
        epochs = getattr(self._model, "n_iter_", None)
        if epochs is None:
            return self.full_steps
        return min(self.full_steps, int(np.max(epochs)) * -(-self._rows // self._size))

    def _rows_of(self, step: int, count: int) -> RowNumbers:
        """Return the rows of `count` steps from number `step` on; they may span epochs."""
        first, last = step * self._size, (step + count) * self._size - 1
        epochs = range(first // self._rows, last // self._rows + 1)
        orders = np.concatenate([self._orders.of(epoch) for epoch in epochs])
        start = first - epochs[0] * self._rows
        return orders[start : start + count * self._size]

    def _scored(self) -> Any:
        """Return the model, or the predictions of a linear classifier.

        On a few hundred rows scikit-learn's checks take many times as long as the predictions.
        """
        known = of_linear_classifier(self._model, self._X_val)
        return KnownPredictions(self._model, self._X_val, known) if known else self._model

    def _converged(self, epochs: int) -> bool:
        """Return whether the estimator's own rule stops it after `epochs` more epochs."""
        if self._tol is None:
            return False
        loss = training_loss(self._model, self._X, self._fold.y)
        self.idle = self.idle + epochs if loss > self.best - self._tol * epochs else 0
        self.best = min(self.best, loss)
        return self.idle >= self._patience


class EpochOrders:
    """The order of rows in each epoch, drawn from one stream of random numbers when needed.

    An order depends only on the seed and the number of the epoch, so a checkpoint needs no random
    state. A restored model draws the orders of earlier epochs again, which is fast.

    >>> one, other = EpochOrders(0, 9), EpochOrders(0, 9)
    >>> [one.of(epoch)[0] for epoch in (0, 0, 1, 2)][3] == other.of(2)[0]
    np.True_
    """

    def __init__(self, seed: int, rows: int) -> None:
        self._seed, self._rows = seed, rows
        self._epoch, self._order = -1, np.empty(0, dtype=np.intp)

    def of(self, epoch: int) -> RowNumbers:
        """Return the row numbers of an epoch in their order."""
        if self._epoch < 0 or epoch < self._epoch:
            self._stream, self._epoch = np.random.default_rng([self._seed, 2]), -1
        while self._epoch < epoch:
            self._order = self._stream.permutation(self._rows)
            self._epoch += 1
        return self._order


def joins_steps(model: Any, params: Mapping[str, Any]) -> bool:
    """Return whether one `partial_fit` of several steps equals one `partial_fit` per step.

    It does for scikit-learn's own linear models, naive Bayes, and nets, unless a net's learning
    rate changes with the number of calls.

    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.neural_network import MLPClassifier
    >>> net = MLPClassifier(solver="sgd", learning_rate="adaptive")
    >>> [joins_steps(model, model.get_params()) for model in (SGDClassifier(), net)]
    [True, False]
    """
    home = ".".join(type(model).__module__.split(".")[:2])
    if home == "sklearn.neural_network":
        return params["solver"] != "sgd" or params["learning_rate"] == "constant"
    return home in ("sklearn.linear_model", "sklearn.naive_bayes")


def unshuffled(params: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """Return settings without shuffling that keep the number of a net's updates per step.

    >>> unshuffled({"shuffle": True, "batch_size": "auto"}, rows=1198)
    {'shuffle': False, 'batch_size': 200}
    >>> unshuffled({"shuffle": True, "batch_size": 100}, rows=120)  # two updates, of 100 and 20
    {'shuffle': False, 'batch_size': 60}
    """
    settings: dict[str, Any] = {"shuffle": False} if "shuffle" in params else {}
    if "batch_size" in params:
        size = USUAL_BATCH if params["batch_size"] == "auto" else params["batch_size"]
        updates = -(-rows // max(1, min(size, rows)))
        settings["batch_size"] = -(-rows // updates)
    return settings


def batch_size(batch: int | None, rows: int, epochs: int | None) -> int:
    """Return the number of rows in a step: `batch`, or all rows if the estimator counts epochs.

    An estimator that does not count epochs is trained by one pass over the rows. Its step is then
    a hundredth of the rows, and at least ten rows, so that most classes are in the first step.

    >>> batch_size(64, 4000, None), batch_size(None, 4000, 200), batch_size(None, 4000, None)
    (64, 4000, 40)
    """
    if batch is None:
        batch = rows if epochs is not None else max(FEWEST_ROWS, -(-rows // PULLS))
    return min(batch, rows)


# Losses as functions of the margin y f(x) or the residual |y - f(x)|; e is the estimator's
# epsilon.
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


def training_loss(model: Any, X: Any, y: Any) -> float:
    """Return the training loss of an estimator without its penalty; nan if not known."""
    own = getattr(model, "loss_", None)  # a net's mean loss over the latest epoch
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
        residuals = np.abs(np.asarray(y) - model.predict(X))
        return float(REGRESSORS[name](residuals, getattr(model, "epsilon", 0.0)).mean())
    return nan
