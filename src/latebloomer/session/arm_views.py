"""The view of one arm or learner: tables, pages, progress displays and verdicts all show it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isnan, nan
from typing import Any

from latebloomer._util.text import estimate_against, quoted, score_text
from latebloomer.session.decisions import Decision, ForecastView
from latebloomer.session.events import DROPPED, FAILED

# Key under which a learner reports, with a score, the parameters that were scored.
SETTINGS = "settings"
NUMBERED = "#"  # first character of the names of candidates, which differ in their settings
RACING, LEADING = "racing", "leading"
WINNER, NOT_SELECTED = "winner", "not selected"  # states after the selection


@dataclass(frozen=True)
class LearnerView:
    """All that is known about one arm or learner; `print` it to read why it is where it is.

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
        Last observed score; nan if there is none.
    forecast : ForecastView | None
        Expected score at the horizon and the trust it gets; None if the policy makes no forecast.
    estimate : float
        Value by which the policy ranks the arm, in score units; nan if it has no score.
    rule : str
        Name of the policy that computes the estimate.
    decision : Decision | None
        When the arm was dropped or last compared with the leader, and the numbers; None if it has
        no score.
    departed_at : int | None
        Number of pulls of all arms when the arm was dropped or failed; None otherwise, and for the
        winner.
    departed_why : str
        Why it failed or finished; empty otherwise.
    seconds : float
        Training time of its counted pulls, in seconds.
    steps : int | None
        Number of its training steps so far, if a pull is a fraction of a full training.
    full_pulls : int | None
        Number of pulls in its full training, if a pull is a fraction of a full training.
    best_score : float
        Best observed score; nan if there is none.
    best_at : int
        Number of its pulls when it first had its best score.
    best_steps : int | None
        Number of its training steps when it first had its best score, if a pull is a fraction of a
        full training.
    lower : float
        Lower end of the interval for its score at the horizon; see `Session.certificate`.
    upper : float
        Upper end of that interval; below `lower` if the scores contradict the assumptions of the
        interval.
    failures : tuple[str, ...]
        One sentence for each pull that failed.
    settings : Mapping[str, Any]
        Parameters of the candidate, if a search or another tool made it; else empty.
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
    departed_at: int | None = None
    departed_why: str = ""
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

        Only views are limited, because nobody should be shown a score of 1.02 that is not
        possible. Learners are ranked by the unlimited numbers: several of them, cut at the limit,
        would tie.
        """
        if not low <= self.score <= high or (low, high) == (-inf, inf):
            return self

        def clipped(value: float) -> float:
            return value if isnan(value) else min(max(value, low), high)

        decision, seen = self.decision, self.forecast
        if decision is not None and decision.rival_estimate is not None:
            decision = decision._replace(rival_estimate=clipped(decision.rival_estimate))
        if seen is not None:
            seen = seen._replace(score=clipped(seen.score))
        return replace(self, estimate=clipped(self.estimate), forecast=seen, decision=decision)

    @property
    def leads(self) -> bool:
        """True if the arm is the winner or leads the race now."""
        return self.state in (WINNER, LEADING)

    @property
    def departed(self) -> bool:
        """True if the arm was dropped or has failed."""
        return self.state in (DROPPED, FAILED)

    @property
    def trained(self) -> str:
        """How far the arm was trained: a share of its full training, or a number of pulls."""
        if self.full_pulls is None:
            return f"{self.pulls:,} pull{'s' * (self.pulls != 1)}"
        share = 100 * self.pulls / self.full_pulls
        return f"{share:.0f} %" if share >= 1 or not share else f"{share:.1g} %"

    @property
    def outcome(self) -> str:
        """The state as text, with the race pull at which the arm was dropped or failed."""
        return f"{self.state} at pull {self.departed_at:,}" if self.departed_at else self.state

    @property
    def why(self) -> str:
        """When and why the arm was dropped, selected or not selected, with the numbers."""
        if self.state == FAILED:
            return self.departed_why or FAILED
        judged = self._judged()
        return (
            f"{self.departed_why}. {judged[0].upper()}{judged[1:]}"
            if self.departed_why
            else judged
        )

    def _judged(self) -> str:
        decision = self.decision
        if decision is None:
            return "not pulled yet"
        if self.leads:
            word = "selected" if self.state == WINNER else "leads"
            more = self.pulls - decision.pulls
            after = f", then trained for {more:,} more pull{'s' * (more != 1)}" if more else ""
            return f"{word} with estimate {score_text(self.estimate)}{after}"
        word = f"dropped at race pull {decision.at:,}" if self.departed_at else "not selected"
        if self.state == RACING:
            word = "racing"
        if decision.rival is None or decision.rival_estimate is None:
            return f"{word}: estimate {score_text(self.estimate)}"
        against = estimate_against(self.estimate, decision.rival, decision.rival_estimate)
        return f"{word}: {against}"

    @property
    def forecast_score(self) -> float:
        """Expected score at the horizon; nan if the policy makes no forecast or its trust is 0."""
        return self.forecast.score if self.forecast is not None and self.forecast.trust else nan

    @property
    def remark(self) -> str:
        """How much the forecast counted in the last decision; empty without a forecast."""
        seen = self.forecast
        if seen is None:
            return ""
        share = f"{100 * seen.trust:.0f} %"
        text = (
            f"Forecasts made at pull {seen.origin:,} were {share} right about the change up to "
            f"pull {seen.tested:,}"
        )
        if not seen.trust:
            return f"{text}, so no forecast counts"
        change = seen.score - seen.level
        word = "gain" if change >= 0 else "fall"  # if scores are losses
        return (
            f"{text}, so {share} of the forecast {word} counts: {quoted(self.name)} was at "
            f"{score_text(seen.level)}, with a forecast {word} of {score_text(abs(change))} by "
            f"pull {seen.at:,.0f}"
        )

    def row(self) -> dict[str, Any]:
        """Return the view as plain values by column name; None replaces nan and infinity."""
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
                "departed_at": self.departed_at,
                "why": self.why,
                "seconds": self.seconds,
                "steps": self.steps,
                "best_score": self.best_score,
                "best_at": self.best_at or None,
                "best_steps": self.best_steps,
            }
        )

    def __str__(self) -> str:
        line = f"{self.name}: {self.why}"
        return f"{line}. {self.remark}" if self.remark and self.state != FAILED else line


def varying_settings(learners: Sequence[LearnerView], of_all: bool = True) -> list[str]:
    """Return the names of settings that differ between learners.

    With `of_all`, settings that some learners do not have are left out.
    """
    names = dict.fromkeys(name for view in learners for name in view.settings)
    return [
        name
        for name in names
        if len({str(view.settings.get(name)) for view in learners}) > 1
        and not (of_all and any(name not in view.settings for view in learners))
    ]


def finite(value: Any) -> Any:
    """Return the value with None in place of nan and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def ranked(views: Iterable[LearnerView], maximize: bool) -> list[LearnerView]:
    """Return the views in order: the best arm, the others by their estimates, then failed ones.

    Arms without an estimate come after those that have one. Of two arms with equal estimates, the
    arm that was not dropped, or was dropped later, comes first.
    """

    def place(view: LearnerView) -> tuple[float, ...]:
        value = -view.estimate if maximize else view.estimate
        group = 0 if view.leads else 2 if view.state == FAILED else 1
        return group, inf if isnan(value) else value, -(view.departed_at or inf)

    return sorted(views, key=place)


@dataclass(frozen=True)
class Recommendation:
    """The arm to keep, and the estimates and pulls of all arms."""

    arm: int
    name: str
    estimates: tuple[float, ...]  # per arm, the value that it is ranked by
    pulls: tuple[int, ...]  # per arm
    spent: int
    budget: int
    over: bool  # whether the policy requests no more pulls
    reason: str  # why the session is over, or how much of the budget is left

    def __str__(self) -> str:
        return (
            f"{self.name}: estimate {score_text(self.estimates[self.arm])} after "
            f"{self.pulls[self.arm]} of {self.spent} pulls ({self.reason})"
        )
