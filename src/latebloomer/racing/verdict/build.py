"""From a race's state to its verdict."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite, isinf
from pathlib import Path
from typing import Any, NamedTuple

from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings, versions
from latebloomer.racing.stopping import certificate_of
from latebloomer.racing.verdict.curve_tests import Finding, check_curves
from latebloomer.racing.verdict.higher_scores import (
    highest,
    resume_advice,
    warnings_of_scores,
)
from latebloomer.racing.verdict.hindsight import Hindsight, hindsight
from latebloomer.racing.verdict.history import History
from latebloomer.racing.verdict.verdict import Selection, Training, Verdict
from latebloomer.racing.verdict.verdict_text import warnings_of
from latebloomer.session.events import FAILED
from latebloomer.session.session import Session
from latebloomer.theory.certificate import Certificate, shape_of

Intervals = dict[int, tuple[float, float]]  # of each learner's score at the horizon


class Assessment(NamedTuple):
    """The part of a verdict that needs every pull: slow, so a live page reuses it for a while."""

    certified: bool
    certificate: str
    intervals: Intervals  # of each learner's score at the horizon
    findings: tuple[Finding, ...]
    hindsight: tuple[Hindsight, ...]
    half_time: str | None
    as_of: int  # pulls that were known; 0: nothing was assessed


NOT_ASSESSED = Assessment(False, "", {}, (), (), None, 0)


def build_verdict(
    race: RaceState,
    journal: Path | None,
    learner: Any = None,
    assessment: Assessment | None = None,
) -> Verdict:
    """Return the verdict by what is known now; an assessment of earlier pulls can be reused."""
    race.need_one_learner()
    session = race.session
    history = History.of(session, empty=assessment is not None)  # slow for long races
    known = assess(race) if assessment is None else assessment
    views = [
        replace(one, lower=ends[0], upper=ends[1])
        for one in race.learners()
        for ends in [known.intervals.get(one.arm, (-inf, inf))]
    ]
    best, naming = views[0], session.selection
    over = session.over and not session.selection_pending
    final = over or session.winner is not None
    verdict = Verdict(
        name=best.name,
        learner=learner,
        score=best.score,
        estimate=best.estimate,
        selected=Selection(best.name, best.estimate, naming.pulls, naming.at, final),
        trained=Training(best.score, best.pulls, best.pulls - naming.pulls, over),
        learners=tuple(sorted(views, key=lambda view: view.arm)),
        spent=session.spent,
        budget=session.budget,
        horizon=session.horizon,
        over=over,
        reason=_reason(session, race.settings),
        certified=known.certified,
        certificate=known.certificate,
        half_time=known.half_time,
        hindsight=known.hindsight,
        findings=known.findings,
        warnings=(*warnings_of(race), *map(str, known.findings)),
        settings=race.settings.as_dict(),
        versions=versions(),
        journal=None if journal is None else str(journal),
        started=race.started,
        seconds=race.trained_until,
        history=history,
        assessed_at=known.as_of,
    )
    if assessment is not None:
        return verdict
    advice = resume_advice(race, journal, highest(verdict)) if over else ""
    warnings = (*verdict.warnings, *warnings_of_scores(verdict, race))
    return replace(verdict, advice=advice, warnings=warnings)


def assess(race: RaceState) -> Assessment:
    """Certify, test and replay the curves of a race as they are now."""
    session, history = race.session, History.of(race.session)
    naming = session.selection
    decided = history.upto(naming.at)  # half-time and hindsight are about the selection
    proof = certificate_of(session, race.settings)
    intervals = _intervals(proof, history, race.settings)
    # Certificate and tests are about the curves: they use the winner's later pulls too.
    curves = [x[:0] if i in session.repeats_scores else x for i, x in enumerate(history.rewards())]
    departed = [naming.departed.get(i) for i in range(len(session.names))]
    failed = {i for i, how in enumerate(departed) if how == FAILED}
    leader = decided.leader_at_half(swept=not session.decides_every_pull, without=failed)
    return Assessment(
        certified=proof is not None and proof.certified(naming.arm),
        certificate=_certificate(session, proof, naming.arm, intervals),
        intervals=intervals,
        findings=check_curves(session.names, curves, session.maximize),
        hindsight=hindsight(session.names, decided.rewards(), naming.at, departed),
        half_time=None if leader is None else session.names[leader],
        as_of=session.spent,
    )


def _reason(session: Session, settings: Settings) -> str:
    """Return why the race ended; after an early end the winner still gets its reserved pulls."""
    text, budget = session.reason, settings.budget or 0
    early = settings.stop is not None and session.winner is not None
    if not (early and session.over and session.budget < budget):
        return text
    return f"{text}; {budget - session.budget:,} of {budget:,} were not needed to be certain"


# --- the certificate in words ---


def _intervals(proof: Certificate | None, history: History, settings: Settings) -> Intervals:
    """Return the certificate's bounds, in scores.

    If no limit of the scores is known, a bound beyond the observed scores by more than their
    spread says nothing: it becomes infinite.
    """
    if proof is None:
        return {}
    seen, bounds = history.scores, settings.score_bounds
    spread = float(seen.max() - seen.min())
    least = -inf if isfinite(bounds[0]) else float(seen.min()) - spread
    most = inf if isfinite(bounds[1]) else float(seen.max()) + spread
    found = {}
    for i, (low, high) in enumerate(zip(proof.lower.tolist(), proof.upper.tolist(), strict=True)):
        lower, upper = (low, high) if history.sign > 0 else (-high, -low)
        found[i] = -inf if lower < least else lower, inf if upper > most else upper
    return found


def _certificate(
    session: Session, proof: Certificate | None, best: int, intervals: Intervals
) -> str:
    """Return that the winner is certified, or what is missing, by name."""
    if proof is None:
        return "not certified: no learner has the three pulls that a noise estimate needs"
    tied = _tied(session, best)
    if tied:
        return f"a tie: {session.names[best]} and {tied} have the same estimate"
    if proof.contradicted:
        names = ", ".join(session.names[i] for i in proof.contradicted)
        return (
            f"not certified: the scores of {names} contradict the assumptions (curves that "
            f"{shape_of(session.maximize)})"
        )
    rival = proof.rival(best)
    if rival is None:
        return f"not certified: no other learner is left to compare {session.names[best]} with"
    return f"{_finding(session, proof, best, rival, intervals)} ({_conditions(session, proof)})"


def _tied(session: Session, best: int) -> str:
    estimates = session.selection.estimates
    alike = [i for i, value in estimates.items() if i != best and value == estimates[best]]
    return " and ".join(session.names[i] for i in alike)


def _conditions(session: Session, proof: Certificate) -> str:
    failed = " and ".join(session.names[i] for i in sorted(proof.lost))
    without = f"; {failed} failed and cannot be kept" if failed else ""
    return (
        f"with probability {1 - proof.delta:g} if curves {shape_of(session.maximize)} and the "
        f"noise level is {proof.noise:.3g}, as estimated{without}"
    )


def _finding(
    session: Session, proof: Certificate, best: int, rival: int, intervals: Intervals
) -> str:
    name, other, at = session.names[best], session.names[rival], f"at {proof.horizon} pulls"
    sure, reach = float(proof.lower[best]), float(proof.upper[rival])
    if sure > reach:
        return f"certified: {name} is best {at}, at least {sure - reach:.4g} ahead of {other}"
    if isinf(sure) or isinf(reach):
        few = best if isinf(sure) else rival
        if few in session.repeats_scores:
            return (
                f"not certified: pulls of {session.names[few]} repeat scores, so their noise is "
                "unknown"
            )
        return (
            f"not certified: {session.names[few]} has too few pulls to say anything about {at[3:]}"
        )
    worst, top = (0, 1) if session.maximize else (1, 0)
    could, certain = intervals[rival][top], intervals[best][worst]
    if isinf(could):
        return (
            f"not certified: nothing bounds {other} {at}, as no limit is known for this score; "
            "pass score_range=(0, 1)"
        )
    only = "" if isinf(certain) else f", while {name} is only guaranteed {certain:.4g}"
    return (
        f"not certified: within its 95 % bounds, {other} could still reach {could:.4g} {at}{only}"
    )
