"""What a pick costs, and by how much one policy is better than another on the same luck.

Standard errors are over problems (each the mean over its draws and budgets), of the difference to
a baseline on the same problems and draws. Many problems of a set share learners, tasks or data, so
these standard errors are too small; they say what chance in draws and problems does, not what
another kind of learner would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latebloomer.bench.curve_runs import Played
from latebloomer.bench.curve_sets import Curves
from latebloomer.problems.curves import Floats

MEASURES = ("rank_loss", "regret", "error")
ALL = "all"


class Line(NamedTuple):
    """One policy on one set (or all) at one budget (or all)."""

    group: str
    budget: str
    policy: str
    problems: int
    rank_loss: float  # share of the arms that are truly better than the pick
    rank_loss_less: float  # the baseline's minus this one's: positive is better
    rank_loss_se: float  # of that difference; nan where there is one problem
    regret: float  # in shares of the range between the problem's worst and best arm
    regret_less: float
    regret_se: float
    error: float  # share of picks that are not the best
    error_less: float
    error_se: float
    spent: float  # share of the budget
    left_out: float  # share of arms never looked at: the budget was below the policy's least


def costs(curves: Curves, played: Played, budget: float) -> Floats:
    """Rank loss, regret, error, share of the budget spent, share of arms left out; draws' mean."""
    truth = curves.truth
    got, best, spread = truth[played.picks], truth.max(), float(np.ptp(truth))
    rank = (truth[None, :] > got[:, None]).mean()
    regret = (best - got).mean() / spread if spread > 0 else 0.0
    spent = played.spent.mean() / curves.pulls_of(budget)
    return np.array([rank, regret, (got < best).mean(), spent, played.left_out / curves.arms])


@dataclass(frozen=True)
class Losses:
    """All costs: by set an array (policies, problems, budgets, columns of `costs`)."""

    policies: list[str]
    budgets: list[float]
    baseline: str
    by_group: dict[str, Floats]

    @classmethod
    def of(
        cls,
        problems: Sequence[Curves],
        played: Sequence[dict[tuple[str, float], Played]],
        policies: Sequence[str],
        budgets: Sequence[float],
        baseline: str,
    ) -> Losses:
        rows: dict[str, list[Floats]] = {}
        for curves, found in zip(problems, played, strict=True):
            cells = [
                [costs(curves, found[label, budget], budget) for budget in budgets]
                for label in policies
            ]
            rows.setdefault(curves.group, []).append(np.array(cells))
        by_group = {group: np.stack(part, axis=1) for group, part in rows.items()}
        return cls(list(policies), list(budgets), baseline, by_group)

    def lines(self) -> list[Line]:
        """Per set and budget, per set, per budget and in all, where the sets count alike."""
        groups = [*self.by_group] + [ALL] * (len(self.by_group) > 1)
        budgets = [*range(len(self.budgets))] if len(self.budgets) > 1 else []
        return [
            self._line(group, place, budget)
            for group in groups
            for budget in (None, *budgets)
            for place in range(len(self.policies))
        ]

    def _line(self, group: str, place: int, budget: int | None) -> Line:
        parts = [*self.by_group.values()] if group == ALL else [self.by_group[group]]
        base = self.policies.index(self.baseline)
        own, less = (
            [_by_problem(part[place], budget) for part in parts],
            [_by_problem(part[base] - part[place], budget) for part in parts],
        )
        means, gains = _mean(own), _mean(less)
        errors = np.sqrt(sum(_variance(part) for part in less)) / len(parts)
        columns = zip(MEASURES, means[:3], gains, errors, strict=False)
        shown = {
            name: float(value)
            for what, *values in columns
            for name, value in zip((what, f"{what}_less", f"{what}_se"), values, strict=True)
        }
        return Line(
            group=group,
            budget=ALL if budget is None else f"{self.budgets[budget]:g}",
            policy=self.policies[place],
            problems=sum(len(part) for part in own),
            spent=float(means[3]),
            left_out=float(means[4]),
            **shown,
        )


def _by_problem(table: Floats, budget: int | None) -> Floats:
    """(problems, columns): the mean over budgets, or one of them."""
    return table.mean(axis=1) if budget is None else table[:, budget]


def _mean(parts: list[Floats]) -> Floats:
    return np.mean([part.mean(axis=0) for part in parts], axis=0)


def _variance(part: Floats) -> Floats:
    """Of the mean over problems."""
    if len(part) < 2:
        return np.full(part.shape[1], np.nan)
    return part.var(axis=0, ddof=1) / len(part)
