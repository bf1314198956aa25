"""Runs on the CPU: the compiled loop in several threads, or plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from threading import Event
from typing import Any

import numpy as np

from latebloomer.core.compiling import cpu_jit
from latebloomer.core.kernel import plain
from latebloomer.core.ledger import Floats
from latebloomer.core.moves import Game, arrays_for, game_arrays, game_of, lists_for, moves_of
from latebloomer.policies.base import Policy
from latebloomer.problems.noise import Noise
from latebloomer.simulation.play import AHEAD, Source, play, play_many
from latebloomer.simulation.sums import Leaps, leap_run, leaps_for

SLICE = 1_000_000  # pulls that a thread plays before it looks whether to stop: well under a second


@dataclass(frozen=True)
class Task:
    """One policy on one problem at one budget: what a target needs to play runs of it."""

    policy: Policy
    means: Floats  # (arms, pulls)
    noise: Noise
    budget: int
    horizon: int
    seed: int  # as `random.key` makes it
    points: Any = None  # breakpoints, where runs are played in leaps

    @property
    def arms(self) -> int:
        return len(self.means)

    @property
    def cost(self) -> int:
        """Pulls, or gains that stand for them, in one run."""
        return self.budget if self.points is None else 2 * self.arms * len(self.points)


def loop_of(task: Task, jit: Any) -> Any:
    """The loop over runs, by pulls or in leaps."""
    return moves_of(
        type(task.policy), play_many, jit, play=play if task.points is None else leap_run
    )


Player = Callable[[int, Any, Any], None]  # first run, recommended (out), pulls (out)


def compiled_player(task: Task) -> Player:
    """A function that plays runs in memory of its own, so that each thread has one."""
    longest = min(task.budget, task.horizon)
    game = game_arrays(task.policy, task.arms, task.budget, task.horizon, task.seed)
    ledger = arrays_for(task.policy, task.arms, longest)
    many, source = loop_of(task, cpu_jit()), source_of(task)

    return partial(many, game, ledger, source)


def plain_player(task: Task) -> Player:
    """The same in plain Python: slow, and what compiled code is compared with."""
    game = game_of(task.policy, task.arms, task.budget, task.horizon, task.seed)
    many, source = loop_of(task, plain), source_of(task)
    ledger = _with_room(game, lists_for(task.arms))

    return partial(many, game, ledger, source)


def _with_room(game: Game, ledger: Any) -> Any:
    room = min(game.budget, game.horizon)
    for row in (*ledger.S, *ledger.Q):
        row.extend([0.0] * room)
    return ledger


def source_of(task: Task) -> Source | Leaps:
    """Where the rewards, or the sums that stand for them, come from."""
    scales = task.noise.scales(task.arms)
    if task.points is not None:
        return leaps_for(task.points, task.means, scales)
    ahead = np.zeros((task.arms, AHEAD))
    return Source(task.means, task.noise.kind, scales, task.noise.shape, ahead)


def play_chunk(
    tasks: list[Task], players: list[list[Player]], first: int, runs: int, stop: Event
) -> tuple[Any, Any]:
    """Play `runs` runs of every task, one thread for each set of players.

    Returns recommended arms by (task, run) and pulls by (task, run, arm). Raises
    `KeyboardInterrupt` when `stop` was set meanwhile: then the chunk is incomplete.
    """
    arms = tasks[0].arms
    recommended = np.zeros((len(tasks), runs), np.int32)
    pulls = np.zeros((len(tasks), runs, arms), np.int32)
    work = iter(list(_slices(tasks, runs)))

    def labour(mine: list[Player]) -> None:
        for task, start, end in work_until(stop, work):
            mine[task](first + start, recommended[task, start:end], pulls[task, start:end])

    with ThreadPoolExecutor(len(players)) as pool:
        try:
            for done in [pool.submit(labour, mine) for mine in players]:
                done.result()
        except BaseException:
            stop.set()  # let the other threads end before the pool waits for them
            raise
    if stop.is_set():
        raise KeyboardInterrupt
    return recommended, pulls


def work_until(stop: Event, work: Iterator[Any]) -> Iterator[Any]:
    """Share out work between threads until there is none, or `stop` is set."""
    for piece in work:
        if stop.is_set():
            return
        yield piece


def _slices(tasks: list[Task], runs: int) -> Iterator[tuple[int, int, int]]:
    """(task, start, end) for pieces of about `SLICE` pulls, the costly ones first."""
    for place in sorted(range(len(tasks)), key=lambda k: -tasks[k].cost):
        step = max(1, SLICE // tasks[place].cost)
        for start, end in pairwise([*range(0, runs, step), runs]):
            yield place, start, end
