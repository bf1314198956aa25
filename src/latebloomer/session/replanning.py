"""Fit the phases to come to the pulls that are left.

Arms leave and clocks run slow: then the plan that a run began with no longer spends what is there.
The phases to come are taken from the plan of another budget, the largest one for which they can be
paid from where the run stands. Cuts already made stay made; a phase that the racing arms have
passed already is cut at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latebloomer.core.ledger import ANY, Plan
from latebloomer.policies.base import Policy


class Position(NamedTuple):
    """Where a run stands."""

    racing: int  # arms that may still be recommended
    trainable: int  # those of them that take pulls
    level: int  # pulls that each of these has had
    left: int  # pulls that may still be made, counted from that level
    had: tuple[int, ...] = ()  # where trainable arms differ: the pulls of each, the most first


def phase_of(plan: Plan, racing: int) -> int:
    """The phase in which `racing` arms compete: the last that has room for them all.

    >>> phase_of(Plan([4, 3, 1], [2, 3, 9]), racing=2)
    1
    """
    keep = list(plan.keep)
    fits = [j for j, k in enumerate(keep) if k == ANY or k >= racing]
    return fits[-1] if fits else 0


def cost(plan: Plan, position: Position) -> int:
    """Pulls that the phases to come take, up to the last decision.

    >>> cost(Plan([4, 3, 2, 1], [2, 3, 6, 99]), Position(racing=3, trainable=3, level=2, left=0))
    9
    """
    if position.had:
        return _uneven_cost(plan, position)
    pulls, level = 0, position.level
    for j in range(phase_of(plan, position.racing), len(plan.keep)):
        keep, upto = int(plan.keep[j]), int(plan.upto[j])
        if keep > 1 and upto > level:
            pulls += min(keep, position.trainable) * (upto - level)
            level = upto
    return pulls


def _uneven_cost(plan: Plan, position: Position) -> int:
    """The same where some are ahead: those are taken to stay the longest.

    >>> uneven = Position(racing=3, trainable=3, level=0, left=0, had=(9, 4, 1))
    >>> cost(Plan([3, 2, 1], [3, 6, 99]), uneven)  # the last to 3, the one before it to 6
    4
    """
    first = phase_of(plan, position.racing)
    keep, upto = np.array(plan.keep[first:]), np.array(plan.upto[first:])
    places = np.maximum(1, np.arange(len(position.had)))
    phases = np.searchsorted(-keep, -places)  # in which an arm of that rank is trained
    reached = np.where(phases > 0, upto[np.maximum(phases, 1) - 1], 0)
    return int(np.maximum(0, reached - np.array(position.had)).sum())


def largest_that_fits(
    policy: Policy, arms: int, horizon: int, budget: int, position: Position, min_pulls: int = 1
) -> int:
    """The largest budget whose plan's phases to come cost no more than what is left.

    >>> from latebloomer.policies.rising_sr import RisingSR
    >>> largest_that_fits(RisingSR(), 3, 99, 30, Position(racing=3, trainable=3, level=0, left=30))
    32
    """
    least = policy.budget_needed(arms, horizon, min_pulls)

    def fits(total: int) -> bool:
        return cost(policy.plan(arms, total, horizon, min_pulls), position) <= position.left

    low, high = least, max(least + 1, budget)
    ceiling = 64 * high  # where the horizon bounds every phase, more makes no difference
    while high < ceiling and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
