"""The warnings of a verdict."""

from collections.abc import Iterator
from math import copysign, inf, sqrt

import numpy as np

from latebloomer._util.text import quoted
from latebloomer.core.statistics import pooled_noise
from latebloomer.policies.plan_text import counted
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.racing.verdict.verdict_text import highest
from latebloomer.session import events
from latebloomer.theory import curve_tests

CLOSE = 0.05  # warn if a time-based race misses its time by more than this share
NO_BOUND = "After an extension only the certificate still applies, not the policy's error bound"
COSTLY = 1.0  # no cost warning below this many seconds of training in total
HALF = 0.5  # warn if one learner takes more than this share of the time
TENFOLD = 10.0  # warn if the longest pull takes this many times as long as the shortest
FAR = 4.0  # warn of a dropped learner that was ahead by more than this many standard errors
NOISE_PULLS = 3  # minimum pulls for a noise estimate
FALLING_PULLS = 4  # minimum pulls of each learner for the test that scores fall
# Minimum fall in standard errors: two flat curves of 8 pulls fall so much in .3 % of races.
FALL = 2.0


def warnings_of(race: RaceState) -> Iterator[str]:
    """Yield warnings: failures, notes, extensions, missed times and unequal costs."""
    session, names = race.session, race.session.names
    for note in race.notes:
        text = events.in_words(note, lambda arm: quoted(names[arm]))
        if getattr(note, "how", "") != events.FINISHED:  # its row in the verdict already says so
            yield f"{text} {NO_BOUND}" if isinstance(note, events.Extended) else text
    lost = {arm for arm, departure in race.departures.items() if departure.how == events.FAILED}
    kinds = {
        (failure.arm, failure.n, failure.kind == events.INTERRUPTED) for failure in race.failures
    }
    for arm, n, ended in sorted(kinds):
        if arm not in lost:
            what = "was interrupted" if ended else "failed and was repeated"
            yield f"{names[arm]}: pull {n} {what}"
    yield from _missed_time(race)
    budget, (least, why) = session.selection.budget, session.policy.advised_budget(len(names))
    if race.settings.horizon is None and least > budget:
        of = f" of {session.budget} to select the winner" if race.settings.winner_share else ""
        yield f"the budget of {counted(budget)}{of} is small: {least} are recommended ({why})"
    yield from unequal_costs(race)


def _missed_time(race: RaceState) -> list[str]:
    """Return a warning if a time-based race missed its time, with what took the time.

    An early end needs no warning: nothing was left to train, or the user ended the race.
    """
    longest, seconds = race.times.longest_pull, race.settings.seconds
    if seconds is None:
        return []
    if race.session.over and race.elapsed - seconds > CLOSE * seconds:
        failing = sum(failure.seconds for failure in race.failures)
        spent = {
            "counted pulls": sum(race.seconds),
            "building learners": race.building_seconds,
            "failed pulls": failing,
        }
        took = ", ".join(f"{what} {time:.3g} s" for what, time in spent.items() if time > 0)
        return [
            f"the race took {race.elapsed:.3g} s of its {seconds:g} s ({took}; the longest "
            f"pull {longest:.3g} s), more than {CLOSE:.0%} off"
        ]
    if longest <= CLOSE * seconds:
        return []
    return [
        f"one pull took {longest:.3g} s, {longest / seconds:.0%} of the {seconds:g} s given: "
        f"the race cannot keep its time to {CLOSE:.0%}"
    ]


def unequal_costs(race: RaceState) -> list[str]:
    """Return a warning, with numbers and advice, if one learner took most of the time.

    The winner has more pulls than the others, so the length of its pulls counts, too. The warning
    is given if one learner takes more than half of the time at twice the mean time per pull, or if
    pulls differ tenfold.
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
    dearest, cheapest = quoted(race.names[dear]), quoted(race.names[cheap])
    return [
        f"{dearest} took {race.seconds[dear]:.3g} of the {total:.3g} s of training, "
        f"{paces[dear]:.3g} s a pull; {cheapest} took {paces[cheap]:.3g} s a pull. "
        f"{advice}"
    ]


def warnings_of_scores(verdict: Verdict, race: RaceState) -> list[str]:
    """Return warnings that scores contradict the verdict: a better rival, or likely losses."""
    texts = [*_better_rival(verdict, race), *_falling(verdict)]
    # Scores with a known range, such as those of a search, are of one metric.
    return texts if race.settings.score_range is not None else [*texts, *_opposite(verdict)]


def _falling(verdict: Verdict) -> list[str]:
    """Return a warning if the scores of all learners fall by more than their noise."""
    curves = verdict.history.by_arm
    if verdict.history.sign < 0 or len(curves) < 2 or min(map(len, curves)) < FALLING_PULLS:
        return []
    noise = pooled_noise(curves)
    for scores in curves:
        half = len(scores) // 2
        early, late = np.mean(scores[:half]), np.mean(scores[-half:])
        if not early - late > FALL * noise * sqrt(2 / half):
            return []
    return [
        "The scores of all learners fall while they train. Is this a loss? Pass maximize=False "
        "(in a search: a scorer with greater_is_better=False)"
    ]


def _opposite(verdict: Verdict) -> list[str]:
    """Return a warning if some learners get worse from the first pull on while others improve.

    Such a learner may report a loss, and the others an accuracy.
    """
    sign = verdict.history.sign
    curves = {view.name: sign * verdict.history.by_arm[view.arm] for view in verdict.learners}
    long = {name: scores for name, scores in curves.items() if len(scores) >= FALLING_PULLS}
    improve = [name for name, scores in long.items() if _change(scores) > FALL]
    worsen = [
        name
        for name, scores in long.items()
        if _change(scores) < -FALL and scores[0] == scores.max()
    ]
    if not (improve and worsen):
        return []
    names, kind = ", ".join(map(quoted, worsen)), "a loss" if sign > 0 else "an accuracy"
    fall = "fall" if sign > 0 else "rise"
    return [
        f"The scores of {names} {fall} from the first pull on, and those of other learners do "
        f"not. If that is {kind}, the comparison means nothing: all learners need the same score"
    ]


def _change(scores: np.ndarray) -> float:
    """Return how many standard errors the later half of a curve is above its earlier half."""
    half = len(scores) // 2
    difference = float(np.mean(scores[-half:]) - np.mean(scores[:half]))
    error = pooled_noise([scores]) * sqrt(2 / half)
    if not error:
        return copysign(inf, difference) if difference else 0.0
    return difference / error


def _better_rival(verdict: Verdict, race: RaceState) -> list[str]:
    """Return a warning if another learner's recent mean is higher by over 4 standard errors."""
    best, other = verdict[verdict.name], highest(verdict)
    curves = [verdict.history.by_arm[view.arm] for view in (best, other)]
    repeats = {best.arm, other.arm} & race.session.repeats_scores
    if other.leads or repeats or min(map(len, curves)) < NOISE_PULLS:
        return []
    ours, theirs = map(curve_tests.late, curves)
    gap = verdict.history.sign * (theirs.mean() - ours.mean())
    error = sqrt(sum(pooled_noise([x]) ** 2 / len(curve_tests.late(x)) for x in curves))
    if not gap > FAR * error:
        return []
    many = "over 1000" if gap > 1000 * error else f"{gap / error:.0f}"
    return [
        f"{quoted(other.name)} was ahead of {quoted(best.name)} by {gap:.3g} in its recent mean "
        f"score, {many} standard errors of that difference, when it was last trained: in recorded "
        "races such a learner was truly better about half of the time. "
        f"verdict.load({other.name!r}) returns it"
    ]
