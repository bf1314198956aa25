"""How often the demo's race, and halving with as much training, pick a learner worth keeping.

`python -m benchmarks.demo_seeds [seeds] [trainings]`. The true score of a learner is its accuracy
on the test rows after a full training, as the estimator declares it, on all other rows.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one thread a process; read at import
    os.environ.setdefault(pool, "1")
sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import race_digits as demo  # noqa: E402

WORKERS = min(2, os.cpu_count() or 1)
NEAR = 0.01 + 1e-9  # of the best learner's test score


class Row(NamedTuple):
    """One seed: picks, and accuracies on the test rows."""

    best: str
    race: str
    halving: str
    best_score: float
    race_score: float  # refitted by the search
    halving_score: float  # trained in full
    half_time: str


def one(seed: int) -> Row:
    """Run one seed of the demo."""
    rows = demo.data(seed)
    X, X_test, y, y_test = rows
    truth = {name: demo.fully_trained(name, rows, seed) for name in demo.learners()}
    best = max(truth, key=lambda name: truth[name])
    found = demo.search(seed).fit(X, y)
    pick = demo.halving(X, y, seed)
    return Row(
        best, found.best_name_, pick, truth[best], found.score(X_test, y_test), truth[pick],
        found.verdict_.half_time or "",
    )  # fmt: skip


def budgeted(task: tuple[int, float]) -> Row:
    """Run one seed with its own budget."""
    demo.TRAININGS = task[1]
    return one(task[0])


def show(rows: list[Row], seconds: float, trainings: float) -> None:
    """Print the table for the docs."""
    count = len(rows)

    def line(name: str, picks: list[str], scores: list[float]) -> str:
        right = sum(pick == row.best for pick, row in zip(picks, rows, strict=True))
        near = sum(s >= row.best_score - NEAR for s, row in zip(scores, rows, strict=True))
        return f"| {name} | {right} | {near} | {sum(scores) / count:.1%} |"

    print(f"{count} seeds, {trainings:g} trainings each: {seconds:.0f} s")
    print("| | picks the best | within .01 of the best | test accuracy |")
    print("|---|---|---|---|")
    print(line("race", [row.race for row in rows], [row.race_score for row in rows]))
    print(line("halving", [row.halving for row in rows], [row.halving_score for row in rows]))
    print(line("the best", [row.best for row in rows], [row.best_score for row in rows]))
    late = sum(row.half_time != row.race for row in rows)
    print(f"another learner led at half-time in {late} races")
    print("the best:", dict(Counter(row.best for row in rows)))
    print("the race picks:", dict(Counter(row.race for row in rows)))
    print("halving picks:", dict(Counter(row.halving for row in rows)))


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    trainings = float(sys.argv[2]) if len(sys.argv) > 2 else demo.TRAININGS
    began = time.perf_counter()
    with get_context("spawn").Pool(WORKERS) as pool:
        rows = pool.map(budgeted, [(seed, trainings) for seed in range(seeds)], chunksize=1)
    show(rows, time.perf_counter() - began, trainings)


if __name__ == "__main__":
    main()
