"""What results are made of: one policy at one budget, and two policies in the same runs.

All of it is whole numbers that add up exactly, so it does not matter in which order: which runs
are covered, how often each number of pulls occurred, errors, and sums of regrets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, ldexp
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.core import statistics as intervals
from latebloomer.core.statistics import Estimate
from latebloomer.errors import ResultsError, require
from latebloomer.policies.registry import rank

Ints: TypeAlias = npt.NDArray[np.int64]
Ranges: TypeAlias = tuple[tuple[int, int], ...]  # sorted, disjoint [first, last) that never touch

NONE = np.zeros(0, np.int64)
# What must agree for the runs of one policy at one budget to be counted together.
SETTINGS = ("settings", "method", "horizon", "means", "unit")


@dataclass(frozen=True)
class Cell:
    """A cell of the table policies x budgets: one policy at one budget, over some runs."""

    policy: str  # its label
    settings: str  # its repr
    method: str  # "pulls" or "sums"
    budget: int
    horizon: int
    means: str  # sha256 of the means up to the horizon
    unit: int  # regrets are counted in 2^unit
    ranges: Ranges  # of runs
    errors: int
    recommendations: tuple[int, ...]  # by arm
    regret_sum: int  # in units
    regret_squares: int  # in square units
    pulls: tuple[Histogram, ...]  # by arm

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells cells apart, and their order."""
        return (*rank(self.policy), self.budget)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return count_runs(self.ranges)

    def error(self) -> Estimate:
        """The probability to recommend a wrong arm."""
        return intervals.share(self.errors, self.runs)

    def regret(self) -> Estimate:
        """The mean simple regret."""
        return _mean_regret(self)

    def merge(self, other: Cell) -> Cell:
        """The runs of both."""
        what = f"results of {self.policy} at budget {self.budget}"
        ours, theirs = ({name: getattr(c, name) for name in SETTINGS} for c in (self, other))
        need_same(what, ours, theirs)
        pulls = zip(self.pulls, other.pulls, strict=True)
        counts = zip(self.recommendations, other.recommendations, strict=True)
        return dataclasses.replace(
            self,
            ranges=join_ranges(self.ranges, other.ranges, what),
            errors=self.errors + other.errors,
            recommendations=tuple(a + b for a, b in counts),
            regret_sum=self.regret_sum + other.regret_sum,
            regret_squares=self.regret_squares + other.regret_squares,
            pulls=tuple(a + b for a, b in pulls),
        )


@dataclass(frozen=True)
class Pair:
    """Two policies at one budget, over the runs in `ranges`, which both played."""

    first: str  # the labels, in the order of `rank`
    second: str
    budget: int
    unit: int
    ranges: Ranges
    only_first: int  # runs in which the first alone erred
    only_second: int
    regret_sum: int  # of regret of the first minus regret of the second, in units
    regret_squares: int  # of the same differences

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells pairs apart, and their order."""
        return (*rank(self.first), *rank(self.second), self.budget)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return count_runs(self.ranges)

    def error(self) -> Estimate:
        """The error of the first minus that of the second."""
        return intervals.paired_share(self.only_first, self.only_second, self.runs)

    def regret(self) -> Estimate:
        """The mean regret of the first minus that of the second."""
        return _mean_regret(self)

    def swapped(self) -> Pair:
        """The same, seen from the other side."""
        return dataclasses.replace(
            self,
            first=self.second,
            second=self.first,
            only_first=self.only_second,
            only_second=self.only_first,
            regret_sum=-self.regret_sum,
        )

    def in_order(self) -> Pair:
        """The one of both sides that results keep."""
        return self if rank(self.first) <= rank(self.second) else self.swapped()

    def merge(self, other: Pair) -> Pair:
        """The runs of both, whose cells have been found to agree."""
        what = f"{self.first} with {self.second} at budget {self.budget}"
        return dataclasses.replace(
            self,
            ranges=join_ranges(self.ranges, other.ranges, what),
            only_first=self.only_first + other.only_first,
            only_second=self.only_second + other.only_second,
            regret_sum=self.regret_sum + other.regret_sum,
            regret_squares=self.regret_squares + other.regret_squares,
        )


class Counts(NamedTuple):
    """What was found in some runs of an experiment."""

    cells: tuple[Cell, ...]
    pairs: tuple[Pair, ...]

    def only(self, labels: Collection[str], pairs: Collection[tuple[str, str]]) -> Counts:
        """That of some policies and of some pairs."""
        return Counts(
            tuple(cell for cell in self.cells if cell.policy in labels),
            tuple(pair for pair in self.pairs if (pair.first, pair.second) in pairs),
        )


def _mean_regret(of: Cell | Pair) -> Estimate:
    estimate = intervals.mean(of.regret_sum, of.regret_squares, of.runs)
    return Estimate(*(ldexp(value, of.unit) for value in estimate))


def need_same(what: str, ours: Mapping[str, object], theirs: Mapping[str, object]) -> None:
    """Raise a `ResultsError` that names the first thing that differs."""
    for name, value in ours.items():
        if value != theirs[name]:
            raise ResultsError(
                f"{what} cannot be merged: {name} is {value!r} in one and {theirs[name]!r} in "
                "the other"
            )


# --- which runs are covered ---


def count_runs(ranges: Ranges) -> int:
    """How many runs there are.

    >>> count_runs(((0, 10), (15, 20)))
    15
    """
    return sum(last - first for first, last in ranges)


def join_ranges(ours: Ranges, theirs: Ranges, what: str = "these results") -> Ranges:
    """Both, which must have no run in common.

    >>> join_ranges(((0, 10), (20, 30)), ((10, 15),))
    ((0, 15), (20, 30))
    >>> join_ranges(((0, 10),), ((5, 15),))
    Traceback (most recent call last):
    latebloomer.errors.ResultsError: these results: runs 5 to 9 are in both; ...
    """
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ours + theirs):
        if joined and first < joined[-1][1]:
            end = min(last, joined[-1][1]) - 1
            raise ResultsError(
                f"{what}: runs {first} to {end} are in both; a run counts once, so merge results "
                "of different run ranges"
            )
        if joined and first == joined[-1][1]:
            first = joined.pop()[0]
        joined.append((first, last))
    return tuple(joined)


def missing_ranges(ranges: Ranges, first: int, last: int) -> Ranges:
    """What of [first, last) is not covered.

    >>> missing_ranges(((0, 10), (20, 30)), 5, 40)
    ((10, 20), (30, 40))
    """
    starts = [first, *(b for _, b in ranges)]
    ends = [*(a for a, _ in ranges), last]
    holes = [(max(a, first), min(b, last)) for a, b in zip(starts, ends, strict=True)]
    return tuple((a, b) for a, b in holes if a < b)


def read_ranges(given: Iterable[Iterable[int]]) -> Ranges:
    """Ranges as a results file has them."""
    ranges: Ranges = ()
    for first, last in given:
        ranges = join_ranges(ranges, ((int(first), int(last)),), "a results file")
    return ranges


# --- how often each number occurred ---


class Histogram:
    """How often each whole number from 0 occurred, exactly, storing only those that did.

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
        for one in (self, other):
            counts[np.searchsorted(values, one.values)] += one.counts
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
