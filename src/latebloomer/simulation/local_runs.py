"""Runs on this machine, in this process: chunk by chunk, each chunk in several threads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Event
from time import monotonic
from typing import Any

import numpy as np

from latebloomer.errors import ChunkError
from latebloomer.simulation.counts import Counts
from latebloomer.simulation.cpu import Player, compiled_player, plain_player
from latebloomer.simulation.experiment import CountedRuns, Experiment, MissingRuns
from latebloomer.simulation.progress_bar import Progress
from latebloomer.simulation.run_memory import threads_that_fit

SECONDS = 10.0  # of work that are handed on together, so that they can be kept in a file
PULLS_OF_SLICE = 1_000_000  # that a thread plays before it looks whether to stop: well under 1 s


def count_here(missing: Sequence[MissingRuns], threads: int | None, bar: Progress) -> CountedRuns:
    """Play all missing runs, one range after the other; counts come as they are ready.

    Whatever ends a chunk early, Ctrl-C or an error, the chunks before it are handed on first.
    """
    for runs in missing:
        for counts in _count(runs, threads or cores(), bar):
            yield runs, counts


def _count(runs: MissingRuns, threads: int, bar: Progress) -> Iterator[Counts]:
    experiment, count = runs.experiment, runs.last - runs.first
    worthwhile = max(1, count * experiment.cost_per_run // PULLS_OF_SLICE)
    threads = threads_that_fit(experiment, count, min(threads, worthwhile))
    players = players_of(experiment, threads)
    tally, began = experiment.tally(), monotonic()
    for start, count in experiment.chunks(runs.first, runs.last):
        try:
            played = play_chunk(experiment, players, start, count)
        except BaseException:
            yield tally.counts()
            raise
        tally.add(start, *played)
        bar.advance(experiment.cost_per_run * count)
        if monotonic() - began > SECONDS:
            yield tally.counts()
            tally, began = experiment.tally(), monotonic()
    yield tally.counts()
    experiment.means.release()


def players_of(experiment: Experiment, threads: int) -> list[list[Player]]:
    """For every thread a player of each policy; a GPU and plain Python have one thread."""
    policies, make = experiment.policies.values(), compiled_player
    if experiment.target == "python":
        threads, make = 1, plain_player
    elif experiment.target == "gpu":
        from latebloomer.simulation.gpu import gpu_player

        threads, make = 1, gpu_player
    return [[make(experiment, policy) for policy in policies] for _ in range(threads)]


def play_chunk(
    experiment: Experiment, players: list[list[Player]], first: int, runs: int
) -> tuple[Any, Any]:
    """Recommended arms by (policy, run) and pulls by (policy, run, arm), for `Tally.add`.

    There are as many threads as sets of players.
    """
    try:
        return play_in_threads(experiment, players, first, runs)
    except ChunkError:  # which says more
        raise
    except MemoryError as error:
        raise ChunkError(
            f"a chunk of {runs} runs of {len(experiment.policies)} policies over "
            f"{experiment.arms} arms does not fit into memory: give a smaller chunk, "
            f"for example chunk={max(1, runs // 8)}"
        ) from error


def play_in_threads(
    experiment: Experiment, players: list[list[Player]], first: int, runs: int
) -> tuple[Any, Any]:
    """See `play_chunk`; an error in one thread, or Ctrl-C, ends the others soon."""
    shape = (len(experiment.policies), runs)
    recommended = np.zeros(shape, np.int32)
    pulls = np.zeros((*shape, experiment.arms), np.int32)
    slices, stop = iter(list(_slices(experiment, runs))), Event()

    def work(mine: list[Player]) -> None:
        for policy, start, end in slices:  # which the threads share
            if stop.is_set():
                return
            mine[policy](first + start, recommended[policy, start:end], pulls[policy, start:end])

    with ThreadPoolExecutor(len(players)) as pool:
        try:
            for done in [pool.submit(work, mine) for mine in players]:
                done.result()
        except BaseException:
            stop.set()  # let the other threads end before the pool waits for them
            raise
    return recommended, pulls


def _slices(experiment: Experiment, runs: int) -> Iterator[tuple[int, int, int]]:
    """(place of the policy, start, end) for pieces of about `PULLS_OF_SLICE` pulls."""
    step = max(1, PULLS_OF_SLICE // experiment.cost_per_policy)
    step -= step % 2 if step > 1 else 0  # two runs may be played side by side
    for policy in range(len(experiment.policies)):
        for start, end in pairwise([*range(0, runs, step), runs]):
            yield policy, start, end


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
