"""A report in a browser: it fits a phone and a desk, light and dark; hover, zoom, sort."""

from dataclasses import replace
from itertools import count
from math import inf

import pytest

from latebloomer import race
from latebloomer.page.race_html import race_cell, race_html
from latebloomer.page.race_page import PageEvent, RacePage, ThinnedCurve, points_for
from latebloomer.session.arm_views import LearnerView
from latebloomer.session.decisions import Decision, ForecastView
from tests.helpers.learners import noisy_curve
from tests.helpers.page_checks import check_page

HOSTILE = {
    "late": noisy_curve(37, 1.0),
    "<script>hacked = 1</script>": noisy_curve(10, 0.88),
    "<img src=x onerror='hacked = 1'>": noisy_curve(12, 0.85),
    '"><svg onload=hacked=1>': noisy_curve(11, 0.8),
    "a_name_without_a_break_" * 6: noisy_curve(1, 0.78),
    "ends by itself": noisy_curve(4, 0.7, end=30),
    "fails": noisy_curve(4, 0.7, fail=20),
}
LOSSES = {"low": lambda: (0.1 + 10 / n for n in count(1)), "high": lambda: (3e6 for _ in count())}


def drawn(count):
    """A race of many learners: the first three are still in it, the others were dropped."""
    learners, curves = [], {}
    for arm in range(count):
        pulls, best = (60 if arm < 3 else max(4, 60 - arm)), 0.9 - 0.6 * arm / count
        scores = [best * n / (n + 8) for n in range(1, pulls + 1)]
        state = "leading" if arm == 0 else "racing" if arm < 3 else "dropped"
        made = ForecastView(scores[-1] + 0.05, 100, 0.8, scores[-1], 30, 60)
        settings = {"rate": 10 ** -(1 + arm % 4), "depth": 2 + arm % 7, "kind": "ab"[arm % 2]}
        learners.append(LearnerView(
            arm, f"learner {arm} rate={settings['rate']}", state, pulls, scores[-1], made,
            scores[-1] + 0.04, "foresight", departed_at=None if arm < 3 else 9 * (200 - arm),
            seconds=0.02 * pulls * (1 + arm % 3), settings=settings,
        ))  # fmt: skip
        curves[arm] = ThinnedCurve(points_for(count), scores)
    return RacePage(
        state="running", best=learners[0].name, final=False, why="It leads.", learners=learners,
        curves=curves, spent=60 * count, budget=100 * count, horizon=100, higher_is_better=True,
        started=0.0, seconds=1.0,
    )  # fmt: skip


KINDS = [
    "HistGradientBoostingClassifier",
    "random forest of 300 trees",
    "transformer_base_lr_3e-4_warmup_500",
    "MLPClassifier(hidden_layer_sizes=(128, 128), alpha=0.0012345)",
]


def long_named(count):
    """The same with long names, learners that finished or failed, bounds, and a verdict."""
    page, learners = drawn(count), []
    for one in page.learners:
        name = f"{KINDS[one.arm % len(KINDS)]}, variant {one.arm}"
        made = Decision(60, one.pulls, f"{KINDS[3]}, variant 0", 0.9)
        states = {1: "finished", 2: "failed"}
        learners.append(replace(
            one, name=name, decision=made, lower=one.score - 0.02, settings={},
            upper=inf if one.arm % 2 else one.score + 0.2,
            state=one.state if one.leads else states.get(one.arm % 9, one.state),
            departed_why="MemoryError: out of memory on the device" if one.arm % 9 == 2 else "",
        ))  # fmt: skip
    best = learners[0].name
    why = f"Selected with estimate 0.9, ahead of {learners[1].name} with 0.8."
    return replace(
        page, best=best, why=why, learners=learners, assessed_at=60, half_time=best, final=True,
        certificate=f"there is no proof at this budget: {learners[-1].name} could still win",
        hindsight=[f"ASHA would have kept {learners[2].name}"], levels=[(2, 70), (1, 90)],
        events=[PageEvent(9, f"{best}: dropped at race pull 9: estimate 0.1, versus 0.9")],
    )  # fmt: skip


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A function that returns the file of a report, by what is raced or how many learners."""
    folder = tmp_path_factory.mktemp("reports")

    def report(what):
        file = folder / f"{what!r}.html"
        if file.exists():
            return file
        if isinstance(what, int) or what.isdigit():
            made = drawn(what) if isinstance(what, int) else long_named(int(what))
            file.write_text(race_html(made), encoding="utf-8")
            return file
        learners, losses = (HOSTILE, False) if what == "hostile" else (LOSSES, True)
        return race(learners, 60 if losses else 900, journal=None, progress=False,
                    maximize=not losses, winner_share=0.2).report(file)  # fmt: skip

    return report


@pytest.fixture
def opened(new_page, reports):
    """A function that opens a report in a new tab."""

    def open_page(what=40, **settings):
        page = new_page(**settings)
        page.open(reports(what).as_uri())
        return page

    return open_page


@pytest.fixture
def page(opened):
    return opened()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("learners", [4, 12, 60, 200])
def test_a_notebook_shows_five_learners_in_its_cell(new_page, tmp_path, learners, dark, picture):
    """In a window of 900 pixels, where nothing is clicked: there is no script."""
    page, file = new_page(width=900, dark=dark), tmp_path / "cell.html"
    style = '<!doctype html><meta charset="utf-8"><style>body { margin: 24px }</style>'
    file.write_text(f"{style}{race_cell(long_named(learners))}", encoding="utf-8")
    page.open(file.as_uri())
    check_page(page)
    rows = "[...document.querySelectorAll('.learners tbody tr')]"
    shown = page.value(f"{rows}.filter((one) => one.checkVisibility()).length")
    assert shown == min(5, learners)
    assert page.value(f"{rows}.length") == learners
    assert page.value("document.documentElement.scrollHeight") < 1700
    assert "Click" not in page.value("document.body.innerText")
    assert page.value("document.querySelectorAll('[tabindex], [name=unit]').length") == 0
    page.screenshot(picture(f"{learners}-{'dark' if dark else 'light'}"))


BOXES = """[...document.querySelectorAll('#marks text')]
  .filter((one) => one.getBoundingClientRect().width)
  .map((one) => { const box = one.getBoundingClientRect();
                  return [one.textContent, box.left, box.top, box.right, box.bottom]; })"""


def overlaps(boxes):
    def meet(one, other):
        return (one[1] < other[3] - 1 and other[1] < one[3] - 1
                and one[2] < other[4] - 2 and other[2] < one[4] - 2)  # fmt: skip

    return [(a[0], b[0]) for k, a in enumerate(boxes) for b in boxes[:k] if meet(a, b)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1400])
@pytest.mark.parametrize("what", ["4", "12", "60", "200", "hostile", "losses"])
def test_it_fits_and_can_be_read_without_scripts(opened, reports, what, width, dark, picture):
    page = opened(what, width=width, dark=dark, scripts=False)
    assert overlaps(page.value(BOXES)) == []
    for is_open in ("true", "false"):
        details = "document.querySelectorAll('details')"
        page.value(f"{details}.forEach((one) => {{ one.open = {is_open} }})")
        check_page(page, words=what != "hostile")
    page.screenshot(picture(f"{what}-{width}-{'dark' if dark else 'light'}"))
    assert page.requests() == [reports(what).as_uri()]


@pytest.mark.parametrize("width, beside, below", [(1400, 10, 0), (390, 0, 10)])
def test_names_are_next_to_curves_or_on_a_phone_below_them(opened, width, beside, below):
    page = opened(width=width)
    names = [box[0] for box in page.value(BOXES) if "learner" in box[0] or "…" in box[0]]
    legend = "[...document.querySelectorAll('#legend .name')].filter((o) => o.offsetWidth).length"
    assert (len(names), page.value(legend)) == (beside, below)


def test_names_are_text_and_individual_scores_can_be_hidden(opened):
    page = opened("hostile")  # scripts on: nothing of a name may run
    assert page.value("typeof hacked") == "undefined"
    for name in HOSTILE:
        assert name in page.value("document.querySelector('#rows').textContent")
    check_page(page, words=False)
    shown = "getComputedStyle(document.querySelector('path.raw')).display"
    assert page.value(shown) == "inline"
    page.value("document.querySelector('label[for=raw]').click()")
    assert page.value(shown) == "none"


def mouse(page, kind, x, y, **more):
    """Move or press at a place of the plot, from 0 to 1."""
    box = "document.querySelector('.frame').getBoundingClientRect()"
    left, top, width, height = (
        page.value(f"{box}.{side}") for side in ("left", "top", "width", "height")
    )
    page.call(
        "Input.dispatchMouseEvent", type=kind, x=left + x * width, y=top + y * height, **more
    )


TICKS = "[...document.querySelectorAll('#axes .tick.middle')].map((one) => +one.textContent)"
TIP = "document.querySelector('.tooltip:not([hidden])')?.innerText ?? ''"


def test_pointing_at_a_curve_says_learner_pull_score_and_forecast(page):
    dot = "document.querySelector('#marks .mark[data-arm=\"0\"]')"  # where the best curve ends
    x, y = (float(page.value(f"{dot}.getAttribute('c{axis}')")[:-1]) / 100 for axis in "xy")
    mouse(page, "mouseMoved", x, y)
    said = page.value(TIP).splitlines()
    assert said[0] == "learner 0 rate=0.1" and said[1].startswith("pull 60: score 0.79")
    assert said[2].startswith("forecast 0.84") and said[2].endswith("(80 %)")
    assert page.value("document.querySelector('#c0').classList.contains('hot')")


def test_a_drag_zooms_and_a_double_click_resets(page):
    box = "document.querySelector('#curves').getAttribute('viewBox')"
    whole, before = page.value(TICKS), page.value(box)
    mouse(page, "mousePressed", 0.1, 0.5, button="left", clickCount=1)
    for x in (0.2, 0.3):
        mouse(page, "mouseMoved", x, 0.5, buttons=1)
    mouse(page, "mouseReleased", 0.3, 0.5, button="left", clickCount=1)
    zoomed = page.value(TICKS)
    assert min(zoomed) >= 10 and max(zoomed) <= 30 and max(whole) == 100
    assert overlaps(page.value(BOXES)) == []
    for clicks in (1, 2):
        mouse(page, "mousePressed", 0.5, 0.5, button="left", clickCount=clicks)
        mouse(page, "mouseReleased", 0.5, 0.5, button="left", clickCount=clicks)
    assert page.value(TICKS) == whole
    after, before = ([float(x) for x in text.split()] for text in (page.value(box), before))
    assert after == pytest.approx(before)


def test_a_click_highlights_a_learner_everywhere(page):
    page.value("document.querySelector('#r30').click()")
    places = "['#c30', '#r30', '.parallel [data-arm=\"30\"]', '[data-row=\"30\"]']"
    is_lit = "(one) => document.querySelector(one).classList.contains('lit')"
    assert page.value(f"{places}.every({is_lit})")
    assert "learner 3…" in page.value("document.querySelector('#marks text.added').textContent")
    assert overlaps(page.value(BOXES)) == []
    page.value("document.querySelector('#r30').click()")
    assert page.value("document.querySelectorAll('.lit').length") == 0


FOCUSABLE = """[...document.querySelectorAll("*")].filter(
  (one) => one.tabIndex >= 0 && one.getClientRects().length).length"""


def test_a_table_is_one_tab_stop_with_arrow_keys(opened):
    page = opened("200")
    assert page.value(FOCUSABLE) <= 16
    focused = "document.activeElement"
    page.value("document.querySelector('.learners [tabindex=\"0\"]').focus()")
    assert page.value(f"{focused}.textContent") == "learner"
    page.press("ArrowRight")
    assert page.value(f"{focused}.textContent") == "score"
    page.press("ArrowDown")
    page.press("ArrowDown")
    row = "document.querySelector('#rows > tr:nth-child(2)')"
    assert page.value(f"{focused} === {row}")
    page.press("ArrowRight")
    assert page.value(f"{row}.querySelector('details').open") is True
    page.press("ArrowLeft")
    assert page.value(f"{row}.querySelector('details').open") is False
    assert page.value(f"{row}.getAttribute('aria-selected')") == "false"
    page.press("Enter")
    assert page.value(f"{row}.getAttribute('aria-selected')") == "true"
    page.press("End")
    assert page.value(f"{focused} === document.querySelector('#rows > tr:last-child')")
    assert page.value(FOCUSABLE) <= 16


def test_the_plot_has_a_role_and_a_name(page):
    plot = "document.querySelector('.plot')"
    assert page.value(f"{plot}.getAttribute('role')") == "application"
    assert "arrow" in page.value(f"{plot}.ariaLabel") or "Left" in page.value(f"{plot}.ariaLabel")


@pytest.mark.parametrize("unit", ["pulls", "seconds"])
def test_the_axis_may_be_in_seconds_and_logarithmic(opened, unit):
    page = opened(40, width=1400)
    marks = "[...document.querySelectorAll('#marks .mark')]"
    ends = f"{marks}.map((one) => parseFloat(one.getAttribute('x')))"
    d, at = "document.querySelector('#c3 path').getAttribute('d')", "#across"
    before = page.value(d), page.value(ends)
    page.value(f"document.querySelector('[name=unit][value={unit}]').click()")
    page.value("document.querySelector('[name=log]').click()")
    title = page.value(f"document.querySelector('{at}').textContent")
    assert title.startswith(unit) and "logarithmic" in title
    assert page.value(d) != before[0] and page.value(ends) != before[1]
    ticks = page.value(TICKS)
    assert len(ticks) > 1 and all(tick > 0 for tick in ticks)
    assert unit != "pulls" or {1, 10, 100} <= set(ticks)
    check_page(page)
    assert overlaps(page.value(BOXES)) == []
    page.value("document.querySelector('[name=log]').click()")
    page.value("document.querySelector('[name=unit][value=pulls]').click()")
    assert (page.value(d), page.value(ends)) == before


def test_zoom_leaves_no_tooltip_and_names_only_what_is_seen(opened):
    page = opened(40)
    mouse(page, "mouseMoved", 0.3, 0.15)
    assert page.value(TIP)
    mouse(page, "mousePressed", 0.02, 0.5, button="left", clickCount=1)
    for x in (0.03, 0.06, 0.1):
        mouse(page, "mouseMoved", x, 0.5 + 4 * x, buttons=1)
    mouse(page, "mouseReleased", 0.1, 0.9, button="left", clickCount=1)
    assert page.value(TIP) == ""
    names = "[...document.querySelectorAll('#names text:not(.off)')].map((o) => o.textContent)"
    leaders = "[...document.querySelectorAll('#names .leader:not(.off)')]"
    heights = f"{leaders}.map((one) => one.getAttribute('y1'))"
    assert 0 < len(page.value(names)) == len(page.value(heights))
    assert not {"0.000%", "100.0%"} & set(page.value(heights))  # none is piled up at an edge


def test_everything_can_be_reached_by_keyboard(page):
    page.value("document.querySelector('.plot').focus()")
    page.press("ArrowDown")
    assert page.value(TIP).startswith("learner 1 ")
    page.press("ArrowLeft")
    assert "pull 59: " in page.value(TIP)
    page.press("Enter")
    assert page.value("document.querySelector('#c1').classList.contains('lit')")
    page.press("+")
    assert max(page.value(TICKS)) <= 75
    page.press("0")
    assert max(page.value(TICKS)) == 100
    page.value("document.querySelector('#r5').focus()")
    page.press("Enter")
    assert page.value("document.querySelector('#c5').classList.contains('lit')")


def test_tables_are_sorted_by_their_heads(page):
    column, rates = (
        f"[...document.querySelectorAll('{rows}')].map((one) => +one.children[1].textContent)"
        for rows in ("#rows tr", "[data-row]")
    )
    score = "document.querySelector('.learners thead th:nth-child(2)')"
    page.value(f"{score}.click()")
    assert page.value(column) == sorted(page.value(column), reverse=True)
    page.value(f"{score}.focus()")
    page.press("Enter")
    assert page.value(column) == sorted(page.value(column))
    assert page.value(f"{score}.getAttribute('aria-sort')") == "ascending"
    heads = "[...document.querySelectorAll('th')]"
    page.value(f"{heads}.find((one) => one.textContent === 'rate').click()")
    assert page.value(rates) == sorted(page.value(rates), reverse=True)
