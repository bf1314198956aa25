"""The example of the README and of `make demo`, over seeds: what it costs and what it finds.

`python -m measurements.first_example [seeds] [out.csv]`. For each seed, which draws the test rows,
the validation rows and the models' random numbers: the race, a race in as many seconds of
processor time, Successive Halving with the same budget, training all twelve models, and random
subsets of the models that cost at most as much as the race. Each keeps the model with the best
validation score (a race: its winner), refits it on training and validation rows, and is scored on
the test rows. Costs are seconds of processor time with one thread, refit included. A file that
exists is continued.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

time.perf_counter = time.process_time  # before latebloomer reads it: a race's seconds are CPU
sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import race_digits as example  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

SUBSETS = 10  # random subsets for each seed
COLUMNS = "seed", "method", "kept", "seconds", "test_accuracy", "half_time"


def rows_of(seed: int) -> list[tuple[Any, ...]]:
    """Return a row for each method."""
    data = example.digits(seed)
    X_test, y_test = data[3:]
    costs: dict[str, float] = {}

    @cache
    def refit(name: str) -> tuple[float, float]:  # its test accuracy and its cost
        model, seconds = timed(lambda: example.refitted(name, data, seed))
        return model.score(X_test, y_test), seconds

    def raced(method: str, **settings: Any) -> tuple[Any, ...]:
        found, costs[method] = timed(lambda: example.search(data, seed, **settings))
        score = found.score(X_test, y_test)
        half_time = found.verdict_.half_time or ""
        return seed, method, found.best_name_, costs[method], score, half_time

    rows = [raced("race", **example.BUDGET)]
    rows += [raced("race in seconds", seconds=round(costs["race"], 1))]
    rows += [raced("successive halving", **example.BUDGET | {"policy": "sh"})]

    trained: dict[str, tuple[float, float]] = {}  # validation score and cost
    for name in example.models():
        model, seconds = timed(lambda name=name: example.trained_in_full(data, seed, [name])[name])
        trained[name] = model[1], seconds
    rows.append((seed, "training all", *picked(list(trained), trained, refit), ""))
    rng = np.random.default_rng(seed)
    for _ in range(SUBSETS):
        subset: list[str] = []
        for name in rng.permutation(list(trained)).tolist():
            if picked([*subset, name], trained, refit)[1] > costs["race"]:
                break
            subset.append(name)
        if subset:
            rows.append((seed, "random subset", *picked(subset, trained, refit), ""))
    return rows


def picked(
    names: list[str],
    trained: dict[str, tuple[float, float]],
    refit: Callable[[str], tuple[float, float]],
) -> tuple[str, float, float]:
    """Return the best of these models, what all that cost, and its test accuracy."""
    best = max(names, key=lambda name: trained[name][0])
    score, seconds = refit(best)
    return best, sum(trained[name][1] for name in names) + seconds, score


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns and the processor time that it took."""
    began = time.process_time()
    return call(), time.process_time() - began


def show(rows: list[dict[str, str]]) -> None:
    """Print the table for the docs: means over seeds, and differences to training all."""
    seeds = sorted({row["seed"] for row in rows})
    table = {
        (row["method"], row["seed"]): [one for one in rows if one["seed"] == row["seed"]
                                       and one["method"] == row["method"]]
        for row in rows
    }  # fmt: skip

    def column(method: str, name: str) -> Any:
        each = [[float(row[name]) for row in table[method, seed]] for seed in seeds]
        return np.array([np.mean(values) for values in each])

    cost, score = (column("training all", name) for name in ("seconds", "test_accuracy"))
    print(f"{len(seeds)} seeds")
    print("| | seconds | share of training all | worst | test accuracy, minus training all |")
    print("|---|---|---|---|---|")
    for method in dict.fromkeys(row["method"] for row in rows):
        share = column(method, "seconds") / cost
        lead = column(method, "test_accuracy") - score
        error = lead.std(ddof=1) / len(seeds) ** 0.5
        print(f"| {method} | {column(method, 'seconds').mean():.1f} | {share.mean():.2f} | "
              f"{share.max():.2f} | {lead.mean():+.4f} ± {error:.4f} |")  # fmt: skip
    late = [row for row in rows if row["method"] == "race" and row["half_time"] != row["kept"]]
    print(f"The winner did not lead at half-time in {len(late)} of {len(seeds)} races.")


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    known: list[dict[str, str]] = []
    if out is not None and out.exists():
        known = list(csv.DictReader(out.read_text().splitlines()))
    for seed in range(seeds):
        if any(row["seed"] == str(seed) for row in known):
            continue
        with threadpool_limits(1):
            new = rows_of(seed)
        made = [(*row[:3], f"{row[3]:.2f}", f"{row[4]:.4f}", row[5]) for row in new]
        known += [dict(zip(COLUMNS, map(str, row), strict=True)) for row in made]
        if out is not None:
            with out.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(known)
    show(known)


if __name__ == "__main__":
    main()
