"""The report: self-contained, complete, and fit for a browser."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from latebloomer import race, read_verdict
from latebloomer.page.race_html import RaceDrawing, race_html
from latebloomer.page.race_page import PageEvent, Point, RacePage, ThinnedCurve, points_for
from latebloomer.page.svg import ticks
from latebloomer.racing.verdict.page_data import page_data
from latebloomer.session.arm_views import LearnerView, varying_settings
from latebloomer.session.decisions import ForecastView
from tests.helpers.learners import noisy_curve

LEARNERS = {
    "late": noisy_curve(37, 1.0),
    "<script>alert(1)</script>": noisy_curve(10, 0.88),
    "early & loud": noisy_curve(1, 0.78),
    "ends": noisy_curve(4, 0.7, end=30),
    "fails": noisy_curve(4, 0.7, fail=20),
}


@pytest.fixture(scope="module")
def verdict(tmp_path_factory):
    journal = tmp_path_factory.mktemp("report") / "race.db"
    return race(LEARNERS, 900, journal=journal, progress=False)


def page(verdict):
    return race_html(page_data(verdict))


class Balance(HTMLParser):
    """Raises on a tag that is not closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "link", "br", "input", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_it_is_one_file_that_loads_nothing(verdict):
    html = page(verdict)
    found = Balance(html)
    assert not found.open and found.tags.count("svg") > 2
    assert found.tags.count("script") == 1 and "img" not in found.tags
    assert not re.search(r"(src|href)=\"(?!data:,)", html) and "@import" not in html
    loads = r"url\(|fetch\(|https?://(?!www.w3.org/2000/svg)"
    assert not re.search(loads, html.partition("@inproceedings")[0])


def test_it_says_all_that_a_reader_needs(verdict):
    html = page(verdict)
    for part in (
        "Keep late", "led at half-time", "here is no proof", "Learning curves",
        "dropped at race pull",
        "How certain is the result?", "What would other methods have kept?", "time", "took ",
        "at 900 pulls", "false-alarm", "Successive Halving", "ASHA", "auto: foresight",
        "resume(", "@inproceedings", "finished after 29 pulls", "pull 20 failed twice",
        "&lt;script&gt;alert(1)&lt;/script&gt;", "early &amp; loud", "out of &lt;memory&gt;",
    ):  # fmt: skip
        assert part in html, part
    # A verdict without a certificate does not open with that.
    assert not verdict.certified
    assert html.index("There is no proof") > html.index("How certain is the result?")
    assert page(read_verdict(verdict.journal)) == html  # the journal alone says the same
    told = re.sub("<[^>]*>", " ", html[html.index("<main>") : html.index("Settings and versions")])
    assert not re.search(r"\b0\.0*[1-9]\d{4}", told)  # one number of digits


FLAT = {"a": lambda: iter([0.5] * 99), "b": lambda: iter([0.5] * 99)}
OUTLIER = {"a": lambda: iter([1e9, *[0.5] * 99]), "b": lambda: iter([0.4] * 99)}
MANY = {f"arm {k}": noisy_curve(3, 0.5 + k / 100) for k in range(30)}


@pytest.mark.parametrize(
    "learners, budget, maximize, said",
    [
        (FLAT, 20, True, "<svg"),
        ({"a": noisy_curve(1, 1), "b": noisy_curve(1, 2)}, 3, True, "kept no journal"),
        (FLAT, 30, False, "lower is better"),
        (MANY, 400, True, "The 20 learners that are ranked lower are gray"),
        (OUTLIER, 100, True, ">0.5<"),
    ],
)
def test_odd_races_have_reports_too(learners, budget, maximize, said):
    html = page(race(learners, budget, journal=None, progress=False, maximize=maximize))
    assert said in html
    assert ">1e+09<" not in html  # the first score does not set the axis


def test_plain_data_are_enough_for_a_page():
    html = race_html(plain_page())
    for words in (
        "Leading: a", "It runs.", "0.7 to ∞", 'class="why bad"', "A &lt;warning&gt;.",
        "best 1 learner to 9 pulls", ">best 2 continue to 6", "pull 2</span> b fell",
        "3 of 50 pulls, 1", "Earlier forecasts were 50 % right about the change up to pull 3",
        "so 50 % of a forecast gain counts.", "7 of its own training steps",
    ):  # fmt: skip
        assert words in html, words
    assert html.count('class="ring c0') == 1 and html.count('class="fan') == 1


@pytest.mark.parametrize(
    "now, then, said",
    [
        (0.0, 0.0, "were 0 % right about the change up to pull 30, so no forecast counts."),
        (
            0.0,
            1.0,
            "so no forecast counts; learners that left earlier keep the trust of that time",
        ),
        (0.5, 1.0, "so 50 % of a forecast gain counts; learners that left earlier keep the trust"),
    ],
)
def test_the_note_says_whose_forecasts_the_latest_trust_is_about(now, then, said):
    page = plain_page()
    leader, other = page.learners
    latest = replace(leader, forecast=leader.forecast._replace(trust=now, tested=30))
    dropped = replace(other, forecast=leader.forecast._replace(trust=then, tested=8))
    assert said in race_html(replace(page, learners=[latest, dropped]))


def test_a_race_of_no_time_did_not_take_0_seconds():
    html = race_html(replace(plain_page(), state="finished", seconds=0.2))
    assert "took less than 1 s" in html and "took 0 s" not in html


def plain_page():
    """A race as plain data, with everything that a page can show."""
    made = ForecastView(1.2, 12, 0.5, 0.8, 1, 3)
    ahead = LearnerView(0, "a", "leading", 3, 0.9, made, 1.0, seconds=2.0, steps=7, lower=0.7)
    behind = LearnerView(1, "b", "failed", 0, np.nan, None, np.nan, departed_why="x")
    return RacePage(
        state="running", best="a", final=False, why="It runs.", learners=[ahead, behind], spent=3,
        curves={0: ThinnedCurve(scores=[0.0, 1.0, 2.0]), 1: ThinnedCurve()}, budget=50, horizon=50,
        higher_is_better=True, started=0.0, seconds=1.0, assessed_at=3, warnings=["a <warning>"],
        time_left="1 min left", selected=(0.8, 2), trained_further=True,
        levels=[(2, 6), (1, 9)], events=[PageEvent(2, "b fell", True)],
    )  # fmt: skip


def searched(count):
    """A page of candidates: x decides the score, and `same` is equal for all."""
    learners = []
    for arm in range(count):
        state, settings = "racing" if arm else "leading", {"x": 10.0**-arm, "kind": "ab"[arm % 2]}
        view = LearnerView(arm, f"#{arm}", state, 4, 1.0 - arm / count, None, 0.5)
        learners.append(replace(view, settings=settings | {"same": 3}))
    curves = {arm: ThinnedCurve(scores=[0.1, 0.2, 0.3, 0.4]) for arm in range(count)}
    return replace(plain_page(), learners=learners, curves=curves, assessed_at=0, selected=None)


def test_settings_that_differ_have_a_column_and_an_axis():
    page = searched(5)
    assert varying_settings(page.learners) == ["x", "kind"]
    html = race_html(page)
    assert re.findall(r'<th scope="col" class="">(x|kind|same)</th>', html) == ["x", "kind"]
    lines = dict(re.findall(r'<polyline class="q(\d)" data-arm="(\d)"', html))
    assert lines == {"4": "0", "3": "1", "2": "2", "1": "3", "0": "4"}  # the best is darkest
    (points,) = re.findall(r'data-arm="1" points="([^"]*)"', html)
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert heights == pytest.approx([25, 0, 25])  # 0.1 of 1e-4 to 1 on a logarithmic axis
    assert "Settings that differ" not in race_html(plain_page())
    classes = [replace(one, settings={"class": one.name}) for one in page.learners]
    html = race_html(replace(page, learners=classes))
    assert "Settings that differ" in html and "<polyline" not in html  # the table is enough


@pytest.mark.parametrize("count, colored", [(12, 12), (13, 10), (40, 10)])
def test_of_many_learners_the_top_ones_are_colored_and_labeled(count, colored):
    drawn = RaceDrawing(searched(count))
    assert [one for one, look in drawn.looks.items() if look != "gray"] == list(range(colored))
    names = re.findall(r'class="name c\d+[^"]*" data-arm="(\d+)"', drawn.marks()["ends"])
    assert sorted(map(int, names)) == list(range(colored))


def test_the_horizon_and_forecasts_are_in_the_picture():
    page = replace(plain_page(), horizon=12, levels=())
    drawn = RaceDrawing(page)
    assert drawn.view.longest == 12 and ">compared at pull 12</text>" in drawn.marks()["ends"]
    end = drawn.view.place(Point(12, 1.0))  # the estimate, at the horizon
    assert f"L{end}" in drawn.marks()["fans"] and 'class="area"' in drawn.marks()["fans"]
    dropped = replace(page, learners=[replace(page.learners[0], state="dropped")])
    fans = RaceDrawing(dropped).marks()["fans"]
    assert f"L{end}" in fans and "area" not in fans  # of its forecast the dashed line alone
    assert f"M{drawn.view.place(Point(3, 0.8))}L" in fans  # from the forecast's level
    assert "Shaded" in drawn.note() and "Shaded" not in RaceDrawing(dropped).note()
    far = RaceDrawing(replace(page, horizon=1000))
    assert far.view.longest == 12 and "compared at pull 1,000 →" in far.marks()["ends"]


def test_a_bar_is_drawn_only_where_something_is_known():
    page = plain_page()
    (ahead, _), free = page.learners, {"lower": -np.inf, "upper": np.inf}
    learners = [
        ahead,
        replace(ahead, arm=2, name="free", state="racing", score=-0.1, **free),
        replace(ahead, arm=3, name="done", state="finished", lower=0.9, upper=0.9),
    ]
    curves = dict.fromkeys((0, 2, 3), page.curves[0])

    def bars(learners):
        html = race_html(replace(page, learners=learners, curves=curves))
        return re.findall(r'class="interval [^"]*" role="img" aria-label="([^"]*)"', html), html

    labels, html = bars(learners)
    assert labels == ["a: 0.7 to ∞", "done: 0.9 to 0.9"] and "−∞" not in html
    assert "Nothing bounds 1 of the learners" in html
    labels, html = bars(learners[1:])  # a dot alone is no bar
    assert labels == [] and "Each bar shows" not in html


def test_names_above_the_plot_do_not_overlap_and_stay_inside():
    levels = [(10 - k, 2 + k) for k in range(1, 10)]
    drawn = RaceDrawing(replace(plain_page(), levels=levels, horizon=12))
    ends = drawn.marks()["ends"]
    texts = re.findall(r'<text x="([\d.]+)%" y="0" class="([^"]*)"[^>]*>([^<]*)<', ends)
    assert len(texts) > 4 and texts[0][2] == "compared at pull 12"
    spans = []
    for x, css, text in texts:
        if "off" not in css:
            wide, at = 2.1 * len(text), float(x)
            spans.append((at - wide, at) if "end" in css else (at, at + wide))
    spans.sort()
    assert len(spans) > 1 and spans[0][0] >= 0
    assert all(left[1] <= right[0] for left, right in pairwise(spans))


def test_a_thinned_curve_is_the_means_of_even_bins_however_it_grew(rng):
    scores = rng.normal(size=10_007)
    curve, drawn = ThinnedCurve(), 0
    for score in scores.tolist():
        curve.add(score)
        if curve.width == 1:
            drawn += len(curve.smoothed(drawn))  # only what is new is asked for
    assert drawn == 479 and curve.raw() == ThinnedCurve(scores=scores.tolist()).raw()
    assert 240 <= len(curve) <= 480 and curve.pulls == 10_007
    width, bins = curve.width, len(curve)
    means = scores[: width * bins].reshape(bins, width).mean(axis=1)
    assert [point.score for point in curve.raw()] == pytest.approx(means.tolist())
    assert curve.raw()[0].pull == (1 + width) / 2 and 10_007 - curve.end.pull < width
    newest = means[-(bins // 16) :].mean()
    assert curve.end == (width * bins, pytest.approx(newest)) == curve.smoothed()[-1]
    assert all(points_for(n) * n <= 2 * 6000 for n in (1, 10, 100)) and points_for(10**6) == 24


def test_a_page_of_forty_learners_with_ten_thousand_pulls_is_small():
    page = searched(40)
    scores = [0.9 * n / (n + 500) + 1e-3 * (n % 7) for n in range(1, 10_001)]
    curve = ThinnedCurve(points_for(40), scores)
    learners = [replace(one, pulls=10_000) for one in page.learners]
    whole = replace(page, learners=learners, curves=dict.fromkeys(range(40), curve))
    assert len(race_html(whole)) < 300_000


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-300, 1e99])
def test_scores_of_any_size_are_drawn(scale):
    """Parts of the smallest numbers round to 0."""
    learners = {name: lambda best=best: (best * scale for _ in range(99)) for best, name in
                enumerate("abc", 1)}  # fmt: skip
    assert "<svg" in page(race(learners, 30, journal=None, progress=False, policy="r-sr"))


def test_ticks_are_round_numbers_within_the_range(rng):
    for low, width in zip(rng.normal(size=200) * 50, rng.exponential(size=200), strict=True):
        values = ticks(low, low + width)
        assert 2 <= len(values) <= 11
        assert all(low - 1e-9 <= value <= low + width + 1e-9 for value in values)
