"""What stands below the curves and the table: settings, events, certainty, the small print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from latebloomer.citation import cite
from latebloomer.page import html_document as pieces
from latebloomer.page.parallel_coordinates import draw_parallel, varying
from latebloomer.page.race_page import Certainty, PageEvent, RacePage
from latebloomer.page.svg import draw_interval, draw_interval_axis, interval_ends
from latebloomer.session.learner_view import LearnerView

INTERVALS = 20  # learners up to which each has an interval; of more, the top half of that
MOST_EVENTS = 50  # on the page; why learners left is in the table as well


def settings_html(page: RacePage) -> str:
    """Return the settings of candidates that differ: a picture and a sortable table."""
    names = varying(page.learners)
    if not names:
        return ""
    return pieces.section(
        "Settings that differ",
        "One line per candidate, colored by score: the darkest fifth has the best scores.",
        f'<div class="wide">{draw_parallel(page, names)}</div>'
        + settings_table(page.learners, names),
    )


def settings_table(
    learners: Sequence[LearnerView], names: Sequence[str], first: str = "learner"
) -> str:
    """Return a sortable table of some settings and the score of learners."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in (first, *names))
    rows = "".join(
        f'<tr data-row="{one.arm}"><th scope="row" class="name">{escape(one.name)}</th>'
        + "".join(f"<td>{escape(_setting(one.settings.get(name, '')))}</td>" for name in names)
        + f'<td class="num">{pieces.number_text(one.score)}</td></tr>'
        for one in learners
    )
    return (
        f'<div class="wide"><table class="sortable"><thead><tr>{head}<th scope="col" class="num">'
        f"score</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _setting(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def events_html(events: Sequence[PageEvent], live: bool) -> str:
    """Return drops and failures, the latest first; open while a race runs."""
    if not events:
        return ""
    lines = "".join(
        f'<li{" class=bad" if one.bad else ""}><span class="soft">pull {one.pull:,}</span> '
        f"{escape(one.text)}</li>"
        for one in events[:MOST_EVENTS]
    )
    items = f'<ol class="feed" reversed role="log" aria-label="events">{lines}</ol>'
    return _folded("Events", len(events), items, live)


def _folded(title: str, count: int, content: str, is_open: bool = False) -> str:
    shown = " open" if is_open else ""
    return (
        f'<section><details{shown} data-key="{escape(title)}"><summary><h2>{escape(title)} '
        f'<span class="count">{count:,}</span></h2></summary>{content}</details></section>'
    )


def certainty_html(page: RacePage, looks: Mapping[int, str]) -> str:
    """Return the certificate, its intervals, and whether the curves meet its assumptions."""
    sure = page.certainty
    if sure is None:
        return ""
    note = (
        f"Each bar shows where the learner's curve can be at {page.horizon:,} pulls. All bars "
        f"hold together with 95 % probability if curves {_shape(page)}. A dot is the last score. "
        "An arrow means that the bar continues beyond the chart. A dot without a bar means that "
        "the scores contradict the assumption."
    )
    so_far = "" if page.final else f"<p class='soft small'>After {sure.as_of:,} pulls.</p>"
    return (
        f"<section><h2>How certain is the result?</h2>{so_far}"
        f"<p>{escape(pieces.as_sentence(sure.certificate))}</p>"
        f'<p class="soft small">{escape(note)}</p>'
        f"{_intervals(page, looks)}{_assumptions(sure)}</section>"
    )


def _intervals(page: RacePage, looks: Mapping[int, str]) -> str:
    few = len(page.learners) <= INTERVALS
    shown = page.learners if few else page.learners[: INTERVALS // 2]
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
        return f"{one.name}: no curves that {_shape(page)} fit its scores"
    return f"{one.name}: {pieces.number_text(one.lower)} to {pieces.number_text(one.upper)}"


def _assumptions(sure: Certainty) -> str:
    against = sure.contradictions
    text = pieces.sentence_list(against) if against else "<p>No curve contradicts them.</p>"
    text += pieces.sentence_list(sure.plateaus) if sure.plateaus else ""
    return (
        "<h3>Do the curves rise and flatten, as the guarantees assume?</h3>"
        f'<p class="soft small">Tested with a false-alarm rate of at most {sure.false_alarm:.0%} '
        f"per race.</p>{text}"
    )


def others_html(page: RacePage) -> str:
    """Return what other methods would have kept."""
    if page.certainty is None:
        return ""
    return pieces.section(
        "What would other methods have kept?",
        "Each is replayed on the recorded curves, with the largest budget they cover.",
        pieces.sentence_list(page.certainty.hindsight),
    )


def warnings_html(page: RacePage) -> str:
    """Return the warnings, folded, with their count."""
    if not page.warnings:
        return ""
    return _folded("Warnings", len(page.warnings), pieces.sentence_list(page.warnings))


def about_html(page: RacePage) -> str:
    """Return settings, versions, how to resume, and what to cite."""
    record = "".join(f"<p>{escape(pieces.as_sentence(text))}</p>" for text in page.record)
    columns = pieces.names_and_values(page.settings) + pieces.names_and_values(page.versions)
    resume = (
        "<p>This race kept no journal, so it cannot be resumed. Pass journal=... to keep one.</p>"
    )
    if page.resume_code is not None:
        again = "Get the trained winner again, or resume after an interruption:"
        resume = f"<p>{again}</p><pre>{escape(page.resume_code)}</pre>"
    return (
        '<section><details data-key="about"><summary><h2>Settings and versions</h2></summary>'
        f'{record}<div class="two">{columns}</div>{resume}'
        f"<pre>{escape(cite('Mussi24').strip())}</pre></details></section>"
    )
