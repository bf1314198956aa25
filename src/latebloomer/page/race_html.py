"""The page of a race: a live page while it runs, and a report as one self-contained file."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from math import inf
from time import localtime, strftime

from latebloomer._util.text import as_sentence, score_text, short_seconds, shortened, span_of_time
from latebloomer.citation import cite
from latebloomer.page import curve_chart
from latebloomer.page.interval_chart import draw_intervals
from latebloomer.page.race_page import ALL_FAILED, FINISHED, RUNNING, RacePage
from latebloomer.page.settings_chart import draw_parallel
from latebloomer.page.tables import (
    SWATCH,
    breakable,
    learner_cells,
    learner_table,
    sentences,
    settings_table,
)
from latebloomer.session.arm_views import LearnerView, varying_settings
from latebloomer.session.events import FAILED

COLORED = 12  # maximum learners with a color; of more, the best ones
TOP = 10
WITH_RAW = 24  # maximum learners for which individual scores can be shown, too
INTERVALS = 20  # maximum learners with an interval; of more, the best half of this number
OUTPUTS = 12  # maximum learners whose last lines are shown
MOST_EVENTS = 50  # maximum events on the page; the table also says why learners left
NO_ICON = '<link rel="icon" href="data:,">'  # otherwise a browser requests an icon from the server
SPOKEN = ' aria-live="polite"'  # screen readers read it aloud when it changes
BESIDE = '<span class="beside"> Names stand at the height at which curves or forecasts end.</span>'
RAW = '<input type="checkbox" id="raw" checked><label for="raw">show individual scores</label>'
SCALES = (  # scales of the axis of pulls, which `page.js` draws
    '<p class="small scales" data-scripted hidden>horizontal axis: '
    '<label><input type="radio" name="unit" value="pulls" checked> pulls</label> '
    '<label><input type="radio" name="unit" value="seconds"> seconds of training</label> '
    '<label><input type="checkbox" name="log" value="log"> logarithmic</label></p>'
)
RANKED = "The policy ranks learners by their estimate."
CLICK = "<span data-scripted hidden> Click a learner to highlight it.</span>"
FIRST = 5  # number of learners that a notebook shows; the others are folded
ABOVE = 4  # number of pieces above the curves; a notebook omits the last one, the progress


def race_html(page: RacePage) -> str:
    """Return the report as a complete HTML file."""
    drawn, script = RaceDrawing(page).body(), page_file("page.js")
    body = f"<main>\n{drawn}\n</main><script>{script}</script>"
    name = f"{page.best} · latebloomer race"
    return html_document(name, page_file("race_page.css"), body, NO_ICON)


def race_cell(page: RacePage) -> str:
    """Return the HTML for a notebook: verdict, curves, learners and settings, with a style."""
    style = page_file("race_page.css").replace(":root", "&")
    style = style.replace("body {", "& { padding: 12px 24px;")
    drawn = f'<div class="latebloomer">{RaceDrawing(page).brief()}</div>'
    return f"<style>.latebloomer {{ container-type: inline-size; {style} }}</style>{drawn}"


class RaceDrawing:
    """The page of a race as named pieces of HTML, so that only changed pieces are sent.

    A drawing with a previous drawing keeps its axes and colors as long as they fit.
    """

    def __init__(
        self, page: RacePage, before: "RaceDrawing | None" = None, most_rows: int | None = None
    ) -> None:
        self.page = page
        known = None if before is None else before.view
        self.view: curve_chart.View = curve_chart.view_of(page, known)
        self.slots: dict[int, int] = _slots(page.learners, {} if before is None else before.slots)
        # CSS classes of each learner: its color, and whether it is the best.
        colors = {arm: f"c{slot}" for arm, slot in self.slots.items()}
        self.looks = {
            learner.arm: colors.get(learner.arm, "gray") + " won" * learner.leads
            for learner in page.learners
        }
        self.raw = len(page.learners) <= WITH_RAW
        self.shown = page.learners[:most_rows]  # the learners with a row in the table

    def body(self) -> str:
        """Return the whole page."""
        places = [
            f'<div id="{name}"{SPOKEN if name == "title" else ""}>{text}</div>'
            for name, text in self.pieces().items()
        ]
        above, below = "".join(places[:ABOVE]), "".join(places[ABOVE:])
        return f"{above}{self.curves()}{self._learners()}{below}"

    def brief(self) -> str:
        """Return top, curves and best learners, with no `id` that could be twice on a page."""
        pieces = self.pieces()
        above = "".join([*pieces.values()][: ABOVE - 1])
        settings = _settings(self.page, folded=True)
        return f"{above}{self.curves(scripted=False)}{self._best_learners()}{settings}"

    def pieces(self) -> dict[str, str]:
        """Return the pieces by name, from the top, except for curves and rows."""
        page = self.page
        facts = "".join(f'<div class="fact">{fact}</div>' for fact in _facts(page))
        cards = f'<div class="facts">{facts}</div>' if facts else ""
        return {
            "when": f'<p class="eyebrow">{escape(_when(page))}</p>',
            "title": f"<h1>{breakable(_title(page), whole=14)}</h1>",
            "why": f'<p class="lead">{breakable(page.why)}</p>{cards}',
            "progress": _progress(page),
            "settings": _settings(page),
            "events": _events(page),
            "output": _output(page),
            "certainty": _certainty(page, self.looks),
            "others": _others(page),
            "warnings": _folded("Warnings", page.warnings, sentences(page.warnings)),
            "about": _about(page),
        }

    # --- the curves ---

    def curves(self, scripted: bool = True) -> str:
        """Return the section with the learning curves."""
        raw = scripted and self.raw
        picture = curve_chart.draw_curves(self.page, self.view, self.looks, raw)
        return (
            f"<section><h2>Learning curves</h2>{RAW if raw else ''}{SCALES if scripted else ''}"
            f"{picture}"
            f'<p class="legend small" id="legend">{self.legend()}</p>'
            f'<p class="soft small" id="note">{self.note()}</p></section>'
        )

    def marks(self) -> dict[str, str]:
        """Return the pieces around the curves, by name."""
        seen = self.page, self.view, self.looks
        return {
            "axes": curve_chart.draw_axes(self.view),
            "fans": curve_chart.draw_fans(*seen),
            "crosses": curve_chart.draw_crosses(*seen),
            "ends": curve_chart.draw_ends(*seen),
            "legend": self.legend(),
            "note": self.note(),
        }

    def legend(self) -> str:
        """Return the names of colored learners, for phones, which have no room next to curves."""
        return " ".join(
            f'<span class="name {self.looks[learner.arm]}">'
            f"{SWATCH.format(look=self.looks[learner.arm])}"
            f"{breakable(shortened(learner.name, 28))}</span>"
            for learner in self.page.learners
            if learner.arm in self.slots
        )

    def note(self) -> str:
        """Return a note on how to read the picture."""
        page, better = self.page, "higher" if self.page.higher_is_better else "lower"
        ahead = [f"the best {k} learner{'s' * (k > 1)} to {n:,}" for k, n in page.levels[:3]]
        rest, gray = len(page.levels) - len(ahead), len(page.learners) - len(self.slots)
        more = f" and {rest} more phase{'s' * (rest > 1)}" if rest else ""
        low, high = self.view.low, self.view.high
        fans = curve_chart.draw_fans(page, self.view, self.looks)
        scores = [point.score for curve in page.curves.values() for point in curve.smoothed()]
        texts = {
            f"Score ({better} is better) by pulls of each learner, smoothed. A cross "
            "marks a drop or failure; a dot marks the latest pull.": 1,
            "A ring marks the selection; then only the winner was trained.": page.trained_further,
            f"Next: train {', '.join(ahead)} pulls{more}.": ahead and page.state != FINISHED,
            "Shaded: the improvement that is forecast.": "area" in fans,
            "Dashed: the part of the forecast that counts; it starts at the mean score that the "
            "ranking uses.": fans,
            "The first scores of some curves are outside the chart.": (
                scores and not low <= min(scores) <= max(scores) <= high
            ),
            f"The {gray:,} learners that are ranked lower are gray.": gray,
            self.trust(): 1,
        }
        return escape(" ".join(text for text, is_so in texts.items() if text and is_so)) + BESIDE

    def trust(self) -> str:
        """Return how far forecasts are trusted by the latest test; empty without a forecast."""
        tests = [
            (forecast.tested, forecast.trust)
            for learner in self.page.learners
            if (forecast := learner.forecast)
        ]
        if not tests:
            return ""
        tested, trust = max(tests, key=lambda test: test[0])
        share = f"{100 * trust:.0f} %"
        counts = f"{share} of a forecast gain counts" if trust else "no forecast counts"
        others = any(abs(other - trust) >= 0.005 for _, other in tests)
        kept = "; learners that left earlier keep the trust of that time" if others else ""
        return (
            f"Earlier forecasts were {share} right about the change up to pull {tested:,}, so "
            f"{counts}{kept}."
        )

    # --- the table ---

    def _learners(self) -> str:
        hidden = len(self.page.learners) - len(self.shown)
        more = f"<p class='soft small'>The report has {hidden:,} more.</p>" if hidden else ""
        table = learner_table(self.rows(), self._rule, ' id="rows"')
        return _section("How the budget was spent", RANKED + CLICK, table + more)

    def _best_learners(self) -> str:
        """Return the table with the first rows, and the other rows in a folded part."""
        rows = [*self.rows().items()]
        best, others = dict(rows[:FIRST]), dict(rows[FIRST:])
        tables = learner_table(best, self._rule)
        if others:
            head = f"<summary>{len(others):,} more</summary>"
            tables += f"<details>{head}{learner_table(others, self._rule)}</details>"
        return _section("How the budget was spent", RANKED, tables)

    @property
    def _rule(self) -> str:
        return self.page.learners[0].rule if self.page.learners else ""

    def rows(self) -> dict[int, list[str]]:
        """Return the cells of the table's rows by the number of the learner, in order of rank."""
        most = max([1, *(learner.pulls for learner in self.page.learners)])
        return {
            learner.arm: learner_cells(learner, self.looks[learner.arm], most)
            for learner in self.shown
        }


def _slots(learners: Sequence[LearnerView], before: dict[int, int]) -> dict[int, int]:
    """Return the colors of learners with a color; a learner keeps its color."""
    if len(learners) <= COLORED:
        return {learner.arm: learner.arm for learner in learners}
    top = [learner.arm for learner in learners[:TOP]]
    slots = {arm: before[arm] for arm in top if arm in before}
    free = [slot for slot in range(TOP) if slot not in slots.values()]
    return slots | dict(zip((arm for arm in top if arm not in slots), free, strict=False))


# --- parts of pages ---


def html_document(title: str, style: str, body: str, head: str = "") -> str:
    """Return a complete HTML file; `head` is HTML before the title."""
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
    """Return a section; the note is HTML."""
    head = f'<h2>{escape(title)}</h2><p class="soft small">{note}</p>'
    return f"<section>{head}{content}</section>"


def _folded(title: str, items: Sequence[object], content: str, shown: str = "") -> str:
    """Return a folded section with the number of its items; empty without items."""
    count = f'<span class="count">{len(items):,}</span>'
    head = f'<details{shown} data-key="{title}"><summary><h2>{title} {count}</h2></summary>'
    return f"<section>{head}{content}</details></section>" if items else ""


# --- the top ---


def _title(page: RacePage) -> str:
    if page.best is not None:
        return f"{'Keep' if page.final else 'Leading:'} {page.best}"
    return "Every learner failed" if page.state == ALL_FAILED else "Waiting for the first score"


def _when(page: RacePage) -> str:
    parts = ["latebloomer race", f"{len(page.learners):,} learners"]
    if page.started is not None:
        parts.append(strftime("%Y-%m-%d %H:%M", localtime(page.started)))
    lasted = span_of_time(page.seconds) if page.seconds >= 1 else "less than 1 s"
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
    yield f"<b>{score_text(best.score)}</b><span>{word} ({escape(best.trained)})</span>"
    if (forecast := curve_chart.fan_of(best)) is not None:
        where = "the end" if forecast.at >= page.horizon else f"{forecast.at:,.0f} pulls"
        trust = f"{100 * forecast.trust:.0f} % trust"
        yield f"<b>{score_text(forecast.score)}</b><span>forecast at {where} ({trust})</span>"
    if page.selected is not None:
        estimate, pulls = page.selected
        yield f"<b>{score_text(estimate)}</b><span>estimate at selection ({pulls:,} pulls)</span>"
    cost = sum(learner.seconds for learner in page.learners)
    yield f"<b>{escape(short_seconds(cost))} s</b><span>total training time</span>"
    if page.assessed_at and page.final:
        late = page.half_time not in (None, page.best)
        half_time = breakable(shortened(page.half_time or "–", 24), whole=9)
        bloom = f"led at half-time{': a late bloomer won' if late else ' too'}"
        yield f"<b>{half_time}</b><span>{bloom}</span>"
        if page.certified:
            yield f'<b class="yes">certified</b><span>best at {page.horizon:,} pulls</span>'


# --- below the curves and the table ---


def _settings(page: RacePage, folded: bool = False) -> str:
    """Return the settings that differ, as a picture and a sortable table."""
    names = varying_settings(page.learners)
    if not names:
        return ""
    title, table, picture = "Settings that differ", settings_table(page.learners, names), ""
    note = "<span data-scripted hidden>Click a heading to sort.</span>"
    if names != ["class"]:  # for classes alone, the table is enough
        note = "One line per learner: the stronger its color, the better its score."
        picture = f'<div class="wide">{draw_parallel(page, names)}</div>'
    if folded:
        head = f"<summary><h2>{title}</h2></summary>"
        note = f'<p class="soft small">{note}</p>'
        return f"<section><details>{head}{note}{picture}{table}</details></section>"
    return _section(title, note, picture + table)


def _events(page: RacePage) -> str:
    """Return drops and failures, the latest first; the section is open while the race runs."""
    lines = "".join(
        f'<li{" class=bad" if event.bad else ""}><span class="soft">pull {event.pull:,}</span> '
        f"{breakable(event.text)}</li>"
        for event in page.events[:MOST_EVENTS]
    )
    items = f'<ol class="feed" reversed role="log" aria-label="events">{lines}</ol>'
    return _folded("Events", page.events, items, " open" if page.state == RUNNING else "")


def _output(page: RacePage) -> str:
    """Return the last lines that learners printed; the section is open while the race runs."""
    shown = [learner for learner in page.learners if learner.name in page.output][:OUTPUTS]
    texts = "".join(
        f"<h3>{breakable(learner.name)}</h3><pre>{escape(page.output[learner.name])}</pre>"
        for learner in shown
    )
    return _folded("Output", shown, texts, " open" if page.state == RUNNING else "")


def _certainty(page: RacePage, looks: Mapping[int, str]) -> str:
    """Return the certificate, its intervals, and the curves that contradict its assumptions."""
    if not page.assessed_at:
        return ""
    shape = "rise and are concave" if page.higher_is_better else "fall and are convex"
    so_far = f"<p class='soft small'>After {page.assessed_at:,} pulls.</p>"
    findings = "<p>No curve contradicts these assumptions.</p>" if not page.contradictions else ""
    findings += "".join(map(sentences, filter(None, (page.contradictions, page.plateaus))))
    return (
        f"<section><h2>How certain is the result?</h2>{'' if page.final else so_far}"
        f"<p>{breakable(as_sentence(page.certificate))}</p>{_intervals(page, looks, shape)}"
        f"{_on_new_rows(page)}"
        "<h3>Do the curves rise and flatten, as the guarantees assume?</h3>"
        '<p class="soft small">Tested with a false-alarm rate of at most '
        f"{100 * page.false_alarm:g} % per race.</p>{findings}</section>"
    )


def _intervals(page: RacePage, looks: Mapping[int, str], shape: str) -> str:
    """Return a bar for each learner with a known bound; of many learners, for the best ones."""
    many = len(page.learners) > INTERVALS
    shown = page.learners[: INTERVALS // 2] if many else page.learners
    known = [
        learner
        for learner in shown
        if learner.state != FAILED and (learner.lower, learner.upper) != (-inf, inf)
    ]
    # All of these learners have finished.
    if all(learner.lower == learner.upper for learner in known):
        return ""
    note = (
        f"Each bar shows where the learner's curve can be at {page.horizon:,} pulls. All bars "
        f"hold together with 95 % probability if curves {shape}. A dot is the last score. "
        "An arrow means that the bar continues beyond the chart. A dot without a bar means that "
        "the learner has finished, or that its scores contradict the assumption."
    )
    left_out = [learner for learner in shown if learner not in known and learner.state != FAILED]
    if left_out:
        note += f" Nothing bounds {len(left_out):,} of the learners: they have no bar."
    bars = draw_intervals(known, looks, f"no curves that {shape} fit its scores")
    return f'<p class="soft small">{escape(note)}</p>{bars}'


def _on_new_rows(page: RacePage) -> str:
    """Return which learners are better on new rows."""
    return f"<h3>And on new rows?</h3>{sentences(page.new_rows)}" if page.new_rows else ""


def _others(page: RacePage) -> str:
    """Return which learners other methods would have kept."""
    if not page.assessed_at:
        return ""
    return _section(
        "What would other methods have kept?",
        "Each is replayed on the recorded curves, with the largest budget they cover.",
        sentences(page.hindsight),
    )


def _about(page: RacePage) -> str:
    """Return settings, versions, how to resume, and what to cite."""
    record = "".join(f"<p>{escape(as_sentence(text))}</p>" for text in page.record)
    for label, text in page.about.items():
        record += f"<p>{escape(label)}: <code>{escape(text)}</code></p>"
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
