"""The plain data of a page for a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latebloomer._util.text import as_sentence, quoted, score_text, scores_apart, stopped
from latebloomer.page import race_page
from latebloomer.page.race_page import PageEvent, RacePage, ThinnedCurve, points_for
from latebloomer.racing.journal.event_log import resume_call
from latebloomer.racing.learners.log_files import last_lines
from latebloomer.racing.runners.runner_names import runner_to_name
from latebloomer.racing.verdict.learner_about import about
from latebloomer.racing.verdict.new_rows import new_rows_lines
from latebloomer.racing.verdict.verdict_text import (
    beyond,
    by_rank,
    explanation,
    late_bloom,
    on_these_rows,
    standing,
)
from latebloomer.session.events import FAILED
from latebloomer.theory.curve_tests import ALARM

if TYPE_CHECKING:
    from latebloomer.racing.verdict.verdict import Verdict


def page_data(
    verdict: Verdict, state: str | None = None, curves: Mapping[int, ThinnedCurve] | None = None
) -> RacePage:
    """Return the page of a race as plain data; `curves` avoids computing curves again."""
    findings, selected = set(map(str, verdict.findings)), verdict.selected
    return RacePage(
        spent=verdict.spent,
        horizon=verdict.horizon,
        started=verdict.started,
        seconds=verdict.seconds,
        assessed_at=verdict.assessed_at,
        certified=verdict.certified,
        certificate=on_these_rows(verdict, verdict.certificate),
        half_time=verdict.half_time,
        versions=verdict.versions,
        new_rows=new_rows_lines(verdict, every=True),
        state=state or (race_page.FINISHED if verdict.over else race_page.INTERRUPTED),
        best=verdict.name,
        final=selected.final,
        why=_why(verdict),
        learners=by_rank(verdict),
        curves=curves_of(verdict) if curves is None else curves,
        budget=max(1, verdict.budget),
        higher_is_better=verdict.history.sign > 0,
        selected=(selected.estimate, selected.pulls) if selected.final else None,
        trained_further=verdict.trained.pulls_after_selection > 0,
        contradictions=[str(finding) for finding in verdict.findings if finding.contradicts],
        plateaus=[str(finding) for finding in verdict.findings if not finding.contradicts],
        false_alarm=ALARM,
        hindsight=list(map(str, verdict.hindsight)),
        events=_departures(verdict),
        output=output_of(verdict),
        warnings=[text for text in verdict.warnings if text not in findings],
        record=(f"{selected}.", f"{verdict.trained}.", stopped(verdict.reason)),
        about=about(verdict),
        settings=shown_settings(verdict.settings, verdict.policy),
        resume_code=None
        if verdict.journal is None
        else resume_code(Path(verdict.journal), verdict.settings["runner"]),
    )


def output_of(verdict: Verdict) -> dict[str, str]:
    """Return the last log lines of learners that write a log, such as programs."""
    names = [view.name for view in by_rank(verdict)]
    return {} if verdict.journal is None else last_lines(Path(verdict.journal), names)


def _why(verdict: Verdict) -> str:
    """Return text about the best learner: score, forecast, lead, and better last scores."""
    best, sign, final = verdict[verdict.name], verdict.history.sign, verdict.selected.final
    rivals = [
        view
        for view in verdict.learners
        if not view.leads and view.state != FAILED and not isnan(view.estimate)
    ]
    own = score_text(best.estimate)
    rest = ""
    if rivals:
        rival = max(rivals, key=lambda view: sign * view.estimate)
        own, theirs = scores_apart(best.estimate, rival.estimate)
        rest = f", ahead of {quoted(rival.name)} with {theirs}"
        rest = f", a tie with {quoted(rival.name)}" if own == theirs else rest
    text = f"{'Selected' if final else 'Leads'} with estimate {own}{rest}"
    told = [as_sentence(standing(best, verdict.horizon)), f"{text}.", *beyond(verdict)]
    if not final:
        racing = sum(not view.departed for view in verdict.learners)
        more = [f"{racing:,} of {len(verdict.learners):,} learners are still in the race."]
    else:
        bloom = [late_bloom(verdict)] if verdict.late_bloomer else []
        more = [*bloom, *explanation(verdict)]
    more += [] if verdict.ensemble is None else [f"{verdict.ensemble}."]
    return " ".join([*told, *more])


def curves_of(verdict: Verdict) -> dict[int, ThinnedCurve]:
    """Return every learner's curve, thinned to few points."""
    points, curves = points_for(len(verdict.learners)), verdict.history.by_arm
    return {arm: ThinnedCurve(points, scores.tolist()) for arm, scores in enumerate(curves)}


def _departures(verdict: Verdict) -> list[PageEvent]:
    """Return which learners left the race and why, the last one first."""
    departed = [(view.departed_at, view) for view in verdict.learners if view.departed_at]
    return [
        PageEvent(at, f"{view.name}: {view.why}", view.state == FAILED)
        for at, view in sorted(departed, key=lambda pair: -pair[0])
    ]


def shown_settings(settings: Mapping[str, Any], policy: str) -> dict[str, str]:
    """Return the settings of the call; "auto: " is before a policy that "auto" chose."""
    values = {**settings, "policy": policy, "auto": None, "learner_settings": None}
    return {name: str(value) for name, value in values.items() if value is not None}


def resume_code(journal: Path, runner: Mapping[str, Any]) -> str:
    """Return the lines of Python that resume a race, with its runner if it must be passed."""
    named = runner_to_name(runner, journal)
    imported = "RayRunner, resume" if named else "resume"
    return f"from latebloomer import {imported}\nverdict = {resume_call(journal, named)}"
