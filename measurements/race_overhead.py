"""What a race costs beside the training: per pull, on resume, and in memory.

    python -m measurements.race_overhead [--quick]

Learners that return at once are raced in-process with the journal on disk; the time per pull is
the overhead. Optuna's `report` + `should_prune` on SQLite is measured in the same run where Optuna
is installed. Medians over repeats, with the range, because shared machines are noisy.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from time import perf_counter, process_time

from latebloomer import JournalFile, LocalRunner, RisingSR, race, read_verdict
from latebloomer.racing.journal.files import create
from latebloomer.racing.learners.entries import Entry
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners.learner_host import LearnerHost
from latebloomer.racing.runners.process_state import OwnStates
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Created, ScoreReported

ARMS = 8


def constant(value: float) -> Callable[[], Iterator[float]]:
    return lambda: repeat(value)


def learners() -> dict[str, Callable[[], Iterator[float]]]:
    return {f"arm {i}": constant(i / ARMS) for i in range(ARMS)}


def per_pull(pulls: int, folder: Path | None, full: bool = False, **settings: object) -> float:
    """Microseconds per pull of one whole race, verdict included."""
    path = None if folder is None else folder / f"{perf_counter()}.db"
    journal = JournalFile(path, durability="full") if full and path else path
    began = perf_counter()
    race(learners(), pulls, journal=journal, progress=False, **settings)  # type: ignore[arg-type]
    return (perf_counter() - began) / pulls * 1e6


def show(name: str, values: list[float], unit: str, target: str = "") -> None:
    low, middle, high = min(values), statistics.median(values), max(values)
    print(f"{name:<52} {middle:>9.1f} {unit:<3} ({low:.1f} to {high:.1f})  {target}", flush=True)


def resume_seconds(pulls: int, folder: Path) -> tuple[float, float]:
    """Seconds, by the clock and of CPU, to replay a journal of `pulls` pulls into a verdict."""
    path = folder / "long.db"
    settings = Settings(policy=RisingSR(), budget=pulls)
    created = Created("long", settings.as_dict(), tuple(learners()))
    session = RaceState(created).session
    journal, told = create(path, created), []
    while not session.over:
        arm = session.ask()
        told.append(ScoreReported(arm, arm / ARMS))
        session.tell(arm, arm / ARMS)
    for first in range(0, len(told), 10_000):
        journal.append(*told[first : first + 10_000])
    journal.close()
    del told, session
    began, cpu = perf_counter(), process_time()
    read_verdict(path)
    return perf_counter() - began, process_time() - cpu


def bytes_per_pull(pulls: int, folder: Path) -> float:
    """Growth of memory per pull, by races of n and 2n pulls."""
    peaks = []
    for count in (pulls, 2 * pulls):
        tracemalloc.start()
        per_pull(count, folder)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return (peaks[1] - peaks[0]) / pulls


def optuna_per_report(pulls: int, folder: Path) -> float | None:
    try:
        import optuna
    except ImportError:
        return None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        storage=f"sqlite:///{folder / 'optuna.db'}",
        pruner=optuna.pruners.SuccessiveHalvingPruner(),
    )
    trial = study.ask()
    began = perf_counter()
    for step in range(pulls):
        trial.report(0.5, step)
        trial.should_prune()
    return (perf_counter() - began) / pulls * 1e6


def per_switch(times: int = 2_000) -> float:
    """Microseconds to swap the random states of two learners."""
    states, hosts = OwnStates(), [LearnerHost(arm, Entry("", None, arm), None) for arm in (0, 1)]  # type: ignore[arg-type]
    began = perf_counter()
    for k in range(times):
        states.enter(hosts[k % 2])
    took = perf_counter() - began
    states.leave()
    return took / times * 1e6


def main(quick: bool) -> None:
    pulls, times = (2_000, 3) if quick else (20_000, 7)
    show("another learner's random states in force", [per_switch() for _ in range(times)], "µs",
         "target 40; apart from what follows")  # fmt: skip
    OwnStates.enter = lambda states, owner: None  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        show("race, journal in memory", [per_pull(pulls, None) for _ in range(times)], "µs")
        show("race, journal on disk", [per_pull(pulls, folder) for _ in range(times)], "µs",
             "target 150")  # fmt: skip
        show("race, r-ucbe, journal on disk",
             [per_pull(pulls, folder, policy="r-ucbe") for _ in range(times)], "µs")  # fmt: skip
        show('race, JournalFile(durability="full")',
             [per_pull(pulls // 10, folder, full=True) for _ in range(times)],
             "µs")  # fmt: skip
        show("race, timeout= (a thread per pull)",
             [per_pull(pulls, folder, runner=LocalRunner(timeout=60)) for _ in range(times)],
             "µs")  # fmt: skip
        theirs = optuna_per_report(200, folder)
        if theirs is None:
            print("Optuna is not installed: not compared")
        else:
            show("Optuna report + should_prune, SQLite", [theirs], "µs")
        long = 100_000 if quick else 1_000_000
        wall, cpu = resume_seconds(long, folder)
        name = f"replay and judge a journal of {long:,} pulls"
        show(name, [wall], "s", "target 10 for 1,000,000")
        show("the same, CPU time", [cpu], "s")
        show("memory per pull", [bytes_per_pull(pulls, folder)], "B")


if __name__ == "__main__":
    main("--quick" in sys.argv)
