"""Whether it pays to reserve a share of the budget for the winner.

`python -m measurements.winner_share` runs the default policy on the five public sets with the part
of the budget that is not reserved and trains the pick further with the rest. It prints how far the
result is from the best arm trained in full: best final value minus the pick's value at the pulls
that it has then, as a share of the range between the problem's worst and best arm.
LATEBLOOMER_DATA names the recorded curves.
"""

from __future__ import annotations

import numpy as np

from latebloomer import Foresight
from latebloomer.bench.costs import ALL, PULLS, Line, by_set, cost, lines_of
from latebloomer.bench.curve_runs import play, shuffled
from latebloomer.bench.curve_sets import names_of, read_sets
from latebloomer.bench.curves import Curves
from latebloomer.bench.report import decimals, table
from latebloomer.problems.curves import Floats
from latebloomer.racing.request import usual_min_pulls
from latebloomer.session.checked_inputs import set_aside

POLICY, DRAWS, SEED = Foresight(), 10, 0
SHARES = (0.0, 0.1, 0.3, 0.5)
BUDGETS = (1.0, 2.0, 4.0, 8.0)  # in full trainings


def costs(curves: Curves, share: float, budget: float) -> Floats:
    """Return the mean `Cost` over draws, with the pick trained by the share as well."""
    whole = curves.pulls_of(budget)
    given = whole - set_aside(whole, share)
    tables, order = shuffled(curves, DRAWS, SEED)
    min_pulls = usual_min_pulls("auto", curves.arms, whole, share)
    played = play(POLICY, tables, given, DRAWS, SEED, min_pulls)
    picks = order[np.arange(DRAWS), played.picks]
    more = whole - played.spent if share else 0
    trained = np.minimum(played.trained + more, curves.length)
    runs, ends = curves.runs_shown(DRAWS, SEED), curves.truth()
    draws = zip(runs, picks, trained, played.spent / whole, strict=True)
    found = [cost(curves, run, ends, *draw, played.left_out) for run, *draw in draws]
    return np.mean(found, axis=0)


def lines() -> list[Line]:
    """Return the lines of all shares; the first share is the baseline."""
    problems = read_sets(names_of(["public"]))[0]
    cells = [
        np.array([[costs(curves, share, budget) for budget in BUDGETS] for share in SHARES])
        for curves in problems
    ]
    names = [f"{share:g}" for share in SHARES]
    return lines_of(by_set(problems, cells), names, BUDGETS, names[0], PULLS)


def show(lines: list[Line]) -> None:
    found = {(line.policy, line.budget): line for line in lines if line.group == ALL}
    for what in ("rank_loss", "returned"):
        rows = []
        for share in dict.fromkeys(policy for policy, _ in found):
            cells = [found[share, f"{budget:g}"] for budget in BUDGETS]
            rows.append([share, *(_cell(line, what) for line in cells)])
        print(f"{what}\n{table([['share', *(f'c = {c:g}' for c in BUDGETS)], *rows])}\n")


def _cell(line: Line, what: str) -> str:
    more, error = getattr(line, f"{what}_difference"), getattr(line, f"{what}_se")
    shown = decimals(getattr(line, what))
    return shown if line.policy == "0" else f"{shown} ({decimals(more)} ± {decimals(error)})"


if __name__ == "__main__":
    show(lines())
