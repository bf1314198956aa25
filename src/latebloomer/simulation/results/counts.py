"""Counts and sums over runs, which do not depend on how the runs were divided.

All values are integers that add up exactly: the covered runs, the frequency of each number of
pulls, errors, and sums of regrets. So any chunks, in any order, on any machine, give the same
bits. Regrets become integers by rounding to a unit, 2^-40 of the scale of the problem's means (a
relative 1e-12).
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, ldexp, nan
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from latebloomer.core import statistics
from latebloomer.core.statistics import Estimate
from latebloomer.errors import ResultsError, require
from latebloomer.policies.registry import rank

# Sorted, disjoint ranges [first, last) with gaps between them.
Ranges: TypeAlias = tuple[tuple[int, int], ...]
# Pairs (horizon, arm): from this horizon on, this arm is best.
Changes: TypeAlias = tuple[tuple[int, int], ...]
Histogram: TypeAlias = "Counter[int]"  # number of runs with each number of pulls


@dataclass(frozen=True)
class Origin:
    """The origin of results; results of different origins are not merged."""

    problem: str  # its label
    arms: tuple[str, ...]  # their names
    noise: str
    opening: str  # sha256 of the means of the first pulls
    seed: int


@dataclass(frozen=True, kw_only=True)
class Counted(ABC):
    """Counts at one budget over the runs in `ranges`."""

    budget: int
    unit: int  # regrets are counted in units of 2^unit
    ranges: Ranges
    regret_sum: int  # in units; for a pair, sum of the first's regret minus the second's
    regret_squares: int  # in square units
    # Sum of regrets while learning, in `total_unit`; None: unknown.
    learning_sum: int | None = None
    learning_squares: int | None = None

    SAME: ClassVar[tuple[str, ...]] = ("unit",)  # fields that must be equal for runs to be added
    ADDED: ClassVar[tuple[str, ...]] = (
        "regret_sum", "regret_squares", "learning_sum", "learning_squares",
    )  # fmt: skip

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """Labels of the policies."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Key that identifies these counts and sorts them."""
        return (*map(rank, self.labels), self.budget)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return sum(last - first for first, last in self.ranges)

    def regret(self) -> Estimate:
        """Return the mean simple regret; for a pair, the first's minus the second's."""
        estimate = statistics.mean(self.regret_sum, self.regret_squares, self.runs)
        return Estimate(*(ldexp(value, self.unit) for value in estimate))

    @property
    def total_unit(self) -> int:
        """Exponent of the unit, a power of two, for sums over the pulls of a run."""
        return self.unit + self.budget.bit_length()

    def learning_regret(self) -> Estimate:
        """Return the mean regret while learning; nan if the best sequence of pulls is unknown."""
        if self.learning_sum is None or self.learning_squares is None:
            return Estimate(nan, nan, nan)
        estimate = statistics.mean(self.learning_sum, self.learning_squares, self.runs)
        return Estimate(*(ldexp(value, self.total_unit) for value in estimate))

    def need_same_settings(self, other: Self, what: str) -> None:
        """Raise a `ResultsError` if the runs of both cannot be added."""
        ours, theirs = (
            {name: getattr(counted, name) for name in self.SAME} for counted in (self, other)
        )
        need_same(what, ours, theirs)

    def merge(self, other: Self) -> Self:
        """Return the added counts of both sets of runs."""
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
        return statistics.share(self.errors, self.runs)


@dataclass(frozen=True, kw_only=True)
class Pair(Counted):
    """Two policies in the same runs, at one budget."""

    first: str  # labels of both policies, in the order of `rank`
    second: str
    only_first: int  # number of runs in which only the first policy was wrong
    only_second: int

    ADDED = (*Counted.ADDED, "only_first", "only_second")

    @property
    def labels(self) -> tuple[str, ...]:
        return self.first, self.second

    def error(self) -> Estimate:
        """Return the first's error probability minus the second's."""
        return statistics.paired_share(self.only_first, self.only_second, self.runs)

    def swapped(self) -> "Pair":
        """Return the pair with first and second exchanged."""
        learning = None if self.learning_sum is None else -self.learning_sum
        other: Any = {
            "first": self.second, "second": self.first, "regret_sum": -self.regret_sum,
            "learning_sum": learning,
        }  # fmt: skip
        return replace(self, only_first=self.only_second, only_second=self.only_first, **other)


class Counts(NamedTuple):
    """The counts of some runs of an experiment."""

    cells: tuple[Cell, ...]
    pairs: tuple[Pair, ...]


def _sum(ours: Any, theirs: Any) -> Any:
    if ours is None or theirs is None:
        return None
    if isinstance(ours, tuple):
        return tuple(a + b for a, b in zip(ours, theirs, strict=True))
    return ours + theirs


def need_same(what: str, ours: Mapping[str, object], theirs: Mapping[str, object]) -> None:
    """Raise a `ResultsError` that names the first difference, if there is one."""
    for name, value in ours.items():
        if value != theirs[name]:
            raise ResultsError(
                f"Cannot merge {what}: {name} is {value!r} in one and {theirs[name]!r} in the "
                "other. Write results of another problem, seed or setting to another file."
            )


def mean_of(numbers: Histogram) -> float:
    """Return the mean of the numbers: the exact sum, divided once.

    >>> mean_of(Counter({3: 2, 7: 2, 12: 1}))
    6.4
    """
    return sum(value * count for value, count in numbers.items()) / numbers.total()


def quantile(numbers: Histogram, q: float) -> int:
    """Return the smallest value that at least a share `q` of the numbers does not exceed.

    The share is used as its decimal text: 0.1 of 10 numbers is one, although the float 0.1 is
    above 1/10.

    >>> quantile(Counter({3: 2, 7: 2, 12: 1}), 0.5)
    7
    """
    require(0 <= q <= 1, "q", q, "in [0, 1]", "it is a share of the runs")
    values, counts = zip(*sorted(numbers.items()), strict=True)
    needed = max(1, ceil(Fraction(repr(float(q))) * numbers.total()))
    return int(values[np.searchsorted(np.cumsum(counts), needed)])


# --- ranges of runs ---


def join_ranges(ours: Ranges, theirs: Ranges, what: str = "these results") -> Ranges:
    """Return the union of both ranges; raise a `ResultsError` if they have a run in common.

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
    """Return the runs of [first, last) that are missing in `ranges`.

    >>> missing_ranges(((0, 10), (20, 30)), 5, 40)
    ((10, 20), (30, 40))
    """
    starts = [first, *(b for _, b in ranges)]
    ends = [*(a for a, _ in ranges), last]
    holes = [(max(a, first), min(b, last)) for a, b in zip(starts, ends, strict=True)]
    return tuple((a, b) for a, b in holes if a < b)
