"""A tally counts what policies did in the same runs, chunk by chunk, without storing runs."""

from collections import Counter
from collections.abc import Generator
from itertools import combinations
from math import frexp
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.policies.registry import rank
from latebloomer.problems.curves import Floats
from latebloomer.simulation import hindsight
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.results.counts import (
    Cell,
    Counts,
    Histogram,
    Pair,
    Ranges,
    join_ranges,
)
from latebloomer.theory.complexity import TIE

AnyInts: TypeAlias = npt.NDArray[np.integer[Any]]

BITS = 40  # bits of a regret, which is split into two halves of 20 bits
HALF = 2 ** (BITS // 2)
# Runs added at a time: sums of regrets, and of products of two halves, are at most 2^(40 + 13).
BLOCK = 8192
SMALLEST_SCALE = -900  # smallest exponent, so that the unit and its inverse are normal floats


# The type of what an engine yields: counts of some runs of an experiment.
CountedRuns: TypeAlias = Generator[tuple[Experiment, Counts], None, None]


# --- counting ---


class Tally:
    r"""Count what the policies of an experiment did in the same runs.

    An error is a recommended arm whose mean at the horizon H is not the highest. The simple regret
    of a run is :math:`\mu_{i^*}(H) - \mu_I(N_I)`, where arm I is recommended after :math:`N_I`
    pulls [Mussi24, Sec. 2]; an arm recommended without a pull counts as pulled once. The regret
    while learning is how much more the best sequence of as many pulls would have earned
    [Metelli22]; it depends only on the number of pulls of each arm.

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
        # The unit is 2 to this power, because no regret is larger than twice the largest mean.
        self.unit = max(frexp(2 * largest)[1], SMALLEST_SCALE) - BITS
        self.ranges: Ranges = ()
        count = len(experiment.policies)
        # Number of runs in which both of two policies were wrong.
        self._errors = np.zeros((count, count), np.int64)
        self._regrets, self._learning = Moments(count), Moments(count)
        self._totals = hindsight.totals(self.means.table)
        self._recommendations = np.zeros((count, experiment.arms), np.int64)
        self._pulls = [[Counter[int]() for _ in final] for _ in range(count)]

    def add(self, first_run: int, recommended: AnyInts, pulls: AnyInts) -> None:
        """Add the runs `first_run`, `first_run` + 1, ... to the counts.

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
        """Return the counts of all policies and pairs; empty if there are no runs."""
        if not self.ranges:
            return Counts((), ())
        return Counts(tuple(self.cells()), tuple(self.pairs()))

    def cells(self) -> list[Cell]:
        """Return the counts of each policy."""
        return [
            Cell(
                policy=label,
                settings=repr(policy),
                method=self.experiment.method,
                horizon=self.experiment.horizon,
                means=self.means.summary.digest,
                errors=int(self._errors[i, i]),
                recommendations=tuple(self._recommendations[i].tolist()),
                regret_sum=self._regrets.sums[i],
                regret_squares=self._regrets.products[i, i],
                **self._while_learning(i, i),
                pulls=tuple(self._pulls[i]),
                **self._where(),
            )
            for i, (label, policy) in enumerate(self.experiment.policies.items())
        ]

    def pairs(self) -> list[Pair]:
        """Return the counts of each pair of policies."""
        labels, wrong, regrets = list(self.experiment.policies), self._errors, self._regrets
        order = sorted(range(len(labels)), key=lambda i: rank(labels[i]))
        return [
            Pair(
                first=labels[i],
                second=labels[j],
                only_first=int(wrong[i, i] - wrong[i, j]),
                only_second=int(wrong[j, j] - wrong[i, j]),
                regret_sum=regrets.sums[i] - regrets.sums[j],
                regret_squares=regrets.squares_of_difference(i, j),
                **self._while_learning(i, j),
                **self._where(),
            )
            for i, j in combinations(order, 2)
        ]

    def _while_learning(self, i: int, j: int) -> dict[str, Any]:
        """Return the sums of regrets while learning, of one policy or the difference of two."""
        if self.means.best_totals is None:
            return {}
        learning = self._learning
        if i == j:
            return {"learning_sum": learning.sums[i], "learning_squares": learning.products[i, i]}
        squares = learning.squares_of_difference(i, j)
        return {"learning_sum": learning.sums[i] - learning.sums[j], "learning_squares": squares}

    def _where(self) -> dict[str, Any]:
        return {"budget": self.experiment.budget, "unit": self.unit, "ranges": self.ranges}

    def _add_block(self, recommended: AnyInts, pulls: AnyInts) -> None:
        # Looked up and counted arm by arm: fastest where an arm's numbers are side by side.
        by_arm = np.moveaxis(pulls, 2, 0).astype(np.int64, order="C")
        n = np.take_along_axis(pulls, recommended[:, :, None], axis=2)[:, :, 0]
        reached = self.means.table[recommended, np.maximum(n, 1) - 1]
        self._regrets.add((self._best - reached) * 2.0**-self.unit)
        if self.means.best_totals is not None:
            earned = np.zeros(recommended.shape)
            for total, one in zip(self._totals, by_arm, strict=True):
                earned += total.take(one)
            missed = self.means.best_totals.take(by_arm.sum(axis=0)) - earned
            scale = self.unit + self.experiment.budget.bit_length()
            self._learning.add(missed * 2.0**-scale)
        wrong = self._wrong[recommended].astype(np.int64)
        self._errors += wrong @ wrong.T
        for i, arms in enumerate(recommended):
            self._recommendations[i] += np.bincount(arms, minlength=self.means.arms)
            for counter, column in zip(self._pulls[i], by_arm[:, i], strict=True):
                counter.update(histogram(column))


class Moments:
    """Exact sums of whole numbers by policy, and of the products of two policies' numbers."""

    def __init__(self, count: int) -> None:
        self.sums = np.zeros(count, dtype=object)
        self.products = np.zeros((count, count), dtype=object)

    def add(self, values: Floats) -> None:
        """Add numbers by (policy, run), each rounded."""
        units = np.rint(values).astype(np.int64)
        high, low = units >> BITS // 2, units & HALF - 1  # quotient and remainder of HALF
        mixed = high @ low.T
        self.sums += units.sum(axis=1).astype(object)
        self.products += (high @ high.T).astype(object) * HALF**2
        self.products += (mixed + mixed.T).astype(object) * HALF + (low @ low.T).astype(object)

    def squares_of_difference(self, i: int, j: int) -> int:
        """Return the sum of squared differences of two policies' numbers."""
        squares: int = self.products[i, i] + self.products[j, j] - 2 * self.products[i, j]
        return squares


# --- histograms ---


def histogram(data: AnyInts) -> Histogram:
    """Return how often each number >= 0 occurs: by counting, or by sorting if some are large."""
    if data.size and data.max() > 4 * data.size + 1024:
        values, counts = np.unique(data, return_counts=True)
    else:
        counts = np.bincount(data)
        values = np.flatnonzero(counts)
        counts = counts[values]
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))
