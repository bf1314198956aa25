"""Heads of pipelines (all steps but the last), fitted once for all learners with equal heads."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from joblib import hash as digest_of  # type: ignore[import-untyped]
from sklearn.base import clone


class FittedHead(NamedTuple):
    """A fitted head, and the rows of a fold that it has transformed."""

    head: Any
    X: Any
    X_val: Any


class SharedHeads:
    """Fitted heads of one fold's rows, by their settings.

    Candidates of a search often begin with the same encoder or scaler. Each is fitted once per
    process, and its rows are stored once. A copy for another process is empty.
    """

    def __init__(self) -> None:
        self._fitted: dict[str, FittedHead] = {}

    def __reduce__(self) -> tuple[type["SharedHeads"], tuple[()]]:
        return SharedHeads, ()

    def fitted(
        self, head: Any, X: Any, y: Any, X_val: Any, params: Mapping[str, Any]
    ) -> FittedHead:
        """Return the fitted clone of a head, and the rows that it transformed."""
        key = _key(head, params)
        if key is None:
            return _fit(head, X, y, X_val, params)
        if key not in self._fitted:
            self._fitted[key] = _fit(head, X, y, X_val, params)
        return self._fitted[key]


def _key(head: Any, params: Mapping[str, Any]) -> str | None:
    """Return a text that is equal for equal heads; None if there is no such text."""
    if params:  # such as weights of rows, which differ between learners
        return None
    try:
        return str(digest_of(clone(head)))
    except Exception:  # a step without a digest, such as one with a lambda
        return None


def _fit(head: Any, X: Any, y: Any, X_val: Any, params: Mapping[str, Any]) -> FittedHead:
    fitted = clone(head)
    transformed = fitted.fit_transform(X, y, **params)
    return FittedHead(fitted, transformed, None if X_val is None else fitted.transform(X_val))
