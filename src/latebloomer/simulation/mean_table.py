"""The means of a problem, as far as runs can reach, and their summary for results."""

import hashlib
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from latebloomer._util.memory import need_memory
from latebloomer.problems import Problem
from latebloomer.problems.curves import Floats
from latebloomer.simulation import hindsight

MOST_SUMMED = 10**8  # maximum means (1 GB) for which the best sequence of pulls is computed


class Summary(NamedTuple):
    """The summary of the means up to the horizon that results store."""

    digest: str  # sha256 of the means, as little-endian doubles arm by arm
    largest: float  # in size
    final: Floats  # (arms,): the means at the horizon


class MeanTable:
    """Hold the means of the first `longest` pulls of each arm, as far as runs can reach.

    Later means, up to the horizon, are only read once, in blocks. The table is computed when it is
    first read and is kept until `release`, so a simulation at many budgets has one table in memory
    at a time. A pickle has the numbers and not the problem's curves.

    >>> late = MeanTable(Problem([[0.1, 0.5, 0.9], [0.4, 0.4, 0.4]]), longest=2, horizon=3)
    >>> late.table.tolist(), late.summary.final.tolist(), late.changes
    ([[0.1, 0.5], [0.4, 0.4]], [0.9, 0.4], ((2, 0),))
    """

    def __init__(
        self, problem: Problem, longest: int, horizon: int, budget: int | None = None
    ) -> None:
        self.arms, self.longest, self.horizon = problem.arms, longest, horizon
        self.budget = horizon if budget is None else budget
        problem.need_pulls("budget", horizon)
        what = f"the table of the means of {self.arms} arms up to pull {longest}"
        need_memory(self.size, what, "set a smaller budget or horizon, or give fewer arms")
        problem.need_means("horizon", horizon)
        self._problem = problem
        self.made: Floats | None = None  # the table, if it is in memory

    @property
    def size(self) -> int:
        """Size of the table in bytes."""
        return 8 * self.arms * self.longest

    @property
    def table(self) -> Floats:
        """Means: ``table[i, n - 1]`` belongs to the n-th pull of arm i."""
        if self.made is None:
            self.made = self._problem.means(self.longest)
        return self.made

    def release(self) -> None:
        """Free the table's memory; the table is computed again if it is read."""
        self.made = None

    @cached_property
    def summary(self) -> Summary:
        """The summary of the means up to the horizon that results store."""
        digest, largest, pull = hashlib.sha256(), 0.0, 0
        final: list[Floats] = []
        for block in self._problem.mean_rows(self.horizon):
            digest.update(np.ascontiguousarray(block, dtype="<f8").data)
            largest = max(largest, float(block.max()), -float(block.min()))
            pull = (pull + block.shape[1]) % self.horizon
            if pull == 0:  # this block ends at the horizon
                final.append(block[:, -1].copy())
        return Summary(digest.hexdigest(), largest, np.concatenate(final))

    @cached_property
    def best_totals(self) -> Floats | None:
        """Largest sums of means that 0, 1, ..., budget pulls can have; None if too expensive."""
        most = min(self.budget, self.horizon)
        if self.arms * most > MOST_SUMMED:
            return None
        return hindsight.best_totals(lambda: self._problem.rows(most), self.budget)

    @cached_property
    def changes(self) -> tuple[tuple[int, int], ...]:
        """Pairs (horizon, arm): from this horizon on, another arm is the best one."""
        return self._problem.changes(self.horizon)[1:]

    def __getstate__(self) -> dict[str, Any]:
        means = self._problem.means(self.longest) if self.made is None else self.made
        kept = {"made": means, "summary": self.summary, "best_totals": self.best_totals}
        return vars(self) | kept | {"_problem": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy: arrays from Ray's store are read-only, which is another type for numba.
        vars(self).update(state | {"made": np.array(state["made"])})
