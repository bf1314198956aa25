"""A race on one page: while it is watched and, frozen, as a report in one self-contained file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import isinf
from time import localtime, strftime

from latebloomer._util.text import short_seconds, span_of_time
from latebloomer.page.html_document import (
    html_document,
    section,
    sentence_list,
    stylesheet,
)
from latebloomer.page.race_page import (
    ALL_FAILED,
    FINISHED,
    RUNNING,
    RacePage,
)
from latebloomer.page.race_sections import (
    COLOURS,
    about_html,
    feed_html,
    number_text,
    others_html,
    sure_html,
    warnings_html,
)
from latebloomer.page.svg import (
    View,
    cut,
    describe_curves,
    draw_axes,
    draw_curves,
    draw_fans,
    draw_marks,
    view_of,
)
from latebloomer.session.events import FAILED
from latebloomer.session.learner_view import LearnerView

WITH_RAW = 24  # learners up to which the scores themselves can be shown too
NO_ICON = '<link rel="icon" href="data:,">'  # or a browser asks the server for one
SWATCH = '<svg class="swatch {look}" aria-hidden="true"><line x2="100%" y1="50%" y2="50%"/></svg>'


def race_html(page: RacePage) -> str:
    """The report: the whole file."""
    title = f"{page.best} · latebloomer race"
    body = f"<main>\n{RaceDrawing(page).body()}\n</main>"
    return html_document(title, stylesheet("race_page.css"), body, NO_ICON)


def race_cell(page: RacePage) -> str:
    """What a notebook shows: the verdict, the curves and the learners, in a style of their own."""
    style = stylesheet("race_page.css")
    own = style.replace(":root", "&").replace("body {", "& { padding: 12px 24px;")
    return (
        f"<style>.latebloomer {{ {own} }}</style>"
        f'<div class="latebloomer">{RaceDrawing(page).brief()}</div>'
    )


class RaceDrawing:
    """A race as pieces of HTML with names, so that a page that is open can be told what changed.

    One that follows another keeps its axes and colours where they still fit.
    """

    def __init__(
        self, page: RacePage, before: RaceDrawing | None = None, most_rows: int | None = None
    ) -> None:
        self.page = page
        self.view: View = view_of(page, None if before is None else before.view)
        self.slots: dict[int, int] = _slots(page.learners, {} if before is None else before.slots)
        self.looks = {one.arm: self._look(one) for one in page.learners}
        self.raw = len(page.learners) <= WITH_RAW
        self._most_rows = most_rows  # None: all
        known = before is not None and before.page.certainty == page.certainty
        self.sure: str = (
            before.sure if before is not None and known else sure_html(page, self.looks)
        )

    def _look(self, one: LearnerView) -> str:
        """The classes of a learner: its colour, and that it is the best."""
        slot = self.slots.get(one.arm)
        colour = "grey" if slot is None else f"c{slot}"
        return f"{colour} won" if one.name == self.page.best else colour

    def body(self) -> str:
        """All of the page."""
        pieces = self.pieces()
        around = {name: _place(name, text) for name, text in pieces.items()}
        above = "".join(around[name] for name in ("when", "title", "why", "progress"))
        below = "".join(around[name] for name in ("feed", "sure", "others", "warnings", "about"))
        return f"{above}{self._curves()}{self._table()}{below}"

    def brief(self) -> str:
        """The top, the curves and the table, without what a second one on a page would disturb."""
        pieces = self.pieces()
        above = "".join(pieces[name] for name in ("when", "title", "why"))
        return f"{above}{self._curves(switch=False)}{self._table()}"

    def pieces(self) -> dict[str, str]:
        """What stands in each named place, but for curves and rows."""
        page = self.page
        return {
            "when": f'<p class="eyebrow">{escape(_when(page))}</p>',
            "title": f"<h1>{escape(_title(page))}</h1>",
            "why": _why(page),
            "progress": _progress(page),
            "feed": feed_html(page.events, page.state == RUNNING),
            "sure": self.sure,
            "others": others_html(page),
            "warnings": warnings_html(page),
            "about": about_html(page),
        }

    # --- the curves ---

    def _curves(self, switch: bool = True) -> str:
        checked = " checked" if self.page.state == RUNNING else ""
        box = f'<input type="checkbox" id="raw"{checked}>'
        raw = switch and self.raw
        above = f'{box}<label for="raw">scores as they came</label>' if raw else ""
        picture = draw_curves(self.page, self.view, self.looks, raw)
        note = f'<p class="soft small" id="note">{self.note()}</p>'
        return f"<section><h2>Learning curves</h2>{above}{picture}{note}</section>"

    def marks(self) -> dict[str, str]:
        """What stands around the curves, in named places."""
        page, view, looks = self.page, self.view, self.looks
        return {
            "axes": draw_axes(view),
            "fans": draw_fans(page, view, looks),
            "marks": draw_marks(page, view, looks),
            "note": self.note(),
        }

    @property
    def label(self) -> str:
        """The picture in a sentence."""
        return describe_curves(self.page)

    def note(self) -> str:
        """How to read the picture."""
        page = self.page
        better = "higher" if page.higher_is_better else "lower"
        texts = [
            f"Score ({better} is better) against pulls of the learner: the mean of its newest "
            "quarter. A cross marks where a learner was dropped or failed, a dot where it stands."
        ]
        if page.trained_further:
            texts.append("A ring: from there on the winner was trained on.")
        if page.levels and page.state != FINISHED:
            texts.append(_levels(page))
        if any(one.forecast for one in page.learners):
            texts.append("Shaded: straight extrapolation. Dashed: the discounted forecast used "
                         "for ranking.")  # fmt: skip
        grey = len(page.learners) - len(self.slots)
        if grey:
            texts.append(f"The {grey} lowest ranked are grey.")
        return escape(" ".join([*texts, self._trust()]).strip())

    def _trust(self) -> str:
        """How much of earlier forecasts proved right, in a sentence."""
        made = [one.forecast for one in self.page.learners if one.forecast is not None]
        if not made:
            return ""
        latest = max(made, key=lambda seen: seen.tested)
        share = f"{100 * latest.trust:.0f} %"
        return f"Forecasts explained {share} of the change up to pull {latest.tested:,}."

    # --- the table ---

    def _table(self) -> str:
        columns = (("learner", ""), ("last score", "num"), ("estimate", "num"), ("pulls", "num"),
                 ("seconds", "num"), ("when and why", ""))  # fmt: skip
        head = "".join(f'<th scope="col" class="{css}">{text}</th>' for text, css in columns)
        rows = "".join(
            f'<tr id="r{arm}" tabindex="0">{"".join(cells)}</tr>'
            for arm, cells in self.rows().items()
        )
        hidden = len(self.page.learners) - len(self.shown)
        more = f"<p class='soft small'>{hidden:,} more are in the report.</p>" if hidden else ""
        return section(
            "Who got the pulls, and why the others did not",
            "The estimate is what the policy judged by.",
            f'<table class="learners"><thead><tr>{head}</tr></thead>'
            f'<tbody id="rows">{rows}</tbody></table>{more}',
        )

    @property
    def shown(self) -> Sequence[LearnerView]:
        """The learners that have a row."""
        return self.page.learners[: self._most_rows]

    def rows(self) -> dict[int, list[str]]:
        """The cells of the table's rows, by the number of the learner, in order."""
        most = max([1, *(one.pulls for one in self.page.learners)])
        return {one.arm: _row(one, self.looks[one.arm], most) for one in self.shown}


def _place(name: str, text: str) -> str:
    spoken = ' aria-live="polite"' if name == "title" else ""
    return f'<div id="{name}"{spoken}>{text}</div>'


def _slots(learners: Sequence[LearnerView], before: dict[int, int]) -> dict[int, int]:
    """The colours of the learners that have one; who had one keeps it."""
    if len(learners) <= COLOURS:
        return {one.arm: one.arm for one in learners}
    top = [one.arm for one in learners[:COLOURS]]
    slots = {arm: before[arm] for arm in top if arm in before}
    free = [slot for slot in range(COLOURS) if slot not in slots.values()]
    return slots | dict(zip((arm for arm in top if arm not in slots), free, strict=False))


# --- the top ---


def _title(page: RacePage) -> str:
    if page.best is None:
        return "Every learner failed" if page.state == ALL_FAILED else "No pull has ended yet"
    return f"{'Keep' if page.final else 'Ahead so far:'} {page.best}"


def _why(page: RacePage) -> str:
    facts = "".join(f'<div class="fact">{fact}</div>' for fact in _facts(page))
    cards = f'<div class="facts">{facts}</div>' if facts else ""
    return f'<p class="lead">{escape(page.why)}</p>{cards}'


def _when(page: RacePage) -> str:
    parts = ["latebloomer race", f"{len(page.learners):,} learners"]
    if page.started is not None:
        parts.append(strftime("%Y-%m-%d %H:%M", localtime(page.started)))
    lasted = span_of_time(page.seconds)
    words = {RUNNING: f"running, {lasted} so far", FINISHED: f"took {lasted}"}
    return " · ".join([*parts, words.get(page.state, f"{page.state} after {lasted}")])


def _progress(page: RacePage) -> str:
    if page.state == FINISHED:
        return ""
    left = f", {page.time_left}" if page.time_left and page.state == RUNNING else ""
    text = f"{page.spent:,} of {page.budget:,} pulls{left}"
    again = ""
    if page.state not in (RUNNING, ALL_FAILED) and page.resume_code:
        again = f'<p class="small">Go on with it:</p><pre>{escape(page.resume_code)}</pre>'
    return (
        f'<p class="soft small progress"><progress max="{page.budget}" value="{page.spent}" '
        f'aria-label="budget spent"></progress> {escape(text)}</p>{again}'
    )


def _facts(page: RacePage) -> Iterable[str]:
    if page.selected is not None:
        estimate, pulls = page.selected
        yield f"<b>{estimate:.5g}</b><span>estimate at selection ({pulls:,} pulls)</span>"
    if page.learners and page.state == FINISHED:
        best = page.learners[0]
        yield f"<b>{best.score:.5g}</b><span>final score ({best.pulls:,} pulls)</span>"
    if page.learners and page.final:
        own, cost = page.learners[0].pulls, sum(one.seconds for one in page.learners)
        yield f"<b>{own:,}</b><span>of {page.spent:,} pulls were its own</span>"
        yield f"<b>{escape(short_seconds(cost))} s</b><span>total training time</span>"
    sure = page.certainty
    if sure is not None and page.final:
        bloom = "led at half-time" + (": a late bloomer won" if sure.late_bloomer else " too")
        yield f"<b>{escape(cut(sure.half_time or '–', 40))}</b><span>{bloom}</span>"
        if sure.certified:
            yield f'<b class="yes">certified</b><span>best at {page.horizon:,} pulls</span>'


def _levels(page: RacePage) -> str:
    ahead = [f"the best {one.learners} to {one.pulls:,}" for one in page.levels[:4]]
    more = len(page.levels) - len(ahead)
    return f"To come: {', '.join(ahead)}{f' and {more} more phases' if more else ''} pulls."


# --- one learner ---


def _row(one: LearnerView, look: str, most: int) -> list[str]:
    share = 5 * round(20 * one.pulls / most)
    bar = f'<progress class="bar" max="100" value="{share}" aria-hidden="true"></progress>'
    bad = " bad" if one.state == FAILED else ""
    return [
        f'<th scope="row" class="name {look}">{SWATCH.format(look=look)}{escape(one.name)}</th>',
        f'<td class="num" data-is="last score">{number_text(one.score)}</td>',
        f'<td class="num" data-is="estimate">{number_text(one.estimate)}</td>',
        f'<td class="num" data-is="pulls"><span class="{look}">{bar}</span>{one.pulls:,}</td>',
        f'<td class="num" data-is="seconds">{escape(short_seconds(one.seconds))}</td>',
        f'<td class="why{bad}">{escape(one.why)}{_more(one)}</td>',
    ]


def _more(one: LearnerView) -> str:
    texts = [one.remark] if one.remark else []
    if one.pulls:
        texts.append(f"{one.seconds / one.pulls:.2g} s a pull")
    if one.steps is not None:
        texts.append(f"{one.steps:,} steps of its own training")
    if one.lower <= one.upper and not isinf(one.lower) and not isinf(one.upper):
        texts.append(
            f"at the horizon between {number_text(one.lower)} and {number_text(one.upper)}"
        )
    texts += one.failures
    if not texts:
        return ""
    key = f"why {one.arm}"
    return (
        f'<details data-key="{key}"><summary aria-label="more on {escape(one.name)}">more'
        f"</summary>{sentence_list(texts)}</details>"
    )
