"""A verdict in words: in a dozen lines, or with every reason."""

from __future__ import annotations

import shlex
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from latebloomer._util.text import printable, short_name, short_seconds
from latebloomer.racing.journal.journal import near
from latebloomer.racing.share_text import percent
from latebloomer.session.events import FAILED, FINISHED
from latebloomer.session.reasons import DROPPED

if TYPE_CHECKING:
    from latebloomer.racing.verdict.verdict import LearnerResult, Verdict

SHOWN = 5  # learners in the short table; of more, the best


def brief(verdict: Verdict, table: bool = True) -> str:
    """The result first, in at most eleven lines; the last says where the rest is."""
    lines = [verdict.sentence]
    if verdict.trained.pulls_after_selection:
        lines.append(" ".join(verdict.both))
    lines += _table(verdict) if table else []
    cost = short_seconds(sum(arm.seconds for arm in verdict.learners))
    lines.append(f"{_capital(verdict.reason)}; {cost} s of training, by {verdict.policy}.")
    sure = verdict.certificate if verdict.certified else verdict.certificate.partition(" (with")[0]
    lines.append(f"How sure is this? {_capital(sure)}.")
    lines += _others(verdict)
    lines += _the_rest(verdict, len(verdict.learners) - SHOWN if table else 0)
    return printable("\n".join(lines))


def details(verdict: Verdict) -> str:
    """All that is known, with every reason and every warning."""
    lines = [verdict.sentence, *verdict.both, f"{verdict.reason}, by {verdict.policy}.", ""]
    width = max(len(arm.name) for arm in verdict.learners)
    for arm in verdict.learners:
        lines.append(
            f"  {arm.name:<{width}}  {arm.pulls:>7} pulls  {arm.seconds:>8.3g} s  "
            f"{arm.score:>11.6g}  {arm.why}"
        )
    lines += ["", f"How sure is this? {verdict.certificate}."]
    lines += [f"{rival}." for rival in verdict.hindsight]
    lines += [f"Warning: {warning}." for warning in verdict.warnings]
    lines += [verdict.journal_line] if verdict.journal is not None else []
    return printable("\n".join(lines))


def _table(verdict: Verdict) -> list[str]:
    """The best learners, one a line: share or pulls, score, seconds, what became of it."""

    def place(arm: LearnerResult) -> tuple[bool, float, float]:
        estimate = -inf if arm.estimate != arm.estimate else arm.estimate
        sign = 1.0 if verdict.settings["maximize"] else -1.0
        return arm.name != verdict.name, -(arm.left_at or inf), -sign * estimate

    shown = sorted(verdict.learners, key=place)[:SHOWN]
    names = [short_name(arm.name) for arm in shown]
    width = max(map(len, names))
    one = verdict.settings.get("pulls_per_training")
    rows = []
    for arm, name in zip(shown, names, strict=True):
        trained = percent(arm.pulls, one) if one else f"{arm.pulls} pulls"
        rows.append(
            f"  {name:<{width}}  {trained:>11}  {_number(arm.score):>9}  "
            f"{short_seconds(arm.seconds):>7} s  {_fate(arm, verdict)}"
        )
    return rows


def _others(verdict: Verdict) -> list[str]:
    """What other rules would have kept, by the names of the rules alone."""
    picks: dict[str, list[str]] = {}
    for rival in verdict.hindsight:
        if rival.pick is not None:
            picks.setdefault(rival.pick, []).append(rival.rule.partition(" (")[0])
    kept = [
        f"{' and '.join(rules)} would have kept {short_name(name)}"
        for name, rules in picks.items()
    ]
    return [f"{'; '.join(kept)}."] if kept else []


def _fate(arm: LearnerResult, verdict: Verdict) -> str:
    if arm.name == verdict.name:
        return "kept" if verdict.selected.final else "ahead"
    if arm.state in (DROPPED, FAILED):
        word = "failed" if arm.state == FAILED else "dropped"
        return f"{word} at pull {arm.left_at}" if arm.left_at else word
    return (
        "finished" if arm.state == FINISHED else "still racing" if not verdict.over else "second"
    )


def _the_rest(verdict: Verdict, learners: int) -> list[str]:
    """What was left out, counted, and where to read it; else where every pull is."""
    warnings, said = len(verdict.warnings), []
    if learners > 0:
        said.append(f"{learners} more learner{'s' * (learners > 1)}")
    if warnings:
        said.append(f"{warnings} warning{'s' * (warnings > 1)}")
    if not said:
        return [verdict.journal_line] if verdict.journal is not None else []
    where = "print(verdict.details())"
    if verdict.journal is not None:
        where = shlex.join(["latebloomer", "show", "--verbose", str(near(Path(verdict.journal)))])
    return [f"{_capital(' and '.join(said))}: {where}"]


def _number(score: float) -> str:
    return "" if score != score else f"{score:.4g}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
