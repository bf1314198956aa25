"""What is played at one budget, and which of its runs are still to be played."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, NamedTuple

from latebloomer.core.ledger import ANY
from latebloomer.errors import ChunkError, SettingError, need_whole
from latebloomer.policies import UCBE, Policy
from latebloomer.policies.registry import label_of, policy_for
from latebloomer.problems import Gaussian, Problem
from latebloomer.simulation.counts import Cell, Pair
from latebloomer.simulation.cpu import Player, Task, compiled_player, plain_player, play_chunk
from latebloomer.simulation.sums import breakpoints
from latebloomer.simulation.tally import Tally

# A chunk is the runs that are played between two looks at the clock and counted together: about
# this many pulls and at most that many cells of pulls per arm.
PULLS_OF_CHUNK = {"cpu": 30_000_000, "gpu": 3_000_000_000, "python": 200_000}
CELLS_OF_CHUNK = 4_000_000


class How(NamedTuple):
    """How runs are played; none of it changes the results."""

    target: str
    threads: int | None
    chunk: int | None


@dataclass(frozen=True)
class Round:
    """All policies at one budget."""

    labels: tuple[str, ...]
    tasks: tuple[Task, ...]

    @property
    def cost(self) -> int:
        """Pulls, or gains that stand for them, in one run of every policy."""
        return sum(task.cost for task in self.tasks)

    @property
    def budget(self) -> int:
        return self.tasks[0].budget

    def tally(self) -> Tally:
        """A tally without runs."""
        one = self.tasks[0]
        policies = dict(zip(self.labels, (task.policy for task in self.tasks), strict=True))
        method = "pulls" if one.points is None else "sums"
        return Tally(policies, one.means, one.budget, one.horizon, method)

    def only(self, labels: Collection[str]) -> Round:
        """The same with some of the policies, who meet the same luck as with all of them."""
        kept = [place for place, label in enumerate(self.labels) if label in labels]
        return Round(
            tuple(self.labels[place] for place in kept), tuple(self.tasks[place] for place in kept)
        )

    def players(self, target: str, threads: int) -> list[list[Player]]:
        """For every thread a player of each task; a GPU and plain Python have one thread."""
        if target == "cpu":
            return [[compiled_player(task) for task in self.tasks] for _ in range(threads)]
        if target == "python":
            return [[plain_player(task) for task in self.tasks]]
        from latebloomer.simulation.gpu import gpu_player

        return [[gpu_player(task) for task in self.tasks]]

    def chunks(self, first: int, last: int, how: How) -> Iterator[tuple[int, int]]:
        """(first run, runs) of the chunks of a range of runs."""
        size = how.chunk or self._chunk(how.target)
        for start in range(first, last, size):
            yield start, min(size, last - start)

    def _chunk(self, target: str) -> int:
        by_pulls = PULLS_OF_CHUNK[target] // max(task.cost for task in self.tasks)
        by_cells = CELLS_OF_CHUNK // (self.tasks[0].arms * len(self.tasks))
        return max(1, min(by_pulls, by_cells, 200_000 if target == "cpu" else 10**9))

    def play(self, players: list[list[Player]], start: int, count: int) -> tuple[Any, Any]:
        """Recommended arms and pulls of one chunk, as `Tally.add` takes them."""
        try:
            return play_chunk(list(self.tasks), players, start, count, Event())
        except MemoryError as error:
            raise ChunkError(
                f"a chunk of {count} runs of {len(self.tasks)} policies over "
                f"{self.tasks[0].arms} arms does not fit into memory: give a smaller chunk, "
                f"for example chunk={max(1, count // 8)}"
            ) from error


@dataclass(frozen=True)
class Leg:
    """A range of runs of a round of which something is not known yet."""

    round: Round
    first: int
    last: int
    cells: frozenset[str]  # the labels of the policies whose runs are to be counted
    pairs: frozenset[tuple[str, str]]  # and of those that are to be compared
    changes: tuple[tuple[int, int], ...]  # (horizon, arm that is best from there on)

    @property
    def cost(self) -> int:
        """Pulls, or gains that stand for them."""
        return self.round.cost * (self.last - self.first)


class Part(NamedTuple):
    """What was found in some runs of a leg."""

    leg: Leg
    cells: list[Cell]
    pairs: list[Pair]


def part_of(leg: Leg, tally: Tally) -> Part:
    """What a tally found; nothing where it has no runs."""
    return Part(leg, tally.cells(), tally.pairs()) if tally.runs else Part(leg, [], [])


def round_of(
    problem: Problem,
    policies: Mapping[str, Policy | str],
    budget: int,
    horizon: int | None,
    seed: int,
    method: str,
) -> Round:
    """Check that everything can be played at this budget, before any work starts."""
    at = budget if horizon is None else need_whole("horizon", horizon)
    arms = problem.arms
    made = [policy_for(policy, arms, budget, at) for policy in policies.values()]
    ready = [informed(policy, problem, at) for policy in made]
    for policy in ready:
        policy.plan(arms, budget, at)
        policy.settings(arms, budget, at)
    means = problem.means(max(at, min(budget, at)))
    points = None
    if _in_leaps(method, problem, ready, arms, budget, at):
        points = breakpoints(ready, arms, budget, at)
    tasks = [Task(policy, means, problem.noise, budget, at, seed, points) for policy in ready]
    return Round(tuple(policies), tuple(tasks))


def informed(policy: Policy, problem: Problem, horizon: int) -> Policy:
    """The policy with what its authors let it know: UCB-E's exploration is made of the gaps."""
    if isinstance(policy, UCBE) and policy.exploration is None and policy.gaps is None:
        return replace(policy, gaps=tuple(problem.gaps(horizon).tolist()))
    return policy


def _in_leaps(
    method: str, problem: Problem, policies: list[Policy], arms: int, budget: int, horizon: int
) -> bool:
    """Whether runs are played in leaps; an error where that is asked for and cannot be."""
    if method == "pulls":
        return False
    stuck = [
        f"{label_of(policy)} has no fixed plan with window means"
        for policy in policies
        if policy.rated_window(1) is None
        or policy.decides_after_sweeps()
        or ANY in policy.plan(arms, budget, horizon).keep
    ]
    if not isinstance(problem.noise, Gaussian):
        stuck.append(f"the noise is {problem.noise}, not Gaussian")
    if stuck and method == "sums":
        raise SettingError(f"method='sums', but {'; '.join(stuck)}: use method='pulls' or 'auto'")
    return not stuck
