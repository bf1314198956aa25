"""XGBoost's classifier for labels of any kind: XGBoost itself accepts only 0, 1, 2, ..."""

from typing import Any, Self

import numpy as np

from latebloomer.errors import extra

NAME = "TextLabelXGBClassifier"


def __getattr__(name: str) -> Any:
    """Create the class when it is first used, so that this module needs no XGBoost.

    The class stays an attribute of the module, where `pickle` finds it, even in a new process.
    """
    if name != NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    classifier = _class_of(extra("xgboost", "text labels", "xgboost").XGBClassifier)
    classifier.__name__ = classifier.__qualname__ = NAME
    globals()[NAME] = classifier
    return classifier


def _class_of(base: Any) -> Any:
    # XGBoost reads its settings from the first base of a class: a mixin would hide them.
    class TextLabels(base):  # type: ignore[misc]
        """A `xgboost.XGBClassifier` that encodes labels for training and decodes predictions."""

        def fit(self, X: Any, y: Any, **params: Any) -> Self:
            """Train on labels of any kind."""
            self.__dict__.pop("labels_", None)  # XGBoost compares `classes_` with the codes
            super().fit(X, self.label_codes(y), **params)
            self.labels_ = np.unique(np.asarray(y))
            return self

        def label_codes(self, y: Any) -> Any:
            """Return the index of each label among the sorted labels."""
            return np.unique(np.asarray(y), return_inverse=True)[1]

        def predict(self, X: Any, **params: Any) -> Any:
            """Return the predicted labels."""
            return self.labels_[np.asarray(super().predict(X, **params), dtype=np.int64)]

        @property
        def classes_(self) -> Any:
            """The labels, sorted."""
            return vars(self).get("labels_", super().classes_)

    return TextLabels
