"""A verdict as text: in about a dozen lines, or with every reason.

On recorded curves the winner's late mean is below that of a dropped learner in about 10 % of
races, and by more than 4 standard errors in 1.3 %. There the dropped learner was truly better
about half of the time, so the verdict names it and does not swap it in.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from latebloomer._util.text import as_sentence, printable, short_name, short_seconds
from latebloomer.racing.journal.journal import near
from latebloomer.session.events import FAILED
from latebloomer.session.learner_view import ranked

if TYPE_CHECKING:
    from latebloomer.racing.verdict.verdict import Verdict
    from latebloomer.session.learner_view import LearnerView

SHOWN = 5  # learners in the short table: the best ones


def by_rank(verdict: Verdict) -> list[LearnerView]:
    """Return all learners, the best first."""
    return ranked(verdict.learners, verdict.history.sign > 0)


def brief(verdict: Verdict, table: bool = True) -> str:
    """Return the result first, in at most fourteen lines; the last names the place of the rest."""
    lines = [verdict.sentence, *explanation(verdict)]
    if verdict.trained.pulls_after_selection:
        lines.append(f"{verdict.selected}. {verdict.trained}.")
    lines += _table(by_rank(verdict)[:SHOWN]) if table else []
    cost = short_seconds(sum(one.seconds for one in verdict.learners))
    lines.append(f"{as_sentence(f'{verdict.reason} ({cost} s of training)')} {_policy(verdict)}")
    lines.append(as_sentence(verdict.missing or verdict.certificate))
    kept = [
        f"{rival.rule.partition(' (')[0]} ({rival.pulls:,} of {verdict.selected.at:,} pulls) "
        f"keeps {short_name(rival.pick)}"
        for rival in verdict.hindsight
        if rival.pick is not None
    ]
    lines += [f"Replayed on these curves: {'; '.join(kept)}."] if kept else []
    lines += _not_shown(verdict, len(verdict.learners) - SHOWN if table else 0)
    return printable("\n".join(lines))


def details(verdict: Verdict) -> str:
    """Return all that is known, with every reason and every warning."""
    lines = [verdict.sentence, *explanation(verdict), f"{verdict.selected}. {verdict.trained}.",
             f"{as_sentence(verdict.reason)} {_policy(verdict)}", ""]  # fmt: skip
    shown = by_rank(verdict)
    lines += [*_table(shown), ""]
    for one in shown:
        why = f"{one.why}. {one.remark}" if one.remark else one.why
        lines.append(f"{one.name}: {why}.")
    lines += ["", as_sentence(verdict.certificate)]
    lines += [f"{rival}." for rival in verdict.hindsight]
    lines += [f"Warning: {warning}." for warning in verdict.warnings]
    return printable("\n".join([*lines, *_journal(verdict)]))


def _policy(verdict: Verdict) -> str:
    """Return which policy raced, and whether it was chosen by "auto"."""
    chosen, _, name = verdict.policy.rpartition(": ")
    return f"Policy: {name}, chosen by {chosen}." if chosen else f"Policy: {name}."


def _table(shown: Sequence[LearnerView]) -> list[str]:
    """Return learners, one a line, below a header."""
    head = ("learner", "trained", "score", "forecast (trust)", f"estimate ({shown[0].rule})",
            "time", "outcome")  # fmt: skip
    rows = [head, *(_cells(one) for one in shown)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([
            f"  {name:<{widths[0]}}", *map(str.rjust, cells, widths[1:]), outcome
        ])
        for name, *cells, outcome in rows
    ]  # fmt: skip


def _cells(one: LearnerView) -> tuple[str, ...]:
    score, estimate = ("" if x != x else f"{x:.4g}" for x in (one.score, one.estimate))
    forecast = ""
    if one.forecast is not None and one.forecast.trust:
        forecast = f"{one.forecast.score:.4g} ({100 * one.forecast.trust:.0f} %)"
    time = f"{short_seconds(one.seconds)} s"
    return short_name(one.name), one.trained, score, forecast, estimate, time, one.outcome


def _not_shown(verdict: Verdict, learners: int) -> list[str]:
    """Return what was left out, counted, and where to read it; or where every pull is."""
    counts = {"learner": learners, "warning": len(verdict.warnings)}
    left = [f"{count} {what}{'s' * (count > 1)}" for what, count in counts.items() if count > 0]
    if not left:
        return _journal(verdict)
    where = "print(verdict.details())"
    if verdict.journal is not None:
        where = shlex.join(["latebloomer", "show", "--verbose", near(Path(verdict.journal))])
    return [f"Not shown: {', '.join(left)}. See {where}"]


def _journal(verdict: Verdict) -> list[str]:
    return [] if verdict.journal is None else [f"Journal: {near(Path(verdict.journal))}"]


# --- a kept learner whose last score is below another one's ---


def highest(verdict: Verdict) -> LearnerView:
    """Return the learner with the highest last score; the winner, if others have as high a one."""
    sign = verdict.history.sign
    scored = [one for one in verdict.learners if one.pulls and (one.leads or one.state != FAILED)]
    return max(scored, key=lambda one: (sign * one.score, one.leads))


def standing(one: LearnerView, horizon: int) -> str:
    """Return a learner's score, how far it is trained, and its forecast.

    "score 0.33 at 50 % of its training, forecast 0.67 at the end".
    """
    share = one.full_pulls is not None
    trained = f"at {one.trained} of its training" if share else f"after {one.trained}"
    text, made = f"score {one.score:.5g} {trained}", one.forecast
    if made is None or not made.trust or made.at <= one.pulls:
        return text
    when = "the end" if made.at >= horizon else f"{made.at:,.0f} pulls"
    return f"{text}, forecast {made.score:.4g} at {when}"


def explanation(verdict: Verdict) -> list[str]:
    """Return why a learner with a higher last score was not kept, and how to train it further."""
    best, other = verdict[verdict.name], highest(verdict)
    if other.leads:
        return []
    when = "when it was dropped" if other.left_at else "but was not selected"
    at = f" at {other.trained}" if other.trained != best.trained else ""
    numbers = f"{other.score:.4g}"
    if other.forecast is not None and other.forecast.trust:
        numbers += f", forecast {other.forecast.score:.4g}"
    told = [f"{other.name} scored higher {when}{at}: {numbers}.", *_why(verdict, best, other)]
    return [" ".join(told), *([verdict.advice] if verdict.advice else [])]


def _why(verdict: Verdict, best: LearnerView, other: LearnerView) -> list[str]:
    sign, made = verdict.history.sign, other.decision
    if sign * best.estimate > sign * other.estimate and best.forecast is not None:
        return []  # the two forecasts say why
    if made is None or made.rival is None or made.rival_estimate is None:
        return []
    rival = verdict[made.rival]
    if rival.forecast is not None and sign * rival.score < sign * made.rival_estimate:
        return [f"The learner that displaced it stayed below its forecast ({rival.name}: "
                f"estimate {made.rival_estimate:.4g}, score {rival.score:.4g})."]  # fmt: skip
    return [f"It was ranked by its estimate, {other.estimate:.4g}, versus "
            f"{made.rival_estimate:.4g} for {rival.name}."]  # fmt: skip
