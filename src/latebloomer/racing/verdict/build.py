"""From a session and its journal to a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isinf, nan
from typing import Any

from latebloomer.errors import SettingError
from latebloomer.racing.journal.journal import Journal
from latebloomer.racing.settings import Settings, versions
from latebloomer.racing.verdict.curve_tests import check_curves
from latebloomer.racing.verdict.hindsight import hindsight
from latebloomer.racing.verdict.history import Record
from latebloomer.racing.verdict.sentences import need_one, story
from latebloomer.racing.verdict.verdict import (
    FAILED,
    FINISHED,
    OUT,
    RACING,
    WINNER,
    ArmResult,
    Verdict,
)
from latebloomer.session.delivery import Delivered, Named
from latebloomer.session.field import Field
from latebloomer.theory.certificate import Certificate

CLOSE = 0.05  # a race by the clock ends within this share of its time, if pulls are shorter


def judge(session: Field, settings: Settings, journal: Journal, learner: Any = None) -> Verdict:
    """The verdict by what is known now."""
    need_one(session, journal)
    naming, record = session.naming, Record.of(session, settings.sign)
    best = naming.arm
    decided = record.upto(naming.at)  # half-time and hindsight are about who was named
    proof = _certificate(session)
    left = {c.arm: c.why for c in journal.changes() if c.kind in (FAILED, FINISHED)}
    arms = _arms(session, settings, record, proof, left, journal.seconds(), best)
    # Certificate and test are about the curves: what the winner showed since is welcome to both.
    findings = check_curves(session.names, record.rewards())
    leader = decided.leader_at_half(swept=not session.opens)
    gone = [naming.left.get(i) for i in range(len(arms))]
    named, delivered = _both(session, arms[best])
    return Verdict(
        name=session.names[best],
        learner=learner,
        score=delivered.score,
        named=named,
        delivered=delivered,
        estimate=arms[best].estimate,
        arms=tuple(arms),
        spent=session.spent,
        budget=session.whole,
        horizon=session.horizon,
        over=delivered.final,
        reason=session.reason,
        certified=proof is not None and proof.certified(best),
        certificate=_missing(session, settings.sign, proof, best),
        half_time=None if leader is None else session.names[leader],
        hindsight=hindsight(session.names, decided.rewards(), naming.at, gone),
        findings=findings,
        warnings=(*_warnings(session, settings, journal), *map(str, findings)),
        settings=settings.as_dict(),
        versions=versions(),
        journal=None if journal.path is None else str(journal.path),
        record=record,
    )


def _both(session: Field, best: ArmResult) -> tuple[Named, Delivered]:
    """Who was named the best, and what is delivered."""
    naming, over = session.naming, session.over and not session.owes
    final = over or session.winner is not None
    since = best.pulls - naming.pulls
    return (
        Named(best.name, best.estimate, naming.pulls, naming.at, final),
        Delivered(best.score, best.pulls, since, over),
    )


def _certificate(session: Field) -> Certificate | None:
    try:
        return session.certificate()
    except SettingError:  # no arm has the three rewards that the noise estimate needs
        return None


def _arms(
    session: Field,
    settings: Settings,
    record: Record,
    proof: Certificate | None,
    left: Mapping[int | None, str],
    seconds: Mapping[int, float],
    best: int,
) -> list[ArmResult]:
    rows = {row.arm: row for row in session.standings()}
    results = []
    for i, name in enumerate(session.names):
        scores = record.scores_of(i)
        lower, upper = _interval(proof, i, settings.sign)
        results.append(
            ArmResult(
                name=name,
                state=_state(session, i, best),
                pulls=len(scores),
                score=float(scores[-1]) if len(scores) else nan,
                estimate=settings.sign * rows[i].estimate,
                lower=lower,
                upper=upper,
                out_at=rows[i].out_at,
                why=story(session, i, settings.sign, left.get(i)),
                seconds=seconds.get(i, 0.0),
            )
        )
    return results


def _state(session: Field, i: int, best: int) -> str:
    if i == best:
        return WINNER
    left = session.left(i)
    if left == FAILED:
        return FAILED
    if i not in session.racing and left is None:
        return OUT
    return FINISHED if left == FINISHED else RACING


def _interval(proof: Certificate | None, i: int, sign: float) -> tuple[float, float]:
    if proof is None:
        return -inf, inf
    lower, upper = float(proof.lower[i]), float(proof.upper[i])
    return (lower, upper) if sign > 0 else (-upper, -lower)


def _missing(session: Field, sign: float, proof: Certificate | None, best: int) -> str:
    """That the winner is certified, or what stands in the way, by name."""
    if proof is None:
        return "not certified: no learner has the three pulls that a noise estimate needs"
    rival = proof.rival(best)
    name, other, at = session.names[best], session.names[rival], f"at {proof.horizon} pulls"
    sure, reach = float(proof.lower[best]), float(proof.upper[rival])
    if sure > reach:
        finding = f"certified: {name} is best {at}, at least {sure - reach:.4g} ahead of {other}"
    elif isinf(sure) or isinf(reach):
        few = name if isinf(sure) else other
        finding = f"not certified: {few} has too few pulls to say anything about {at[3:]}"
    else:
        finding = (
            f"not certified: {other} could still reach {sign * reach:.4g} {at}, and {name} is "
            f"sure of {sign * sure:.4g}"
        )
    return (
        f"{finding} (with probability {1 - proof.delta:g} if curves rise and are concave and the "
        f"noise level is {proof.noise:.3g}, as estimated)"
    )


def _warnings(session: Field, settings: Settings, journal: Journal) -> list[str]:
    found = []
    for change in journal.changes():
        if change.arm is not None and change.kind in (FAILED, FINISHED, "note"):
            word = "failed" if change.kind == FAILED else ""
            found.append(f"{session.names[change.arm]} {word}: {change.why}".replace(" :", ":"))
    retried = {(arm, n) for _, arm, n, _, _ in journal.failures()}
    lost = {c.arm for c in journal.changes() if c.kind == FAILED}
    for arm, n in sorted(retried):
        if arm not in lost:
            found.append(f"{session.names[arm]}: pull {n} failed and was made again")
    if settings.seconds is not None:
        found += _by_the_clock(settings.seconds, journal)
    budget, (least, why) = session.naming.budget, session.policy.advised_budget(len(session.names))
    if settings.horizon is None and least > budget:
        kept = f" to name the best of {session.whole}" if settings.deliver else ""
        found.append(f"the budget of {budget}{kept} is small: {least} make sense ({why})")
    return found


def _by_the_clock(seconds: float, journal: Journal) -> list[str]:
    longest = journal.longest_pull()
    if longest <= CLOSE * seconds:
        return []
    return [
        f"one pull took {longest:.3g} s, {longest / seconds:.0%} of the {seconds:g} s given: the "
        f"race cannot be held to {CLOSE:.0%} of its time"
    ]
