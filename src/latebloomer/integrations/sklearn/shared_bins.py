"""Rows that a booster has binned, shared by all candidates with equal settings for bins."""

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from joblib import hash as digest_of  # type: ignore[import-untyped]


class SharedBins:
    """Binned rows of one fold, for as long as a learner uses them.

    Binning takes as long as a few rounds of boosting, and most settings of boosters do not change
    the bins. Sharing ends at the process: in another one, rows are others.
    """

    def __init__(self) -> None:
        self._rows: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def __reduce__(self) -> tuple[type["SharedBins"], tuple[()]]:
        return SharedBins, ()

    def get(self, X: Any, settings: Any, make: Callable[[], Any]) -> Any:
        """Return the binned rows of X by what their bins follow from; made if there are none."""
        try:
            key = f"{id(X)} {digest_of(settings)}"
        except Exception:  # a setting that has no digest
            return make()
        rows = self._rows.get(key)
        if rows is None:
            rows = self._rows[key] = make()
        return rows
