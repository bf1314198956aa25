"""Training by `fit`: with `warm_start` a little more at each call, or all in one step."""

import warnings
from math import inf
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from latebloomer.integrations.sklearn.training.estimators import grows_by
from latebloomer.integrations.sklearn.training.fold_model import FoldModel
from latebloomer.integrations.sklearn.training.known_predictions import (
    KnownPredictions,
    of_probabilities,
)


class WarmStartModel(FoldModel):
    """Train by `fit` with `warm_start`: more trees, stages or iterations on all rows.

    To score a forest, only its new trees predict the held-out rows. Predictions are added in the
    order of the trees, so the sum after a restore, which adds all trees again, is the same.
    """

    _sum: Any = 0.0  # sum of the trees' predictions for the held-out rows
    _summed = 0  # number of trees in the sum

    def _describe(self, model: Any, params: dict[str, Any]) -> None:
        self._grows, step = str(grows_by(model)), self._settings.step
        # For ensembles the setting is the total number; for iterative solvers, the number per
        # call.
        self._counts = self._grows == "n_estimators" or "max_leaf_nodes" in params
        self.full_steps = max(1, params[self._grows] // step)
        self._lent = {"warm_start": True}
        self._is_forest = is_forest(model)
        self.how = f"warm_start: {self._grows} grows by {step} a step, on all {self._rows} rows"

    def _train(self, steps: int) -> None:
        amount = self._settings.step * (self.steps + steps if self._counts else steps)
        self._model.set_params(**{self._grows: amount})
        with warnings.catch_warnings():  # it need not converge within a pull, so no warning
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._fit()
        self.steps += steps
        self.finished = self._grown() < amount  # fewer iterations than requested: it has converged

    def _grown(self) -> float:
        """Return the total number of trees, or the number of iterations of the latest call."""
        grown = getattr(self._model, "n_estimators_", getattr(self._model, "n_iter_", inf))
        return float(np.max(grown))

    def _scored(self) -> Any:
        if not self._is_forest or self._X_val is None or np.ndim(self._fold.y) != 1:
            return self._model
        if not self._summed:  # converted to the type that trees need
            self._rows_of_trees = check_array(
                self._X_val, accept_sparse="csr", dtype=np.float32, ensure_all_finite=False
            )
        method = "predict_proba" if is_classifier(self._model) else "predict"
        for tree in self._model.estimators_[self._summed :]:
            self._sum = self._sum + getattr(tree, method)(self._rows_of_trees, check_input=False)
            self._summed += 1
        mean = self._sum / self._summed
        known = of_probabilities(self._model, mean) if mean.ndim == 2 else {"predict": mean}
        return KnownPredictions(self._model, self._X_val, known)

    def end_at(self, steps: int) -> None:
        super().end_at(steps)
        self._sum, self._summed = 0.0, 0

    def _fitted_steps(self) -> int:
        return int(min(self.full_steps, -(-self._grown() // self._settings.step)))


def is_forest(model: Any) -> bool:
    """Return whether a model predicts the mean of the predictions of its trees.

    >>> from sklearn.ensemble import AdaBoostClassifier, RandomForestRegressor
    >>> is_forest(RandomForestRegressor()), is_forest(AdaBoostClassifier())
    (True, False)
    """
    if not type(model).__module__.startswith("sklearn.ensemble"):
        return False
    from sklearn import ensemble  # already imported if the model is one of its classes

    kinds = ("RandomForest", "ExtraTrees")
    return type(model) in {
        getattr(ensemble, kind + task) for kind in kinds for task in ("Classifier", "Regressor")
    }


class OneStepModel(FoldModel):
    """Train by one `fit`; the learner has finished after this one step."""

    def _describe(self, model: Any, params: dict[str, Any]) -> None:
        self.how = f"fit: trained in one step on all {self._rows} rows"

    def _train(self, steps: int) -> None:
        self._fit()
        self.steps, self.finished = 1, True
