"""The report: self-contained, complete, and fit for a browser."""

import random
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import count

import numpy as np
import pytest

from latebloomer.page import LearnerOnPage, RacePage, race_html
from latebloomer.page.race_page import POINTS, thin
from latebloomer.page.svg import ticks
from latebloomer.racing import look, race
from latebloomer.racing.verdict.page_data import page_data

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
VOID = {"meta", "link", "br"}


def curve(slow, best, end=None, fail=None):
    def scores(seed):
        rng = random.Random(seed)
        for n in count(1) if end is None else range(1, end):
            if n == fail:
                raise ValueError("out of <memory> & time")
            yield best * n / (n + slow) + rng.gauss(0, 0.01)

    return scores


LEARNERS = {
    "late": curve(37, 1.0),
    "<script>alert(1)</script>": curve(10, 0.88),
    "early & loud": curve(1, 0.78),
    "ends": curve(4, 0.7, end=30),
    "fails": curve(4, 0.7, fail=20),
}


@pytest.fixture(scope="module")
def verdict(tmp_path_factory):
    journal = tmp_path_factory.mktemp("report") / "race.db"
    return race(LEARNERS, 900, journal=journal, progress=False)


def page(verdict):
    return race_html(page_data(verdict))


class Balance(HTMLParser):
    """Raises on a tag that is not closed in order."""

    def __init__(self):
        super().__init__()
        self.stack, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def test_it_is_one_file_that_loads_nothing(verdict):
    html = page(verdict)
    balance = Balance()
    balance.feed(html)
    assert not balance.stack and balance.tags.count("svg") == 2
    assert "script" not in balance.tags and "img" not in balance.tags
    assert not re.search(r"(src|href)=\"(?!data:,)", html) and "@import" not in html
    assert "url(" not in html


def test_it_says_all_that_a_reader_needs(verdict):
    html = page(verdict)
    for part in (
        "Keep late", "led at half-time", "certified", "Learning curves", "dropped at pull",
        "at 900 pulls", "false alarm", "Successive Halving", "ASHA", "auto: Foresight(",
        "resume(", "@inproceedings", "ended by itself after 29 pulls", "pull 20 failed twice",
        "&lt;script&gt;alert(1)&lt;/script&gt;", "early &amp; loud", "out of &lt;memory&gt;",
    ):  # fmt: skip
        assert part in html, part


def test_the_report_of_a_journal_is_the_report_of_the_race(verdict):
    assert page(look(verdict.journal)) == page(verdict)


def test_odd_races_have_reports_too():
    flat = {"a": lambda: iter([0.5] * 99), "b": lambda: iter([0.5] * 99)}
    assert "<svg" in page(race(flat, 20, journal=None, progress=False))
    few = race({"a": curve(1, 1), "b": curve(1, 2)}, 3, journal=None, progress=False)
    assert "had no journal" in page(few)
    losses = race(flat, 30, journal=None, progress=False, maximize=False)
    assert "lower is better" in page(losses)
    many = {f"arm {k}": curve(3, 0.5 + k / 100) for k in range(30)}
    assert "The 20 lowest ranked are grey" in page(race(many, 400, journal=None, progress=False))


def test_plain_data_are_enough_for_a_page():
    ahead = LearnerOnPage("a", 3, 0.9, 0.8, 0.7, np.inf, "leads", False, False, np.arange(3.0))
    behind = LearnerOnPage("b", 0, np.nan, np.nan, -np.inf, np.inf, "x", False, True, np.empty(0))
    html = race_html(
        RacePage(
            winner="a", final=False, summary=["it runs"], named_estimate=0.8, named_pulls=2,
            delivered_score=0.9, delivered_pulls=3, trained_on=True, spent=3, horizon=50,
            half_time=None, late_bloomer=False, certified=False, certificate="not certified",
            higher_is_better=True, learners=[ahead, behind], contradictions=[], plateaus=[],
            false_alarm=0.01, hindsight=[], warnings=["a <warning>"], settings={}, versions={},
            resume_code=None,
        )
    )  # fmt: skip
    for words in ("Ahead so far: a", "It runs.", "0.7 to ∞", 'class="bad"', "a &lt;warning&gt;."):
        assert words in html, words
    assert html.count('class="ring"') == 1


def test_thinning_keeps_the_mean_and_the_ends(rng):
    scores = rng.normal(size=10_007)
    pulls, means = thin(scores)
    assert len(pulls) == len(means) == POINTS
    edges = np.linspace(0, 10_007, POINTS + 1).astype(int)
    assert means[0] == pytest.approx(scores[: edges[1]].mean())
    assert pulls[-1] == pytest.approx(np.arange(edges[-2] + 1, 10_008).mean())


def test_ticks_are_round_numbers_within_the_range(rng):
    for low, width in zip(rng.normal(size=200) * 50, rng.exponential(size=200), strict=True):
        values = ticks(low, low + width)
        assert 2 <= len(values) <= 11
        assert all(low - 1e-9 <= value <= low + width + 1e-9 for value in values)


@pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium: apt-get install chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it_without_complaint(verdict, tmp_path, scheme):
    file, picture = verdict.report(tmp_path / "race.html"), tmp_path / "race.png"
    settings = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    ran = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--disable-background-networking", "--disable-dev-shm-usage", "--no-first-run",
            f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--v=0",
            "--window-size=900,2400", f"--screenshot={picture}", *settings, file.as_uri(),
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "CONSOLE" not in ran.stderr
    pixels = _pixels(picture)
    background = pixels[5, 5, :3].astype(int)
    assert (background.mean() > 200) == (scheme == "light")
    # Both pictures are there: rows with strong colours in the upper and in the lower half.
    coloured = np.ptp(pixels[..., :3].astype(int), axis=2) > 90
    rows = np.flatnonzero(coloured.sum(axis=1) > 3)
    assert (rows < 1000).any() and (rows > 1000).any()


def _pixels(picture):
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(picture))
