"""A trained model whose predictions for the held-out rows are already known."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier

LINEAR_METHODS = ("decision_function", "predict")  # methods of all linear classifiers


class KnownPredictions:
    """Takes the place of a model while it is scored.

    It returns the known predictions to a scorer that requests predictions of the held-out rows.
    All other attributes are the model's.
    """

    def __init__(self, model: Any, X: Any, predictions: Mapping[str, Any]) -> None:
        self._model, self._rows, self._predictions = model, X, predictions

    def __getattr__(self, name: str) -> Any:
        if name in self._predictions:
            return self._method(name)
        if name == "score":  # the method requests predictions
            return partial(type(self._model).score, self)
        return getattr(self._model, name)

    def _method(self, name: str) -> Any:
        def predict(X: Any) -> Any:
            return self._predictions[name] if X is self._rows else getattr(self._model, name)(X)

        predict.__name__ = name  # scorers look the method up by this name
        return predict


def of_probabilities(model: Any, probabilities: Any) -> dict[str, Any]:
    """Return a classifier's predictions, from one column of probabilities or one per class.

    >>> from types import SimpleNamespace
    >>> of_probabilities(SimpleNamespace(classes_=np.array(["a", "b"])), np.array([0.25, 0.75]))
    {'predict_proba': array([[0.75, 0.25],
           [0.25, 0.75]]), 'predict': array(['a', 'b'], dtype='<U1')}
    """
    if probabilities.ndim == 1:  # probabilities of the second of two classes
        probabilities = np.vstack((1 - probabilities, probabilities)).transpose()
    labels = model.classes_[np.argmax(probabilities, axis=1)]
    return {"predict_proba": probabilities, "predict": labels}


def of_linear_classifier(model: Any, X: Any) -> dict[str, Any]:
    """Return the predictions of one of scikit-learn's linear classifiers for finite rows.

    They are computed by the same sum as in the classifier, with a faster check of the rows. The
    result is empty if the model is another one or overrides these methods, or if rows are not
    finite floats.

    >>> model = SGDClassifier(random_state=0).fit(np.array([[0.0], [1.0]]), ["no", "yes"])
    >>> of_linear_classifier(model, np.array([[2.0]]))["predict"]
    array(['yes'], dtype='<U3')
    """
    own = all(
        getattr(type(model), name, None) is getattr(SGDClassifier, name) for name in LINEAR_METHODS
    )
    plain = own and isinstance(X, np.ndarray) and X.dtype.kind == "f"
    if not plain or not np.isfinite(X).all():
        return {}
    scores = X @ model.coef_.T + model.intercept_
    if scores.shape[1] == 1:
        scores = scores.ravel()
    places = np.argmax(scores, axis=1) if scores.ndim > 1 else (scores > 0).astype(np.intp)
    return {"decision_function": scores, "predict": model.classes_[places]}
