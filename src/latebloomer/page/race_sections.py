"""What stands below the curves and the table: what happened, how sure it is, the small print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isinf, isnan

from latebloomer.citation import cite
from latebloomer.page.html_document import (
    as_sentence,
    names_and_values,
    section,
    sentence_list,
)
from latebloomer.page.race_page import Certainty, PageEvent, RacePage
from latebloomer.page.svg import draw_interval, draw_interval_axis, interval_ends
from latebloomer.session.learner_view import LearnerView

COLOURS = 10  # learners with a colour of their own; the others are grey
MOST_HAPPENINGS = 50  # on the page; who left, and why, is in the table as well


def feed_html(happenings: Sequence[PageEvent], live: bool) -> str:
    """Drops and failures, the newest first; open while a race runs."""
    if not happenings:
        return ""
    lines = "".join(
        f'<li{" class=bad" if one.bad else ""}><span class="soft">pull {one.pull:,}</span> '
        f"{escape(one.text)}</li>"
        for one in happenings[:MOST_HAPPENINGS]
    )
    items = f'<ol class="feed" reversed role="log" aria-label="what happened">{lines}</ol>'
    return _folded("What happened", len(happenings), items, live)


def _folded(title: str, count: int, content: str, is_open: bool = False) -> str:
    shown = " open" if is_open else ""
    return (
        f'<section><details{shown} data-key="{escape(title)}"><summary><h2>{escape(title)} '
        f'<span class="count">{count:,}</span></h2></summary>{content}</details></section>'
    )


def sure_html(page: RacePage, looks: dict[int, str]) -> str:
    """The certificate, its intervals, and whether the curves meet its assumptions."""
    sure = page.certainty
    if sure is None:
        return ""
    note = (
        f"Below is where each learner's curve can be at {page.horizon:,} pulls: all intervals "
        f"hold together with probability 95 % if curves {_shape(page)}. Dots are the last "
        "scores seen; an arrow means that the interval goes on; a dot alone, that the curve "
        "contradicts the assumption."
    )
    so_far = "" if page.final else f"<p class='soft small'>After {sure.as_of:,} pulls.</p>"
    return (
        f"<section><h2>How sure is this?</h2>{so_far}<p>{escape(as_sentence(sure.certificate))}"
        f'</p><p class="soft small">{escape(note)}</p>{_intervals(page, looks)}'
        f"{_assumptions(sure)}</section>"
    )


def _intervals(page: RacePage, looks: dict[int, str]) -> str:
    shown = page.learners[:COLOURS] if len(page.learners) > 2 * COLOURS else page.learners
    low, high = interval_ends(shown)
    lines = "".join(
        f'<span class="name {looks[one.arm]}">{escape(one.name)}</span>'
        + draw_interval(one, low, high, looks[one.arm], _interval_text(one, page))
        for one in shown
    )
    axis = f"<span></span>{draw_interval_axis(low, high)}"
    return f'<div class="intervals">{lines}{axis}</div>'


def _shape(page: RacePage) -> str:
    return "rise and are concave" if page.higher_is_better else "fall and are convex"


def _interval_text(one: LearnerView, page: RacePage) -> str:
    if one.lower > one.upper:
        return f"{one.name}: no curves that {_shape(page)} fit what was seen"
    return f"{one.name}: {number_text(one.lower)} to {number_text(one.upper)}"


def _assumptions(sure: Certainty) -> str:
    against = sure.contradictions
    text = sentence_list(against) if against else "<p>No curve contradicts them.</p>"
    text += sentence_list(sure.plateaus) if sure.plateaus else ""
    return (
        "<h3>Do the curves rise and flatten, as the guarantees assume?</h3>"
        f'<p class="soft small">A test that raises a false alarm in at most '
        f"{sure.false_alarm:.0%} of races (docs/verdict.md).</p>{text}"
    )


def others_html(page: RacePage) -> str:
    """What other rules would have kept."""
    if page.certainty is None:
        return ""
    return section(
        "What would others have kept?",
        "Played on the recorded curves, as far as they are known.",
        sentence_list(page.certainty.hindsight),
    )


def warnings_html(page: RacePage) -> str:
    """Warnings, folded, with their count."""
    if not page.warnings:
        return ""
    return _folded("Warnings", len(page.warnings), sentence_list(page.warnings))


def about_html(page: RacePage) -> str:
    """Settings, versions, how to go on, whom to cite."""
    record = "".join(f"<p>{escape(text)}</p>" for text in page.record)
    columns = names_and_values(page.settings) + names_and_values(page.versions)
    resume = "<p>This race had no journal; with journal=... it can be resumed.</p>"
    if page.resume_code is not None:
        again = "Get the trained winner again, or go on after an interruption:"
        resume = f"<p>{again}</p><pre>{escape(page.resume_code)}</pre>"
    return (
        f'<section><details data-key="about"><summary><h2>For the record</h2></summary>{record}'
        f'<div class="two">{columns}</div>{resume}<pre>{escape(cite("Mussi24").strip())}</pre>'
        "</details></section>"
    )


def number_text(value: float) -> str:
    """A score as pages print it; a dash where there is none."""
    if isnan(value):
        return "–"
    return ("∞" if value > 0 else "−∞") if isinf(value) else f"{value:.5g}"
