"""All policies on one problem at one budget, checked before any work starts."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from latebloomer._util.memory import need_memory
from latebloomer.core.ledger import ANY, Ints
from latebloomer.core.moves import keeps_levels
from latebloomer.errors import SettingError, need_whole
from latebloomer.policies.base import Policy, most_pulls
from latebloomer.policies.plan_text import describe
from latebloomer.policies.registry import label_of, policy_for
from latebloomer.policies.rising_ucbe import UCBE
from latebloomer.problems import Gaussian, Problem
from latebloomer.problems.curves import Floats
from latebloomer.problems.noise import Noise

# A chunk is the runs that are simulated between two looks at the clock and counted together:
# about this many pulls of a policy, and a table of pulls by (policy, run, arm) of that many
# entries.
PULLS_OF_CHUNK = {"cpu": 30_000_000, "gpu": 3_000_000_000, "python": 200_000}
ENTRIES_OF_CHUNK = 4_000_000


class Summary(NamedTuple):
    """What results say of the means up to the horizon."""

    digest: str  # sha256 of the means, as little-endian doubles arm by arm
    largest: float  # in size
    final: Floats  # (arms,): the means at the horizon


class SumIncrements(NamedTuple):
    """Breakpoints of the prefix sums, and what an arm gains from one to the next."""

    points: Ints  # 0 and then the pull counts at which some policy reads a sum
    gains: Floats  # (arms, points): the sum of the means since the point before
    spreads: Floats  # (arms, points): the standard deviation of that gain
    reached: Ints  # (arms,): the last point that is filled


class MeanTable:
    """Hold the means of the first `longest` pulls of each arm, as far as runs can come.

    Means beyond, up to the horizon, are only looked through, in blocks. The table is made when it
    is first read and stays until `release`: so a simulation at many budgets holds one at a time.
    Pickled, it is the numbers, without the problem's curves.

    >>> late = MeanTable(Problem([[0.1, 0.5, 0.9], [0.4, 0.4, 0.4]]), longest=2, horizon=3)
    >>> late.table.tolist(), late.summary.final.tolist(), late.changes
    ([[0.1, 0.5], [0.4, 0.4]], [0.9, 0.4], ((2, 0),))
    """

    def __init__(self, problem: Problem, longest: int, horizon: int) -> None:
        self.arms, self.longest, self.horizon = problem.arms, longest, horizon
        problem.need_pulls("budget", horizon)
        what = f"the table of the means of {self.arms} arms up to pull {longest}"
        need_memory(self.size, what, "set a smaller budget or horizon, or give fewer arms")
        problem.need_means("horizon", horizon)
        self._problem = problem
        self.made: Floats | None = None  # the table, once it takes its memory

    @property
    def size(self) -> int:
        """Bytes of the table."""
        return 8 * self.arms * self.longest

    @property
    def table(self) -> Floats:
        """Means: ``table[i, n - 1]`` belongs to the n-th pull of arm i."""
        if self.made is None:
            self.made = self._problem.means(self.longest)
        return self.made

    def release(self) -> None:
        """Free the table's memory; it can be made again."""
        self.made = None

    @cached_property
    def summary(self) -> Summary:
        """What results say of the means up to the horizon."""
        digest, largest, pull = hashlib.sha256(), 0.0, 0
        final: list[Floats] = []
        for block in self._problem.mean_rows(self.horizon):
            digest.update(np.ascontiguousarray(block, dtype="<f8").data)
            largest = max(largest, float(block.max()), -float(block.min()))
            pull = (pull + block.shape[1]) % self.horizon
            if pull == 0:  # the block ends at the horizon
                final.append(block[:, -1].copy())
        return Summary(digest.hexdigest(), largest, np.concatenate(final))

    @cached_property
    def changes(self) -> tuple[tuple[int, int], ...]:
        """Each (horizon, arm that is best from there on) after the first."""
        return self._problem.changes(self.horizon)[1:]

    def __getstate__(self) -> dict[str, Any]:
        made = self._problem.means(self.longest) if self.made is None else self.made
        return vars(self) | {"_problem": None, "made": made, "summary": self.summary}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # An array of our own: those from Ray's store are read-only, for numba another type.
        vars(self).update(state | {"made": np.array(state["made"])})


@dataclass(frozen=True)
class Experiment:
    """The runs [first, last) of some policies at one budget, by pulls or by sums.

    Every target reads it.
    """

    policies: Mapping[str, Policy]  # by label, with the settings for this budget
    means: MeanTable
    noise: Noise
    budget: int
    horizon: int
    seed: int  # as `key` makes it
    breakpoints: Sequence[int] | None = None  # of prefix sums, if runs are simulated by sums
    target: str = "cpu"
    chunk: int | None = None  # runs of a chunk; None: chosen by cost
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
        """Pulls, or draws that stand for them, in one run of one policy."""
        return 2 * self.arms * self.points if self.points else self.budget

    @property
    def cost(self) -> int:
        """The same for all policies and runs."""
        return self.cost_per_policy * len(self.policies) * self.runs

    def most_pulls(self, policy: Policy) -> int:
        """Return the largest number of pulls that the policy can give an arm."""
        return most_pulls(policy, self.arms, self.budget, self.horizon)

    @cached_property
    def increments(self) -> SumIncrements:
        """What is drawn if runs are simulated by sums: the gains between breakpoints."""
        points, sums = np.array(self.breakpoints), np.zeros((self.arms, self.points))
        for arm, row in enumerate(self.means.table):
            sums[arm, 1:] = np.cumsum(row)[points[1:] - 1]  # point 0 is first, where sums are 0
        gains = np.diff(sums, axis=1, prepend=0.0)
        spreads = self.noise.scales(self.arms)[:, None] * np.sqrt(np.diff(points, prepend=0))
        return SumIncrements(points, gains, spreads, np.zeros(self.arms, np.int64))

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Yield (first run, runs) of each chunk."""
        for start in range(self.first, self.last, self.runs_of_chunk):
            yield start, min(self.runs_of_chunk, self.last - start)

    @property
    def runs_of_chunk(self) -> int:
        """How many runs are counted together."""
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
    made = (policy_for(policy, *numbers) for policy in policies.values())
    ready = [informed(policy, problem, at) for policy in made]
    for policy in ready:
        policy.plan(*numbers)
        policy.settings(*numbers)
    means = MeanTable(problem, max(most_pulls(policy, *numbers) for policy in ready), at)
    by_sums = _is_by_sums(method, problem, ready, numbers)
    points = _breakpoints(ready, *numbers) if by_sums else None
    by_label = dict(zip(policies, ready, strict=True))
    return Experiment(by_label, means, problem.noise, budget, at, seed, points, target, **chosen)


def informed(policy: Policy, problem: Problem, horizon: int) -> Policy:
    """Return the policy with what its authors let it know: the gaps, for UCB-E's exploration."""
    if isinstance(policy, UCBE) and policy.exploration is None and policy.gaps is None:
        return replace(policy, gaps=tuple(problem.gaps(horizon).tolist()))
    return policy


def _is_by_sums(method: str, problem: Problem, policies: list[Policy], numbers: Any) -> bool:
    """Return whether runs are simulated by sums; raise if that is requested and impossible."""
    if method == "pulls":
        return False
    obstacles = []
    for policy in policies:
        fixed = ANY not in policy.plan(*numbers).keep
        means = policy.rated_window(1) is not None and not policy.decides_after_sweeps()
        if not (fixed and means and keeps_levels(policy)):
            lacks = "no fixed plan with window means, or its `remember` keeps no sums"
            obstacles.append(f"{label_of(policy)} has {lacks}")
    if not isinstance(problem.noise, Gaussian):
        obstacles.append(f"the noise is {problem.noise}, not Gaussian")
    if obstacles and method == "sums":
        why = "; ".join(obstacles)
        raise SettingError(f"method='sums' is not possible: {why}. Use method='pulls' or 'auto'.")
    return not obstacles


def _breakpoints(policies: list[Policy], arms: int, budget: int, horizon: int) -> list[int]:
    """Return 0 and the pull counts at which any of the policies reads a prefix sum.

    There is one list for all, so that policies see the same random numbers.
    """
    points = {0}
    for policy in policies:
        for phase in describe(policy, arms, budget, horizon).phases:
            for n in (phase.upto, phase.upto + 1)[: 1 + (phase.more > 0)]:
                span = policy.rated_window(n)
                points |= {n, n - (span or n)} | ({n - 1} if span == 1 else set())
    return sorted(points)
