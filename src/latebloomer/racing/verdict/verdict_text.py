"""A verdict in words: in a dozen lines, or with every reason."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from latebloomer.core.text import one_line, printable
from latebloomer.racing.journal.journal import near
from latebloomer.racing.share_text import percent
from latebloomer.session.events import FAILED, FINISHED
from latebloomer.session.reasons import OUT

if TYPE_CHECKING:
    from latebloomer.racing.verdict.verdict import ArmResult, Verdict

SHOWN = 5  # learners in the short table; of more, the best


def brief(verdict: Verdict, table: bool = True) -> str:
    """The result first, in at most twelve lines."""
    lines = [verdict.sentence]
    if verdict.delivered.since:
        lines.append(" ".join(verdict.both))
    lines += _table(verdict) if table else []
    seconds = sum(arm.seconds for arm in verdict.arms)
    lines.append(f"{_capital(verdict.reason)}; {seconds:.3g} s of training, by {verdict.policy}.")
    sure = verdict.certificate if verdict.certified else verdict.certificate.partition(" (with")[0]
    lines.append(f"How sure is this? {_capital(sure)}.")
    lines += _others(verdict)
    count = len(verdict.warnings)
    if count == 1:
        lines.append(f"Warning: {one_line(verdict.warnings[0])}.")
    elif count:
        lines.append(f"{count} warnings: {_where_to_read(verdict)}")
    lines += [verdict.journal_line] if verdict.journal is not None else []
    return printable("\n".join(lines))


def details(verdict: Verdict) -> str:
    """All that is known, with every reason and every warning."""
    lines = [verdict.sentence, *verdict.both, f"{verdict.reason}, by {verdict.policy}.", ""]
    width = max(len(arm.name) for arm in verdict.arms)
    for arm in verdict.arms:
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

    def place(arm: ArmResult) -> tuple[bool, float, float]:
        estimate = -inf if arm.estimate != arm.estimate else arm.estimate
        sign = 1.0 if verdict.settings["maximize"] else -1.0
        return arm.name != verdict.name, -(arm.out_at or inf), -sign * estimate

    arms = sorted(verdict.arms, key=place)
    shown = arms if len(arms) <= SHOWN else arms[: SHOWN - 1]
    width = max(len(one_line(arm.name)) for arm in shown)
    one = verdict.settings.get("pulls_per_training")
    rows = []
    for arm in shown:
        trained = percent(arm.pulls, one) if one else f"{arm.pulls} pulls"
        rows.append(
            f"  {one_line(arm.name):<{width}}  {trained:>11}  {_number(arm.score):>9}  "
            f"{arm.seconds:>7.3g} s  {_fate(arm, verdict)}"
        )
    if len(shown) < len(arms):
        rows.append(f"  ... and {len(arms) - len(shown)} more: {_where_to_read(verdict)}")
    return rows


def _others(verdict: Verdict) -> list[str]:
    """What other rules would have kept, by the names of the rules alone."""
    picks: dict[str, list[str]] = {}
    for rival in verdict.hindsight:
        if rival.pick is not None:
            picks.setdefault(rival.pick, []).append(rival.rule.partition(" (")[0])
    kept = [f"{' and '.join(rules)} would have kept {name}" for name, rules in picks.items()]
    return [f"{'; '.join(kept)}."] if kept else []


def _fate(arm: ArmResult, verdict: Verdict) -> str:
    if arm.name == verdict.name:
        return "kept" if verdict.named.final else "ahead"
    if arm.state in (OUT, FAILED):
        word = "failed" if arm.state == FAILED else "dropped"
        return f"{word} at pull {arm.out_at}" if arm.out_at else word
    return (
        "finished" if arm.state == FINISHED else "still racing" if not verdict.over else "second"
    )


def _where_to_read(verdict: Verdict) -> str:
    if verdict.journal is None:
        return "print(verdict.details())"
    return f"latebloomer show --verbose {near(Path(verdict.journal))}"


def _number(score: float) -> str:
    return "" if score != score else f"{score:.4g}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
