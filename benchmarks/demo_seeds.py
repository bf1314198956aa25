"""How often the demo's race, and halving with as many batches, pick the truly best learner.

`python -m benchmarks.demo_seeds [seeds] [budget]`. Truth: every learner trained to the horizon on
the rows it races on; the best is the one that is right most often on the test rows then.
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


class Row(NamedTuple):
    """One seed: picks, and accuracies on the test rows."""

    best: str
    race: str
    halving: str
    best_at_horizon: float
    race_at_horizon: float
    halving_at_horizon: float
    race_refit: float
    halving_refit: float
    half_time: str


def one(seed: int) -> Row:
    """Play one seed of the demo."""
    X, X_test, y, y_test = demo.data(seed)
    truth = {}
    for name in demo.learners():
        made = demo.learner(name, X, y, seed)
        for _ in range(demo.HORIZON):
            made.train()
        truth[name] = made.model.score(X_test, y_test)
    best = max(truth, key=lambda name: truth[name])
    found = demo.search(seed).fit(X, y)
    rival, pick, _ = demo.halving(X, y, seed)
    return Row(
        best, found.best_name_, pick, truth[best], truth[found.best_name_], truth[pick],
        found.score(X_test, y_test), demo.train_on(rival, X, y).score(X_test, y_test),
        found.verdict_.half_time or "",
    )  # fmt: skip


def budgeted(task: tuple[int, int]) -> Row:
    """One seed with a budget of its own."""
    demo.BUDGET = task[1]
    return one(task[0])


def show(rows: list[Row], seconds: float, budget: int) -> None:
    """The table for the README."""
    count = len(rows)

    def mean(column: str) -> str:
        return f"{sum(getattr(row, column) for row in rows) / count:.1%}"

    race = sum(row.race == row.best for row in rows)
    halving = sum(row.halving == row.best for row in rows)
    late = sum(row.half_time != row.race for row in rows)
    print(f"{count} seeds, {budget} batches each, horizon {demo.HORIZON}: {seconds:.0f} s")
    print("| | picks the best | test accuracy at the horizon | after refit on all rows |")
    print("|---|---|---|---|")
    print(f"| race | {race} | {mean('race_at_horizon')} | {mean('race_refit')} |")
    print(f"| halving | {halving} | {mean('halving_at_horizon')} | {mean('halving_refit')} |")
    print(f"| the best | {count} | {mean('best_at_horizon')} | |")
    print(f"truly best: {dict(Counter(row.best for row in rows))}")
    print(f"race picks: {dict(Counter(row.race for row in rows))}")
    print(f"halving picks: {dict(Counter(row.halving for row in rows))}")
    print(f"another learner led at half-time in {late} of {count}")


def main(seeds: int = 20, budget: int = demo.BUDGET) -> None:
    began = time.perf_counter()
    with get_context("spawn").Pool(WORKERS) as pool:
        rows = pool.map(budgeted, [(seed, budget) for seed in range(seeds)], chunksize=1)
    show(rows, time.perf_counter() - began, budget)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
