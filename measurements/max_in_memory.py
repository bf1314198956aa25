"""Peak memory of a race of many large learners, with all of them in memory and with few.

    python -m measurements.max_in_memory [--learners 40] [--megabytes 50] [--max-in-memory 4]

Each race runs in its own process; its peak is the one that the operating system reports.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter

import numpy as np

from latebloomer import LocalRunner, race, read_verdict
from latebloomer.session.events import Saved

PULLS = 10  # per learner, on average


class Heavy:
    """A state of that many megabytes, all of which each pull touches."""

    def __init__(self, best: float, megabytes: int) -> None:
        self.best, self.n = best, 0
        self.weights = np.zeros(megabytes * 2**17)

    def pull(self) -> float:
        self.n += 1
        self.weights += 1.0
        return self.best * self.n / (self.n + 5)

    def save(self, folder: Path) -> None:
        np.save(folder / "weights.npy", self.weights)

    def load(self, folder: Path) -> None:
        self.weights = np.load(folder / "weights.npy")
        self.n = int(self.weights[0])


def heavy(best: float, megabytes: int) -> Callable[[], Heavy]:
    return lambda: Heavy(best, megabytes)


def race_once(learners: int, megabytes: int, max_in_memory: int | None) -> None:
    """Race, and print the peak memory of this process."""
    given = {f"{i}": heavy(0.5 + 0.5 * i / learners, megabytes) for i in range(learners)}
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as folder:
        path, began, saves = Path(folder) / "race.db", perf_counter(), count()

        def on_event(event: object, _: object) -> None:
            if isinstance(event, Saved):
                next(saves)

        verdict = race(
            given, PULLS * learners, policy="r-sr", journal=path, progress=False,
            runner=LocalRunner(max_in_memory=max_in_memory), callbacks=[on_event],
        )  # fmt: skip
        took = perf_counter() - began
        assert read_verdict(path).spent == PULLS * learners
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"max_in_memory={max_in_memory}: peak {(peak - idle) / 1024:,.0f} MB above the "
        f"{idle / 1024:,.0f} MB of an idle process, {next(saves)} checkpoints, {took:.1f} s, "
        f"winner {verdict.name} after {verdict.pulls[verdict.name]} pulls",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learners", type=int, default=40)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--max-in-memory", type=int, default=4)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.one is not None:
        race_once(wanted.learners, wanted.megabytes, wanted.one or None)
        return
    size = ["--learners", str(wanted.learners), "--megabytes", str(wanted.megabytes)]
    for max_in_memory in (0, wanted.max_in_memory):
        command = [
            sys.executable,
            "-m",
            "measurements.max_in_memory",
            *size,
            "--one",
            str(max_in_memory),
        ]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
