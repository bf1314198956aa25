"""From a verdict to what a page shows of it."""

from __future__ import annotations

from math import inf, isnan
from pathlib import Path

from latebloomer.page.race_page import LearnerOnPage, RacePage
from latebloomer.racing.journal.journal import resume_call
from latebloomer.racing.verdict.curve_tests import ALARM
from latebloomer.racing.verdict.verdict import WINNER, ArmResult, Verdict
from latebloomer.session.events import FAILED, FINISHED
from latebloomer.session.reasons import OUT, RACING

RANK = {WINNER: 0, RACING: 1, FINISHED: 1, OUT: 2, FAILED: 3}


def page_data(verdict: Verdict) -> RacePage:
    """A race's page, as plain data."""
    findings = set(map(str, verdict.findings))
    return RacePage(
        winner=verdict.name,
        final=verdict.named.final,
        summary=(*verdict.both, verdict.reason),
        named_estimate=verdict.named.estimate,
        named_pulls=verdict.named.pulls,
        delivered_score=verdict.delivered.score,
        delivered_pulls=verdict.delivered.pulls,
        trained_on=verdict.delivered.since > 0,
        spent=verdict.spent,
        horizon=verdict.horizon,
        half_time=verdict.half_time,
        late_bloomer=verdict.late_bloomer,
        certified=verdict.certified,
        certificate=verdict.certificate,
        higher_is_better=verdict.history.sign > 0,
        learners=ranked_learners(verdict),
        contradictions=[str(f) for f in verdict.findings if f.contradicts],
        plateaus=[str(f) for f in verdict.findings if not f.contradicts],
        false_alarm=ALARM,
        hindsight=[str(rule) for rule in verdict.hindsight],
        warnings=[text for text in verdict.warnings if text not in findings],
        settings=_settings(verdict),
        versions=verdict.versions,
        resume_code=_resume_code(verdict),
    )


def ranked_learners(verdict: Verdict) -> list[LearnerOnPage]:
    """The winner, those who raced to the end, then the dropped ones, the last first."""
    sign = verdict.history.sign

    def rank(arm: ArmResult) -> tuple[float, ...]:
        value = -sign * arm.estimate
        place = RANK[OUT] if arm.state == FINISHED and arm.out_at else RANK[arm.state]
        return place, -(arm.out_at or 0), inf if isnan(value) else value

    return [_learner(verdict, arm) for arm in sorted(verdict.arms, key=rank)]


def _learner(verdict: Verdict, arm: ArmResult) -> LearnerOnPage:
    return LearnerOnPage(
        name=arm.name,
        pulls=arm.pulls,
        score=arm.score,
        estimate=arm.estimate,
        lower=arm.lower,
        upper=arm.upper,
        why=arm.why,
        dropped=arm.state == OUT,
        failed=arm.state == FAILED,
        scores=verdict.history.scores_of(verdict.history.names.index(arm.name)),
    )


def _settings(verdict: Verdict) -> dict[str, str]:
    """Those that were given; whether the policy was chosen by the library stands before it."""
    values = {**verdict.settings, "policy": verdict.policy, "auto": None}
    return {name: str(value) for name, value in values.items() if value is not None}


def _resume_code(verdict: Verdict) -> str | None:
    if verdict.journal is None:
        return None
    return f"from latebloomer import resume\nverdict = {resume_call(Path(verdict.journal))}"
