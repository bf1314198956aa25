"""Counts and sums over runs that do not depend on how the runs were split up.

Everything here is an integer that adds up exactly, so any chunks, in any order, on any machine,
give the same bits: which runs are covered, how often each number of pulls occurred, errors, and
sums of regrets. Regrets become integers by rounding them to a unit, 2^-40 of the scale of the
problem's means (a relative 1e-12). A tally is fed chunks of runs and keeps no run.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import ceil, frexp, ldexp
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.core import statistics
from latebloomer.core.statistics import Estimate
from latebloomer.errors import ResultsError, require
from latebloomer.policies.registry import rank
from latebloomer.simulation.experiment import Experiment
from latebloomer.theory.complexity import TIE

AnyInts: TypeAlias = npt.NDArray[np.integer[Any]]
Ranges: TypeAlias = tuple[tuple[int, int], ...]  # sorted, disjoint [first, last) that never touch
Histogram: TypeAlias = "Counter[int]"  # how often each number of pulls occurred

BITS = 40  # of a regret; it is split into two halves of 20
HALF = 2 ** (BITS // 2)
BLOCK = 8192  # runs: regrets, and products of two halves, sum to at most 2^(40 + 13), an int64
SMALLEST_SCALE = -900  # so that the unit and its inverse are ordinary floats


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
        return sum(last - first for first, last in self.ranges)

    def regret(self) -> Estimate:
        """Return the mean simple regret; of a pair, the first's minus the second's."""
        estimate = statistics.mean(self.regret_sum, self.regret_squares, self.runs)
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
        return statistics.share(self.errors, self.runs)


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
        return statistics.paired_share(self.only_first, self.only_second, self.runs)

    def swapped(self) -> "Pair":
        """Return the same with first and second exchanged."""
        other: Any = {"first": self.second, "second": self.first, "regret_sum": -self.regret_sum}
        return replace(self, only_first=self.only_second, only_second=self.only_first, **other)


class Counts(NamedTuple):
    """What was counted in some runs of an experiment."""

    cells: tuple[Cell, ...]
    pairs: tuple[Pair, ...]


# What an engine yields: some runs of each experiment come in at a time.
CountedRuns: TypeAlias = Generator[tuple[Experiment, Counts], None, None]


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
                "other. Write results of another problem, seed or setting to another file."
            )


# --- counting ---


class Tally:
    r"""Count what the policies of an experiment did in the same runs.

    An error is a recommended arm whose mean at the horizon H is not the highest. The simple
    regret of a run is :math:`\mu_{i^*}(H) - \mu_I(N_I)` where arm I is recommended after
    :math:`N_I` pulls [Mussi24, Sec. 2]; an arm recommended without a pull counts as
    pulled once.

    >>> from latebloomer import UCBE, Problem
    >>> from latebloomer.simulation.experiment import experiment_of
    >>> problem = Problem([[0.25, 0.5], [0.5, 0.75]])
    >>> tally = Tally(experiment_of(problem, {"ucb-e": UCBE()}, 3, 2, 0, "pulls"))
    >>> tally.add(0, np.array([[1, 0, 1]]), np.array([[[1, 2], [1, 2], [2, 1]]]))
    >>> cell = tally.cells()[0]
    >>> cell.runs, cell.errors, cell.recommendations, cell.regret().value  # of 0, .5 and .25
    (3, 1, (1, 2), 0.25)
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment, self.means = experiment, experiment.means
        final, largest = self.means.summary.final, self.means.summary.largest
        self._wrong, self._best = final < final.max() - TIE, final.max()
        # The unit is 2 to this power: no regret is larger than twice the largest mean.
        self.unit = max(frexp(2 * largest)[1], SMALLEST_SCALE) - BITS
        self.ranges: Ranges = ()
        count = len(experiment.policies)
        self._errors = np.zeros((count, count), np.int64)  # of two policies in the same run
        self._regrets = np.zeros(count, dtype=object)  # in units
        self._products = np.zeros((count, count), dtype=object)  # of two regrets, in square units
        self._recommendations = np.zeros((count, experiment.arms), np.int64)
        self._pulls = [[Counter[int]() for _ in final] for _ in range(count)]

    def add(self, first_run: int, recommended: AnyInts, pulls: AnyInts) -> None:
        """Count the runs `first_run`, `first_run` + 1, ...

        `recommended` is the recommended arm by (policy, run), `pulls` the pulls by (policy, run,
        arm), with policies in the order of the experiment.
        """
        runs = recommended.shape[1]
        new = ((int(first_run), int(first_run) + runs),)
        self.ranges = join_ranges(self.ranges, new, "runs in a tally")
        for start in range(0, runs, BLOCK):
            block = slice(start, start + BLOCK)
            self._add_block(recommended[:, block], pulls[:, block])

    def counts(self) -> Counts:
        """Return what was counted of all policies and pairs; nothing if there are no runs."""
        if not self.ranges:
            return Counts((), ())
        return Counts(tuple(self.cells()), tuple(self.pairs()))

    def cells(self) -> list[Cell]:
        """Return what was counted of each policy."""
        return [
            Cell(
                policy=label,
                settings=repr(policy),
                method=self.experiment.method,
                horizon=self.experiment.horizon,
                means=self.means.summary.digest,
                errors=int(self._errors[i, i]),
                recommendations=tuple(self._recommendations[i].tolist()),
                regret_sum=self._regrets[i],
                regret_squares=self._products[i, i],
                pulls=tuple(self._pulls[i]),
                **self._where(),
            )
            for i, (label, policy) in enumerate(self.experiment.policies.items())
        ]

    def pairs(self) -> list[Pair]:
        """Return what was counted of each pair of policies."""
        labels, wrong, products = list(self.experiment.policies), self._errors, self._products
        order = sorted(range(len(labels)), key=lambda i: rank(labels[i]))
        return [
            Pair(
                first=labels[i],
                second=labels[j],
                only_first=int(wrong[i, i] - wrong[i, j]),
                only_second=int(wrong[j, j] - wrong[i, j]),
                regret_sum=self._regrets[i] - self._regrets[j],
                regret_squares=products[i, i] + products[j, j] - 2 * products[i, j],
                **self._where(),
            )
            for i, j in combinations(order, 2)
        ]

    def _where(self) -> dict[str, Any]:
        return {"budget": self.experiment.budget, "unit": self.unit, "ranges": self.ranges}

    def _add_block(self, recommended: AnyInts, pulls: AnyInts) -> None:
        n = np.take_along_axis(pulls, recommended[:, :, None], axis=2)[:, :, 0]
        reached = self.means.table[recommended, np.maximum(n, 1) - 1]
        units = np.rint((self._best - reached) * 2.0**-self.unit).astype(np.int64)
        high, low = units // HALF, units % HALF
        mixed = high @ low.T
        self._regrets += units.sum(axis=1).astype(object)
        self._products += (high @ high.T).astype(object) * HALF**2
        self._products += (mixed + mixed.T).astype(object) * HALF + (low @ low.T).astype(object)
        wrong = self._wrong[recommended].astype(np.int64)
        self._errors += wrong @ wrong.T
        for i, (arms, by_run) in enumerate(zip(recommended, pulls, strict=True)):
            self._recommendations[i] += np.bincount(arms, minlength=self.means.arms)
            for counter, column in zip(self._pulls[i], by_run.T, strict=True):
                counter.update(histogram(column))


# --- how often each number occurred ---


def histogram(data: AnyInts) -> Histogram:
    """Return how often each number from 0 occurred, exactly: by counting unless some are large."""
    if data.size and data.max() > 4 * data.size + 1024:
        values, counts = np.unique(data, return_counts=True)
    else:
        counts = np.bincount(data)
        values = np.flatnonzero(counts)
        counts = counts[values]
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def mean_of(found: Histogram) -> float:
    """Return the mean of the numbers: the exact sum divided once.

    >>> mean_of(Counter({3: 2, 7: 2, 12: 1}))
    6.4
    """
    return sum(value * count for value, count in found.items()) / found.total()


def quantile(found: Histogram, q: float) -> int:
    """Return the smallest value that at least a share `q` of the numbers does not exceed.

    The share is taken as written: 0.1 of 10 numbers is one, though the float is above 1/10.

    >>> quantile(Counter({3: 2, 7: 2, 12: 1}), 0.5)
    7
    """
    require(0 <= q <= 1, "q", q, "in [0, 1]", "it is a share of the runs")
    values, counts = zip(*sorted(found.items()), strict=True)
    needed = max(1, ceil(Fraction(repr(float(q))) * found.total()))
    return int(values[np.searchsorted(np.cumsum(counts), needed)])


# --- which runs are covered ---


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
