"""One view of an arm or learner, for everything that shows one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import Any, NamedTuple

from latebloomer.session.events import FAILED, FINISHED

RACING, LEADING, DROPPED = "racing", "leading", "dropped"
WINNER, NOT_SELECTED = "winner", "not selected"  # once the winner is selected


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


@dataclass(frozen=True)
class LearnerView:
    """What is known of one arm or learner. `print` it.

    Attributes
    ----------
    arm : int
        Number of the arm, from 0.
    name : str
        Name of the arm.
    state : str
        "winner" or "not selected" after the selection, "leading" or "racing" before it;
        "dropped", "failed" or "finished".
    pulls : int
        Number of its pulls.
    score : float
        Last observed score; nan without any.
    forecast : ForecastView | None
        Expected score at the horizon and the trust it gets; None if the policy makes no forecast.
    estimate : float
        Value that the policy ranks it by, in score units; nan without any score.
    rule : str
        Policy whose rating the estimate is.
    decision : Decision | None
        When it was dropped, or last compared with the leader; None without any score.
    left_at : int | None
        Pulls of all arms when it was dropped or failed.
    left_why : str
        Why it failed or finished.
    seconds : float
        Training time of its counted pulls.
    steps : int | None
        Its own training steps, if a pull is a fraction of a full training.
    full_pulls : int | None
        Pulls in its full training, if a pull is a fraction of one.
    lower : float
        Lower end of the interval for its score at the horizon; see `Session.certificate`.
    upper : float
        Upper end; below `lower` if its scores contradict the assumptions.
    failures : tuple[str, ...]
        Pulls that failed, one sentence each.
    settings : Mapping[str, Any]
        Parameters of a candidate, if a search or another tool made it.
    """

    arm: int
    name: str
    state: str
    pulls: int
    score: float
    forecast: ForecastView | None
    estimate: float
    rule: str = ""
    decision: Decision | None = None
    left_at: int | None = None
    left_why: str = ""
    seconds: float = 0.0
    steps: int | None = None
    full_pulls: int | None = None
    lower: float = -inf
    upper: float = inf
    failures: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def leads(self) -> bool:
        """True if the arm is the winner, or leads."""
        return self.state in (WINNER, LEADING)

    @property
    def left(self) -> bool:
        """True if the arm was dropped or has failed."""
        return self.state in (DROPPED, FAILED)

    @property
    def trained(self) -> str:
        """How far it was trained: a share of its full training, or a number of pulls."""
        if self.full_pulls is None:
            return f"{self.pulls:,} pull{'s' * (self.pulls != 1)}"
        share = 100 * self.pulls / self.full_pulls
        return f"{share:.0f} %" if share >= 1 or not share else f"{share:.1g} %"

    @property
    def outcome(self) -> str:
        """The state in a few words, with the race pull at which the arm left."""
        return f"{self.state} at pull {self.left_at:,}" if self.left_at else self.state

    @property
    def why(self) -> str:
        """When and why it was dropped, or how it ended, with the numbers that decided."""
        if self.state == FAILED:
            return self.left_why or FAILED
        judged = self._judged()
        return f"{self.left_why}. {judged[0].upper()}{judged[1:]}" if self.left_why else judged

    def _judged(self) -> str:
        made = self.decision
        if made is None:
            return "not pulled yet"
        if self.leads:
            word = "selected" if self.state == WINNER else "leads"
            more = self.pulls - made.pulls
            after = f", then trained for {more:,} more pull{'s' * (more != 1)}" if more else ""
            return f"{word} with estimate {self.estimate:.6g}{after}"
        word = f"dropped at race pull {made.at:,}" if self.left_at else "not selected"
        if self.state == RACING:
            word = "racing"
        text = f"{word}: estimate {self.estimate:.6g}"
        if made.rival is None or made.rival_estimate is None:
            return text
        return f"{text}, versus {made.rival_estimate:.6g} for {made.rival}"

    @property
    def forecast_score(self) -> float:
        """Expected score at the horizon; nan if the policy makes no forecast, or trusts none."""
        return self.forecast.score if self.forecast is not None and self.forecast.trust else nan

    @property
    def remark(self) -> str:
        """How far forecasts counted when it was judged; empty if the policy made none."""
        seen = self.forecast
        if seen is None:
            return ""
        share = f"{100 * seen.trust:.0f} %"
        said = (
            f"Forecasts made at pull {seen.origin:,} explained {share} of the change up to pull "
            f"{seen.tested:,}"
        )
        if not seen.trust:
            return f"{said}, so no forecast counts"
        change = seen.score - seen.level
        word = "gain" if change >= 0 else "fall"  # of a loss
        return (
            f"{said}, so {share} of the forecast {word} counts: {self.name} was at "
            f"{seen.level:.3g}, with a forecast {word} of {abs(change):.3g} by pull {seen.at:,.0f}"
        )

    def row(self) -> dict[str, Any]:
        """Return the view as plain values, one column each; None for nan and infinity."""
        seen, whole = self.forecast, self.full_pulls
        return finite({
            "arm": self.arm, "name": self.name, "state": self.state, "pulls": self.pulls,
            "trained": None if whole is None else self.pulls / whole, "score": self.score,
            "forecast": self.forecast_score,
            "forecast_at": None if seen is None else seen.at,
            "trust": None if seen is None else seen.trust, "estimate": self.estimate,
            "rule": self.rule, "at_horizon_low": self.lower, "at_horizon_high": self.upper,
            "left_at": self.left_at, "why": self.why, "seconds": self.seconds,
            "steps": self.steps,
        })  # fmt: skip

    def __str__(self) -> str:
        said = f"{self.name}: {self.why}"
        return f"{said}. {self.remark}" if self.remark and self.state != FAILED else said


def finite(value: Any) -> Any:
    """Return the value with None for what JSON has no number for."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value


# Arms that race or finished are ranked together, by their estimates.
PLACES = {WINNER: 0, LEADING: 0, RACING: 1, NOT_SELECTED: 1, FINISHED: 1, DROPPED: 2, FAILED: 3}


def ranked(views: Iterable[LearnerView], maximize: bool) -> list[LearnerView]:
    """Return the best arm, the arms in the race, then dropped and failed ones, the last first."""

    def place(one: LearnerView) -> tuple[float, ...]:
        value = -one.estimate if maximize else one.estimate
        return PLACES[one.state], -(one.left_at or 0), inf if value != value else value

    return sorted(views, key=place)


@dataclass(frozen=True)
class Recommendation:
    """The arm to keep and what is known of all of them."""

    arm: int
    name: str
    estimates: tuple[float, ...]  # per arm, the values that arms are ranked by
    pulls: tuple[int, ...]  # per arm
    spent: int
    budget: int
    over: bool  # whether the policy requests no more pulls
    reason: str  # why the session is over, or that it is not

    def __str__(self) -> str:
        return (
            f"{self.name}: estimate {self.estimates[self.arm]:.6g} after {self.pulls[self.arm]} "
            f"of {self.spent} pulls ({self.reason})"
        )
