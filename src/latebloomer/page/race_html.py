"""A race on one page: a self-contained HTML file without scripts, links to load, or fonts."""

from __future__ import annotations

from html import escape
from math import isinf, isnan

from latebloomer.citation import cite
from latebloomer.page.html_document import (
    as_sentence,
    html_document,
    names_and_values,
    section,
    sentence_list,
    stylesheet,
)
from latebloomer.page.race_page import LearnerOnPage, RacePage
from latebloomer.page.svg import Curve, Interval, draw_curves, draw_intervals

COLOURS = 10  # learners with a colour of their own; the others are grey
NO_ICON = '<link rel="icon" href="data:,">'  # or a browser asks the server for one


def race_html(page: RacePage) -> str:
    """The whole file."""
    css = _css_classes(page)
    body = "\n".join(
        [
            _verdict(page),
            _curves(page, css),
            _learners(page, css),
            _intervals(page, css),
            _assumptions(page),
            _other_rules(page),
            _settings(page),
            _resume_and_cite(page),
        ]
    )
    return html_document(
        f"{page.winner} · latebloomer race",
        stylesheet("race_page.css"),
        f"<main>\n{body}\n</main>",
        NO_ICON,
    )


def _css_classes(page: RacePage) -> list[str]:
    """Of each learner: its colour, and that it won."""
    colours = [f"c{k}" if k < COLOURS else "grey" for k in range(len(page.learners))]
    return [f"{colours[0]} won", *colours[1:]]


# --- sections ---


def _verdict(page: RacePage) -> str:
    bloom = "led at half-time" + (": a late bloomer won" if page.late_bloomer else " too")
    facts = [
        f"<b>{page.named_estimate:.5g}</b><span>named the best by, after "
        f"{page.named_pulls:,} pulls</span>",
        f"<b>{page.delivered_score:.5g}</b><span>delivered score, after "
        f"{page.delivered_pulls:,} pulls</span>",
        f"<b>{page.learners[0].pulls:,}</b><span>of {page.spent:,} pulls were its own</span>",
        f"<b>{escape(page.half_time or '–')}</b><span>{bloom}</span>",
    ]
    if page.certified:
        facts.append(f'<b class="yes">certified</b><span>best at {page.horizon:,} pulls</span>')
    cards = "".join(f'<div class="fact">{fact}</div>' for fact in facts)
    summary = escape(" ".join(map(as_sentence, page.summary)))
    return (
        f'<p class="eyebrow">latebloomer race · {len(page.learners)} learners</p>'
        f"<h1>{'Keep' if page.final else 'Ahead so far:'} {escape(page.winner)}</h1>"
        f'<p class="lead">{summary}</p><div class="facts">{cards}</div>'
    )


def _curves(page: RacePage, css: list[str]) -> str:
    curves = [
        Curve(one.name, look, *one.curve(), one.dropped or one.failed, f"{one.name}: {one.why}")
        for one, look in zip(page.learners, css, strict=True)
    ]
    note = "A cross marks where a learner was dropped or failed, a dot where it ended."
    if page.trained_on:
        curves[0] = curves[0]._replace(ring=page.named_pulls)
        note += " A ring: from there on the winner was trained on."
    if len(curves) > COLOURS:
        note += f" The {len(curves) - COLOURS} lowest ranked are grey."
    better = "higher" if page.higher_is_better else "lower"
    picture = draw_curves(curves[::-1], "pulls of the learner", f"score ({better} is better)")
    return section("Learning curves", note, picture)


def _learners(page: RacePage, css: list[str]) -> str:
    most = max(one.pulls for one in page.learners)
    lines = "".join(
        _learner(one, look, most) for one, look in zip(page.learners, css, strict=True)
    )
    head = (
        '<tr><th>learner</th><th class="num">pulls</th><th></th><th class="num">last score</th>'
        '<th class="num">estimate</th><th>when and why</th></tr>'
    )
    return section(
        "Who got the pulls, and why the others did not",
        "The estimate is what the policy judged by.",
        f"<table>{head}{lines}</table>",
    )


def _learner(one: LearnerOnPage, css: str, most: int) -> str:
    width = round(90 * one.pulls / most) if most else 0
    bad = ' class="bad"' if one.failed else ""
    return (
        f'<tr><td class="name {css}">{escape(one.name)}</td><td class="num">{one.pulls:,}</td>'
        f'<td><span class="bar {css}" style="width:{width}px"></span></td>'
        f'<td class="num">{_number(one.score)}</td><td class="num">{_number(one.estimate)}</td>'
        f"<td{bad}>{escape(one.why)}</td></tr>"
    )


def _intervals(page: RacePage, css: list[str]) -> str:
    intervals = [
        Interval(one.name, look, one.lower, one.upper, one.score, _interval_text(one, page))
        for one, look in zip(page.learners, css, strict=True)
    ]
    return section(
        "How sure is this?",
        f"{as_sentence(page.certificate)} Below is where each learner's curve can be at "
        f"{page.horizon:,} pulls: all intervals hold together with "
        f"probability 95 % if curves {_shape(page)}. Dots are the last scores seen; an arrow "
        "means that the interval goes on; a dot alone, that the curve contradicts the assumption.",
        draw_intervals(intervals, f"score at {page.horizon:,} pulls"),
    )


def _shape(page: RacePage) -> str:
    return "rise and are concave" if page.higher_is_better else "fall and are convex"


def _interval_text(one: LearnerOnPage, page: RacePage) -> str:
    if one.lower > one.upper:
        return f"{one.name}: no curves that {_shape(page)} fit what was seen"
    return f"{one.name}: {_number(one.lower)} to {_number(one.upper)}"


def _assumptions(page: RacePage) -> str:
    against, flat = page.contradictions, page.plateaus
    text = sentence_list(against) if against else "<p>No curve contradicts them.</p>"
    text += sentence_list(flat) if flat else ""
    return section(
        "Do the curves rise and flatten, as the guarantees assume?",
        f"A test that raises a false alarm in at most {page.false_alarm:.0%} of races "
        "(docs/race.md).",
        text,
    )


def _other_rules(page: RacePage) -> str:
    also = f"<h2>Also</h2>{sentence_list(page.warnings)}" if page.warnings else ""
    return section(
        "What other rules would have picked",
        "Played on the recorded curves, as far as they are known.",
        sentence_list(page.hindsight) + also,
    )


def _settings(page: RacePage) -> str:
    columns = names_and_values(page.settings) + names_and_values(page.versions)
    return section("Settings and versions", "", f'<div class="two">{columns}</div>')


def _resume_and_cite(page: RacePage) -> str:
    if page.resume_code is None:
        resume = "<p>This race had no journal; with journal=... it can be resumed.</p>"
    else:
        again = "Get the trained winner again, or go on after an interruption:"
        resume = f"<p>{again}</p><pre>{escape(page.resume_code)}</pre>"
    bibtex = escape(cite("Mussi24").strip())
    return section("Resume and cite", "", f"{resume}<pre>{bibtex}</pre>")


def _number(value: float) -> str:
    if isnan(value):
        return "–"
    return ("∞" if value > 0 else "−∞") if isinf(value) else f"{value:.5g}"
