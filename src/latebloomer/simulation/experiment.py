"""All policies on one problem at one budget, checked before any work starts."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from latebloomer.core.ledger import ANY
from latebloomer.core.moves import keeps_levels
from latebloomer.errors import SettingError, need_whole
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import label_of, policy_for
from latebloomer.policies.ucbe import UCBE
from latebloomer.problems import Gaussian, Problem
from latebloomer.problems.noise import Noise
from latebloomer.simulation.counts import Counts
from latebloomer.simulation.mean_table import MeanTable
from latebloomer.simulation.tally import Tally
from latebloomer.simulation.window_sums import SumIncrements, breakpoints_of, increments_of

# A chunk is the runs that are played between two looks at the clock and counted together: about
# this many pulls of a policy, and a table of pulls by (policy, run, arm) of that many entries.
PULLS_OF_CHUNK = {"cpu": 30_000_000, "gpu": 3_000_000_000, "python": 200_000}
ENTRIES_OF_CHUNK = 4_000_000


@dataclass(frozen=True)
class Experiment:
    """What is played at one budget, by pulls or by sums, and on what; every target reads it."""

    policies: Mapping[str, Policy]  # by label, as they are played at this budget
    means: MeanTable
    noise: Noise
    budget: int
    horizon: int
    seed: int  # as `seed_key.key` makes it
    breakpoints: Any = None  # of the prefix sums, where runs are played by sums
    target: str = "cpu"
    chunk: int | None = None  # runs of a chunk, where they are given

    @property
    def arms(self) -> int:
        return self.means.arms

    @property
    def method(self) -> str:
        return "pulls" if self.breakpoints is None else "sums"

    @property
    def cost_per_policy(self) -> int:
        """Pulls, or draws that stand for them, in one run of one policy."""
        return self.budget if self.breakpoints is None else 2 * self.arms * len(self.breakpoints)

    @property
    def cost_per_run(self) -> int:
        """The same of every policy together."""
        return self.cost_per_policy * len(self.policies)

    def most_pulls(self, policy: Policy) -> int:
        """The most pulls that the policy can give an arm."""
        return policy.most_pulls(self.arms, self.budget, self.horizon)

    @cached_property
    def increments(self) -> SumIncrements:
        """What is drawn where runs are played by sums."""
        return increments_of(self.breakpoints, self.means.table, self.noise.scales(self.arms))

    def tally(self) -> Tally:
        """A tally without runs."""
        return Tally(self.policies, self.means, self.budget, self.horizon, self.method)

    def only(self, labels: Collection[str]) -> Experiment:
        """The same with some of the policies, who meet the same luck as with all of them."""
        some = {label: policy for label, policy in self.policies.items() if label in labels}
        return replace(self, policies=some)

    def chunks(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """(first run, runs) of the chunks of the runs [first, last)."""
        for start in range(first, last, self.runs_of_chunk):
            yield start, min(self.runs_of_chunk, last - start)

    @property
    def runs_of_chunk(self) -> int:
        """How many runs are counted together."""
        return self.chunk or self._usual_chunk()

    def _usual_chunk(self) -> int:
        by_pulls = PULLS_OF_CHUNK[self.target] // self.cost_per_policy
        by_entries = ENTRIES_OF_CHUNK // (self.arms * len(self.policies))
        return max(1, min(by_pulls, by_entries, 200_000 if self.target == "cpu" else 10**9))


@dataclass(frozen=True)
class MissingRuns:
    """The runs [first, last) of an experiment, of which something is not known yet."""

    experiment: Experiment
    first: int
    last: int
    policies: frozenset[str]  # the labels of those whose runs are to be counted
    pairs: frozenset[tuple[str, str]]  # and of those that are to be compared

    @property
    def cost(self) -> int:
        """Pulls, or draws that stand for them."""
        return self.experiment.cost_per_run * (self.last - self.first)


# What an engine yields: some runs of each missing range come in at a time.
CountedRuns: TypeAlias = Generator[tuple[MissingRuns, Counts], None, None]


def experiment_of(
    problem: Problem,
    policies: Mapping[str, Policy | str],
    budget: int,
    horizon: int | None,
    seed: int,
    method: str,
    target: str = "cpu",
    chunk: int | None = None,
) -> Experiment:
    """The experiment, or an error where something cannot be played at this budget."""
    at = budget if horizon is None else need_whole("horizon", horizon)
    arms = problem.arms
    made = [policy_for(policy, arms, budget, at) for policy in policies.values()]
    ready = [informed(policy, problem, at) for policy in made]
    for policy in ready:
        policy.plan(arms, budget, at)
        policy.settings(arms, budget, at)
    by_label = dict(zip(policies, ready, strict=True))
    longest = max(policy.most_pulls(arms, budget, at) for policy in ready)
    means = MeanTable(problem, longest, at)
    points = None
    if _is_by_sums(method, problem, ready, budget, at):
        points = breakpoints_of(ready, arms, budget, at)
    return Experiment(
        by_label, means, problem.noise, budget, at, seed, points, target=target, chunk=chunk
    )


def informed(policy: Policy, problem: Problem, horizon: int) -> Policy:
    """The policy with what its authors let it know: UCB-E's exploration is made of the gaps."""
    if isinstance(policy, UCBE) and policy.exploration is None and policy.gaps is None:
        return replace(policy, gaps=tuple(problem.gaps(horizon).tolist()))
    return policy


def _is_by_sums(
    method: str, problem: Problem, policies: list[Policy], budget: int, horizon: int
) -> bool:
    """Whether runs are played by sums; an error where that is asked for and cannot be."""
    if method == "pulls":
        return False
    obstacles = [
        f"{label_of(policy)} has no fixed plan with window means"
        for policy in policies
        if policy.rated_window(1) is None
        or policy.decides_after_sweeps()
        or ANY in policy.plan(problem.arms, budget, horizon).keep
    ]
    obstacles += [
        f"{label_of(policy)} says how many rewards its rating is the mean of (`rated_window`) but "
        "keeps no sums of them (`remember`)"
        for policy in policies
        if policy.rated_window(1) is not None and not keeps_levels(policy)
    ]
    if not isinstance(problem.noise, Gaussian):
        obstacles.append(f"the noise is {problem.noise}, not Gaussian")
    if obstacles and method == "sums":
        raise SettingError(
            f"method='sums', but {'; '.join(obstacles)}: use method='pulls' or 'auto'"
        )
    return not obstacles
