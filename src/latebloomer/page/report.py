"""A race on one page: a self-contained HTML file without scripts, links to load, or fonts."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from math import isinf, isnan
from typing import Any

from latebloomer.page.svg import Line, Span, curves, spans, thin
from latebloomer.racing.journal.journal import resume_call
from latebloomer.racing.verdict.curve_tests import ALARM
from latebloomer.racing.verdict.verdict import WINNER, ArmResult, Verdict
from latebloomer.session.events import FAILED, FINISHED
from latebloomer.session.reasons import OUT, RACING

COLOURS = 10  # learners with a colour of their own; the others are grey
RANK = {WINNER: 0, RACING: 1, FINISHED: 1, OUT: 2, FAILED: 3}


def page(verdict: Verdict) -> str:
    """The whole file."""
    style = files("latebloomer.page").joinpath("report.css").read_text(encoding="utf-8")
    order = ranked(verdict)
    css = _colours(order)
    body = "\n".join(
        [
            _head(verdict),
            _curves(verdict, order, css),
            _arms(verdict, order, css),
            _intervals(verdict, order, css),
            _assumptions(verdict),
            _others(verdict),
            _settings(verdict),
            _next(verdict),
        ]
    )
    title = escape(f"{verdict.name} · latebloomer race")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{title}</title><style>{style}</style></head>'
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def ranked(verdict: Verdict) -> list[ArmResult]:
    """The winner, those who raced to the end, then the dropped ones, the last first."""
    sign = verdict.history.sign

    def rank(arm: ArmResult) -> tuple[float, ...]:
        value = -sign * arm.estimate
        place = RANK[OUT] if arm.state == FINISHED and arm.out_at else RANK[arm.state]
        return place, -(arm.out_at or 0), float("inf") if isnan(value) else value

    return sorted(verdict.arms, key=rank)


def _colours(order: list[ArmResult]) -> dict[str, str]:
    shown = {arm.name: f"c{k}" if k < COLOURS else "grey" for k, arm in enumerate(order)}
    shown[order[0].name] += " won"
    return shown


# --- sections ---


def _head(verdict: Verdict) -> str:
    arm = verdict[verdict.name]
    proof = (
        '<b class="yes">certified</b>' if verdict.certified else '<b class="no">not certified</b>'
    )
    bloom = "led at half-time" + (": a late bloomer won" if verdict.late_bloomer else " too")
    facts = [
        f"<b>{verdict.named.estimate:.5g}</b><span>named the best by, after "
        f"{verdict.named.pulls:,} pulls</span>",
        f"<b>{verdict.delivered.score:.5g}</b><span>delivered score, after "
        f"{verdict.delivered.pulls:,} pulls</span>",
        f"<b>{arm.pulls:,}</b><span>of {verdict.spent:,} pulls were its own</span>",
        f"<b>{escape(verdict.half_time or '–')}</b><span>{bloom}</span>",
        f"{proof}<span>best at {verdict.horizon:,} pulls?</span>",
    ]
    cards = "".join(f'<div class="fact">{fact}</div>' for fact in facts)
    certificate = escape(_sentence(verdict.certificate))
    lead = escape(" ".join([*verdict.both, _sentence(verdict.reason)]))
    return (
        f'<p class="eyebrow">latebloomer race · {len(verdict.arms)} learners</p>'
        f"<h1>{'Keep' if verdict.named.final else 'Ahead so far:'} {escape(verdict.name)}</h1>"
        f'<p class="lead">{lead}</p>'
        f'<div class="facts">{cards}</div><p class="soft small proof">{certificate}</p>'
    )


def _curves(verdict: Verdict, order: list[ArmResult], css: Mapping[str, str]) -> str:
    lines = [_line(verdict, arm, css[arm.name]) for arm in reversed(order)]
    better = "higher" if verdict.history.sign > 0 else "lower"
    picture = curves(lines, "pulls of the learner", f"score ({better} is better)")
    note = "A cross marks where a learner was dropped or failed, a dot where it ended."
    note += " A ring: from there on the winner was trained on." if verdict.delivered.since else ""
    hidden = f" The {len(order) - COLOURS} lowest ranked are grey." if len(order) > COLOURS else ""
    return _section(
        "Learning curves",
        f"{note}{hidden}",
        picture,
    )


def _line(verdict: Verdict, arm: ArmResult, css: str) -> Line:
    pulls, scores = thin(verdict.history.scores_of(verdict.history.names.index(arm.name)))
    end = arm.state if arm.state in (OUT, FAILED) else ""
    since = arm.state == WINNER and verdict.delivered.since
    named = verdict.named.pulls if since else None
    return Line(arm.name, css, pulls, scores, end, f"{arm.name}: {arm.why}", named)


def _arms(verdict: Verdict, order: list[ArmResult], css: Mapping[str, str]) -> str:
    most = max(arm.pulls for arm in order)
    rows = "".join(_arm_row(arm, css[arm.name], most) for arm in order)
    head = (
        '<tr><th>learner</th><th class="num">pulls</th><th></th><th class="num">last score</th>'
        '<th class="num">estimate</th><th>when and why</th></tr>'
    )
    return _section(
        "Who got the pulls, and why the others did not",
        "The estimate is what the policy judged by.",
        f"<table>{head}{rows}</table>",
    )


def _arm_row(arm: ArmResult, css: str, most: int) -> str:
    width = round(90 * arm.pulls / most) if most else 0
    bad = ' class="bad"' if arm.state == FAILED else ""
    return (
        f'<tr><td class="name {css}">{escape(arm.name)}</td><td class="num">{arm.pulls:,}</td>'
        f'<td><span class="bar {css}" style="width:{width}px"></span></td>'
        f'<td class="num">{_number(arm.score)}</td><td class="num">{_number(arm.estimate)}</td>'
        f"<td{bad}>{escape(arm.why)}</td></tr>"
    )


def _intervals(verdict: Verdict, order: list[ArmResult], css: Mapping[str, str]) -> str:
    rows = [
        Span(arm.name, css[arm.name], arm.lower, arm.upper, arm.score,
             _interval(arm))
        for arm in order
    ]  # fmt: skip
    return _section(
        f"Scores at {verdict.horizon:,} pulls",
        "Where each learner's curve can be at the horizon: all intervals hold together with "
        "probability 95 % if curves rise and are concave. Dots are the last scores seen; an arrow "
        "means that the interval goes on; a dot alone, that the curve contradicts the assumption.",
        spans(rows, f"score at {verdict.horizon:,} pulls"),
    )


def _assumptions(verdict: Verdict) -> str:
    against = [f for f in verdict.findings if f.contradicts]
    flat = [f for f in verdict.findings if not f.contradicts]
    text = "<p>No curve contradicts them.</p>" if not against else _list(map(str, against))
    text += _list(map(str, flat)) if flat else ""
    return _section(
        "Do the curves rise and flatten, as the guarantees assume?",
        f"A test that raises a false alarm in at most {ALARM:.0%} of races (docs/race.md).",
        text,
    )


def _others(verdict: Verdict) -> str:
    said = set(map(str, verdict.findings))
    warnings = [w for w in verdict.warnings if w not in said]
    extra = f"<h2>Also</h2>{_list(warnings)}" if warnings else ""
    return _section(
        "What other rules would have picked",
        "Played on the recorded curves, as far as they are known.",
        _list(map(str, verdict.hindsight)) + extra,
    )


def _settings(verdict: Verdict) -> str:
    values = dict(verdict.settings)
    values["policy"], values["auto"] = verdict.policy, None  # which stands before the policy
    tables = ({k: v for k, v in values.items() if v is not None}, verdict.versions)
    columns = "".join(f"<table>{_pairs(table)}</table>" for table in tables)
    return _section("Settings and versions", "", f'<div class="two">{columns}</div>')


def _next(verdict: Verdict) -> str:
    from pathlib import Path

    from latebloomer.citation import cite

    place = None if verdict.journal is None else Path(verdict.journal)
    again = escape(f"from latebloomer import resume\nverdict = {resume_call(place)}")
    keep = "Get the trained winner again, or go on after an interruption:"
    if place is None:
        keep, again = "This race had no journal; with journal=... it can be resumed.", ""
    code = f"<pre>{again}</pre>" if again else ""
    return _section(
        "Resume and cite", "", f"<p>{keep}</p>{code}<pre>{escape(cite('Mussi24').strip())}</pre>"
    )


# --- pieces ---


def _section(title: str, lead: str, content: str) -> str:
    note = f'<p class="soft small">{escape(lead)}</p>' if lead else ""
    return f"<section><h2>{escape(title)}</h2>{note}{content}</section>"


def _list(items: Any) -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}.</li>" for item in items) + "</ul>"


def _pairs(values: Mapping[str, Any]) -> str:
    return "".join(
        f"<tr><td>{escape(str(k))}</td><td><code>{escape(str(v))}</code></td></tr>"
        for k, v in values.items()
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _interval(arm: ArmResult) -> str:
    if arm.lower > arm.upper:
        return f"{arm.name}: no curve that rises and is concave fits what was seen"
    return f"{arm.name}: {_number(arm.lower)} to {_number(arm.upper)}"


def _number(value: float) -> str:
    if isnan(value):
        return "–"
    return ("∞" if value > 0 else "−∞") if isinf(value) else f"{value:.5g}"
