"""The CPU rows of docs/performance.md: `python -m measurements.cpu_table [--reproduce]`.

CPU time, so that a busy machine disturbs little: the best of some repeats, with the worst beside
it. What two threads gain is by the clock and needs quiet cores. With `--reproduce` the paper's
figures are made with 100 runs too, which takes a minute.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

from latebloomer import race
from latebloomer.problems import problem
from latebloomer.simulation.players import compiled_player
from measurements.race_overhead import learners, resume_seconds
from measurements.simulator import cost, experiment_with, two_threads

INDEX = "r-ucbe:exploration=151.05,noise=0.01"
FIRST_CALL = (
    "import latebloomer\n"
    "latebloomer.simulate('paper-a', 'r-ucbe:noise=0.01', 3200, 10, progress=False)"
)


FIRST_RACE = (
    "from latebloomer import race\n"
    "def learner(speed):\n"
    "    return lambda: (n / (n + speed) for n in range(1, 1000))\n"
    "learners = {str(speed): learner(speed) for speed in range(5, 30, 5)}\n"
    "race(learners, budget=100, journal=None, progress=False)"
)
# Python keeps the bytecode of what it has loaded once; some environments forbid that.
AS_USERS_HAVE_IT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def show(name: str, values: list[float], unit: str, must: float = 0, aim: float = 0) -> None:
    low, high = min(values), max(values)
    targets = f"  must {must:g}, aim {aim:g}" if must else ""
    print(f"{name:50}{low:9.3g} {unit:<3} (to {high:.3g}){targets}", flush=True)


def child_seconds(*words: str) -> float:
    """CPU seconds of a new process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command, quiet = [sys.executable, *words], subprocess.DEVNULL
    subprocess.run(command, stdout=quiet, check=True, env=AS_USERS_HAVE_IT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def repeated(times: int, measure: Callable[..., float], *args: str) -> list[float]:
    return [measure(*args) for _ in range(times)]


def starting() -> None:
    child_seconds("-c", FIRST_CALL)  # fill the caches of compiled code
    child_seconds("-c", FIRST_RACE)
    child_seconds("-m", "latebloomer", "--help")
    numpy = min(repeated(5, child_seconds, "-c", "import numpy"))
    plain = repeated(5, child_seconds, "-c", "import latebloomer")
    used = repeated(5, child_seconds, "-c", "from latebloomer import race, simulate, Session")
    show("import latebloomer", plain, "s", 0.10 + numpy, 0.05 + numpy)
    show("the same, with race, simulate and Session", used, "s", 0.10 + numpy, 0.05 + numpy)
    helped = repeated(5, child_seconds, "-m", "latebloomer", "--help")
    show("latebloomer --help", helped, "s", 0.45, 0.3)
    called = repeated(5, child_seconds, "-c", FIRST_CALL)
    show("first call in a new process, warm cache", called, "s", 1.2, 1.0)
    raced = repeated(5, child_seconds, "-c", FIRST_RACE)
    show("first race in a new process, 100 pulls", raced, "s")


def per_pull(name: str, setting: str, budget: int, method: str = "pulls") -> list[float]:
    """Nanoseconds of a simulated pull, in three repeats."""
    experiment, policy = experiment_with(name, problem(setting), budget, method)
    player, runs = compiled_player(experiment, policy), max(2, 2_000_000 // budget)
    costs = [cost(player, experiment.arms, runs, repeats=1) for _ in range(3)]
    return [1e9 * seconds / pulls for seconds, pulls in costs]


def simulating() -> None:
    show("R-UCBE, K = 5, T = 3200", per_pull(INDEX, "paper-a", 3200), "ns", 28, 18)
    for arms, must, aim in ((500, 120, 80), (2000, 200, 120)):
        values = per_pull("rest-sure", f"random:F:K={arms}:seed=0", 40 * arms)
        show(f"Rest-Sure, K = {arms:,}, T = 40 K", values, "ns", must, aim)
    for method in ("pulls", "sums"):
        values = per_pull("r-sr", "random:F:K=10000:seed=0", 400_000, method)
        show(f"R-SR by {method}, K = 10,000, T = 40 K", values, "ns", 36, 36)
    two_threads()


def overhead(pulls: int, journal: Path | None) -> float:
    """CPU microseconds per pull of a race whose learners return at once, verdict included."""
    began = process_time()
    race(learners(), pulls, journal=journal, progress=False)
    return (process_time() - began) / pulls * 1e6


def racing(folder: Path) -> None:
    overhead(1000, None)
    on_disk = [overhead(20_000, folder / f"{k}.db") for k in range(5)]
    show("race, beside the training, journal on disk", on_disk, "µs", 25, 18)
    in_memory = [overhead(20_000, None) for _ in range(5)]
    show("race, beside the training, journal in memory", in_memory, "µs", 8, 6)
    replayed = []
    for k in range(2):
        (folder / str(k)).mkdir()
        replayed.append(resume_seconds(1_000_000, folder / str(k))[1])
    show("replay and verdict of 10^6 pulls", replayed, "s", 10, 5)


def main() -> None:
    starting()
    simulating()
    with tempfile.TemporaryDirectory() as place:
        racing(Path(place))
        if "--reproduce" in sys.argv:
            words = ("-m", "latebloomer", "reproduce", "all", "--runs", "100", "--quiet")
            spent = child_seconds(*words, "--out", place)
            show("reproduce all --runs 100", [spent], "s", 50, 40)


if __name__ == "__main__":
    main()
