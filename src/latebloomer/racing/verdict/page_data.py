"""From a verdict to what a page shows of it, for the report, the live page and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import Any

from latebloomer.page.html_document import as_sentence
from latebloomer.page.race_page import (
    FINISHED as OVER,
)
from latebloomer.page.race_page import (
    INTERRUPTED,
    Certainty,
    PageEvent,
    RacePage,
)
from latebloomer.page.thinned_curve import ThinnedCurve, points_for
from latebloomer.racing.journal.journal import resume_call
from latebloomer.racing.verdict.curve_tests import ALARM
from latebloomer.racing.verdict.higher_scores import explanation, standing
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import FAILED
from latebloomer.session.learner_view import ranked

Curves = Mapping[int, ThinnedCurve]


def page_data(
    verdict: Verdict, state: str | None = None, curves: Curves | None = None
) -> RacePage:
    """Return a race's page as plain data; curves that are known already are not made again."""
    findings = set(map(str, verdict.findings))
    selected = verdict.selected
    return RacePage(
        state=state or (OVER if verdict.over else INTERRUPTED),
        best=verdict.name,
        final=selected.final,
        why=_why(verdict),
        learners=ranked(verdict.learners, verdict.history.sign > 0),
        curves=curves_of(verdict) if curves is None else curves,
        spent=verdict.spent,
        budget=max(1, verdict.budget),
        horizon=verdict.horizon,
        higher_is_better=verdict.history.sign > 0,
        started=verdict.started,
        seconds=verdict.seconds,
        selected=(selected.estimate, selected.pulls) if selected.final else None,
        trained_further=verdict.trained.pulls_after_selection > 0,
        certainty=_certainty(verdict) if verdict.assessed_at else None,
        events=_departures(verdict),
        warnings=[text for text in verdict.warnings if text not in findings],
        record=(f"{selected}.", f"{verdict.trained}.", f"{verdict.reason}."),
        settings=shown_settings(verdict.settings, verdict.policy),
        versions=verdict.versions,
        resume_code=None if verdict.journal is None else resume_code(Path(verdict.journal)),
    )


def _why(verdict: Verdict) -> str:
    """Return score and forecast of the best learner, its lead, and learners with higher scores."""
    best, sign = verdict[verdict.name], verdict.history.sign
    told = [as_sentence(standing(best, verdict.horizon))]
    rivals = [one for one in verdict.learners
              if not one.leads and one.state != FAILED and not isnan(one.estimate)]  # fmt: skip
    text = f"{'Selected' if verdict.selected.final else 'Leads'} with estimate {best.estimate:.4g}"
    if rivals:
        rival = max(rivals, key=lambda one: sign * one.estimate)
        text += f", ahead of {rival.name} with {rival.estimate:.4g}"
    told.append(f"{text}.")
    if verdict.late_bloomer and verdict.selected.final:
        told.append(f"Late bloomer: {verdict.half_time} led at half-time.")
    if not verdict.selected.final:
        racing = sum(not one.left for one in verdict.learners)
        told.append(f"{racing:,} of {len(verdict.learners):,} learners are still in the race.")
    return " ".join([*told, *(explanation(verdict) if verdict.selected.final else ())])


def _certainty(verdict: Verdict) -> Certainty:
    return Certainty(
        certified=verdict.certified,
        certificate=verdict.certificate,
        contradictions=tuple(str(f) for f in verdict.findings if f.contradicts),
        plateaus=tuple(str(f) for f in verdict.findings if not f.contradicts),
        false_alarm=ALARM,
        hindsight=tuple(map(str, verdict.hindsight)),
        half_time=verdict.half_time,
        late_bloomer=verdict.late_bloomer,
        as_of=verdict.assessed_at,
    )


def curves_of(verdict: Verdict) -> dict[int, ThinnedCurve]:
    """Return every learner's curve in few points."""
    points = points_for(len(verdict.learners))
    scores = verdict.history.scores_of
    return {one.arm: ThinnedCurve(points, scores(one.arm).tolist()) for one in verdict.learners}


def _departures(verdict: Verdict) -> list[PageEvent]:
    """Return which learners left and why, the last first."""
    left = [one for one in verdict.learners if one.left_at and not one.leads]
    left.sort(key=lambda one: -(one.left_at or 0))
    return [
        PageEvent(one.left_at or 0, f"{one.name}: {one.why}", one.state == FAILED) for one in left
    ]


def shown_settings(settings: Mapping[str, Any], policy: str) -> dict[str, str]:
    """Return the settings that were given; "auto: " before the policy if the library chose it."""
    values = {**settings, "policy": policy, "auto": None, "learner_settings": None}
    return {name: str(value) for name, value in values.items() if value is not None}


def resume_code(journal: Path) -> str:
    """Return the lines of Python that resume a race."""
    return f"from latebloomer import resume\nverdict = {resume_call(journal)}"
