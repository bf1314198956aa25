"""What results are made of: one policy at one budget, and two policies in the same runs.

Both hold whole numbers only and add up exactly, so it does not matter in which order.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import ldexp
from typing import Any

from latebloomer.core import statistics as intervals
from latebloomer.core.statistics import Estimate
from latebloomer.policies.registry import rank
from latebloomer.simulation import run_ranges as ranges
from latebloomer.simulation.histogram import Histogram
from latebloomer.simulation.run_ranges import Ranges, need_same


@dataclass(frozen=True)
class Cell:
    """One policy at one budget, over the runs in `ranges`."""

    policy: str  # its label
    settings: str  # its repr
    method: str  # "pulls" or "sums"
    budget: int
    horizon: int
    means: str  # sha256 of the means up to the horizon
    unit: int  # regrets are counted in 2^unit
    ranges: Ranges
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
        return ranges.count(self.ranges)

    def error(self) -> Estimate:
        """The probability to recommend a wrong arm."""
        return intervals.share(self.errors, self.runs)

    def regret(self) -> Estimate:
        """The mean simple regret."""
        return _scaled(intervals.mean(self.regret_sum, self.regret_squares, self.runs), self.unit)

    def merge(self, other: Cell) -> Cell:
        """The runs of both."""
        what = f"results of {self.policy} at budget {self.budget}"
        names = ("settings", "method", "horizon", "means", "unit")
        need_same(what, _pick(self, names), _pick(other, names))
        pulls = zip(self.pulls, other.pulls, strict=True)
        counts = zip(self.recommendations, other.recommendations, strict=True)
        return dataclasses.replace(
            self,
            ranges=ranges.join(self.ranges, other.ranges, what),
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
        return ranges.count(self.ranges)

    def error(self) -> Estimate:
        """The error of the first minus that of the second."""
        return intervals.paired_share(self.only_first, self.only_second, self.runs)

    def regret(self) -> Estimate:
        """The mean regret of the first minus that of the second."""
        return _scaled(intervals.mean(self.regret_sum, self.regret_squares, self.runs), self.unit)

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
            ranges=ranges.join(self.ranges, other.ranges, what),
            only_first=self.only_first + other.only_first,
            only_second=self.only_second + other.only_second,
            regret_sum=self.regret_sum + other.regret_sum,
            regret_squares=self.regret_squares + other.regret_squares,
        )


def _scaled(estimate: Estimate, unit: int) -> Estimate:
    return Estimate(*(ldexp(value, unit) for value in estimate))


def _pick(cell: Cell, names: tuple[str, ...]) -> dict[str, object]:
    return {name: getattr(cell, name) for name in names}
