"""What a race costs beside training all: `python -m measurements.should_i_race [seeds] [out.csv]`.

Races of 3, 6 and 12 of the models of `examples/race_digits.py`, drawn anew for each seed, on its
rows and on a ninth of them, with budgets of a sixth, a third and half of a training for each model
and one for the refit. Costs are seconds of processor time with one thread, refit included, divided
by those of training all and refitting the best.
"""

from __future__ import annotations

import csv
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from measurements.first_example import example, timed

LEARNERS, SHARES, ROWS = (3, 6, 12), (1 / 6, 1 / 3, 1 / 2), (1.0, 1 / 9)
COLUMNS = "seed", "rows", "learners", "share", "seconds_per_training", "cost_ratio"


def fewer(data: tuple[Any, ...], part: float) -> tuple[Any, ...]:
    """Return the data with a part of the training rows."""
    X, y, (train, validate), *test = data
    return X, y, (train[: round(part * len(train))], validate), *test


def rows_of(seed: int) -> list[tuple[Any, ...]]:
    """Return a row for each combination."""
    rng, rows = np.random.default_rng(seed), []
    everything, all_models = example.digits(seed), example.models()
    order = rng.permutation(list(all_models)).tolist()
    for part in ROWS:
        data = fewer(everything, part)
        costs = {
            name: timed(partial(example.trained_in_full, data, seed, [name]))[1] for name in order
        }
        for count in LEARNERS:
            names = order[:count]
            # Refitting the best is counted as a mean training, for both.
            whole = sum(costs[name] for name in names) * (1 + 1 / count)
            for share in SHARES:
                settings = {"trainings": count * share, "min_pulls": 1, "refit": False}
                picked = {name: all_models[name] for name in names}
                _, seconds = timed(partial(example.search, data, seed, picked, **settings))
                ratio = (seconds + whole / (count + 1)) / whole
                rows.append((seed, len(data[2][0]), count, share, whole / (count + 1), ratio))
    return rows


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    rows = [row for seed in range(seeds) for row in rows_of(seed)]
    if len(sys.argv) > 2:
        with Path(sys.argv[2]).open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows([*row[:3], *(f"{x:.3f}" for x in row[3:])] for row in rows)
    print("| rows | seconds per training | learners | a sixth | a third | half |")
    print("|---|---|---|---|---|---|")
    for size in sorted({row[1] for row in rows}):
        for count in LEARNERS:
            cells = [row for row in rows if row[1:3] == (size, count)]
            means = [np.mean([row[5] for row in cells if row[3] == share]) for share in SHARES]
            seconds = np.mean([row[4] for row in cells])
            print(f"| {size:,} | {seconds:.2g} | {count} | "
                  + " | ".join(f"{mean:.2f}" for mean in means) + " |")  # fmt: skip


if __name__ == "__main__":
    main()
