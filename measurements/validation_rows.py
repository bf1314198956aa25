"""What more validation rows are worth: `python -m measurements.validation_rows`.

On the recorded tables the default policy races by the scores on validation rows (at most 600), and
by the mean of these and of the scores on test rows, weighted like 3.7 times as many rows (at most
2,200). A pick is worth its mean final score in the other splits, whose rows were drawn again.
Budgets are 1, 2, 4 and 8 full trainings in pulls. Differences are paired; a standard error is over
problems.
"""

from dataclasses import replace

import numpy as np

from latebloomer.bench.benchmark import BUDGETS
from latebloomer.bench.costs import PULLS, Cost, Line, by_set, lines_of
from latebloomer.bench.curve_runs import play_problem
from latebloomer.bench.curve_sets import read_sets
from latebloomer.bench.curves import Curves
from latebloomer.bench.recorded_tables import SETS
from latebloomer.bench.report import difference
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import default_or_named
from latebloomer.problems.curves import Floats

ROWS = {"validation": 600, "test": 1600}
POLICIES: dict[str, Policy] = {name: default_or_named(name) for name in ("auto", "r-sr", "sh")}
FEW, MANY = " by 600 rows", " by 2,200 rows"


def costs(curves: Curves) -> Floats:
    """Return the mean costs of each policy by few rows, then by many (policy, budget, measure)."""
    share = ROWS["test"] / sum(ROWS.values())
    pooled = (1 - share) * curves.runs + share * curves.test
    ends = pooled[:, :, -1]
    others = (ends.sum(axis=1, keepdims=True) - ends) / (curves.run_count - 1)
    worth = np.repeat(others[:, :, None], curves.length, axis=2)
    shown = [replace(curves, runs=runs, test=worth) for runs in (curves.runs, pooled)]
    draws = curves.run_count
    found = [play_problem(one, POLICIES, BUDGETS, draws, 0) for one in shown]
    # The best score at the end of all trainings, whatever they cost.
    picks = [one.runs[:, :, -1].argmax(axis=0) for one in shown]
    walls = [
        np.mean([(others[:, run] > others[pick, run]).mean() for run, pick in enumerate(own)])
        for own in picks
    ]
    wall = np.zeros((2, 1, len(BUDGETS), len(Cost._fields)))
    wall[:, 0, :, 0] = np.array(walls)[:, None]
    return np.concatenate([part for pair in zip(found, wall, strict=True) for part in pair])


def main() -> None:
    """Print rank losses by few and by many rows, and their differences, set by set."""
    problems = read_sets(SETS)[0]
    names = [*POLICIES, "all in full"]
    labels = [name + rows for rows in (FEW, MANY) for name in names]
    costs_of_sets = by_set(problems, [costs(curves) for curves in problems])
    for name in names:
        lines = lines_of(costs_of_sets, labels, BUDGETS, name + FEW, PULLS)
        for line in (line for line in lines if line.budget == "all"):
            if line.policy == name + MANY:
                few = next(one for one in lines if _place(one) == (line.group, "all", name + FEW))
                print(f"{line.group}, {name}: rank loss {few.rank_loss:.4f} by 600 rows, "
                      f"{line.rank_loss:.4f} by 2,200: {difference(line, False)}")  # fmt: skip


def _place(line: Line) -> tuple[str, str, str]:
    return line.group, line.budget, line.policy


if __name__ == "__main__":
    main()
