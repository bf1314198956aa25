"""Simulation in this process, chunk by chunk, with several threads per chunk."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from threading import Event
from time import monotonic
from typing import Any, TypeAlias

import numpy as np

from latebloomer.errors import ChunkError
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.players import Player, compiled_player, plain_player, threads_that_fit
from latebloomer.simulation.results.counts import Counts
from latebloomer.simulation.results.tally import CountedRuns, Tally

Experiments: TypeAlias = Sequence[Experiment]
Players: TypeAlias = list[list[Player]]  # players by thread and policy
Advance: TypeAlias = Callable[[int], None]  # called with the number of pulls done

SECONDS = 10.0  # counts of this many seconds are yielded together, to be written to a file
PULLS_OF_SLICE = 1_000_000  # a thread checks whether to stop after this many pulls: under 1 s


@contextmanager
def progress_bar(total: int, unit: str, shown: bool = True) -> Iterator[Advance]:
    """Yield a function to report the work done; show it on stderr if that is a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich import progress
    from rich.console import Console
    from rich.table import Column

    class Done(progress.ProgressColumn):
        def render(self, task: progress.Task) -> str:
            speed = task.speed or 0.0  # None before two steps
            return f"{task.completed:.3g} of {task.total:.3g} {unit}, {speed:.3g}/s,"

    bars = (progress.BarColumn(), progress.TaskProgressColumn(), Done(Column(no_wrap=True)))
    time_left = (progress.TimeRemainingColumn(), "left")
    with progress.Progress(*bars, *time_left, console=Console(stderr=True)) as bar:
        yield partial(bar.advance, bar.add_task(unit, total=total))


def count_here(experiments: Experiments, threads: int | None, advance: Advance) -> CountedRuns:
    """Simulate one experiment after the other and yield counts when they are ready.

    If Ctrl-C or an error ends a chunk early, the counts of the previous chunks are yielded first.
    """
    for experiment in experiments:
        for counts in count_chunks(experiment, threads or cores(), advance, SECONDS):
            yield experiment, counts
        experiment.means.release()


def count_chunks(
    experiment: Experiment, threads: int, advance: Advance, seconds: float
) -> Iterator[Counts]:
    """Yield the counts of an experiment, every `seconds` and at the end."""
    worthwhile = max(1, experiment.cost // PULLS_OF_SLICE)
    players = players_of(experiment, threads_that_fit(experiment, min(threads, worthwhile)))
    tally, began = Tally(experiment), monotonic()
    for start, count in experiment.chunks():
        try:
            played = play_chunk(experiment, players, start, count)
        except BaseException as error:
            yield tally.counts()
            if isinstance(error, MemoryError) and not isinstance(error, ChunkError):
                raise ChunkError(
                    f"A chunk of {count} runs over {experiment.arms} arms does not fit into "
                    f"memory. Give a smaller chunk, for example chunk={max(1, count // 8)}."
                ) from error
            raise
        tally.add(start, *played)
        advance(experiment.cost * count // experiment.runs)
        if monotonic() - began > seconds:
            yield tally.counts()
            tally, began = Tally(experiment), monotonic()
    yield tally.counts()


def players_of(experiment: Experiment, threads: int) -> Players:
    """Return a player for each policy and thread; a GPU and plain Python have one thread."""
    policies, make = experiment.policies.values(), compiled_player
    if experiment.target == "python":
        threads, make = 1, plain_player
    elif experiment.target == "gpu":
        from latebloomer.simulation.gpu.gpu_player import gpu_player

        threads, make = 1, gpu_player
    return [[make(experiment, policy) for policy in policies] for _ in range(threads)]


def play_chunk(experiment: Experiment, players: Players, first: int, runs: int) -> Any:
    """Return recommended arms by (policy, run) and pulls by (policy, run, arm), for `Tally.add`.

    There is one thread per list of players. After an error in one thread, or Ctrl-C, the other
    threads end soon.
    """
    shape = (len(experiment.policies), runs)
    recommended = np.zeros(shape, np.int32)
    pulls = np.zeros((*shape, experiment.arms), np.int32)
    slices, stop = iter(list(_slices(experiment, runs))), Event()

    def work(mine: list[Player]) -> None:
        for policy, start, end in slices:  # shared by the threads
            if stop.is_set():
                return
            mine[policy](first + start, recommended[policy, start:end], pulls[policy, start:end])

    with ThreadPoolExecutor(len(players)) as pool:
        try:
            for future in [pool.submit(work, mine) for mine in players]:
                future.result()
        except BaseException:
            stop.set()  # let the other threads end before the pool waits for them
            raise
    return recommended, pulls


def _slices(experiment: Experiment, runs: int) -> Iterator[tuple[int, int, int]]:
    """Yield (place of the policy, start, end) for pieces of about `PULLS_OF_SLICE` pulls."""
    step = max(1, PULLS_OF_SLICE // experiment.cost_per_policy)
    step -= step % 2 if step > 1 else 0  # two runs may be simulated alternately
    for policy in range(len(experiment.policies)):
        for start, end in pairwise([*range(0, runs, step), runs]):
            yield policy, start, end


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
