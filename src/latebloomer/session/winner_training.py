"""Identify, then deliver: a share of the budget is set aside to train the winner on.

The policy names the best with the rest. Then the winner alone is trained, until the budget is
spent or it takes no more pulls: it is at its horizon, it ends by itself, or it fails. Whatever
happens then, who was named stays named, by the numbers of that moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor
from typing import NamedTuple

from latebloomer.errors import need_number, require
from latebloomer.session.learner_view import ForecastView

ROUNDING = 1e-9  # 0.29 * 100 is a little below 29


def check_share(winner_share: float) -> None:
    """Raise a `SettingError` unless something is left to name the best with."""
    need_number("winner_share", winner_share)
    require(0 <= winner_share < 1, "winner_share", winner_share, "at least 0 and below 1",
            "it is the share of the budget that the winner is trained on with")  # fmt: skip


def set_aside(budget: int, winner_share: float) -> int:
    """Pulls of a budget that are the winner's.

    >>> set_aside(100, 0.3), set_aside(100, 0.29), set_aside(9, 0.5), set_aside(9, 0.0)
    (30, 29, 4, 0)
    """
    return floor(winner_share * budget + ROUNDING)


def whole_budget(deciding: int, winner_share: float) -> int:
    """About how many pulls a budget is in all of which `deciding` name the best.

    >>> whole_budget(70, 0.3), whole_budget(5, 0.5)
    (100, 10)
    """
    return round(deciding / (1 - winner_share))


class WinnerSelection(NamedTuple):
    """What stood when the best was named."""

    arm: int
    at: int  # pulls of all arms
    pulls: int  # of its own
    budget: int  # that the policy had
    estimates: Mapping[int, float]  # of every arm that was pulled
    forecasts: Mapping[int, ForecastView | None]  # of the same arms
    departed: Mapping[int, str]  # arms that took no more pulls, and how they left
