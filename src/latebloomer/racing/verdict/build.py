"""From a race's state to its verdict: what is known, how certain it is, and what to warn of."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from math import inf, isfinite, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from latebloomer.core.statistics import pooled_noise
from latebloomer.errors import LearnerError
from latebloomer.policies.plan_text import counted
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.learner import Entry, trained
from latebloomer.racing.progress import print_aside
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners.learner_host import LearnerHost, OwnStates
from latebloomer.racing.settings import Settings, versions
from latebloomer.racing.stopping import certificate_of
from latebloomer.racing.verdict import history
from latebloomer.racing.verdict.verdict import Selection, Training, Verdict, highest
from latebloomer.session import events
from latebloomer.session.checked_inputs import set_aside
from latebloomer.session.learner_view import LearnerView
from latebloomer.session.session import Session


def build_verdict(
    race: RaceState, journal: Path | None, assessment: Mapping[str, Any] | None = None
) -> Verdict:
    """Return the verdict by what is known now; what `assess` returned earlier can be reused."""
    race.need_one_learner()
    session = race.session
    known = dict(assess(race) if assessment is None else assessment)
    intervals = known.pop("intervals", {})  # a new learner is not in an earlier assessment
    views = [replace(one, **intervals.get(one.arm, {})) for one in race.learners()]
    best, naming = views[0], session.selection
    over = session.over and not session.selection_pending
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
        reason=_reason(session, race.settings),
        warnings=(*warnings_of(race), *map(str, known.get("findings", ()))),
        settings=race.settings.as_dict(),
        versions=versions(),
        journal=None if journal is None else str(journal),
        started=race.started,
        seconds=race.trained_until,
        history=history.History.of(session, empty=assessment is not None),  # slow for long races
    )
    if assessment is not None:
        return verdict
    advice = resume_advice(race, journal, highest(verdict)) if over else ""
    warnings = (*verdict.warnings, *_warnings_of_scores(verdict, race))
    return replace(verdict, advice=advice, warnings=warnings)


def assess(race: RaceState) -> dict[str, Any]:
    """Certify, test and replay the curves of a race as they are now.

    Return the intervals and the fields of a verdict that need every pull. That is slow, so a live
    page reuses them for a while.
    """
    session, settings, seen = race.session, race.settings, history.History.of(race.session)
    naming = session.selection
    decided = seen.upto(naming.at)  # half-time and hindsight are about the selection
    # Certificate and tests are about the curves: they use the winner's later pulls too.
    curves = [x[:0] if i in session.repeats_scores else x for i, x in enumerate(seen.rewards())]
    departed = [naming.departed.get(i) for i in range(len(session.names))]
    failed = {i for i, how in enumerate(departed) if how == events.FAILED}
    final = session.over or session.winner is not None
    half = (naming.at if final else session.deciding_budget) // 2
    leader = decided.leader_at(half, not session.decides_every_pull, failed)
    return _certified(session, settings, seen) | {
        "findings": history.check_curves(session.names, curves, session.maximize),
        "hindsight": history.hindsight(session.names, decided.rewards(), naming.at, departed),
        "half_time": None if leader is None else session.names[leader],
        "assessed_at": session.spent,
    }


def _certified(session: Session, settings: Settings, seen: history.History) -> dict[str, Any]:
    """Return the certificate in words and its intervals, in scores.

    If no limit of the scores is known, a bound beyond the observed scores by more than their
    spread says nothing: it becomes infinite.
    """
    proof, names, naming = certificate_of(session, settings), session.names, session.selection
    if proof is None:
        text = "not certified: no learner has the three pulls that a noise estimate needs"
        return {"certificate": text, "missing": text}
    least, most = settings.score_bounds
    for score in (seen.scores.min(), seen.scores.max()):
        if not least <= score <= most:
            text = f"not certified: the score {score:.6g} is outside score_range=({least}, {most})"
            return {"certificate": text, "missing": text}
    bounds = [float(seen.sign) * limit for limit in (least, most)]
    rewards = seen.sign * seen.scores
    low, high = float(rewards.min()), float(rewards.max())
    least = -inf if isfinite(min(bounds)) else low - (high - low)
    most = inf if isfinite(max(bounds)) else high + (high - low)
    lower = seen.sign * np.where(proof.lower < least, -inf, proof.lower)
    upper = seen.sign * np.where(proof.upper > most, inf, proof.upper)
    lower, upper = (lower, upper) if session.maximize else (upper, lower)
    best, repeats = naming.arm, session.repeats_scores
    finding, conditions = proof.explained(best, names, repeats, (least, most))
    own = naming.estimates[best]
    tied = [names[i] for i, one in naming.estimates.items() if i != best and one == own]
    if tied:
        both = " and ".join([names[best], *tied])
        finding, conditions = f"a tie: {both} have the same estimate", ""
    certified = proof.certified(best)
    return {
        "intervals": {
            i: {"lower": float(lower[i]), "upper": float(upper[i])} for i in range(len(names))
        },
        "certified": certified,
        "certificate": f"{finding} ({conditions})" if conditions else finding,
        "missing": "" if certified else finding,
    }


def _reason(session: Session, settings: Settings) -> str:
    """Return why the race ended; after an early end the winner still gets its reserved pulls."""
    budget, early = settings.budget or 0, settings.stop is not None and session.winner is not None
    if not (early and session.over and session.budget < budget):
        return session.reason
    unused = f"{budget - session.budget:,} of {budget:,} were not needed to be certain"
    return f"{session.reason}; {unused}"


def load_learner(race: RaceState, entries: list[Entry], states: SavedStates, name: str) -> Any:
    """Restore a learner of a race that has ended, in this process, with all of its pulls.

    How many pulls were trained again is printed.
    """
    arm = race.names.index(name)
    done, own = race.session.pulls_of(arm), OwnStates()
    host = LearnerHost(arm, entries[arm], own)
    try:
        found = host.prepare(states.restorable(arm, done))
    finally:
        own.leave()
    if isinstance(found, events.PullFailed):
        error = LearnerError(f"learner {name!r} cannot be restored ({found.reason})")
        error.add_note(found.details)
        raise error
    again = f"; {found.repeated:,} of them were trained again" if found.repeated else ""
    for text in (f"restored to its {done:,} pulls{again}", *found.notes):
        print_aside(f"{name}: {text}")
    return trained(host.learner)


# --- warnings ---

CLOSE = 0.05  # a time-based race ends within this share of its time, if pulls are shorter
NO_BOUND = "After an extension only the certificate still applies, not the policy's error bound"
COSTLY = 1.0  # no cost warning below this many seconds of training in total
HALF = 0.5  # of the time, taken by one learner
TENFOLD = 10.0  # between the shortest pull and the longest
FAR = 4.0  # standard errors beyond which a higher score is also a warning
NOISE_PULLS = 3  # pulls that a noise estimate needs


def warnings_of(race: RaceState) -> Iterator[str]:
    """Yield what a verdict warns of: failures, notes, extensions, missed times, unequal costs."""
    session, names = race.session, race.session.names
    for note in race.notes:
        said = events.in_words(note, names.__getitem__)
        if getattr(note, "how", "") != events.FINISHED:  # which its row in the verdict says
            yield f"{said} {NO_BOUND}" if isinstance(note, events.Extended) else said
    lost = {arm for arm, left in race.departures.items() if left.how == events.FAILED}
    kinds = {(one.arm, one.n, one.kind == events.INTERRUPTED) for one in race.failures}
    for arm, n, ended in sorted(kinds):
        if arm not in lost:
            what = "was interrupted" if ended else "failed and was made again"
            yield f"{names[arm]}: pull {n} {what}"
    yield from _missed_time(race)
    budget, (least, why) = session.selection.budget, session.policy.advised_budget(len(names))
    if race.settings.horizon is None and least > budget:
        of = f" of {session.budget} to select the winner" if race.settings.winner_share else ""
        yield f"the budget of {counted(budget)}{of} is small: {least} are recommended ({why})"
    yield from unequal_costs(race)


def _missed_time(race: RaceState) -> list[str]:
    """Return by how much a time-based race missed its time, and what took it."""
    longest, seconds = race.longest_pull, race.settings.seconds
    if seconds is None:
        return []
    if race.session.over and abs(race.elapsed - seconds) > CLOSE * seconds:
        failing = sum(failure.seconds for failure in race.failures)
        spent = {"counted pulls": sum(race.seconds), "building learners": race.building_seconds,
                 "failed pulls": failing}  # fmt: skip
        took = ", ".join(f"{what} {time:.3g} s" for what, time in spent.items() if time > 0)
        return [f"the race took {race.elapsed:.3g} s of its {seconds:g} s ({took}; the longest "
                f"pull {longest:.3g} s), more than {CLOSE:.0%} off"]  # fmt: skip
    if longest <= CLOSE * seconds:
        return []
    return [f"one pull took {longest:.3g} s, {longest / seconds:.0%} of the {seconds:g} s given: "
            f"the race cannot keep its time to {CLOSE:.0%}"]  # fmt: skip


def unequal_costs(race: RaceState) -> list[str]:
    """Return a warning, with numbers and what to set, if few learners took most of the time.

    A learner that stays has more pulls than the others, so the length of pulls counts: one learner
    takes more than half of the time at twice the mean time per pull, or pulls differ tenfold.
    """
    total, pulls = sum(race.seconds), race.session.pulls
    paces = {i: race.seconds[i] / n for i, n in enumerate(pulls) if n}
    if total < COSTLY or len(paces) < 2:
        return []
    dear, cheap = max(paces, key=lambda i: paces[i]), min(paces, key=lambda i: paces[i])
    apart = paces[dear] > TENFOLD * paces[cheap]
    greedy = race.seconds[dear] > HALF * total and paces[dear] * sum(pulls) > 2 * total
    if not (apart or greedy):
        return []
    advice = (
        "Each pull is the same share of a full training, and this training is longer. Shorten "
        "it (full_steps=), or race such learners separately"
        if race.shares
        else "If steps differ, trainings=3 with full_steps={...} makes a pull the same share of "
        "each learner's full training"
    )
    return [f"{race.names[dear]} took {race.seconds[dear]:.3g} of the {total:.3g} s of training, "
            f"{paces[dear]:.3g} s a pull; {race.names[cheap]} took {paces[cheap]:.3g} s a pull. "
            f"{advice}"]  # fmt: skip


def _warnings_of_scores(verdict: Verdict, race: RaceState) -> list[str]:
    """Return a warning if another learner's late mean is higher by more than 4 standard errors."""
    best, other = verdict[verdict.name], highest(verdict)
    curves = [verdict.history.by_arm[one.arm] for one in (best, other)]
    repeats = {best.arm, other.arm} & race.session.repeats_scores
    if other.leads or repeats or min(map(len, curves)) < NOISE_PULLS:
        return []
    ours, theirs = map(history.late, curves)
    gap = verdict.history.sign * (theirs.mean() - ours.mean())
    error = sqrt(sum(pooled_noise([x]) ** 2 / len(history.late(x)) for x in curves))
    if not gap > FAR * error:
        return []
    many = "over 1000" if gap > 1000 * error else f"{gap / error:.0f}"
    return [
        f"{other.name} was ahead of {best.name} by {gap:.3g}, {many} standard errors, when it was "
        "last trained: in recorded races such a learner was truly better about half of the time. "
        f"verdict.load({other.name!r}) returns it"
    ]


# --- how to train another learner further ---

MOST_PULLS = 20_000  # of an extended race that is run to see which learners it trains: 0.1 s


def resume_advice(race: RaceState, journal: Path | None, other: LearnerView) -> str:
    """Return which budget trains another learner further; empty if its plan would not."""
    session, settings = race.session, race.settings
    if journal is None or settings.seconds is not None or not other.left_at:
        return ""
    one = settings.pulls_per_training if settings.trainings is not None else None
    budget = session.budget + (one or session.budget)  # one more full training, or as much again
    total = f"{budget:,} pulls" if one is None else f"{budget / one:g} full trainings"
    if not _would_train(session, other.arm, budget):
        return ""
    return f"Resume with a total budget of {total} to train {other.name} further."


def _would_train(session: Session, arm: int, budget: int) -> bool:
    """Run the extended session, if curves rise to their estimates, until the arm is pulled."""
    views = {view.arm: view for view in session.standings()}
    left = budget - session.spent if session.winner is not None else budget
    after, before = deepcopy(session), session.pulls_of(arm)
    reserved = set_aside(left, session.winner_share)
    after.apply(events.Extended(budget, budget - reserved, session.horizon))
    for _ in range(MOST_PULLS):
        if after.pulls_of(arm) > before:
            return True
        if after.over or arm not in after.racing:
            return False
        due = after.ask()
        after.tell(due, _expected(views[due], after.pulls_of(due) + 1))
    return False


def _expected(one: LearnerView, pull: int) -> float:
    """Return the score of a later pull: on the line from the last score to the estimate."""
    if one.forecast is None or one.forecast.at <= one.pulls:
        return one.score if one.pulls else 0.0
    way = min(1.0, (pull - one.pulls) / (one.forecast.at - one.pulls))
    return one.score + way * (one.estimate - one.score)
