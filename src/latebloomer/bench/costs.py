"""The costs of picks: rank loss, regret and error, as means with paired standard errors.

Standard errors are for the difference to a baseline on the same problems and draws. They are
computed over problems, after averaging each problem over its draws and budgets. Many problems of a
set share learners, tasks or data, so these standard errors are too small: they show the random
variation of draws and problems, but not the variation between kinds of learners.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from latebloomer.bench.curves import Curves
from latebloomer.bench.recorded_tables import DESIGN
from latebloomer.problems.curves import Floats

ALL = "all"
PULLS, SECONDS = "pulls", "seconds"  # units of budgets
Costs: TypeAlias = Mapping[str, Floats]  # by set: (problems, policies, budgets, measures)


class Cost(NamedTuple):
    """The costs of one draw of one policy. Worth is the score on test rows, if it was recorded."""

    rank_loss: float  # share of arms that are worth more than the pick, all trained to the end
    own_loss: float  # share of arms whose curve in this draw ends above the pick's curve
    # Worth of the best arm minus the pick's, both trained to the end, over the range.
    regret: float
    error: float  # 1 if the pick is not the best arm
    returned: float  # worth of the best arm trained to the end minus the returned pick's
    spent: float  # share of the budget
    left_out: float  # share of arms left out because the budget was below the policy's minimum


def cost(
    curves: Curves, run: int, ends: Floats, pick: int, trained: int, spent: float, left_out: float
) -> Cost:
    """Return the cost of a pick with `trained` pulls; `ends` are the ends of the drawn curves."""
    truth = curves.truth(run)
    best, spread = truth.max(), float(np.ptp(truth)) or 1.0
    returned = curves.worth(max(1, int(trained)), run)[pick]
    return Cost(
        rank_loss=float((truth > truth[pick]).mean()),
        own_loss=float((ends > ends[pick]).mean()),
        regret=float(best - truth[pick]) / spread,
        error=float(truth[pick] < best),
        returned=float(best - returned) / spread,
        spent=float(spent),
        left_out=left_out,
    )


class Line(NamedTuple):
    """The costs of one policy on one set (or all) at one budget (or all), in pulls or seconds.

    A difference is the policy's cost minus the baseline's cost, so values above 0 are worse. Its
    standard error is nan if there is only one problem.
    """

    group: str
    unit: str
    budget: str
    policy: str
    problems: int
    rank_loss: float
    rank_loss_difference: float
    rank_loss_se: float
    own_loss: float
    own_loss_difference: float
    own_loss_se: float
    regret: float
    regret_difference: float
    regret_se: float
    error: float
    error_difference: float
    error_se: float
    returned: float
    returned_difference: float
    returned_se: float
    spent: float
    left_out: float


COMPARED = Cost._fields[:5]  # the measures with a difference


def by_set(problems: Sequence[Curves], costs: Sequence[Floats]) -> Costs:
    """Return the costs of problems, set by set."""
    rows: dict[str, list[Floats]] = {}
    for curves, table in zip(problems, costs, strict=True):
        rows.setdefault(curves.group, []).append(table)
    return {group: np.stack(part) for group, part in rows.items()}


def lines_of(
    costs: Costs, policies: Sequence[str], budgets: Sequence[float], baseline: str, unit: str
) -> list[Line]:
    """Return lines per set and budget, per set, per budget and over all.

    In lines over all sets, sets count equally; a set on which this library was designed is left
    out if there are others.
    """
    by_group = {group: [part] for group, part in costs.items()}
    counted = [part for group, part in costs.items() if group != DESIGN]
    if len(counted) > 1:
        by_group[ALL] = counted
    places = {ALL: slice(None)}  # indices of each budget, and of all budgets
    if len(budgets) > 1:
        places |= {f"{c:g}": slice(place, place + 1) for place, c in enumerate(budgets)}
    lines, base = [], policies.index(baseline)
    for (group, parts), (name, at) in product(by_group.items(), places.items()):
        problems = sum(len(part) for part in parts)
        for row, policy in enumerate(policies):
            means = _measures(parts, row, base, at)
            lines.append(Line(group, unit, name, policy, problems, *means))
    return lines


def _measures(parts: list[Floats], row: int, base: int, at: slice) -> list[float]:
    """Return the columns of `Line` from `rank_loss` on, from means over budgets `at`."""
    own = [part[:, row, at].mean(axis=1) for part in parts]
    more = [(part[:, row] - part[:, base])[:, at].mean(axis=1) for part in parts]
    means, gaps = (np.mean([part.mean(axis=0) for part in some], axis=0) for some in (own, more))
    errors = np.sqrt(sum(map(_variance, more))) / len(parts)
    columns = np.stack([means, gaps, errors], axis=1)
    split = len(COMPARED)
    return [*columns[:split].ravel().tolist(), *means[split:].tolist()]


def _variance(part: Floats) -> Floats:
    """Return the variance of the mean over problems."""
    if len(part) < 2:
        return np.full(part.shape[1], np.nan)
    return part.var(axis=0, ddof=1) / len(part)
