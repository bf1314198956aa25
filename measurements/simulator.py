"""What a simulated pull costs: `python -m measurements.simulator` (CPU time, one core).

Setting A, K = 5, T = 3200, sigma .01, noise generation included. The ratio to plain Python is
measured in the same run; that to the authors' code uses its published timing file, which is read
from LATEBLOOMER_DATA where that is set.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from latebloomer.core.kernel import cpu_jit  # noqa: F401 (import numba before the clock runs)
from latebloomer.core.policy_moves import key
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import make_policy
from latebloomer.problems import Problem, problem
from latebloomer.simulation.experiment import Experiment, experiment_of
from latebloomer.simulation.local_runs import play_chunk, players_of
from latebloomer.simulation.players import compiled_player, plain_player

BUDGET = 3200
TARGETS = {  # name: (must, aim) in ns per pull
    "r-ucbe:exploration=151.05,noise=0.01": (60, 40),
    "r-ucbe:noise=0.01": (60, 40),
    "r-ucbe": (120, 60),
    "r-sr": (45, 25),
    "rest-sure": (400, 150),
    "etc": (120, 60),
    "rr": (120, 60),
    "rr-sw": (120, 60),
    "ucb-e": (120, 60),
    "sr": (120, 60),
    "prob-1": (120, 60),
    "sh": (120, 60),
    "sh:judge=window": (120, 60),
}


def experiment_with(
    name: str, setting: Problem, budget: int, method: str = "pulls"
) -> tuple[Experiment, Policy]:
    """An experiment with one policy, and the policy as it is played there."""
    made = experiment_of(setting, {name: make_policy(name)}, budget, None, key(0), method)
    return made, made.policies[name]


def cost(player, arms: int, runs: int, repeats: int = 5) -> tuple[float, float]:
    """CPU seconds and pulls of a run, the best of some repeats."""
    recommended, pulls = np.zeros(runs, np.int32), np.zeros((runs, arms), np.int32)
    player(0, recommended[:1], pulls[:1])  # compile, or load
    times = []
    for _ in range(repeats):
        start = time.process_time()
        player(0, recommended, pulls)
        times.append(time.process_time() - start)
    return min(times) / runs, pulls.sum() / runs


def authors() -> dict[str, float]:
    """ns per pull of the authors' code, by our names."""
    file = Path(os.environ.get("LATEBLOOMER_DATA") or "nowhere", "reference")
    file = file / "timing_authors_code_T3200.csv"
    if not file.exists():
        return {}
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    return {row["algorithm"].lower(): 1e3 * float(row["us_per_pull"]) for row in rows}


def per_pull() -> None:
    setting, published = problem("paper-a"), authors()
    print(
        f"{'policy':38}{'ns/pull':>9}{'must':>6}{'aim':>6}{'plain/ours':>12}{'authors/ours':>14}"
    )
    for name, (must, aim) in TARGETS.items():
        played = experiment_with(name, setting, BUDGET)
        seconds, pulls = cost(compiled_player(*played), setting.arms, 200)
        slow, _ = cost(plain_player(*played), setting.arms, 1, repeats=2)
        ours, theirs = 1e9 * seconds / pulls, published.get(name.partition(":")[0])
        ratio = f"{theirs / ours:14.0f}" if theirs else f"{'-':>14}"
        print(f"{name:38}{ours:9.1f}{must:6}{aim:6}{slow / seconds:12.0f}{ratio}", flush=True)


def per_run_by_sums() -> None:
    setting = problem("paper-a")
    for name in ("r-sr", "sr", "rr", "rr-sw", "sh", "sh:judge=window"):
        played = experiment_with(name, setting, BUDGET, "sums")
        seconds, _ = cost(compiled_player(*played), setting.arms, 20_000)
        print(
            f"{name:38}{1e6 * seconds:9.2f} us per run by sums (R-SR: must 5, aim 2)", flush=True
        )


def many_arms() -> None:
    for arms in (5, 16, 100, 300, 1000):
        setting = problem(f"random:F:K={arms}:seed=0")
        played = experiment_with("r-ucbe:exploration=20,noise=0.01", setting, 20 * arms)
        seconds, pulls = cost(compiled_player(*played), arms, max(1, 200_000 // (20 * arms)))
        print(
            f"{arms:6} arms, T = 20 K: R-UCBE {1e9 * seconds / pulls:8.1f} ns per pull", flush=True
        )


def two_threads() -> None:
    for name in ("r-ucbe:exploration=151.05,noise=0.01", "r-sr"):
        experiment, _ = experiment_with(name, problem("paper-a"), BUDGET)
        walls = []
        for threads in (1, 2):
            players = players_of(experiment, threads)
            play_chunk(experiment, players, 0, 10)
            start = time.perf_counter()
            play_chunk(experiment, players, 0, 60_000)
            walls.append(time.perf_counter() - start)
        print(f"{name:38}{walls[0] / walls[1]:9.2f} x with two threads (wall; must 1.8, aim 1.95)")


def first_call() -> None:
    """A new process with a warm disk cache: from the import to the first results."""
    code = (
        "import time; start = time.perf_counter()\n"
        "import latebloomer\n"
        "latebloomer.simulate('paper-a', 'r-ucbe:noise=0.01', 3200, 10, progress=False)\n"
        "print(time.perf_counter() - start)"
    )
    times = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(4)]
    print(f"{'first call in a new process':38}{min(times[1:]):9.2f} s (must 1.2, aim 1.0)")


def memory() -> None:
    """Peak of a process that plays 10^6 runs of T = 3200 (by sums: the runs are what counts)."""
    code = (
        "import resource, latebloomer\n"
        "latebloomer.simulate('paper-a', ['r-sr', 'sh'], 3200, 10**6, progress=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    peak = float(subprocess.check_output([sys.executable, "-c", code]))
    print(f"{'peak memory, 10^6 runs':38}{peak:9.0f} MB (must 1000, aim 300)")


if __name__ == "__main__":
    memory()  # first: a child's peak begins at its parent's
    per_pull()
    per_run_by_sums()
    many_arms()
    two_threads()
    first_call()
