"""Simulations on Ray: `python -m measurements.ray_simulation [--quick]` (wall time, two cores).

The same runs with one and with two single-core workers, and with one and two threads of this
process, in turn, several times; medians of the ratios within a turn, because shared machines are
noisy. What two threads gain is what the machine had to give just then; how many workers were busy
on average, of two, is what Ray and the cutting into tasks leave of it. The workers are warm: each
Ray first plays a little, whose time is shown apart.
"""

from __future__ import annotations

import os
import statistics
import sys
from time import perf_counter

from latebloomer import simulate
from latebloomer.cluster import Cluster
from latebloomer.simulation import ray_tasks as remote
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.results.counts import Counts

PROBLEM, BUDGET = "paper-a", 3200
POLICIES = ["r-ucbe:exploration=151.05,noise=0.01", "r-sr"]

IN_TASKS: list[float] = []  # seconds that each task took


def note_tasks() -> None:
    """Let `IN_TASKS` have the seconds of each task that comes in."""
    real = remote.TaskQueue._answer

    def noted(queue: remote.TaskQueue, ref: object, part: Experiment) -> tuple[Counts, float]:
        answer = real(queue, ref, part)
        IN_TASKS.append(answer[1])
        return answer

    remote.TaskQueue._answer = noted  # type: ignore[method-assign]


def seconds(runs: int, **how: object) -> float:
    began = perf_counter()
    simulate(PROBLEM, POLICIES, BUDGET, runs, method="pulls", progress=False, **how)  # type: ignore[arg-type]
    return perf_counter() - began


def on_ray(cores: int, runs: int) -> tuple[float, float, float, float]:
    """Seconds until Ray is there, of the first small call, of the work, and in its tasks."""
    began = perf_counter()
    with Cluster(cores=cores):
        ready = perf_counter() - began
        first = seconds(4 * cores, engine="ray", chunk=1)
        IN_TASKS.clear()
        return ready, first, seconds(runs, engine="ray"), sum(IN_TASKS)


def show(name: str, values: list[float], unit: str, target: str = "") -> None:
    low, middle, high = min(values), statistics.median(values), max(values)
    print(f"{name:<52} {middle:>8.2f} {unit:<2} ({low:.2f} to {high:.2f})  {target}", flush=True)


def ratios(above: list[float], below: list[float]) -> list[float]:
    return [a / b for a, b in zip(above, below, strict=True)]


def main(quick: bool) -> None:
    # Ray's workers are nice to other programs (15), which would be measured too.
    os.environ.setdefault("RAY_worker_niceness", "0")
    runs, turns = (50_000, 3) if quick else (100_000, 3)
    seconds(2, threads=1)  # compile, or load
    note_tasks()
    ready, first, here, both, one, two, busy = [], [], [], [], [], [], []
    for _ in range(turns):
        here.append(seconds(runs, threads=1))
        both.append(seconds(runs, threads=2))
        for cores, walls in ((1, one), (2, two)):
            times = on_ray(cores, runs)
            ready.append(times[0])
            first.append(times[1])
            walls.append(times[2])
        busy.append(times[3] / times[2])
    show("Ray started on this machine", ready, "s")
    show("its first call, workers started, code loaded", first, "s")
    show(f"{runs:,} runs, this process, one thread", here, "s")
    show("the same, Ray, one worker", one, "s")
    show("the same, Ray, two workers", two, "s")
    show("workers busy, of two", busy, "")
    show("one worker / one thread", ratios(one, here), "x")
    show("one thread / two threads", ratios(here, both), "x")
    show("one worker / two workers", ratios(one, two), "x", "must 1.8")


if __name__ == "__main__":
    main("--quick" in sys.argv)
