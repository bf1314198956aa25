"""From a verdict to what a page shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isnan
from pathlib import Path
from typing import Any

from latebloomer.page.race_page import (
    FINISHED as OVER,
)
from latebloomer.page.race_page import (
    INTERRUPTED,
    Certainty,
    LearnerOnPage,
    PageEvent,
    RacePage,
)
from latebloomer.page.thinned_curve import ThinnedCurve, points_for
from latebloomer.racing.journal.journal import resume_call
from latebloomer.racing.verdict.curve_tests import ALARM
from latebloomer.racing.verdict.verdict import WINNER, LearnerResult, Verdict
from latebloomer.session.events import FAILED, FINISHED
from latebloomer.session.reasons import DROPPED, RACING

RANK = {WINNER: 0, RACING: 1, FINISHED: 1, DROPPED: 2, FAILED: 3}


def page_data(verdict: Verdict, state: str | None = None) -> RacePage:
    """A race's page, as plain data."""
    findings = set(map(str, verdict.findings))
    return RacePage(
        state=state or (OVER if verdict.over else INTERRUPTED),
        best=verdict.name,
        final=verdict.selected.final,
        why=_why(verdict),
        learners=ranked_learners(verdict),
        spent=verdict.spent,
        budget=verdict.budget,
        horizon=verdict.horizon,
        higher_is_better=verdict.history.sign > 0,
        started=verdict.started,
        seconds=verdict.seconds,
        named=(verdict.selected.estimate, verdict.selected.pulls),
        delivered=(verdict.trained.score, verdict.trained.pulls),
        trained_on=verdict.trained.pulls_after_selection > 0,
        certainty=certainty_of(verdict),
        happenings=_happenings(verdict),
        warnings=[text for text in verdict.warnings if text not in findings],
        record=(*verdict.both, f"{verdict.reason}."),
        settings=shown_settings(verdict.settings, verdict.policy),
        versions=verdict.versions,
        resume_code=None if verdict.journal is None else resume_code(Path(verdict.journal)),
    )


def _why(verdict: Verdict) -> str:
    """The reason in one sentence: what it was named by, against whom, and who led before."""
    best, named = verdict[verdict.name], verdict.selected
    sign = verdict.history.sign
    others = [arm for arm in verdict.learners if arm is not best and arm.state != FAILED]
    rivals = [arm for arm in others if not isnan(arm.estimate)]
    text = f"{'Named the best' if named.final else 'Leads'} with {named.estimate:.4g}"
    if rivals:
        rival = max(rivals, key=lambda arm: sign * arm.estimate)
        text += f", against {rival.estimate:.4g} of {rival.name}"
    text += f", after {named.pulls:,} of {named.at:,} pulls"
    if verdict.late_bloomer and named.final:
        text += f"; {verdict.half_time} led at half-time: a late bloomer won"
    return f"{text}."


def certainty_of(verdict: Verdict) -> Certainty:
    """How sure a verdict is."""
    return Certainty(
        certified=verdict.certified,
        certificate=verdict.certificate,
        contradictions=[str(f) for f in verdict.findings if f.contradicts],
        plateaus=[str(f) for f in verdict.findings if not f.contradicts],
        false_alarm=ALARM,
        hindsight=[str(rule) for rule in verdict.hindsight],
        half_time=verdict.half_time,
        late_bloomer=verdict.late_bloomer,
        as_of=verdict.spent,
    )


def ranked_learners(verdict: Verdict) -> list[LearnerOnPage]:
    """The winner, those who raced to the end, then the dropped ones, the last first."""
    sign = verdict.history.sign

    def rank(arm: LearnerResult) -> tuple[float, ...]:
        value = -sign * arm.estimate
        place = RANK[DROPPED] if arm.state == FINISHED and arm.left_at else RANK[arm.state]
        return place, -(arm.left_at or 0), inf if isnan(value) else value

    return [_learner(verdict, arm) for arm in sorted(verdict.learners, key=rank)]


def _learner(verdict: Verdict, arm: LearnerResult) -> LearnerOnPage:
    number = verdict.history.names.index(arm.name)
    scores = verdict.history.scores_of(number).tolist()
    return LearnerOnPage(
        arm=number,
        name=arm.name,
        state=arm.state,
        pulls=arm.pulls,
        score=arm.score,
        estimate=arm.estimate,
        seconds=arm.seconds,
        why=arm.why,
        curve=ThinnedCurve(points_for(len(verdict.learners)), scores),
        dropped=arm.state == DROPPED,
        failed=arm.state == FAILED,
        lower=arm.lower,
        upper=arm.upper,
        steps=arm.steps,
    )


def _happenings(verdict: Verdict) -> list[PageEvent]:
    """Who left and why, the last first."""
    left = [arm for arm in verdict.learners if arm.left_at and arm.name != verdict.name]
    left.sort(key=lambda arm: -(arm.left_at or 0))
    return [
        PageEvent(arm.left_at or 0, f"{arm.name}: {arm.why}", arm.state == FAILED) for arm in left
    ]


def shown_settings(settings: Mapping[str, Any], policy: str) -> dict[str, str]:
    """Those that were given; whether the policy was chosen by the library stands before it."""
    values = {**settings, "policy": policy, "auto": None}
    return {name: str(value) for name, value in values.items() if value is not None}


def resume_code(journal: Path) -> str:
    """The lines that go on with a race."""
    return f"from latebloomer import resume\nverdict = {resume_call(journal)}"
