"""Counts and sums over runs that do not depend on how the runs were split up.

A tally is fed chunks of runs and keeps no run. Everything in it is an integer, so any chunks, in
any order, on any machine, give the same bits. Regrets become integers by rounding them to a unit,
2^-40 of the scale of the problem's means (a relative 1e-12).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import frexp
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.errors import SettingError, require
from latebloomer.policies.base import Policy
from latebloomer.problems.curves import Floats
from latebloomer.problems.problem import Problem
from latebloomer.simulation.counts import Cell, Counts, Histogram, Pair, Ranges, join_ranges
from latebloomer.simulation.experiment import Experiment, MeanTable
from latebloomer.theory.complexity import TIE

AnyInts: TypeAlias = npt.NDArray[np.integer[Any]]

BITS = 40  # of a regret; it is split into two halves whose products are exact in float64
HALF = 2.0 ** (BITS // 2)
BLOCK = 8192  # runs whose products of halves sum to at most 2^(20 + 20 + 13) = 2^53
SMALLEST_SCALE = -900  # so that the unit and its inverse are ordinary floats


class Tally:
    r"""Count what a set of policies did in the same runs, at one budget.

    `policies` gives each policy, with its settings for this budget, under its label; `means` has
    the problem's means, or is the whole table of them, ``means[i, n - 1]`` for the n-th pull of
    arm i, up to the horizon at least.

    An error is a recommended arm whose mean at the horizon H is not the highest. The simple
    regret of a run is :math:`\mu_{i^*}(H) - \mu_I(N_I)` where arm I is recommended after
    :math:`N_I` pulls [Mussi24, Sec. 2]; an arm recommended without a pull counts as
    pulled once.

    >>> from latebloomer.policies.rising_sr import RisingSR
    >>> tally = Tally({"r-sr": RisingSR()}, np.array([[0.25, 0.5], [0.5, 0.75]]), budget=2)
    >>> tally.add(0, np.array([[1, 0, 1]]), np.array([[[0, 2], [1, 1], [1, 1]]]))
    >>> cell = tally.cells()[0]
    >>> cell.runs, cell.errors, cell.recommendations, cell.regret().value  # of 0, .5 and .25
    (3, 1, (1, 2), 0.25)
    """

    def __init__(
        self,
        policies: Mapping[str, Policy],
        means: MeanTable | Floats,
        budget: int,
        horizon: int | None = None,
        method: str = "pulls",
    ) -> None:
        self.policies, self.budget, self.method = dict(policies), int(budget), method
        self.horizon = self.budget if horizon is None else int(horizon)
        self.means = means if isinstance(means, MeanTable) else _up_to(means, self.horizon)
        final = self.means.summary.final
        self._wrong, self._best = final < final.max() - TIE, float(final.max())
        self.unit = _scale(self.means.summary.largest) - BITS  # the unit is 2 to this power
        self.ranges: Ranges = ()
        arms, count = len(final), len(self.policies)
        self._gram = np.zeros((3 * count + 1,) * 2, dtype=object)
        self._recommendations = np.zeros((count, arms), np.int64)
        self._pulls = [[Histogram()] * arms for _ in range(count)]

    @classmethod
    def of(cls, experiment: Experiment) -> Tally:
        """Return a tally of an experiment, without runs."""
        budget, horizon = experiment.budget, experiment.horizon
        return cls(experiment.policies, experiment.means, budget, horizon, experiment.method)

    def add(self, first_run: int, recommended: AnyInts, pulls: AnyInts) -> None:
        """Count the runs `first_run`, `first_run` + 1, ...

        `recommended` is the recommended arm by (policy, run), `pulls` the pulls by (policy, run,
        arm), with policies in the order of `policies`.
        """
        self._check(recommended, pulls)
        runs = recommended.shape[1]
        if runs == 0:
            return
        new = ((int(first_run), int(first_run) + runs),)
        self.ranges = join_ranges(self.ranges, new, "runs in a tally")
        work = np.ones((len(self._gram), min(runs, BLOCK)))
        for start in range(0, runs, BLOCK):
            block = slice(start, start + BLOCK)
            self._add_block(recommended[:, block], pulls[:, block], work)

    def counts(self) -> Counts:
        """Return what was counted of all policies and pairs; nothing if there are no runs."""
        if not self.ranges:
            return Counts((), ())
        return Counts(tuple(self.cells()), tuple(self.pairs()))

    def cells(self) -> list[Cell]:
        """Return what was counted of each policy."""
        sums, products = self._sums(), self._cross()
        return [
            Cell(
                policy=label,
                settings=repr(policy),
                method=self.method,
                budget=self.budget,
                horizon=self.horizon,
                means=self.means.summary.digest,
                unit=self.unit,
                ranges=self.ranges,
                errors=int(self._recommendations[i] @ self._wrong),
                recommendations=tuple(self._recommendations[i].tolist()),
                regret_sum=sums[i],
                regret_squares=products[i, i],
                pulls=tuple(self._pulls[i]),
            )
            for i, (label, policy) in enumerate(self.policies.items())
        ]

    def pairs(self) -> list[Pair]:
        """Return what was counted of each pair of policies."""
        labels, sums, products = list(self.policies), self._sums(), self._cross()
        wrong = self._gram[self._rows(0), self._rows(0)]
        return [
            Pair(
                first=labels[i],
                second=labels[j],
                budget=self.budget,
                unit=self.unit,
                ranges=self.ranges,
                only_first=wrong[i, i] - wrong[i, j],
                only_second=wrong[j, j] - wrong[i, j],
                regret_sum=sums[i] - sums[j],
                regret_squares=products[i, i] + products[j, j] - 2 * products[i, j],
            ).in_order()
            for i in range(len(labels))
            for j in range(i + 1, len(labels))
        ]

    def _add_block(self, recommended: AnyInts, pulls: AnyInts, work: Floats) -> None:
        self._gram += self._products(recommended, pulls, work[:, : recommended.shape[1]])
        for i, (arms, by_run) in enumerate(zip(recommended, pulls, strict=True)):
            self._recommendations[i] += np.bincount(arms, minlength=self.means.arms)
            new = map(Histogram.of, np.ascontiguousarray(by_run.T))
            self._pulls[i] = [a + b for a, b in zip(self._pulls[i], new, strict=True)]

    def _products(
        self, recommended: AnyInts, pulls: AnyInts, table: Floats
    ) -> npt.NDArray[np.object_]:
        """Return sums of products, over a block, of 1, errors and both halves of regrets.

        All are exact. `table` is room for these numbers by run; its first row is 1.
        """
        wrong, high, low = (table[self._rows(kind)] for kind in range(3))
        begin = np.arange(recommended.shape[1]) * self.means.arms
        for i, arms in enumerate(recommended):
            n = np.maximum(pulls[i].reshape(-1).take(begin + arms), 1)
            units = self._units(arms, n)
            wrong[i] = self._wrong.take(arms)
            np.floor(units / HALF, out=high[i])
            np.subtract(units, HALF * high[i], out=low[i])
        return (table @ table.T).astype(np.int64).astype(object)

    def _units(self, arms: AnyInts, n: AnyInts) -> Floats:
        """Return regrets as integer numbers of units, at most 2^40 in size."""
        begin = np.arange(self.means.arms) * self.means.longest - 1
        reached = self.means.table.reshape(-1).take(begin.take(arms) + n)
        return np.rint((self._best - reached) * 2.0**-self.unit)

    def _rows(self, kind: int) -> slice:
        """Return where errors (0), high halves (1) and low halves (2) are in the products."""
        count = len(self.policies)
        return slice(1 + kind * count, 1 + (kind + 1) * count)

    def _sums(self) -> list[int]:
        """Return the sum of each policy's regrets, in units."""
        ones = self._gram[0]
        return list(ones[self._rows(1)] * int(HALF) + ones[self._rows(2)])

    def _cross(self) -> npt.NDArray[np.object_]:
        """Return sums of products of two policies' regrets, in square units."""
        high, low, half = self._rows(1), self._rows(2), int(HALF)
        mixed = self._gram[high, low] + self._gram[low, high]
        return self._gram[high, high] * half**2 + mixed * half + self._gram[low, low]

    def _check(self, recommended: AnyInts, pulls: AnyInts) -> None:
        count, arms = len(self.policies), self.means.arms
        shape = (count, *recommended.shape[1:2], arms)
        if recommended.ndim != 2 or pulls.shape != shape or len(recommended) != count:
            raise SettingError(
                f"recommended has shape {recommended.shape} and pulls {pulls.shape}, but they "
                f"must be ({count}, runs) and ({count}, runs, {arms}): one row per policy."
            )
        if recommended.size:
            _within("recommended", recommended, arms - 1)
            _within("pulls", pulls, self.means.longest)


def _up_to(means: Floats, horizon: int) -> MeanTable:
    table = np.asarray(means, dtype=np.float64)
    require(
        table.ndim == 2 and table.shape[1] >= horizon >= 1, "means", table.shape,
        f"a table (arms, pulls) up to the horizon {horizon} at least", "arms are compared there",
    )  # fmt: skip
    return MeanTable(Problem(table), horizon, horizon)


def _scale(largest: float) -> int:
    """Return the power of two that no regret exceeds: twice the largest mean, or more."""
    return max(frexp(2 * largest)[1], SMALLEST_SCALE)


def _within(name: str, values: AnyInts, most: int) -> None:
    low, high = int(values.min()), int(values.max())
    require(low >= 0 and high <= most, name, (low, high), f"within 0 and {most}",
            "the problem has no more")  # fmt: skip
