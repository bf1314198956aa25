"""What regret while learning adds to a simulation: `python -m measurements.learning_regret`.

Each pair simulates and counts the same runs with and without it, in turn. CPU time of one thread:
the median over the pairs, and half of the distance between the quartiles of their ratios.
"""

from __future__ import annotations

from statistics import median, quantiles
from time import process_time

from latebloomer.problems import problem
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.local_runs import count_chunks
from measurements.simulator import experiment_with

PAIRS = 9
PULLS = 100_000_000  # of one timing, or draws that stand for them
CASES = (  # policy, problem, budget, method
    ("r-ucbe:noise=0.01", "paper-a", 3200, "pulls"),
    ("r-sr", "paper-a", 3200, "pulls"),
    ("foresight", "paper-a", 3200, "pulls"),
    ("rr", "paper-a", 3200, "pulls"),
    ("rr", "paper-a", 200, "pulls"),
    ("rr", "random:F:K=100:seed=0", 4000, "pulls"),
    ("r-sr", "paper-a", 3200, "sums"),
    ("rr", "paper-a", 3200, "sums"),
)


def ready(name: str, setting: str, budget: int, method: str, regret: bool) -> Experiment:
    """Return the experiment, with the best totals found in advance or left out."""
    experiment, _ = experiment_with(name, problem(setting), budget, method)
    if not regret:
        vars(experiment.means)["best_totals"] = None
    return experiment


def seconds(experiment: Experiment, runs: int) -> float:
    """CPU seconds to simulate and count that many runs in one thread."""
    vars(experiment)["last"] = runs
    began = process_time()
    for _ in count_chunks(experiment, 1, lambda _: None, seconds=float("inf")):
        pass
    return process_time() - began


def measure(name: str, setting: str, budget: int, method: str) -> None:
    """Print nanoseconds per pull (microseconds per run by sums) without and with the regret."""
    experiments = [ready(name, setting, budget, method, regret) for regret in (False, True)]
    runs = max(1, PULLS // experiments[0].cost_per_policy)
    for experiment in experiments:
        seconds(experiment, 1)  # compile, or load; make the tables
    pairs = []
    for k in range(PAIRS):
        order = experiments if k % 2 else experiments[::-1]
        taken = {id(experiment): seconds(experiment, runs) for experiment in order}
        pairs.append([taken[id(experiment)] for experiment in experiments])
    added = [100 * (one / without - 1) for without, one in pairs]
    low, _, high = quantiles(added)
    per, unit = (1e6, "µs per run") if method == "sums" else (1e9 / budget, "ns per pull")
    without, one = (per * median(column) / runs for column in zip(*pairs, strict=True))
    where = f"{name}, {setting}, T = {budget}, by {method}"
    spread = (high - low) / 2
    print(f"{where:52}{without:8.3f}{one:8.3f} {unit}{median(added):+7.1f} ± {spread:.1f} %")


if __name__ == "__main__":
    for case in CASES:
        measure(*case)
