"""One view of an arm or learner, for everything that shows one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isnan, nan
from typing import Any

from latebloomer._util.text import estimate_against, quoted, score_text
from latebloomer.session.decisions import Decision, ForecastView
from latebloomer.session.events import DROPPED, FAILED

SETTINGS = "settings"  # by this name a learner reports with a score what was scored
NUMBERED = "#"  # the names of candidates begin with it: what tells them apart is their settings
RACING, LEADING = "racing", "leading"
WINNER, NOT_SELECTED = "winner", "not selected"  # once the winner is selected


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
    best_score : float
        Best observed score; nan without any.
    best_at : int
        Number of its pulls when it had that score for the first time.
    best_steps : int | None
        Its own training steps then, if a pull is a fraction of a full training.
    lower : float
        Lower end of the interval for its score at the horizon; see `Session.certificate`.
    upper : float
        Upper end; below `lower` if its scores contradict the assumptions.
    failures : tuple[str, ...]
        Pulls that failed, one sentence each.
    settings : Mapping[str, Any]
        Parameters of a candidate, if a search or another tool made it.
    details : Mapping[str, Any]
        What the learner reported with its last score, such as a search's scores of each fold.
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
    best_score: float = nan
    best_at: int = 0
    best_steps: int | None = None
    lower: float = -inf
    upper: float = inf
    failures: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def within(self, low: float, high: float) -> "LearnerView":
        """Return the view with forecast and estimates inside the range of scores.

        Learners are ranked by what the policy knows, which has no limit: numbers at a limit would
        tie. A view is shown, and a score of 1.02 is not possible.
        """
        if not low <= self.score <= high or (low, high) == (-inf, inf):
            return self

        def clipped(value: float) -> float:
            return value if isnan(value) else min(max(value, low), high)

        made, seen = self.decision, self.forecast
        if made is not None and made.rival_estimate is not None:
            made = made._replace(rival_estimate=clipped(made.rival_estimate))
        if seen is not None:
            seen = seen._replace(score=clipped(seen.score))
        return replace(self, estimate=clipped(self.estimate), forecast=seen, decision=made)

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
            return f"{word} with estimate {score_text(self.estimate)}{after}"
        word = f"dropped at race pull {made.at:,}" if self.left_at else "not selected"
        if self.state == RACING:
            word = "racing"
        if made.rival is None or made.rival_estimate is None:
            return f"{word}: estimate {score_text(self.estimate)}"
        against = estimate_against(self.estimate, made.rival, made.rival_estimate)
        return f"{word}: {against}"

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
            f"Forecasts made at pull {seen.origin:,} were {share} right about the change up to "
            f"pull {seen.tested:,}"
        )
        if not seen.trust:
            return f"{said}, so no forecast counts"
        change = seen.score - seen.level
        word = "gain" if change >= 0 else "fall"  # of a loss
        return (
            f"{said}, so {share} of the forecast {word} counts: {quoted(self.name)} was at "
            f"{score_text(seen.level)}, with a forecast {word} of {score_text(abs(change))} by "
            f"pull {seen.at:,.0f}"
        )

    def row(self) -> dict[str, Any]:
        """Return the view as plain values, one column each; None for nan and infinity."""
        seen, whole = self.forecast, self.full_pulls
        return finite(
            {
                "arm": self.arm,
                "name": self.name,
                "state": self.state,
                "pulls": self.pulls,
                "trained": None if whole is None else self.pulls / whole,
                "score": self.score,
                "forecast": self.forecast_score,
                "forecast_at": None if seen is None else seen.at,
                "trust": None if seen is None else seen.trust,
                "estimate": self.estimate,
                "rule": self.rule,
                "at_horizon_low": self.lower,
                "at_horizon_high": self.upper,
                "left_at": self.left_at,
                "why": self.why,
                "seconds": self.seconds,
                "steps": self.steps,
                "best_score": self.best_score,
                "best_at": self.best_at or None,
                "best_steps": self.best_steps,
            }
        )

    def __str__(self) -> str:
        said = f"{self.name}: {self.why}"
        return f"{said}. {self.remark}" if self.remark and self.state != FAILED else said


def varying_settings(learners: Sequence[LearnerView], of_all: bool = True) -> list[str]:
    """Return the names of settings in which learners differ; `of_all`: those that all have."""
    names = dict.fromkeys(name for one in learners for name in one.settings)
    return [
        name
        for name in names
        if len({str(one.settings.get(name)) for one in learners}) > 1
        and not (of_all and any(name not in one.settings for one in learners))
    ]


def finite(value: Any) -> Any:
    """Return the value with None for what JSON has no number for."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def ranked(views: Iterable[LearnerView], maximize: bool) -> list[LearnerView]:
    """Return the best arm, then the others by their estimates, and failed ones last.

    Arms without an estimate come after those that have one. Of equal estimates, the arm that is
    still there or left later comes first.
    """

    def place(one: LearnerView) -> tuple[float, ...]:
        value = -one.estimate if maximize else one.estimate
        group = 0 if one.leads else 2 if one.state == FAILED else 1
        return group, inf if isnan(value) else value, -(one.left_at or inf)

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
            f"{self.name}: estimate {score_text(self.estimates[self.arm])} after "
            f"{self.pulls[self.arm]} of {self.spent} pulls ({self.reason})"
        )
