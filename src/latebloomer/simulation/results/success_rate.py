"""The share of budgets at which a policy recommends the best arm: the paper's measure for IMDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from latebloomer._util.text import aligned
from latebloomer.simulation.results.counts import Cell


@dataclass(frozen=True)
class SuccessRate:
    r"""The arms that a policy recommended at each budget, and how often it was the best arm.

    .. math:: R = \frac{1}{|\mathcal T|} \sum_{T \in \mathcal T} P\{\hat I^*(T) = i^*(T)\}

    It is from [Mussi24, App. H], with a single run: then each probability is 0 or 1.

    Attributes
    ----------
    policy : str
        Label of the policy.
    budgets : tuple[int, ...]
        Budgets T, each with its own best arm.
    recommended : tuple[str, ...]
        For each budget, the arm that is recommended most often.
    right : tuple[float, ...]
        For each budget, the share of runs that recommend the best arm.
    value : float
        R, the mean of `right`.
    """

    policy: str
    budgets: tuple[int, ...]
    recommended: tuple[str, ...]
    right: tuple[float, ...]
    value: float


@dataclass(frozen=True)
class SuccessRates:
    """The success rates of several policies; `print` them.

    Attributes
    ----------
    rows : tuple[SuccessRate, ...]
        The success rate of each policy.
    """

    rows: tuple[SuccessRate, ...]

    def __str__(self) -> str:
        budgets = sorted({budget for row in self.rows for budget in row.budgets})
        head = ["policy", *map(str, budgets), "success rate"]
        shown = [head]
        shown += [[row.policy, *_cells(row, budgets), f"{row.value:.3g}"] for row in self.rows]
        return "\n".join(aligned(shown, "<".ljust(len(head), ">")))


def success_rate_of(policy: str, cells: Sequence[Cell], arms: Sequence[str]) -> SuccessRate:
    """Return the success rate of one policy over the budgets of its cells."""
    often = [max(range(len(arms)), key=cell.recommendations.__getitem__) for cell in cells]
    right = tuple(1 - cell.errors / cell.runs for cell in cells)
    return SuccessRate(
        policy=policy,
        budgets=tuple(cell.budget for cell in cells),
        recommended=tuple(arms[arm] for arm in often),
        right=right,
        value=sum(right) / len(right),
    )


def _cells(row: SuccessRate, budgets: Sequence[int]) -> list[str]:
    """Return a cell per budget: the arm, with the share of right runs if runs disagree."""
    shown = {}
    for budget, arm, right in zip(row.budgets, row.recommended, row.right, strict=True):
        remark = {1.0: "", 0.0: " (wrong)"}.get(right, f" ({right:.0%} right)")
        shown[budget] = f"{arm}{remark}"
    return [shown.get(budget, "-") for budget in budgets]
