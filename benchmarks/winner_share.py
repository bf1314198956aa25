"""Whether it pays to reserve a share of the budget for the winner.

`python -m benchmarks.winner_share` runs the default policy on the five public sets with the part
of the budget that is not reserved and trains the pick further with the rest. It prints how far the
result is from the best arm trained in full: best final value minus the pick's value at the pulls
that it has then, as a share of the range between the problem's worst and best arm.
LATEBLOOMER_DATA names the recorded curves.
"""

from __future__ import annotations

import numpy as np

from latebloomer import Foresight
from latebloomer.bench.benchmark import decimals, table
from latebloomer.bench.curve_runs import ALL, Line, lines_of, play, playable, shuffled
from latebloomer.bench.curve_sets import Curves, names_of, read_sets
from latebloomer.problems.curves import Floats
from latebloomer.session.checked_inputs import set_aside

POLICY, DRAWS, SEED = Foresight(), 10, 0
SHARES = (0.0, 0.1, 0.3, 0.5)
BUDGETS = (1.0, 2.0, 4.0, 8.0)  # in full trainings


def costs(curves: Curves, share: float, budget: float) -> Floats:
    """Return means over draws: rank loss, regret of the trained pick, error, spent, left out."""
    whole = curves.pulls_of(budget)
    given = whole - set_aside(whole, share)
    tables, order = shuffled(curves, DRAWS, SEED)
    played = play(POLICY, tables, given, DRAWS, SEED)
    picks = order[np.arange(DRAWS), played.picks]
    arms = playable(POLICY, curves.arms, given)
    own = POLICY.plan(arms, given, curves.length).upto[-1] if arms else 0
    pulls = own + (whole - played.spent if share else 0)
    truth = curves.truth
    rank = (truth[None, :] > truth[picks][:, None]).mean()
    regret = (truth.max() - _values(curves, picks, pulls)).mean() / (np.ptp(truth) or 1.0)
    error = (truth[picks] < truth.max()).mean()
    return np.array([rank, regret, error, (played.spent / whole).mean(), played.left_out])


def _values(curves: Curves, picks: Floats, pulls: Floats) -> Floats:
    """Return what each pick is worth then: the mean of its last L/50 pulls, as for the truth."""
    width = max(1, curves.length // 50)
    ends = np.clip(pulls + np.zeros(DRAWS, np.int64), 1, curves.length)
    return np.array(
        [curves.means[i, max(0, n - width) : n].mean() for i, n in zip(picks, ends, strict=True)]
    )


def lines() -> list[Line]:
    """Return the lines of all shares; the first share is the baseline."""
    groups: dict[str, list[Floats]] = {}
    for curves in read_sets(names_of(["public"]))[0]:
        cells = [[costs(curves, share, budget) for budget in BUDGETS] for share in SHARES]
        groups.setdefault(curves.group, []).append(np.array(cells))
    by_group = {group: np.stack(part, axis=1) for group, part in groups.items()}
    return lines_of(by_group, [f"{share:g}" for share in SHARES], BUDGETS, "0")


def show(lines: list[Line]) -> None:
    found = {(line.policy, line.budget): line for line in lines if line.group == ALL}
    for what in ("rank_loss", "regret"):
        rows = []
        for share in dict.fromkeys(policy for policy, _ in found):
            cells = [found[share, f"{budget:g}"] for budget in BUDGETS]
            rows.append([share, *(_cell(line, what) for line in cells)])
        print(f"{what}\n{table([['share', *(f'c = {c:g}' for c in BUDGETS)], *rows])}\n")


def _cell(line: Line, what: str) -> str:
    less, error = getattr(line, f"{what}_less"), getattr(line, f"{what}_se")
    shown = decimals(getattr(line, what))
    return shown if line.policy == "0" else f"{shown} ({decimals(-less)} ± {decimals(error)})"


if __name__ == "__main__":
    show(lines())
