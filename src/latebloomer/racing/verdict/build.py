"""The functions that compute a verdict from the state of a race."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from latebloomer._util.text import quoted
from latebloomer.policies.plan_text import counted
from latebloomer.racing.early_stop import certificate_of
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.recorded_race import versions
from latebloomer.racing.settings import Settings
from latebloomer.racing.verdict.hindsight import hindsight
from latebloomer.racing.verdict.new_rows import leads_on_new_rows, why_unknown
from latebloomer.racing.verdict.race_history import History
from latebloomer.racing.verdict.verdict import Selection, Training, Verdict
from latebloomer.racing.verdict.verdict_warnings import warnings_of, warnings_of_scores
from latebloomer.session import events, standings
from latebloomer.session.session import Session
from latebloomer.session.session_state import Stage
from latebloomer.theory import curve_tests

NEARLY = 0.95  # share of a time budget from which it counts as spent


def build_verdict(
    race: RaceState, journal: Path | None, assessment: Mapping[str, Any] | None = None
) -> Verdict:
    """Return the verdict from the state now; an earlier result of `assess` can be reused."""
    race.need_one_learner()
    session = race.session
    known = dict(assess(race) if assessment is None else assessment)
    # An earlier assessment has no interval of a new learner.
    intervals = known.pop("intervals", {})
    views = [replace(view, **intervals.get(view.arm, {})) for view in race.learners()]
    # The score of a finished learner no longer changes: its bounds are its score.
    ended = {view.arm for view in views if session.departure(view.arm) == events.FINISHED}
    views = [replace(v, lower=v.score, upper=v.score) if v.arm in ended else v for v in views]
    best, naming = views[0], session.selection
    leads = leads_on_new_rows(race, views, best.arm)
    over = session.stage is Stage.OVER
    final = over or session.winner is not None
    verdict = Verdict(
        **known,
        name=best.name,
        score=best.score,
        estimate=best.estimate,
        selected=Selection(best.name, best.estimate, naming.pulls, naming.at, final),
        trained=Training(best.score, best.pulls, best.pulls - naming.pulls, over),
        learners=tuple(sorted(views, key=lambda view: view.arm)),
        spent=session.spent,
        budget=session.budget,
        horizon=session.horizon,
        over=over,
        reason=_reason(race),
        warnings=(*warnings_of(race), *map(str, known.get("findings", ()))),
        settings=race.settings.as_dict(),
        versions=versions(),
        journal=None if journal is None else str(journal),
        started=race.started,
        seconds=race.trained_until,
        history=History.of(session, empty=assessment is not None),  # this is slow for long races
        leads=tuple(leads),
        leads_missing="" if leads else why_unknown(race, best.arm),
    )
    if assessment is not None:
        return verdict
    return replace(verdict, warnings=(*verdict.warnings, *warnings_of_scores(verdict, race)))


def assess(race: RaceState) -> dict[str, Any]:
    """Compute the parts of a verdict that need every pull: certificate, tests and hindsight.

    Return the intervals and the fields of the verdict. This is slow for long races, so a live page
    reuses the result for a while.
    """
    session, settings, seen = race.session, race.settings, History.of(race.session)
    naming = session.selection
    decided = seen.upto(naming.at)  # half-time and hindsight use only pulls before the selection
    # The certificate and the tests use all pulls of the curves, also the winner's later ones.
    curves = [x[:0] if i in session.repeats_scores else x for i, x in enumerate(seen.rewards())]
    departed = [naming.departed.get(i) for i in range(len(session.names))]
    failed = {i for i, how in enumerate(departed) if how == events.FAILED}
    final = session.over or session.winner is not None
    half = (naming.at if final else session.deciding_budget) // 2
    leader = decided.leader_at(half, not session.decides_every_pull, failed)
    return _certified(session, settings, seen) | {
        "findings": curve_tests.check_curves(session.names, curves, session.maximize),
        "hindsight": hindsight(session.names, decided.rewards(), naming.at, departed),
        "half_time": None if leader is None else session.names[leader],
        "assessed_at": session.spent,
    }


def _certified(session: Session, settings: Settings, seen: History) -> dict[str, Any]:
    """Return the sentences of the certificate, and its intervals in scores.

    If no limit of the scores is known, a bound that is farther from the observed scores than their
    spread says nothing, so it is replaced by infinity.
    """
    proof, naming = certificate_of(session, settings), session.selection
    names = [quoted(name) for name in session.names]
    if proof is None:
        text = "there is no proof: no learner has the three pulls that a noise estimate needs"
        return {"certificate": text, "uncertified_because": text}
    least, most = settings.score_bounds
    for score in (seen.scores.min(), seen.scores.max()):
        if not least <= score <= most:
            limits = f"score_range=({least}, {most})"
            text = f"there is no proof: the score {score:.6g} is outside {limits}"
            return {"certificate": text, "uncertified_because": text}
    bounds = [float(seen.sign) * limit for limit in (least, most)]
    rewards = seen.sign * seen.scores
    low, high = float(rewards.min()), float(rewards.max())
    least = -inf if isfinite(min(bounds)) else low - (high - low)
    most = inf if isfinite(max(bounds)) else high + (high - low)
    lower = seen.sign * np.where(proof.lower < least, -inf, proof.lower)
    upper = seen.sign * np.where(proof.upper > most, inf, proof.upper)
    lower, upper = (lower, upper) if session.maximize else (upper, lower)
    best, repeats = naming.arm, session.repeats_scores
    ended = [i for i in range(len(names)) if _is_trained_to_the_end(session, i)]
    finding, numbers = proof.explained(
        best, names, repeats, (least, most), _horizon(session, settings), ended
    )
    own = naming.estimates[best]
    tied = [names[i] for i, estimate in naming.estimates.items() if i != best and estimate == own]
    if tied:
        others, last = ", ".join([names[best], *tied[:-1]]), tied[-1]
        finding, numbers = f"there is a tie: {others} and {last} have the same estimate", ""
    certified = proof.certified(best)
    return {
        "intervals": {
            i: {"lower": float(lower[i]), "upper": float(upper[i])} for i in range(len(names))
        },
        "certified": certified,
        "certificate": f"{finding}. {numbers}" if numbers else finding,
        "uncertified_because": "" if certified else finding,
    }


def _is_trained_to_the_end(session: Session, arm: int) -> bool:
    finished = session.departure(arm) == events.FINISHED
    return finished or session.pulls[arm] >= session.horizon


def _horizon(session: Session, settings: Settings) -> str:
    """Return the horizon as text: a number of pulls, or a share of a full training."""
    full = settings.pulls_per_training
    if full is None:
        return f"at {session.horizon:,} pulls"
    return f"at {100 * session.horizon / full:.3g} % of the training"


def _reason(race: RaceState) -> str:
    """Return why the race ended; after an early end, the winner still gets its reserved pulls."""
    session, settings = race.session, race.settings
    if session.over and settings.seconds is not None:
        return _reason_in_time(race, settings.seconds)
    budget, early = settings.budget or 0, settings.stop is not None and session.winner is not None
    if early and session.over and session.budget < budget:
        unused = f"{budget - session.budget:,} of {budget:,} were not needed to be certain"
        return f"{session.reason}; {unused}"
    state, shares = session.state, settings.pulls_per_training
    unspent = session.over and session.spent < session.budget and state.stopped is None
    if unspent and state.extended and not shares and standings.all_at_horizon(state):
        still = f"because the horizon is still {session.horizon:,}"
        return f"{session.reason}, {still}: pass horizon={session.budget}"
    return session.reason


def _reason_in_time(race: RaceState, seconds: float) -> str:
    """Return why a race with a budget in seconds ended: no time, or nothing left to train."""
    session, pulls = race.session, counted(race.session.spent)
    if race.elapsed >= NEARLY * seconds:
        return f"the {seconds:g} s are spent: {pulls}"
    if session.state.stopped is not None:
        return session.reason
    spent = f"{race.elapsed:.3g} of the {seconds:g} s"
    if session.spent >= session.budget:
        return f"{spent} are spent: {pulls}"
    return f"{standings.why_over(session.state)} after {spent}: {pulls}"
