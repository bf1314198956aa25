"""How often each whole number from 0 occurred, exactly, storing only those that did."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.errors import require

Ints: TypeAlias = npt.NDArray[np.int64]

NONE = np.zeros(0, np.int64)
DENSE = 2**19  # counters (4 MiB) up to which every possible number has one


class Histogram:
    """Sorted values and how often each occurred.

    >>> pulls = Histogram.of(np.array([7, 3, 7, 12])) + Histogram.of(np.array([3]))
    >>> pulls
    Histogram({3: 2, 7: 2, 12: 1})
    >>> pulls.mean(), pulls.quantile(0.5)
    (6.4, 7)
    """

    def __init__(self, values: Ints = NONE, counts: Ints = NONE) -> None:
        self.values = values
        self.counts = counts

    @classmethod
    def of(cls, data: npt.NDArray[np.integer[Any]]) -> Histogram:
        """Of an array of numbers from 0: by counting unless they are large, else by sorting."""
        if data.size == 0:
            return cls()
        if data.max() > 4 * data.size + 1024:
            return cls(*np.unique(data.astype(np.int64), return_counts=True))
        counts = np.bincount(data)
        values = np.flatnonzero(counts)
        return cls(values, counts[values])

    def __add__(self, other: Histogram) -> Histogram:
        if len(self.values) == len(other.values) and (self.values == other.values).all():
            return Histogram(self.values, self.counts + other.counts)
        values = np.union1d(self.values, other.values)
        counts = np.zeros(len(values), np.int64)
        for part in (self, other):
            counts[np.searchsorted(values, part.values)] += part.counts
        return Histogram(values, counts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self.pairs() == other.pairs()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Histogram({dict(zip(self.values.tolist(), self.counts.tolist(), strict=True))})"

    def pairs(self) -> list[list[int]]:
        """[value, count] of each value that occurred, as a results file holds them."""
        return [
            list(pair) for pair in zip(self.values.tolist(), self.counts.tolist(), strict=True)
        ]

    @classmethod
    def from_pairs(cls, pairs: list[list[int]]) -> Histogram:
        table = np.array(pairs, np.int64).reshape(-1, 2)
        return cls(table[:, 0].copy(), table[:, 1].copy())

    def count(self) -> int:
        """How many numbers were counted."""
        return int(self.counts.sum())

    def mean(self) -> float:
        """Their mean, of at least one number: the exact sum divided once."""
        return int(self.values @ self.counts) / self.count()

    def quantile(self, q: float) -> int:
        """The smallest value that at least a share `q` of the numbers does not exceed.

        The share is taken as written: 0.1 of 10 numbers is one, though the float is above 1/10.
        """
        require(0 <= q <= 1, "q", q, "in [0, 1]", "it is a share of the runs")
        needed = max(1, ceil(Fraction(repr(float(q))) * self.count()))
        return int(self.values[np.searchsorted(np.cumsum(self.counts), needed)])


class Counters:
    """Histograms that grow: of each column of tables of whole numbers from 0 to `top`.

    Where there are few possible numbers each has a counter, which is fast; the rest is sparse.
    """

    def __init__(self, columns: int, top: int) -> None:
        few = columns * (top + 1) <= DENSE
        self._dense = np.zeros((columns, top + 1), np.int64) if few else None
        self._sparse = [Histogram()] * columns

    def add(self, table: npt.NDArray[np.integer[Any]]) -> None:
        """Count the numbers of a table (rows, columns)."""
        columns = np.ascontiguousarray(table.T, dtype=np.int64)
        if self._dense is None:
            new = map(Histogram.of, columns)
            self._sparse = [a + b for a, b in zip(self._sparse, new, strict=True)]
            return
        for total, column in zip(self._dense, columns, strict=True):
            counts = np.bincount(column)
            total[: len(counts)] += counts

    def histograms(self) -> list[Histogram]:
        """The histogram of each column."""
        if self._dense is None:
            return list(self._sparse)
        found = [np.flatnonzero(counts) for counts in self._dense]
        return [Histogram(f, c[f]) for f, c in zip(found, self._dense, strict=True)]

    def __add__(self, other: Counters) -> Counters:
        """Both, of tables of one width and top."""
        both = Counters(len(self._sparse), 0)
        both._sparse = [a + b for a, b in zip(self._sparse, other._sparse, strict=True)]
        both._dense = None
        if self._dense is not None and other._dense is not None:
            both._dense = self._dense + other._dense
        return both
