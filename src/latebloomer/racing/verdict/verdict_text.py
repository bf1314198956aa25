"""A verdict as text: in about a dozen lines, with every reason, and its warnings."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from latebloomer._util.text import printable, short_name, short_seconds
from latebloomer.racing.journal.journal import near
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.verdict.higher_scores import explanation
from latebloomer.session.events import FAILED, INTERRUPTED, Extended, LearnerLeft
from latebloomer.session.learner_view import ranked

if TYPE_CHECKING:
    from latebloomer.racing.verdict.verdict import Verdict
    from latebloomer.session.learner_view import LearnerView

SHOWN = 5  # learners in the short table: the best ones
CLOSE = 0.05  # a time-based race ends within this share of its time, if pulls are shorter
NO_BOUND = "No bound of the policy is claimed, and the certificate covers all counts of pulls"
COSTLY = 1.0  # no cost warning below this many seconds of training in total
HALF = 0.5  # of the time, taken by one learner
TENFOLD = 10.0  # between the shortest pull and the longest


def brief(verdict: Verdict, table: bool = True) -> str:
    """Return the result first, in at most fourteen lines; the last names the place of the rest."""
    lines = [verdict.sentence, *explanation(verdict)]
    if verdict.trained.pulls_after_selection:
        lines.append(f"{verdict.selected}. {verdict.trained}.")
    lines += _table(ranked(verdict.learners, verdict.history.sign > 0)[:SHOWN]) if table else []
    cost = short_seconds(sum(one.seconds for one in verdict.learners))
    lines.append(f"{_capital(verdict.reason)} ({cost} s of training). {policy_text(verdict)}.")
    sure = verdict.certificate if verdict.certified else verdict.certificate.partition(" (with")[0]
    lines.append(f"{_capital(sure)}.")
    lines += _others(verdict)
    lines += _not_shown(verdict, len(verdict.learners) - SHOWN if table else 0)
    return printable("\n".join(lines))


def details(verdict: Verdict) -> str:
    """Return all that is known, with every reason and every warning."""
    lines = [verdict.sentence, *explanation(verdict), f"{verdict.selected}. {verdict.trained}.",
             f"{_capital(verdict.reason)}. {policy_text(verdict)}.", ""]  # fmt: skip
    shown = ranked(verdict.learners, verdict.history.sign > 0)
    lines += [*_table(shown), ""]
    for one in shown:
        why = f"{one.why}. {one.remark}" if one.remark else one.why
        lines.append(f"{one.name}: {why}.")
    lines += ["", f"{_capital(verdict.certificate)}."]
    lines += [f"{rival}." for rival in verdict.hindsight]
    lines += [f"Warning: {warning}." for warning in verdict.warnings]
    lines += [verdict.journal_line] if verdict.journal is not None else []
    return printable("\n".join(lines))


def policy_text(verdict: Verdict) -> str:
    """Return which policy raced, and whether it was chosen by "auto"."""
    chosen, _, name = verdict.policy.rpartition(": ")
    return f"Policy: {name}, chosen by {chosen}" if chosen else f"Policy: {name}"


def _table(shown: Sequence[LearnerView]) -> list[str]:
    """Return learners, one a line, below a header."""
    head = ("learner", "trained", "score", "forecast (trust)", f"estimate ({shown[0].rule})",
            "time")  # fmt: skip
    rows = [head, *(_cells(one) for one in shown)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    outcomes = ["outcome", *(one.outcome for one in shown)]
    return [
        "  ".join([f"  {row[0]:<{widths[0]}}",
                   *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)),
                   outcome])
        for row, outcome in zip(rows, outcomes, strict=True)
    ]  # fmt: skip


def _cells(one: LearnerView) -> tuple[str, ...]:
    score, estimate = ("" if x != x else f"{x:.4g}" for x in (one.score, one.estimate))
    forecast = ""
    if one.forecast is not None and one.forecast.trust:
        forecast = f"{one.forecast.score:.4g} ({100 * one.forecast.trust:.0f} %)"
    time = f"{short_seconds(one.seconds)} s"
    return short_name(one.name), one.trained, score, forecast, estimate, time


def _others(verdict: Verdict) -> list[str]:
    """Return what other methods keep on the recorded curves, and with how many pulls."""
    kept = [
        f"{rival.rule.partition(' (')[0]} ({rival.pulls:,} of {verdict.selected.at:,} pulls) "
        f"keeps {short_name(rival.pick)}"
        for rival in verdict.hindsight
        if rival.pick is not None
    ]
    return [f"Replayed on these curves: {'; '.join(kept)}."] if kept else []


def _not_shown(verdict: Verdict, learners: int) -> list[str]:
    """Return what was left out, counted, and where to read it; or where every pull is."""
    warnings, left = len(verdict.warnings), []
    if learners > 0:
        left.append(f"{learners} learner{'s' * (learners > 1)}")
    if warnings:
        left.append(f"{warnings} warning{'s' * (warnings > 1)}")
    if not left:
        return [verdict.journal_line] if verdict.journal is not None else []
    where = "print(verdict.details())"
    if verdict.journal is not None:
        where = shlex.join(["latebloomer", "show", "--verbose", str(near(Path(verdict.journal)))])
    return [f"Not shown: {', '.join(left)}. See {where}"]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# --- warnings ---


def warnings_of(race: RaceState) -> list[str]:
    """Return what a verdict warns of: failures, notes, extensions, missed times, unequal costs."""
    session, found = race.session, []
    for note in race.notes:
        if isinstance(note, Extended):
            found.append(f"{note.why} {NO_BOUND}")
            continue
        name = "" if note.arm is None else session.names[note.arm]
        if isinstance(note, LearnerLeft):
            found.append(f"{name} failed: {note.why}" if note.how == FAILED else
                         f"{name}: {note.why}")  # fmt: skip
        else:
            found.append(f"{name}: {note.text}" if name else note.text)
    lost = {arm for arm, left in race.departures.items() if left.how == FAILED}
    for arm, n, ended in sorted(
        {(one.arm, one.n, one.kind == INTERRUPTED) for one in race.failures}
    ):
        if arm not in lost:
            what = "was interrupted" if ended else "failed and was made again"
            found.append(f"{session.names[arm]}: pull {n} {what}")
    if race.settings.seconds is not None:
        found += _missed_time(race.settings.seconds, race)
    return found + _small_budget(race) + unequal_costs(race)


def _small_budget(race: RaceState) -> list[str]:
    session, budget = race.session, race.session.selection.budget
    least, why = session.policy.advised_budget(len(session.names))
    if race.settings.horizon is not None or least <= budget:
        return []
    of = f" of {session.budget} to select the winner" if race.settings.winner_share else ""
    return [f"the budget of {budget} pulls{of} is small: {least} are recommended ({why})"]


def _missed_time(seconds: float, race: RaceState) -> list[str]:
    """Return by how much a time-based race missed its time, and what took it."""
    longest = race.longest_pull
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
