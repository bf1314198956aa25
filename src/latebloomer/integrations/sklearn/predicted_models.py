"""Estimators that return stored predictions, to pass to scorers."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


def predicted_model(values: Any, classes: Any) -> Any:
    """Return an estimator that predicts `values`: class probabilities, or numbers.

    >>> predicted_model(np.array([[0.3, 0.7]]), np.array(["no", "yes"])).predict(None)
    array(['yes'], dtype='<U3')
    """
    return PredictedNumbers(values) if classes is None else PredictedClasses(values, classes)


class Predicted(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator that returns stored predictions; scorers treat it as a trained one."""

    def __init__(self, values: Any, classes: Any = None) -> None:
        self.values, self.classes = values, classes

    def fit(self, X: Any, y: Any) -> Self:
        """Do nothing."""
        return self

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Return the stored predictions."""


class PredictedClasses(ClassifierMixin, Predicted):  # type: ignore[misc]
    """A classifier that returns stored class probabilities."""

    @property
    def classes_(self) -> Any:
        """The classes, sorted."""
        return self.classes

    def predict_proba(self, X: Any) -> Any:
        """Return the stored probabilities."""
        return self.values

    def predict(self, X: Any) -> Any:
        """Return the most probable classes."""
        return self.classes[np.argmax(self.values, axis=1)]


class PredictedNumbers(RegressorMixin, Predicted):  # type: ignore[misc]
    """A regressor that returns stored predictions."""

    def predict(self, X: Any) -> Any:
        """Return the stored predictions."""
        return self.values
