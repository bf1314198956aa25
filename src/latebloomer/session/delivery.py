"""Identify, then deliver: a share of the budget is kept to train the winner on.

The policy names the best with what is not kept. Then the winner alone is trained, until the budget
is spent or it takes no more pulls: it is at its horizon, it ends by itself, or it fails. Whatever
happens then, who was named stays named, by the numbers of that moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from typing import NamedTuple

from latebloomer.errors import need_number, require

ROUNDING = 1e-9  # 0.29 * 100 is a little below 29


def check_share(deliver: float) -> None:
    """Raise a `SettingError` unless something is left to name the best with."""
    need_number("deliver", deliver)
    require(0 <= deliver < 1, "deliver", deliver, "at least 0 and below 1",
            "it is the share of the budget that the winner is trained on with")  # fmt: skip


def kept(budget: int, deliver: float) -> int:
    """Pulls of a budget that are kept for the winner.

    >>> kept(100, 0.3), kept(100, 0.29), kept(9, 0.5), kept(9, 0.0)
    (30, 29, 4, 0)
    """
    return floor(deliver * budget + ROUNDING)


def with_kept(budget: int, deliver: float) -> int:
    """About how many pulls a budget is in all whose `budget` pulls name the best.

    >>> with_kept(70, 0.3), with_kept(5, 0.5)
    (100, 10)
    """
    return round(budget / (1 - deliver))


class Naming(NamedTuple):
    """What stood when the best was named."""

    arm: int
    at: int  # pulls of the race
    pulls: int  # of its own
    budget: int  # that the policy had
    estimates: Mapping[int, float]  # of every arm that was pulled
    left: Mapping[int, str]  # arms that took no more pulls


@dataclass(frozen=True)
class Named:
    """Who is best, by the policy."""

    name: str
    estimate: float  # what it was chosen by
    pulls: int  # of its own, then
    at: int  # pulls of the race, then
    final: bool = True  # False while the race may still name another

    def __str__(self) -> str:
        so_far = "" if self.final else " so far"
        return (
            f"Named the best{so_far}: {self.name}, by {self.estimate:.6g} after {self.pulls} "
            f"pulls of its own (pull {self.at} of the race)"
        )


@dataclass(frozen=True)
class Delivered:
    """What one gets."""

    score: float  # the last one it showed
    pulls: int  # that it has had
    since: int  # of them, after it was named
    final: bool = True

    def __str__(self) -> str:
        so_far = "" if self.final else " so far"
        since = f", {self.since} of them since it was named" if self.since else ""
        return f"Delivered{so_far}: score {self.score:.6g} after {self.pulls} pulls{since}"
