"""A trained model whose predictions of the held-out rows are known without evaluating it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np


class KnownPredictions:
    """Stands for a model when it is scored.

    A scorer asks for predictions of the held-out rows, and gets those that are known; whatever
    else it asks for is the model's.
    """

    def __init__(self, model: Any, X: Any, predictions: Mapping[str, Any]) -> None:
        self._model, self._rows, self._predictions = model, X, predictions

    def __getattr__(self, name: str) -> Any:
        if name in self._predictions:
            return self._method(name)
        if name == "score":  # which asks for predictions
            return partial(type(self._model).score, self)
        return getattr(self._model, name)

    def _method(self, name: str) -> Any:
        def predict(X: Any) -> Any:
            return self._predictions[name] if X is self._rows else getattr(self._model, name)(X)

        predict.__name__ = name  # by which scorers call it again
        return predict


def of_probabilities(model: Any, probabilities: Any) -> dict[str, Any]:
    """Return what a classifier predicts, by its probabilities: a column, or one per class.

    >>> from types import SimpleNamespace
    >>> of_probabilities(SimpleNamespace(classes_=np.array(["a", "b"])), np.array([0.25, 0.75]))
    {'predict_proba': array([[0.75, 0.25],
           [0.25, 0.75]]), 'predict': array(['a', 'b'], dtype='<U1')}
    """
    if probabilities.ndim == 1:  # of the second of two classes
        probabilities = np.vstack((1 - probabilities, probabilities)).transpose()
    labels = model.classes_[np.argmax(probabilities, axis=1)]
    return {"predict_proba": probabilities, "predict": labels}
