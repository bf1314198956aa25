"""What results are made of: one policy at one budget, and two policies in the same runs.

All of it is integers that add up exactly, so it does not matter in which order: which runs are
covered, how often each number of pulls occurred, errors, and sums of regrets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, ldexp
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.core import statistics as intervals
from latebloomer.core.statistics import Estimate
from latebloomer.errors import ResultsError, require
from latebloomer.policies.registry import rank

Ints: TypeAlias = npt.NDArray[np.int64]
Ranges: TypeAlias = tuple[tuple[int, int], ...]  # sorted, disjoint [first, last) that never touch

NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class Counted(ABC):
    """What was counted at one budget, over the runs in `ranges`."""

    budget: int
    unit: int  # regrets are counted in 2^unit
    ranges: Ranges
    regret_sum: int  # in units; of a pair, of the first's regret minus the second's
    regret_squares: int  # in square units

    SAME: ClassVar[tuple[str, ...]] = ("unit",)  # what must agree for runs to be added
    ADDED: ClassVar[tuple[str, ...]] = ("regret_sum", "regret_squares")

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """Labels of the policies."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells these counts from others, and their order."""
        return (*map(rank, self.labels), self.budget)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return count_runs(self.ranges)

    def regret(self) -> Estimate:
        """Return the mean simple regret; of a pair, the first's minus the second's."""
        estimate = intervals.mean(self.regret_sum, self.regret_squares, self.runs)
        return Estimate(*(ldexp(value, self.unit) for value in estimate))

    def need_same_settings(self, other: Self, what: str) -> None:
        """Raise a `ResultsError` unless runs of both can be added."""
        ours, theirs = ({name: getattr(one, name) for name in self.SAME} for one in (self, other))
        need_same(what, ours, theirs)

    def merge(self, other: Self) -> Self:
        """Return the counts of the runs of both."""
        what = f"results of {' and '.join(self.labels)} at budget {self.budget}"
        self.need_same_settings(other, what)
        sums = {name: _sum(getattr(self, name), getattr(other, name)) for name in self.ADDED}
        return replace(self, ranges=join_ranges(self.ranges, other.ranges, what), **sums)


@dataclass(frozen=True, kw_only=True)
class Cell(Counted):
    """A cell of the table policies x budgets: one policy at one budget."""

    policy: str  # its label
    settings: str  # its repr
    method: str  # "pulls" or "sums"
    horizon: int
    means: str  # sha256 of the means up to the horizon
    errors: int
    recommendations: tuple[int, ...]  # by arm
    pulls: tuple[Histogram, ...]  # by arm

    SAME = (*Counted.SAME, "settings", "method", "horizon", "means")
    ADDED = (*Counted.ADDED, "errors", "recommendations", "pulls")

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.policy,)

    def error(self) -> Estimate:
        """Return the probability of recommending a wrong arm."""
        return intervals.share(self.errors, self.runs)


@dataclass(frozen=True, kw_only=True)
class Pair(Counted):
    """Two policies in the same runs, at one budget."""

    first: str  # the labels, in the order of `rank`
    second: str
    only_first: int  # runs in which the first alone erred
    only_second: int

    ADDED = (*Counted.ADDED, "only_first", "only_second")

    @property
    def labels(self) -> tuple[str, ...]:
        return self.first, self.second

    def error(self) -> Estimate:
        """Return the first's error probability minus the second's."""
        return intervals.paired_share(self.only_first, self.only_second, self.runs)

    def swapped(self) -> Pair:
        """Return the same with first and second exchanged."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            only_first=self.only_second,
            only_second=self.only_first,
            regret_sum=-self.regret_sum,
        )

    def in_order(self) -> Pair:
        """Return the pair or its exchange, whichever results keep."""
        return self if rank(self.first) <= rank(self.second) else self.swapped()


class Counts(NamedTuple):
    """What was counted in some runs of an experiment."""

    cells: tuple[Cell, ...]
    pairs: tuple[Pair, ...]


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(a + b for a, b in zip(one, other, strict=True))
    return one + other


def need_same(what: str, ours: Mapping[str, object], theirs: Mapping[str, object]) -> None:
    """Raise a `ResultsError` that names the first thing that differs."""
    for name, value in ours.items():
        if value != theirs[name]:
            raise ResultsError(
                f"Cannot merge {what}: {name} is {value!r} in one and {theirs[name]!r} in the "
                "other. Only results of the same problem, seed and settings can be merged; write "
                "others to another file."
            )


# --- which runs are covered ---


def count_runs(ranges: Ranges) -> int:
    """Return the number of runs.

    >>> count_runs(((0, 10), (15, 20)))
    15
    """
    return sum(last - first for first, last in ranges)


def join_ranges(ours: Ranges, theirs: Ranges, what: str = "these results") -> Ranges:
    """Return both; raise a `ResultsError` if they have a run in common.

    >>> join_ranges(((0, 10), (20, 30)), ((10, 15),))
    ((0, 15), (20, 30))
    >>> join_ranges(((0, 10),), ((5, 15),))
    Traceback (most recent call last):
    latebloomer.errors.ResultsError: Cannot merge these results: both have the runs 5 to 9...
    """
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ours + theirs):
        if joined and first < joined[-1][1]:
            end = min(last, joined[-1][1]) - 1
            raise ResultsError(
                f"Cannot merge {what}: both have the runs {first} to {end}, and a run counts "
                "once. Simulate other runs with first_run=...."
            )
        if joined and first == joined[-1][1]:
            first = joined.pop()[0]
        joined.append((first, last))
    return tuple(joined)


def missing_ranges(ranges: Ranges, first: int, last: int) -> Ranges:
    """Return what is missing of [first, last).

    >>> missing_ranges(((0, 10), (20, 30)), 5, 40)
    ((10, 20), (30, 40))
    """
    starts = [first, *(b for _, b in ranges)]
    ends = [*(a for a, _ in ranges), last]
    holes = [(max(a, first), min(b, last)) for a, b in zip(starts, ends, strict=True)]
    return tuple((a, b) for a, b in holes if a < b)


def covers(ranges: Ranges, run: int) -> bool:
    """Return whether a run is in one of the ranges."""
    return any(first <= run < last for first, last in ranges)


def read_ranges(given: Iterable[Iterable[int]]) -> Ranges:
    """Return the ranges that a results file holds."""
    ranges: Ranges = ()
    for first, last in given:
        ranges = join_ranges(ranges, ((int(first), int(last)),), "a results file")
    return ranges


# --- how often each number occurred ---


class Histogram:
    """Count how often each integer from 0 occurred, exactly, storing only those that did.

    >>> pulls = Histogram.of(np.array([7, 3, 7, 12])) + Histogram.of(np.array([3]))
    >>> pulls
    Histogram({3: 2, 7: 2, 12: 1})
    >>> pulls.mean(), pulls.quantile(0.5)
    (6.4, 7)
    """

    def __init__(self, values: Ints = NONE, counts: Ints = NONE) -> None:
        self.values = values  # sorted
        self.counts = counts  # how often each occurred

    @classmethod
    def of(cls, data: npt.NDArray[np.integer[Any]]) -> Histogram:
        """Return the histogram of an array: by counting unless its numbers are large."""
        if data.size and data.max() > 4 * data.size + 1024:
            return cls(*np.unique(data.astype(np.int64), return_counts=True))
        counts = np.bincount(data)
        values = np.flatnonzero(counts)
        return cls(values, counts[values])

    def __add__(self, other: Histogram) -> Histogram:
        if len(self.values) == len(other.values) and (self.values == other.values).all():
            return Histogram(self.values, self.counts + other.counts)
        values = np.union1d(self.values, other.values)
        counts = np.zeros(len(values), np.int64)
        for one in (self, other):
            counts[np.searchsorted(values, one.values)] += one.counts
        return Histogram(values, counts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self.pairs() == other.pairs()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Histogram({dict(zip(self.values.tolist(), self.counts.tolist(), strict=True))})"

    def pairs(self) -> list[list[int]]:
        """Return [value, count] of each value that occurred, as a results file holds them."""
        return np.stack([self.values, self.counts], axis=1).tolist()

    @classmethod
    def from_pairs(cls, pairs: list[list[int]]) -> Histogram:
        """Return the histogram whose `pairs` are given."""
        values, counts = np.array(pairs, np.int64).reshape(-1, 2).T
        return cls(values.copy(), counts.copy())

    def count(self) -> int:
        """Return how many numbers were counted."""
        return int(self.counts.sum())

    def mean(self) -> float:
        """Return the mean of the numbers: the exact sum divided once."""
        return int(self.values @ self.counts) / self.count()

    def quantile(self, q: float) -> int:
        """Return the smallest value that at least a share `q` of the numbers does not exceed.

        The share is taken as written: 0.1 of 10 numbers is one, though the float is above 1/10.
        """
        require(0 <= q <= 1, "q", q, "in [0, 1]", "it is a share of the runs")
        needed = max(1, ceil(Fraction(repr(float(q))) * self.count()))
        return int(self.values[np.searchsorted(np.cumsum(self.counts), needed)])
