"""Binned rows of boosters, shared by all candidates with equal settings for bins."""

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from joblib import hash as digest_of  # type: ignore[import-untyped]


class SharedBins:
    """Binned rows of one fold, which are kept as long as a learner uses them.

    Binning takes as long as a few rounds of boosting, and most settings of boosters do not change
    the bins. Rows are shared only within one process.
    """

    def __init__(self) -> None:
        self._rows: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def __reduce__(self) -> tuple[type["SharedBins"], tuple[()]]:
        return SharedBins, ()

    def get(self, X: Any, settings: Any, make: Callable[[], Any]) -> Any:
        """Return the binned rows of X for the settings of their bins; `make` builds new ones."""
        try:
            key = f"{id(X)} {digest_of(settings)}"
        except Exception:  # a setting without a digest
            return make()
        rows = self._rows.get(key)
        if rows is None:
            rows = self._rows[key] = make()
        return rows
