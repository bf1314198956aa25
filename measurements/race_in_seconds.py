"""Prices in races in seconds: `python -m measurements.race_in_seconds SET ... [--out FILE]`.

Recorded scores and seconds of the sets go through real sessions, with a clock that only they move.
Three ways to spend the seconds: a plan of equal prices (`policy="foresight"`), levels by price
(`auto`, `drops="worst"`), and drops by waste as well (`drops="waste"`). Differences are paired; a
standard error is over problems, each the mean over its splits and budgets.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from latebloomer._util.atomic_files import write_csv
from latebloomer.bench.benchmark import TIMED_BUDGETS
from latebloomer.bench.costs import SECONDS, Line, by_set, lines_of
from latebloomer.bench.curve_sets import names_of, read_sets
from latebloomer.bench.report import losses_in_seconds, over_all
from latebloomer.bench.timed_runs import race_all
from latebloomer.racing.settings import WASTE, WORST

EQUAL = "equal prices"
WAYS = {
    EQUAL: {"policy": "foresight"},
    "levels by price": {"policy": "auto", "drops": WORST},
    "levels by price, drops by waste": {"policy": "auto", "drops": WASTE},
}


def main() -> None:
    """Print each way's regret, and its paired differences to the first one and to the second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    problems = read_sets(names_of(asked.sets))[0]
    costs = by_set(problems, race_all(problems, WAYS, TIMED_BUDGETS, asked.draws, 0))
    for baseline in list(WAYS)[:2]:
        lines = lines_of(costs, [*WAYS], TIMED_BUDGETS, baseline, SECONDS)
        print(losses_in_seconds(lines))
        for group in dict.fromkeys(line.group for line in lines):
            own = [line for line in lines if line.group == group]
            print(f"\n{over_all(own, baseline)}", flush=True)
        if asked.out and baseline == EQUAL:
            write_csv(asked.out, [Line._fields, *lines])


if __name__ == "__main__":
    main()
