"""A race on one page: live while it runs and, frozen, as a report in one self-contained file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import isinf
from time import localtime, strftime

from latebloomer._util.text import short_seconds, shortened, span_of_time
from latebloomer.page import html_document as parts
from latebloomer.page import race_sections as sections
from latebloomer.page import svg
from latebloomer.page.race_page import ALL_FAILED, FINISHED, RUNNING, RacePage
from latebloomer.session.events import FAILED
from latebloomer.session.learner_view import DROPPED, LearnerView

number_text = parts.number_text
COLORED = 12  # learners up to which each has a color; of more, the top ones have
TOP = 10
WITH_RAW = 24  # learners up to which individual scores can be shown too
NO_ICON = '<link rel="icon" href="data:,">'  # or a browser requests one from the server
SPOKEN = ' aria-live="polite"'  # read aloud when it changes
SWATCH = '<svg class="swatch {look}" aria-hidden="true"><line x2="100%" y1="50%" y2="50%"/></svg>'


def race_html(page: RacePage) -> str:
    """Return the report: the whole file."""
    title = f"{page.best} · latebloomer race"
    script = f"<script>{parts.page_file('page.js')}</script>"
    body = f"<main>\n{RaceDrawing(page).body()}\n</main>{script}"
    return parts.html_document(title, parts.page_file("race_page.css"), body, NO_ICON)


def race_cell(page: RacePage) -> str:
    """Return what a notebook shows: the verdict, curves, learners and settings, with a style."""
    style = parts.page_file("race_page.css")
    own = style.replace(":root", "&").replace("body {", "& { padding: 12px 24px;")
    return (
        f"<style>.latebloomer {{ {own} }}</style>"
        f'<div class="latebloomer">{RaceDrawing(page).brief()}</div>'
    )


class RaceDrawing:
    """A race as named pieces of HTML, so that an open page can be sent only what changed.

    A drawing that follows another keeps its axes and colors as long as they fit.
    """

    def __init__(
        self, page: RacePage, before: RaceDrawing | None = None, most_rows: int | None = None
    ) -> None:
        self.page = page
        self.view: svg.View = svg.view_of(page, None if before is None else before.view)
        self.slots: dict[int, int] = _slots(page.learners, {} if before is None else before.slots)
        self.looks = {one.arm: self._look(one) for one in page.learners}
        self.raw = len(page.learners) <= WITH_RAW
        self.shown = page.learners[:most_rows]  # the learners that have a row

    def _look(self, one: LearnerView) -> str:
        """Return the classes of a learner: its color, and whether it is the best."""
        slot = self.slots.get(one.arm)
        color = "gray" if slot is None else f"c{slot}"
        return f"{color} won" if one.leads else color

    def body(self) -> str:
        """Return the whole page."""
        around = {
            name: f'<div id="{name}"{SPOKEN if name == "title" else ""}>{text}</div>'
            for name, text in self.pieces().items()
        }
        above = "".join(around[name] for name in ("when", "title", "why", "progress"))
        below = "".join(
            around[name] for name in ("events", "certainty", "others", "warnings", "about")
        )
        return f"{above}{self.curves()}{self._table()}{around['settings']}{below}"

    def brief(self) -> str:
        """Return the top, curves, table and settings: what can be on a page several times."""
        pieces = self.pieces()
        above = "".join(pieces[name] for name in ("when", "title", "why"))
        return f"{above}{self.curves(switch=False)}{self._table()}{pieces['settings']}"

    def pieces(self) -> dict[str, str]:
        """Return what stands in each named place, except for curves and rows."""
        page = self.page
        return {
            "when": f'<p class="eyebrow">{escape(_when(page))}</p>',
            "title": f"<h1>{escape(_title(page))}</h1>",
            "why": _why(page),
            "progress": _progress(page),
            "settings": sections.settings_html(page),
            "events": sections.events_html(page.events, page.state == RUNNING),
            "certainty": sections.certainty_html(page, self.looks),
            "others": sections.others_html(page),
            "warnings": sections.warnings_html(page),
            "about": sections.about_html(page),
        }

    # --- the curves ---

    def curves(self, switch: bool = True) -> str:
        """Return the section with the learning curves."""
        box = '<input type="checkbox" id="raw" checked>'
        raw = switch and self.raw
        above = f'{box}<label for="raw">show individual scores</label>' if raw else ""
        picture = svg.draw_curves(self.page, self.view, self.looks, raw)
        note = f'<p class="soft small" id="note">{self.note()}</p>'
        return (
            f"<section><h2>Learning curves</h2>{above}{picture}"
            f'<p class="legend small" id="legend">{self.legend()}</p>{note}</section>'
        )

    def marks(self) -> dict[str, str]:
        """Return what stands around the curves, in named places."""
        page, view, looks = self.page, self.view, self.looks
        return {
            "axes": svg.draw_axes(view),
            "fans": svg.draw_fans(page, view, looks),
            "marks": svg.draw_marks(page, view, looks),
            "legend": self.legend(),
            "note": self.note(),
        }

    def legend(self) -> str:
        """Return the names of colored learners, for a phone, which has no room next to curves."""
        return " ".join(
            f'<span class="name {self.looks[one.arm]}">'
            f"{SWATCH.format(look=self.looks[one.arm])}{escape(shortened(one.name, 28))}</span>"
            for one in self.page.learners
            if one.arm in self.slots
        )

    def note(self) -> str:
        """Return how to read the picture."""
        page = self.page
        better = "higher" if page.higher_is_better else "lower"
        texts = [
            f"Score ({better} is better) by pulls of each learner, averaged over its latest "
            "sixteenth of pulls. A cross marks a drop or failure; a dot marks the latest pull."
        ]
        if page.trained_further:
            texts.append("A ring marks the selection: from there on, only the winner was trained.")
        if page.levels and page.state != FINISHED:
            texts.append(_levels(page))
        drawn = [one for one in page.learners if svg.has_fan(one) and one.arm in self.slots]
        if any(one.state != DROPPED for one in drawn):
            texts.append("Shaded: straight extrapolation.")
        if drawn:
            texts.append("Dashed: the discounted forecast used for ranking.")
        gray = len(page.learners) - len(self.slots)
        if gray:
            texts.append(f"The {gray:,} learners that are ranked lower are gray.")
        return escape(" ".join([*texts, self._trust()]).strip())

    def _trust(self) -> str:
        """Return how much of earlier forecasts proved right, in a sentence."""
        made = [one.forecast for one in self.page.learners if one.forecast is not None]
        if not made:
            return ""
        latest = max(made, key=lambda seen: seen.tested)
        share = f"{100 * latest.trust:.0f} %"
        return f"Forecasts explained {share} of the change up to pull {latest.tested:,}."

    # --- the table ---

    def _table(self) -> str:
        rule = self.page.learners[0].rule if self.page.learners else ""
        columns = (("learner", ""), ("score", "num"), ("trained", "num"),
                   ("forecast (trust)", "num"), (f"estimate ({rule})", "num"), ("time", "num"),
                   ("when and why", ""))  # fmt: skip
        head = "".join(f'<th scope="col" class="{css}">{text}</th>' for text, css in columns)
        rows = "".join(
            f'<tr id="r{arm}" tabindex="0">{"".join(cells)}</tr>'
            for arm, cells in self.rows().items()
        )
        hidden = len(self.page.learners) - len(self.shown)
        more = f"<p class='soft small'>The report has {hidden:,} more.</p>" if hidden else ""
        return parts.section(
            "How the budget was spent",
            "The policy ranks learners by their estimate. Click a learner to highlight it.",
            f'<table class="learners sortable"><thead><tr>{head}</tr></thead>'
            f'<tbody id="rows">{rows}</tbody></table>{more}',
        )

    def rows(self) -> dict[int, list[str]]:
        """Return the cells of the table's rows, by the number of the learner, in order."""
        most = max([1, *(one.pulls for one in self.page.learners)])
        return {one.arm: _row(one, self.looks[one.arm], most) for one in self.shown}


def _slots(learners: Sequence[LearnerView], before: dict[int, int]) -> dict[int, int]:
    """Return the colors of the learners that have one; a learner keeps its color."""
    if len(learners) <= COLORED:
        return {one.arm: one.arm for one in learners}
    top = [one.arm for one in learners[:TOP]]
    slots = {arm: before[arm] for arm in top if arm in before}
    free = [slot for slot in range(TOP) if slot not in slots.values()]
    return slots | dict(zip((arm for arm in top if arm not in slots), free, strict=False))


# --- the top ---


def _title(page: RacePage) -> str:
    if page.best is None:
        waiting = "Waiting for the first score"
        return "Every learner failed" if page.state == ALL_FAILED else waiting
    return f"{'Keep' if page.final else 'Leading:'} {page.best}"


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
        again = f'<p class="small">Resume it with:</p><pre>{escape(page.resume_code)}</pre>'
    return (
        f'<p class="soft small progress"><progress max="{page.budget}" value="{page.spent}" '
        f'aria-label="budget spent"></progress> {escape(text)}</p>{again}'
    )


def _facts(page: RacePage) -> Iterable[str]:
    if not page.learners or page.best is None:
        return
    best, made = page.learners[0], page.learners[0].forecast
    word = "final score" if page.state == FINISHED else "score"
    yield f"<b>{number_text(best.score)}</b><span>{word} ({escape(best.trained)})</span>"
    if made is not None and svg.has_fan(best):
        where = "the end" if made.at >= page.horizon else f"{made.at:,.0f} pulls"
        trust = f"{100 * made.trust:.0f} % trust"
        yield f"<b>{made.score:.5g}</b><span>forecast at {where} ({trust})</span>"
    if page.selected is not None:
        estimate, pulls = page.selected
        yield f"<b>{estimate:.5g}</b><span>estimate at selection ({pulls:,} pulls)</span>"
    cost = sum(one.seconds for one in page.learners)
    yield f"<b>{escape(short_seconds(cost))} s</b><span>total training time</span>"
    sure = page.certainty
    if sure is not None and page.final:
        bloom = "led at half-time" + (": a late bloomer won" if sure.late_bloomer else " too")
        yield f"<b>{escape(shortened(sure.half_time or '–', 24))}</b><span>{bloom}</span>"
        if sure.certified:
            yield f'<b class="yes">certified</b><span>best at {page.horizon:,} pulls</span>'


def _levels(page: RacePage) -> str:
    ahead = [f"the best {count} learners to {n:,}" for count, n in page.levels[:3]]
    more = len(page.levels) - len(ahead)
    return f"Next: train {', '.join(ahead)} pulls{f' and {more} more phases' if more else ''}."


# --- one learner ---


def _row(one: LearnerView, look: str, most: int) -> list[str]:
    share = 5 * round(20 * one.pulls / most)
    bar = f'<progress class="bar" max="100" value="{share}" aria-hidden="true"></progress>'
    made, trust = one.forecast, ""
    if made is not None and made.trust:
        trust = f' <span class="soft">({100 * made.trust:.0f} %)</span>'
    ahead = "" if made is None or not made.trust else f'data-forecast="{made.score:.5g}" '
    bad = " bad" if one.state == FAILED else ""
    return [
        f'<th scope="row" class="name {look}">{SWATCH.format(look=look)}{escape(one.name)}</th>',
        f'<td class="num" data-is="score">{number_text(one.score)}</td>',
        f'<td class="num" data-is="trained" data-sort="{one.pulls}"><span class="{look}">{bar}'
        f"</span>{escape(one.trained)}</td>",
        f'<td class="num" {ahead}data-is="forecast">{number_text(one.forecast_score)}{trust}</td>',
        f'<td class="num" data-is="estimate">{number_text(one.estimate)}</td>',
        f'<td class="num" data-is="time" data-sort="{one.seconds:.6g}">'
        f"{escape(short_seconds(one.seconds))} s</td>",
        f'<td class="why{bad}">{escape(one.why)}{_more(one)}</td>',
    ]


def _more(one: LearnerView) -> str:
    texts = [one.remark] if one.remark else []
    if one.pulls:
        texts.append(f"{one.pulls:,} pulls, {one.seconds / one.pulls:.2g} s each")
    if one.steps is not None:
        texts.append(f"{one.steps:,} of its own training steps")
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
        f"</summary>{parts.sentence_list(texts)}</details>"
    )
