"""The decisions that a session stores: why arms left, and which arm was selected."""

from collections.abc import Mapping
from typing import NamedTuple


class ForecastView(NamedTuple):
    """The score that the policy expects of an arm, as computed at the last decision."""

    score: float  # expected at pull `at`, with the whole forecast gain
    at: float  # the horizon, or the farthest pull of the arm that the policy forecasts
    trust: float  # share of the forecast gain that counts, from 0 to 1
    level: float  # recent score to which the gain is added
    origin: int  # pull at which the earlier forecasts were made that the trust is computed from,
    tested: int  # and the last pull with whose score they were compared


class Decision(NamedTuple):
    """The last comparison of an arm: when, with which arm, and that arm's estimate."""

    at: int  # number of pulls of all arms then
    pulls: int  # number of pulls of the arm then
    rival: str | None = None  # name of the arm that it was compared with; None for the best arm
    rival_estimate: float | None = None


class Exit(NamedTuple):
    """The exit of an arm, which gets no more pulls: how it left, and its numbers then."""

    how: str  # DROPPED, FAILED or FINISHED; an arm that was dropped may still fail or finish
    at: int  # pulls of all arms
    estimate: float | None  # value that it was ranked by; None if it had no pull
    forecast: ForecastView | None = None
    decision: Decision | None = None  # the comparison that dropped it
    why: str = ""  # why it failed or finished


class WinnerSelection(NamedTuple):
    """The winner and what was known when it was selected.

    From then on only the winner is trained, and the selection does not change.
    """

    arm: int
    at: int  # pulls of all arms
    pulls: int  # pulls of the winner
    budget: int  # number of pulls with which the policy decided
    estimates: Mapping[int, float]  # estimates of all arms that were pulled
    forecasts: Mapping[int, ForecastView | None]  # forecasts of the same arms
    departed: Mapping[int, str]  # how each arm left that gets no more pulls
