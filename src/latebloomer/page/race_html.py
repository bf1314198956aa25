"""A race on one page: live while it runs and, frozen, as a report in one self-contained file."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from math import inf
from time import localtime, strftime

from latebloomer._util.text import as_sentence, short_seconds, shortened, span_of_time
from latebloomer.citation import cite
from latebloomer.page import svg
from latebloomer.page.race_page import ALL_FAILED, FINISHED, RUNNING, RacePage
from latebloomer.page.svg import number_text
from latebloomer.session.events import FAILED
from latebloomer.session.learner_view import LearnerView

COLORED = 12  # learners up to which each has a color; of more, the top ones have
TOP = 10
WITH_RAW = 24  # learners up to which individual scores can be shown too
INTERVALS = 20  # learners up to which each has an interval; of more, the top half of that
MOST_EVENTS = 50  # on the page; why learners left is in the table as well
NO_ICON = '<link rel="icon" href="data:,">'  # or a browser requests one from the server
SPOKEN = ' aria-live="polite"'  # read aloud when it changes
SWATCH = '<svg class="swatch {look}" aria-hidden="true"><line x2="100%" y1="50%" y2="50%"/></svg>'
LEADERS = '<span class="leaders"> A thin line leads to the name of a learner.</span>'
RAW = '<input type="checkbox" id="raw" checked><label for="raw">show individual scores</label>'
LONG = re.compile(r"\b(score|forecast|estimate|versus) (-?\d+\.\d+(?:e[+-]\d+)?)\b", re.I)
ABOVE = 4  # pieces above the curves; the last of them, the progress, is not in a notebook


def race_html(page: RacePage) -> str:
    """Return the report: the whole file."""
    drawn, script = RaceDrawing(page).body(), page_file("page.js")
    body = f"<main>\n{drawn}\n</main><script>{script}</script>"
    name = f"{page.best} · latebloomer race"
    return html_document(name, page_file("race_page.css"), body, NO_ICON)


def race_cell(page: RacePage) -> str:
    """Return what a notebook shows: the verdict, curves, learners and settings, with a style."""
    style = page_file("race_page.css").replace(":root", "&")
    style = style.replace("body {", "& { padding: 12px 24px;")
    drawn = f'<div class="latebloomer">{RaceDrawing(page).brief()}</div>'
    return f"<style>.latebloomer {{ {style} }}</style>{drawn}"


class RaceDrawing:
    """A race as named pieces of HTML, so that an open page can be sent only what changed.

    A drawing that follows another keeps its axes and colors as long as they fit.
    """

    def __init__(
        self, page: RacePage, before: "RaceDrawing | None" = None, most_rows: int | None = None
    ) -> None:
        self.page = page
        self.view: svg.View = svg.view_of(page, None if before is None else before.view)
        self.slots: dict[int, int] = _slots(page.learners, {} if before is None else before.slots)
        # The classes of each learner: its color, and whether it is the best.
        colors = {arm: f"c{slot}" for arm, slot in self.slots.items()}
        self.looks = {
            one.arm: colors.get(one.arm, "gray") + " won" * one.leads for one in page.learners
        }
        self.raw = len(page.learners) <= WITH_RAW
        self.shown = page.learners[:most_rows]  # the learners that have a row

    def body(self) -> str:
        """Return the whole page."""
        places = [
            f'<div id="{name}"{SPOKEN if name == "title" else ""}>{text}</div>'
            for name, text in self.pieces().items()
        ]
        above, below = "".join(places[:ABOVE]), "".join(places[ABOVE:])
        return f"{above}{self.curves()}{self._table()}{below}"

    def brief(self) -> str:
        """Return the top, curves, table and settings: what can be on a page several times."""
        pieces = self.pieces()
        above = "".join([*pieces.values()][: ABOVE - 1])
        return f"{above}{self.curves(switch=False)}{self._table()}{pieces['settings']}"

    def pieces(self) -> dict[str, str]:
        """Return what stands in each named place, from the top, except for curves and rows."""
        page = self.page
        facts = "".join(f'<div class="fact">{fact}</div>' for fact in _facts(page))
        cards = f'<div class="facts">{facts}</div>' if facts else ""
        return {
            "when": f'<p class="eyebrow">{escape(_when(page))}</p>',
            "title": f"<h1>{escape(_title(page))}</h1>",
            "why": f'<p class="lead">{_rounded(page.why)}</p>{cards}',
            "progress": _progress(page),
            "settings": _settings(page),
            "events": _events(page),
            "certainty": _certainty(page, self.looks),
            "others": _others(page),
            "warnings": _folded("Warnings", page.warnings, _sentences(page.warnings)),
            "about": _about(page),
        }

    # --- the curves ---

    def curves(self, switch: bool = True) -> str:
        """Return the section with the learning curves."""
        raw = switch and self.raw
        picture = svg.draw_curves(self.page, self.view, self.looks, raw)
        return (
            f"<section><h2>Learning curves</h2>{RAW if raw else ''}{picture}"
            f'<p class="legend small" id="legend">{self.legend()}</p>'
            f'<p class="soft small" id="note">{self.note()}</p></section>'
        )

    def marks(self) -> dict[str, str]:
        """Return what stands around the curves, in named places."""
        seen = self.page, self.view, self.looks
        return {
            "axes": svg.draw_axes(self.view),
            "fans": svg.draw_fans(*seen),
            "crosses": svg.draw_crosses(*seen),
            "ends": svg.draw_ends(*seen),
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
        page, better = self.page, "higher" if self.page.higher_is_better else "lower"
        ahead = [f"the best {k} learner{'s' * (k > 1)} to {n:,}" for k, n in page.levels[:3]]
        rest, gray = len(page.levels) - len(ahead), len(page.learners) - len(self.slots)
        more = f" and {rest} more phase{'s' * (rest > 1)}" if rest else ""
        low, high, fans = self.view.low, self.view.high, svg.draw_fans(page, self.view, self.looks)
        scores = [point.score for curve in page.curves.values() for point in curve.smoothed()]
        tests = [(made.tested, made.trust) for one in page.learners if (made := one.forecast)]
        tested, trust = max(tests, default=(0, 0.0), key=lambda test: test[0])
        texts = {
            f"Score ({better} is better) by pulls of each learner, averaged over its latest "
            "sixteenth of pulls. A cross marks a drop or failure; a dot marks the latest pull.": 1,
            "A ring marks the selection; then only the winner was trained.": page.trained_further,
            f"Next: train {', '.join(ahead)} pulls{more}.": ahead and page.state != FINISHED,
            "Shaded: the improvement that is forecast.": "area" in fans,
            "Dashed: the discounted forecast used for ranking; it starts at the mean score that "
            "the ranking uses.": fans,
            "The first scores of some curves are outside the chart.": (
                scores and not low <= min(scores) <= max(scores) <= high
            ),
            f"The {gray:,} learners that are ranked lower are gray.": gray,
            f"Forecasts explained {100 * trust:.0f} % of the change up to pull {tested:,}.": tests,
        }
        return escape(" ".join(text for text, is_so in texts.items() if is_so)) + LEADERS

    # --- the table ---

    def _table(self) -> str:
        rule = self.page.learners[0].rule if self.page.learners else ""
        numbers = ("score", "trained", "forecast (trust)", f"estimate ({rule})", "time")
        head = [("learner", ""), *((text, "num") for text in numbers), ("when and why", "")]
        own = self.rows().items()
        rows = "".join(f'<tr id="r{arm}" tabindex="0">{"".join(row)}</tr>' for arm, row in own)
        hidden = len(self.page.learners) - len(self.shown)
        more = f"<p class='soft small'>The report has {hidden:,} more.</p>" if hidden else ""
        return _section(
            "How the budget was spent",
            "The policy ranks learners by their estimate. Click a learner to highlight it.",
            sortable("learners ", head, rows, ' id="rows"') + more,
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


# --- the pieces that pages are made of ---


def html_document(title: str, style: str, body: str, head: str = "") -> str:
    """Return a whole HTML file; `head` is what stands before the title."""
    styled = f"<style>{style}</style>" if style else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{head}<title>{escape(title)}</title>{styled}</head>"
        f"<body>{body}</body></html>\n"
    )


def page_file(name: str) -> str:
    """Return the text of a style or script of this package."""
    return files("latebloomer.page").joinpath(name).read_text(encoding="utf-8")


def _section(title: str, note: str, content: str) -> str:
    head = f'<h2>{escape(title)}</h2><p class="soft small">{escape(note)}</p>'
    return f"<section>{head}{content}</section>"


def sortable(css: str, head: Iterable[tuple[str, str]], rows: str, body: str = "") -> str:
    """Return a table that `page.js` sorts by its heads, which have classes; rows are HTML."""
    cells = "".join(f'<th scope="col" class="{kind}">{escape(text)}</th>' for text, kind in head)
    top = f'<table class="{css}sortable"><thead><tr>{cells}</tr></thead>'
    return f"{top}<tbody{body}>{rows}</tbody></table>"


def _folded(title: str, items: Sequence[object], content: str, shown: str = "") -> str:
    """Return a section that a reader opens, with the number of its items; empty without any."""
    count = f'<span class="count">{len(items):,}</span>'
    head = f'<details{shown} data-key="{title}"><summary><h2>{title} {count}</h2></summary>'
    return f"<section>{head}{content}</details></section>" if items else ""


def _rounded(text: str) -> str:
    """Return a text as HTML, with the digits that the page has everywhere."""
    return escape(LONG.sub(lambda found: f"{found[1]} {number_text(float(found[2]))}", text))


def _sentences(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(as_sentence(one))}</li>" for one in sentences) + "</ul>"


# --- the top ---


def _title(page: RacePage) -> str:
    if page.best is not None:
        return f"{'Keep' if page.final else 'Leading:'} {page.best}"
    return "Every learner failed" if page.state == ALL_FAILED else "Waiting for the first score"


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
    text, again = f"{page.spent:,} of {page.budget:,} pulls", ""
    if page.state == RUNNING:
        text = ", ".join(filter(None, (text, page.time_left)))
        text += f"; {page.waiting}" if page.waiting else ""
    elif page.state != ALL_FAILED and page.resume_code:
        again = f'<p class="small">Resume it with:</p><pre>{escape(page.resume_code)}</pre>'
    return (
        f'<p class="soft small progress"><progress max="{page.budget}" value="{page.spent}" '
        f'aria-label="budget spent"></progress> {escape(text)}</p>{again}'
    )


def _facts(page: RacePage) -> Iterable[str]:
    if page.best is None:
        return
    best = page.learners[0]
    word = "final score" if page.state == FINISHED else "score"
    yield f"<b>{number_text(best.score)}</b><span>{word} ({escape(best.trained)})</span>"
    if (made := svg.fan_of(best)) is not None:
        where = "the end" if made.at >= page.horizon else f"{made.at:,.0f} pulls"
        trust = f"{100 * made.trust:.0f} % trust"
        yield f"<b>{number_text(made.score)}</b><span>forecast at {where} ({trust})</span>"
    if page.selected is not None:
        estimate, pulls = page.selected
        yield f"<b>{number_text(estimate)}</b><span>estimate at selection ({pulls:,} pulls)</span>"
    cost = sum(one.seconds for one in page.learners)
    yield f"<b>{escape(short_seconds(cost))} s</b><span>total training time</span>"
    if page.assessed_at and page.final:
        late = page.half_time not in (None, page.best)
        bloom = f"led at half-time{': a late bloomer won' if late else ' too'}"
        yield f"<b>{escape(shortened(page.half_time or '–', 24))}</b><span>{bloom}</span>"
        if page.certified:
            yield f'<b class="yes">certified</b><span>best at {page.horizon:,} pulls</span>'


# --- one learner ---


def _row(one: LearnerView, look: str, most: int) -> list[str]:
    share = 5 * round(20 * one.pulls / (one.full_pulls or most))  # as the text says
    bar = f'<progress class="bar" max="100" value="{share}" aria-hidden="true"></progress>'
    made, trust, ahead = one.forecast, "", ""
    if made is not None and made.trust:
        trust = f' <span class="soft">({100 * made.trust:.0f} %)</span>'
        ahead = "data-forecast "
    return [
        f'<th scope="row" class="name {look}">{SWATCH.format(look=look)}{escape(one.name)}</th>',
        f'<td class="num" data-is="score">{number_text(one.score)}</td>',
        f'<td class="num" data-is="trained" data-sort="{one.pulls}">{escape(one.trained)}'
        f'<span class="{look}">{bar}</span></td>',
        f'<td class="num" {ahead}data-is="forecast">{number_text(one.forecast_score)}{trust}</td>',
        f'<td class="num" data-is="estimate">{number_text(one.estimate)}</td>',
        f'<td class="num" data-is="time" data-sort="{one.seconds:.6g}">'
        f"{escape(short_seconds(one.seconds))} s</td>",
        f'<td class="why{" bad" * (one.state == FAILED)}">{_rounded(one.why)}{_more(one)}</td>',
    ]


def _more(one: LearnerView) -> str:
    texts = [one.remark] if one.remark else []
    if one.pulls:
        texts.append(f"{one.pulls:,} pulls, {one.seconds / one.pulls:.2g} s each")
    if one.steps is not None:
        texts.append(f"{one.steps:,} of its own training steps")
    if -inf < one.lower <= one.upper < inf:
        ends = " and ".join(map(number_text, (one.lower, one.upper)))
        texts.append(f"at the horizon between {ends}")
    texts += one.failures
    if not texts:
        return ""
    return (
        f'<details data-key="why {one.arm}"><summary aria-label="more on {escape(one.name)}">more'
        f"</summary>{_sentences(texts)}</details>"
    )


# --- below the curves and the table ---


def _settings(page: RacePage) -> str:
    """Return the settings that differ: a picture and a sortable table."""
    names = svg.varying(page.learners)
    if not names:
        return ""
    table, note, picture = settings_table(page.learners, names), "Click a heading to sort.", ""
    if names != ["class"]:  # of which the table alone says enough
        note = "One line per learner: the stronger its color, the better its score."
        picture = f'<div class="wide">{svg.draw_parallel(page, names)}</div>'
    return _section("Settings that differ", note, picture + table)


def settings_table(
    learners: Sequence[LearnerView], names: Sequence[str], first: str = "learner"
) -> str:
    """Return a sortable table of some settings and the score of learners."""
    rows = "".join(
        f'<tr data-row="{one.arm}"><th scope="row" class="name">{escape(one.name)}</th>'
        + "".join(f"<td>{escape(_setting(one, name))}</td>" for name in names)
        + f'<td class="num">{number_text(one.score)}</td></tr>'
        for one in learners
    )
    head = [*((text, "") for text in (first, *names)), ("score", "num")]
    return f'<div class="wide">{sortable("", head, rows)}</div>'


def _setting(one: LearnerView, name: str) -> str:
    value = one.settings.get(name, "")
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _events(page: RacePage) -> str:
    """Return drops and failures, the latest first; open while a race runs."""
    lines = "".join(
        f'<li{" class=bad" if one.bad else ""}><span class="soft">pull {one.pull:,}</span> '
        f"{_rounded(one.text)}</li>"
        for one in page.events[:MOST_EVENTS]
    )
    items = f'<ol class="feed" reversed role="log" aria-label="events">{lines}</ol>'
    return _folded("Events", page.events, items, " open" if page.state == RUNNING else "")


def _certainty(page: RacePage, looks: Mapping[int, str]) -> str:
    """Return the certificate, its intervals, and whether the curves meet its assumptions."""
    if not page.assessed_at:
        return ""
    shape = "rise and are concave" if page.higher_is_better else "fall and are convex"
    note = (
        f"Each bar shows where the learner's curve can be at {page.horizon:,} pulls. All bars "
        f"hold together with 95 % probability if curves {shape}. A dot is the last score. "
        "An arrow means that the bar continues beyond the chart. A dot without a bar means that "
        "the scores contradict the assumption."
    )
    many = len(page.learners) > INTERVALS
    shown = page.learners[: INTERVALS // 2] if many else page.learners
    intervals = svg.draw_intervals(shown, looks, f"no curves that {shape} fit its scores")
    so_far = f"<p class='soft small'>After {page.assessed_at:,} pulls.</p>"
    found = "<p>No curve contradicts them.</p>" if not page.contradictions else ""
    found += "".join(map(_sentences, filter(None, (page.contradictions, page.plateaus))))
    return (
        f"<section><h2>How certain is the result?</h2>{'' if page.final else so_far}"
        f'<p>{escape(as_sentence(page.certificate))}</p><p class="soft small">{escape(note)}</p>'
        f"{intervals}<h3>Do the curves rise and flatten, as the guarantees assume?</h3>"
        '<p class="soft small">Tested with a false-alarm rate of at most '
        f"{100 * page.false_alarm:g} % per race.</p>{found}</section>"
    )


def _others(page: RacePage) -> str:
    """Return what other methods would have kept."""
    if not page.assessed_at:
        return ""
    return _section(
        "What would other methods have kept?",
        "Each is replayed on the recorded curves, with the largest budget they cover.",
        _sentences(page.hindsight),
    )


def _about(page: RacePage) -> str:
    """Return settings, versions, how to resume, and what to cite."""
    record = "".join(f"<p>{escape(as_sentence(text))}</p>" for text in page.record)
    columns = ""
    for each in (page.settings, page.versions):
        rows = (f"<td>{escape(k)}</td><td><code>{escape(v)}</code></td>" for k, v in each.items())
        columns += f"<table><tr>{'</tr><tr>'.join(rows)}</tr></table>"
    resume = "This race kept no journal and cannot be resumed. Pass journal=... to keep one.</p>"
    if page.resume_code is not None:
        again = "Get the trained winner again, or resume after an interruption:"
        resume = f"{again}</p><pre>{escape(page.resume_code)}</pre>"
    return (
        '<section><details data-key="about"><summary><h2>Settings and versions</h2></summary>'
        f'{record}<div class="two">{columns}</div><p>{resume}'
        f"<pre>{escape(cite('Mussi24').strip())}</pre></details></section>"
    )
