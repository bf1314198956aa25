"""An experiment: all policies on one problem at one budget, checked before any work starts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from latebloomer.errors import need_whole
from latebloomer.policies.base import Policy, most_pulls
from latebloomer.policies.registry import policy_for
from latebloomer.policies.rising_ucbe import UCBE
from latebloomer.problems import Problem
from latebloomer.problems.noise import Noise
from latebloomer.simulation.mean_table import MeanTable
from latebloomer.simulation.window_sums import SumIncrements, breakpoints_of, is_by_sums

# A chunk is a set of runs that are simulated without a check of the time and counted together. It
# has about this number of pulls of a policy, and at most that number of entries in its table of
# pulls by (policy, run, arm).
PULLS_OF_CHUNK = {"cpu": 30_000_000, "gpu": 3_000_000_000, "python": 200_000}
ENTRIES_OF_CHUNK = 4_000_000


@dataclass(frozen=True)
class Experiment:
    """The runs [first, last) of some policies at one budget, simulated by pulls or by sums.

    It is the input of every target (CPU, GPU, plain Python).
    """

    policies: Mapping[str, Policy]  # by label, with the settings for this budget
    means: MeanTable
    noise: Noise
    budget: int
    horizon: int
    seed: int  # as `key` returns it
    # Pulls at which prefix sums are drawn, if runs are simulated by sums.
    breakpoints: Sequence[int] | None = None
    target: str = "cpu"
    chunk: int | None = None  # number of runs in a chunk; None: chosen by cost
    first: int = 0
    last: int = 0

    @property
    def arms(self) -> int:
        return self.means.arms

    @property
    def runs(self) -> int:
        return self.last - self.first

    @property
    def method(self) -> str:
        return "pulls" if self.breakpoints is None else "sums"

    @property
    def points(self) -> int:
        """Number of breakpoints; 0 if runs are simulated pull by pull."""
        return len(self.breakpoints or ())

    @property
    def cost_per_policy(self) -> int:
        """Number of pulls, or of draws in place of pulls, in one run of one policy."""
        return 2 * self.arms * self.points if self.points else self.budget

    @property
    def cost(self) -> int:
        """Number of pulls, or of draws in place of pulls, in all runs of all policies."""
        return self.cost_per_policy * len(self.policies) * self.runs

    def most_pulls(self, policy: Policy) -> int:
        """Return the largest number of pulls that the policy can give an arm."""
        return most_pulls(policy, self.arms, self.budget, self.horizon)

    @cached_property
    def increments(self) -> SumIncrements:
        """The distributions of the increments between breakpoints, for runs simulated by sums."""
        points, sums = np.array(self.breakpoints), np.zeros((self.arms, self.points))
        for arm, row in enumerate(self.means.table):
            # The first point is 0, where sums are 0.
            sums[arm, 1:] = np.cumsum(row)[points[1:] - 1]
        gains = np.diff(sums, axis=1, prepend=0.0)
        scales = self.noise.numbers(self.arms).scales[:, None]
        spreads = scales * np.sqrt(np.diff(points, prepend=0))
        zeros = np.zeros(self.arms, np.int64)
        return SumIncrements(points, gains, spreads, zeros, zeros)

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Yield (first run, number of runs) of each chunk."""
        for start in range(self.first, self.last, self.runs_of_chunk):
            yield start, min(self.runs_of_chunk, self.last - start)

    @property
    def runs_of_chunk(self) -> int:
        """Number of runs in a chunk."""
        by_pulls = PULLS_OF_CHUNK[self.target] // self.cost_per_policy
        by_entries = ENTRIES_OF_CHUNK // (self.arms * len(self.policies))
        most = 200_000 if self.target == "cpu" else 10**9
        return self.chunk or max(1, min(by_pulls, by_entries, most))


def experiment_of(
    problem: Problem,
    policies: Mapping[str, Policy | str],
    budget: int,
    horizon: int | None,
    seed: int,
    method: str,
    target: str = "cpu",
    **chosen: Any,
) -> Experiment:
    """Return the experiment; raise an error if something cannot be simulated at this budget.

    `chosen` are further fields of `Experiment`.
    """
    at = budget if horizon is None else need_whole("horizon", horizon)
    numbers = (problem.arms, budget, at)
    chosen_policies = (policy_for(policy, *numbers) for policy in policies.values())
    ready = [informed(policy, problem, at) for policy in chosen_policies]
    for policy in ready:
        policy.plan(*numbers)
        policy.settings(*numbers)
    means = MeanTable(problem, max(most_pulls(policy, *numbers) for policy in ready), at, budget)
    by_sums = is_by_sums(method, problem, ready, numbers)
    points = breakpoints_of(ready, *numbers) if by_sums else None
    by_label = dict(zip(policies, ready, strict=True))
    return Experiment(by_label, means, problem.noise, budget, at, seed, points, target, **chosen)


def informed(policy: Policy, problem: Problem, horizon: int) -> Policy:
    """Return the policy with the knowledge that its authors assume: UCB-E needs the gaps."""
    if isinstance(policy, UCBE) and policy.exploration is None and policy.gaps is None:
        return replace(policy, gaps=tuple(problem.gaps(horizon).tolist()))
    return policy
