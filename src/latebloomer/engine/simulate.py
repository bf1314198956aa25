"""Millions of runs of policies on a problem, and what they found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import numpy as np

from latebloomer.core.ledger import ANY
from latebloomer.core.random import RUNS, key
from latebloomer.engine.cpu import Player, Task, compiled_player, plain_player, play_chunk
from latebloomer.engine.labels import label_of
from latebloomer.engine.leap import breakpoints
from latebloomer.engine.progress import Progress
from latebloomer.engine.results import Results
from latebloomer.engine.tally import Tally
from latebloomer.errors import ChunkError, SettingError, need_whole, require
from latebloomer.policies import UCBE, Policy, make_policy
from latebloomer.policies.auto import is_auto, policy_for
from latebloomer.problems import Gaussian, Problem
from latebloomer.problems import problem as problem_of

TARGETS = ("cpu", "gpu", "python")
METHODS = ("auto", "pulls", "sums")
# A chunk is the runs that are played between two looks at the clock and counted together: about
# this many pulls and at most that many cells of pulls per arm.
PULLS_OF_CHUNK = {"cpu": 30_000_000, "gpu": 3_000_000_000, "python": 200_000}
CELLS_OF_CHUNK = 4_000_000


def simulate(
    problem: Problem | str,
    policies: Policy | str | Sequence[Policy | str],
    budgets: int | Sequence[int],
    runs: int,
    seed: int = 0,
    *,
    horizon: int | None = None,
    target: str = "cpu",
    method: str = "auto",
    threads: int | None = None,
    progress: bool = True,
    chunk: int | None = None,
    first_run: int = 0,
) -> Results:
    """Play `runs` runs of every policy at every budget; errors, regrets and pulls with intervals.

    Rewards are pure functions of (seed, run, arm, pull): the results depend neither on threads,
    chunks, the order of policies nor the target, all policies meet the same luck, and results of
    other runs (`first_run`) can be merged.

    `method` "pulls" plays every pull. "sums" draws the window sums that the policies look at
    directly, which has the same distribution and costs the same for any budget; it needs Gaussian
    noise and policies with a fixed plan and window means. "auto" takes it where all allow it.
    Ctrl-C stops after the chunk that is being played; what is done is returned.

    >>> results = simulate("paper-a", ["r-sr", "sh"], [400, 800], runs=20, target="python",
    ...                    method="sums", progress=False)
    >>> [(row["policy"], row["budget"], row["error"]) for row in results.rows()]
    [('r-sr', 400, 1.0), ('r-sr', 800, 0.0), ('sh', 400, 1.0), ('sh', 800, 0.55)]
    """
    setting = problem if isinstance(problem, Problem) else problem_of(problem)
    players = _policies(policies)
    _check_run(runs, first_run, seed, target, method, threads, chunk)
    rounds = [
        _round(setting, players, budget, horizon, key(seed), method)
        for budget in _budgets(budgets)
    ]
    total = sum(part.cost for part in rounds) * runs
    with Progress(total, "pulls", shown=progress) as bar:
        for part in rounds:
            if not part.play(first_run, runs, target, threads or cores(), chunk, bar):
                break
    return Results.of(setting, seed, [part.tally for part in rounds], target)


@dataclass(frozen=True)
class Round:
    """All policies at one budget."""

    tasks: list[Task]
    tally: Tally

    @property
    def cost(self) -> int:
        """Pulls, or gains that stand for them, in one run of every policy."""
        return sum(task.cost for task in self.tasks)

    def play(
        self, first: int, runs: int, target: str, threads: int, chunk: int | None, bar: Progress
    ) -> bool:
        """Play and count, chunk by chunk; False where Ctrl-C came."""
        players = _players(self.tasks, target, threads)
        size = chunk or self._chunk(target)
        for start in range(first, first + runs, size):
            count = min(size, first + runs - start)
            try:
                played = play_chunk(self.tasks, players, start, count, Event())
            except KeyboardInterrupt:
                bar.interrupted()
                return False
            except MemoryError as error:
                raise ChunkError(
                    f"a chunk of {count} runs of {len(self.tasks)} policies over "
                    f"{self.tasks[0].arms} arms does not fit into memory: give a smaller chunk, "
                    f"for example chunk={max(1, count // 8)}"
                ) from error
            self.tally.add(start, *played)
            bar.advance(self.cost * count)
        return True

    def _chunk(self, target: str) -> int:
        by_pulls = PULLS_OF_CHUNK[target] // max(task.cost for task in self.tasks)
        by_cells = CELLS_OF_CHUNK // (self.tasks[0].arms * len(self.tasks))
        return max(1, min(by_pulls, by_cells, 200_000 if target == "cpu" else 10**9))


def _players(tasks: list[Task], target: str, threads: int) -> list[list[Player]]:
    """For every thread a player of each task; a GPU and plain Python have one thread."""
    if target == "cpu":
        return [[compiled_player(task) for task in tasks] for _ in range(threads)]
    if target == "python":
        return [[plain_player(task) for task in tasks]]
    from latebloomer.engine.gpu import gpu_player

    return [[gpu_player(task) for task in tasks]]


def _round(
    problem: Problem,
    policies: dict[str, Policy | str],
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
    played = "pulls" if points is None else "sums"
    return Round(tasks, Tally(dict(zip(policies, ready, strict=True)), means, budget, at, played))


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
        if policy.span(1) is None
        or policy.reviews()
        or ANY in policy.plan(arms, budget, horizon).keep
    ]
    if not isinstance(problem.noise, Gaussian):
        stuck.append(f"the noise is {problem.noise}, not Gaussian")
    if stuck and method == "sums":
        raise SettingError(f"method='sums', but {'; '.join(stuck)}: use method='pulls' or 'auto'")
    return not stuck


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _policies(given: Policy | str | Iterable[Policy | str]) -> dict[str, Policy | str]:
    """By label; "auto" is made a policy when the budget is known."""
    several = [given] if isinstance(given, Policy | str) else list(given)
    policies = [policy if is_auto(policy) else make_policy(policy) for policy in several]
    labels = [policy if isinstance(policy, str) else label_of(policy) for policy in policies]
    require(len(labels) > 0, "policies", labels, "at least one", "nothing else can be played")
    twice = sorted({label for label in labels if labels.count(label) > 1})
    require(not twice, "policies", labels, "all different", f"{', '.join(twice)} stands twice")
    return dict(zip(labels, policies, strict=True))


def _budgets(given: int | Sequence[int]) -> Iterator[int]:
    several = list(given) if isinstance(given, Sequence | np.ndarray) else [given]
    budgets = [need_whole("budgets", budget) for budget in several]
    require(len(budgets) > 0, "budgets", budgets, "at least one", "a run spends a budget")
    return iter(sorted(set(budgets)))


def _check_run(
    runs: int, first: int, seed: int, target: str, method: str, threads: Any, chunk: Any
) -> None:
    for name, value in (("runs", runs), ("chunk", chunk or 1), ("threads", threads or 1)):
        require(need_whole(name, value) >= 1, name, value, "at least 1", "it counts something")
    require(0 <= need_whole("first_run", first) <= RUNS - runs, "first_run", first,
            f"from 0 to {RUNS - runs}", "runs are numbered below 2^48")  # fmt: skip
    key(seed)
    for name, value, known in (("target", target, TARGETS), ("method", method, METHODS)):
        require(value in known, name, value, f"one of {', '.join(known)}", "no other is known")
