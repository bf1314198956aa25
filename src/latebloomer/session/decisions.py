"""What a session remembers of its decisions: why arms left, and which one was selected."""

from collections.abc import Mapping
from typing import NamedTuple


class ForecastView(NamedTuple):
    """The score that the policy expects of an arm, as of its last decision."""

    score: float  # expected at pull `at`, if the whole forecast gain came
    at: float  # pull of the arm: the horizon, or as far as the policy looks ahead
    trust: float  # share of the forecast gain that counts, from 0 to 1
    level: float  # score that the gain is added to
    origin: int  # pull from which earlier forecasts were made,
    tested: int  # and the pull up to which they were compared with the scores


class Decision(NamedTuple):
    """When the policy last judged an arm, and what it compared the arm with."""

    at: int  # pulls of all arms then
    pulls: int  # of the arm then
    rival: str | None = None  # arm that it was compared with; None for the best arm
    rival_estimate: float | None = None


class Exit(NamedTuple):
    """How an arm came to take no more pulls, and its numbers then."""

    how: str  # DROPPED, FAILED or FINISHED; an arm that was dropped may still fail or finish
    at: int  # pulls of all arms
    estimate: float | None  # value that the recommendation ranked it by; None without a pull
    forecast: ForecastView | None = None
    decision: Decision | None = None  # that dropped it
    why: str = ""  # it failed or finished


class WinnerSelection(NamedTuple):
    """The winner and what was known when it was selected.

    From then on only the winner is trained, and the selection does not change.
    """

    arm: int
    at: int  # pulls of all arms
    pulls: int  # pulls of the winner
    budget: int  # pulls that the policy had to decide
    estimates: Mapping[int, float]  # of every arm that was pulled
    forecasts: Mapping[int, ForecastView | None]  # of the same arms
    departed: Mapping[int, str]  # arms that took no more pulls, and how they left
