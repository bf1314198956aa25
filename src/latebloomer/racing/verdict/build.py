"""From a session and its journal to a verdict."""

from __future__ import annotations

from math import inf, isinf, nan
from pathlib import Path
from typing import Any

from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings, versions
from latebloomer.racing.stopping import certificate_of
from latebloomer.racing.verdict.costs import unequal_costs
from latebloomer.racing.verdict.curve_tests import check_curves
from latebloomer.racing.verdict.hindsight import hindsight
from latebloomer.racing.verdict.history import History
from latebloomer.racing.verdict.sentences import why_it_stands_there
from latebloomer.racing.verdict.verdict import WINNER, LearnerResult, Selection, Training, Verdict
from latebloomer.session.events import FAILED, FINISHED, Extended, LearnerLeft
from latebloomer.session.reasons import DROPPED, RACING
from latebloomer.session.session import Session
from latebloomer.theory.certificate import Certificate, shape_of

NO_BOUND = "no bound of the policy is claimed, and the certificate covers all counts of pulls"
CLOSE = 0.05  # a race by the clock ends within this share of its time, if pulls are shorter


def build_verdict(race: RaceState, journal: Path | None, learner: Any = None) -> Verdict:
    """The verdict by what is known now."""
    race.need_one_learner()
    session = race.session
    naming, history = session.selection, History.of(session)
    best = naming.arm
    decided = history.upto(naming.at)  # half-time and hindsight are about who was named
    proof = certificate_of(session, race.settings)
    arms = _arms(race, history, proof, best)
    # Certificate and test are about the curves: what the winner showed since is welcome to both.
    curves = [x[:0] if i in session.repeats_scores else x for i, x in enumerate(history.rewards())]
    findings = check_curves(session.names, curves, session.maximize)
    leader = decided.leader_at_half(swept=not session.decides_every_pull)
    departed = [naming.departed.get(i) for i in range(len(arms))]
    named, delivered = _named_and_delivered(session, arms[best])
    return Verdict(
        name=session.names[best],
        learner=learner,
        score=delivered.score,
        selected=named,
        trained=delivered,
        estimate=arms[best].estimate,
        learners=tuple(arms),
        spent=session.spent,
        budget=session.budget,
        horizon=session.horizon,
        over=delivered.final,
        reason=_reason(session, race.settings),
        certified=proof is not None and proof.certified(best),
        certificate=_missing(session, proof, best),
        half_time=None if leader is None else session.names[leader],
        hindsight=hindsight(session.names, decided.rewards(), naming.at, departed),
        findings=findings,
        warnings=(*_warnings(race), *map(str, findings)),
        settings=race.settings.as_dict(),
        versions=versions(),
        journal=None if journal is None else str(journal),
        started=race.started,
        seconds=race.trained_until,
        history=history,
    )


def _reason(session: Session, settings: Settings) -> str:
    """Why the race is over; what was set aside for the winner is spent after an early end too."""
    text, budget = session.reason, settings.budget or 0
    early = settings.stop is not None and session.winner is not None
    if not (early and session.over and session.budget < budget):
        return text
    return f"{text}; {budget - session.budget:,} of {budget:,} were not needed to be certain"


def _named_and_delivered(session: Session, best: LearnerResult) -> tuple[Selection, Training]:
    naming, over = session.selection, session.over and not session.selection_pending
    final = over or session.winner is not None
    since = best.pulls - naming.pulls
    return (
        Selection(best.name, best.estimate, naming.pulls, naming.at, final),
        Training(best.score, best.pulls, since, over),
    )


def _arms(
    race: RaceState, history: History, proof: Certificate | None, best: int
) -> list[LearnerResult]:
    session = race.session
    rows = {row.arm: row for row in session.standings()}
    results = []
    for i, name in enumerate(session.names):
        scores = history.scores_of(i)
        lower, upper = _interval(proof, i, history.sign)
        results.append(
            LearnerResult(
                name=name,
                state=_state(session, i, best),
                pulls=len(scores),
                score=float(scores[-1]) if len(scores) else nan,
                estimate=rows[i].estimate,
                lower=lower,
                upper=upper,
                left_at=rows[i].left_at,
                why=why_it_stands_there(session, i, race.departures.get(i)),
                seconds=race.seconds[i],
                steps=race.steps[i] if race.shares else None,
            )
        )
    return results


def _state(session: Session, i: int, best: int) -> str:
    if i == best:
        return WINNER
    how = session.departure(i)
    if how == FAILED:
        return FAILED
    if i not in session.racing and how is None:
        return DROPPED
    return FINISHED if how == FINISHED else RACING


def _interval(proof: Certificate | None, i: int, sign: float) -> tuple[float, float]:
    if proof is None:
        return -inf, inf
    lower, upper = float(proof.lower[i]), float(proof.upper[i])
    return (lower, upper) if sign > 0 else (-upper, -lower)


def _missing(session: Session, proof: Certificate | None, best: int) -> str:
    """That the winner is certified, or what stands in the way, by name."""
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
    return f"{_finding(session, proof, best, rival)} ({_conditions(session, proof)})"


def _tied(session: Session, best: int) -> str:
    """The other learners that were judged exactly alike."""
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


def _finding(session: Session, proof: Certificate, best: int, rival: int) -> str:
    sign = 1.0 if session.maximize else -1.0
    name, other, at = session.names[best], session.names[rival], f"at {proof.horizon} pulls"
    sure, reach = float(proof.lower[best]), float(proof.upper[rival])
    if sure > reach:
        return f"certified: {name} is best {at}, at least {sure - reach:.4g} ahead of {other}"
    if isinf(sure) or isinf(reach):
        few = best if isinf(sure) else rival
        if few in session.repeats_scores:
            return (
                f"not certified: pulls of {session.names[few]} repeat scores: nothing is measured"
            )
        return (
            f"not certified: {session.names[few]} has too few pulls to say anything about {at[3:]}"
        )
    return (
        f"not certified: {other} could still reach {sign * reach:.4g} {at}, and {name} is "
        f"sure of {sign * sure:.4g}"
    )


def _warnings(race: RaceState) -> list[str]:
    session, settings = race.session, race.settings
    found = []
    for note in race.notes:
        if isinstance(note, Extended):
            found.append(f"{note.why}; {NO_BOUND}")
            continue
        name = "" if note.arm is None else session.names[note.arm]
        if isinstance(note, LearnerLeft):
            found.append(f"{name} failed: {note.why}" if note.how == FAILED else
                         f"{name}: {note.why}")  # fmt: skip
        else:
            found.append(f"{name}: {note.text}" if name else note.text)
    lost = {arm for arm, left in race.departures.items() if left.how == FAILED}
    for arm, n in sorted({(failure.arm, failure.n) for failure in race.failures}):
        if arm not in lost:
            found.append(f"{session.names[arm]}: pull {n} failed and was made again")
    if settings.seconds is not None:
        found += _by_the_clock(settings.seconds, race)
    return found + _small_budget(race) + unequal_costs(race)


def _small_budget(race: RaceState) -> list[str]:
    session, budget = race.session, race.session.selection.budget
    least, why = session.policy.advised_budget(len(session.names))
    if race.settings.horizon is not None or least <= budget:
        return []
    aside = f" to name the best of {session.budget}" if race.settings.winner_share else ""
    return [f"the budget of {budget}{aside} is small: {least} make sense ({why})"]


def _by_the_clock(seconds: float, race: RaceState) -> list[str]:
    """Where the race was not held to its time, by how much, and what took it."""
    if not race.session.over or abs(race.elapsed - seconds) <= CLOSE * seconds:
        return _long_pull(seconds, race.longest_pull)
    failing = sum(failure.seconds for failure in race.failures)
    spent = {
        "counted pulls": sum(race.seconds), "building learners": race.building_seconds,
        "failed pulls": failing,
    }  # fmt: skip
    took = ", ".join(f"{what} {time:.3g} s" for what, time in spent.items() if time > 0)
    return [
        f"the race took {race.elapsed:.3g} s of the {seconds:g} s given ({took}; the longest pull "
        f"{race.longest_pull:.3g} s): it was not held to {CLOSE:.0%} of its time"
    ]


def _long_pull(seconds: float, longest: float) -> list[str]:
    if longest <= CLOSE * seconds:
        return []
    return [
        f"one pull took {longest:.3g} s, {longest / seconds:.0%} of the {seconds:g} s given: the "
        f"race cannot be held to {CLOSE:.0%} of its time"
    ]
