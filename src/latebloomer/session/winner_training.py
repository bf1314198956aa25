"""Select, then train: a share of the budget is reserved for training the winner further.

The policy selects the winner with the rest. Then only the winner is trained, until the budget is
spent or it takes no more pulls: it is at the horizon, has finished or has failed. The selection
does not change afterwards, and it keeps the estimates of that moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor
from typing import NamedTuple

from latebloomer.errors import need_number, require
from latebloomer.session.learner_view import ForecastView

ROUNDING = 1e-9  # 0.29 * 100 is a little below 29


def check_share(winner_share: float) -> None:
    """Raise a `SettingError` unless pulls are left to select the winner with."""
    need_number("winner_share", winner_share)
    require(0 <= winner_share < 1, "winner_share", winner_share, "at least 0 and below 1",
            "it is the fraction of the budget that trains the winner")  # fmt: skip


def set_aside(budget: int, winner_share: float) -> int:
    """Return the pulls of a budget that are reserved for the winner.

    >>> set_aside(100, 0.3), set_aside(100, 0.29), set_aside(9, 0.5), set_aside(9, 0.0)
    (30, 29, 4, 0)
    """
    return floor(winner_share * budget + ROUNDING)


def whole_budget(deciding: int, winner_share: float) -> int:
    """Return the total budget of which about `deciding` pulls select the winner.

    >>> whole_budget(70, 0.3), whole_budget(5, 0.5)
    (100, 10)
    """
    return round(deciding / (1 - winner_share))


class WinnerSelection(NamedTuple):
    """The winner and what was known when it was selected."""

    arm: int
    at: int  # pulls of all arms
    pulls: int  # pulls of the winner
    budget: int  # pulls that the policy had to decide
    estimates: Mapping[int, float]  # of every arm that was pulled
    forecasts: Mapping[int, ForecastView | None]  # of the same arms
    departed: Mapping[int, str]  # arms that took no more pulls, and how they left
