"""A race followed from its journal: the same as read at once, and nothing is changed by it."""

import random
import re
from dataclasses import replace
from hashlib import sha256
from itertools import count

import pytest

from latebloomer import LocalRunner, RisingSR, race, read_verdict, resume
from latebloomer.errors import JournalError
from latebloomer.page.race_html import RaceDrawing, race_html
from latebloomer.page.race_page import FINISHED, INTERRUPTED, RUNNING
from latebloomer.racing.journal import files
from latebloomer.racing.verdict.pictures import page_data
from latebloomer.watch.live_page import FollowedRace, RaceFolder


def curve(slow, best, fail=None):
    def scores(seed):
        rng = random.Random(seed)
        for n in count(1):
            if n == fail:
                raise ValueError("out of memory")
            yield best * n / (n + slow) + rng.gauss(0, 0.003)

    return scores


LEARNERS = {
    "late": curve(40, 1.0), "early": curve(1, 0.7), "middling": curve(9, 0.6),
    "weak": curve(5, 0.4), "fails": curve(5, 0.5, fail=12),
}  # fmt: skip


def run(path, budget=400, **settings):
    return race(LEARNERS, budget, journal=path, progress=False, **settings)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.db"


def contents(folder):
    """All files but SQLite's notes on readers."""
    files = [file for file in folder.iterdir() if file.name != "cut.db-shm"]
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in files}


def watched(path, most=None):
    followed = FollowedRace(path)
    while followed.update(most) or not followed.caught_up:
        pass
    return followed


def test_a_race_that_is_over_is_shown_as_its_report(path):
    verdict = run(path)
    page = watched(path).page()
    assert page.state == FINISHED
    report = page_data(read_verdict(path))
    assert race_html(replace(page, events=report.events)) == race_html(report)
    assert race_html(report) == race_html(page_data(verdict))


@pytest.mark.parametrize("most", [1, 7, 100])
def test_following_in_small_steps_is_reading_at_once(path, cut, most):
    cut(230, lambda: run(path))
    small, whole = watched(path, most), watched(path)
    pieces = [RaceDrawing(one.page()).pieces() for one in (small, whole)]
    assert pieces[0] == pieces[1]
    curves = [one.page().curves for one in (small, whole)]
    assert [curves[0][k].raw() for k in range(5)] == [curves[1][k].raw() for k in range(5)]


def test_looking_changes_nothing_and_leaves_nothing(tmp_path, cut):
    run(tmp_path / "over.db")
    cut(100, lambda: run(tmp_path / "cut.db"))
    before = contents(tmp_path)
    for name in ("over.db", "cut.db"):
        watched(tmp_path / name).page()
    assert [race.state for race in RaceFolder(tmp_path).races()] == [INTERRUPTED, FINISHED]
    assert contents(tmp_path) == before


def test_it_runs_while_a_process_has_it(path):
    seen = []

    def ask(event, view):
        if not seen:
            seen.append((files.is_held(path), watched(path).page().state))

    run(path, callbacks=[ask])
    assert seen == [(True, RUNNING)] and not files.is_held(path)


def test_drops_failures_levels_and_forecasts_are_shown_as_they_come(path, cut):
    cut(270, lambda: run(path, runner=LocalRunner(retries=0)))
    followed = watched(path)
    assert followed.page().assessed_at == 0  # the first sight does not wait for it
    page = followed.page()
    assert page.best == "late" and not page.final and page.spent == 270
    said = " ".join(one.text for one in page.events)
    assert "fails: pull 12 failed once: ValueError: out of memory" in said
    assert said.count("out of memory") == 1  # the failure and the end of its race are one thing
    assert "weak: dropped at race pull" in said
    assert [tuple(level) for level in page.levels] == followed.state.session.levels_to_come
    late = next(one for one in page.learners if one.name == "late")
    assert late.forecast.score > late.forecast.level and late.forecast.at > late.pulls
    said = RaceDrawing(page).note()
    assert re.search(r"Forecasts explained \d+ % of the change up to pull \d+", said)
    assert page.assessed_at == 270 and len(page.hindsight) == 2
    assert "resume(" in page.resume_code


def test_another_race_in_its_place_is_shown_from_its_start(path, tmp_path):
    run(path)
    followed = watched(path)
    for file in tmp_path.iterdir():
        file.unlink()
    race({"a": curve(1, 1), "b": curve(1, 2)}, 40, journal=path, progress=False)
    assert followed.update() and followed.page().best == "b" and followed.page().spent <= 40


def test_what_cannot_be_read_says_why(path, tmp_path):
    class Mine(RisingSR):
        name = "mine"

    run(path, policy=Mine())
    with pytest.raises(JournalError, match="not a policy of this library"):
        watched(path).page()
    (tmp_path / "text.db").write_text("no journal", encoding="utf-8")
    with pytest.raises(JournalError, match="is not a journal"):
        watched(tmp_path / "text.db").page()
    assert len(RaceFolder(tmp_path).races()) == 1  # it is listed all the same; the text is not


def test_the_list_says_how_every_race_stands(tmp_path, cut):
    learners = {"<i>": curve(1, 1), "b": curve(1, 0.5)}
    verdict = race(learners, 40, journal=tmp_path / "<b>over.db", progress=False)
    cut(100, lambda: run(tmp_path / "cut.db"))
    html = RaceFolder(tmp_path).list_html()
    assert "&lt;b&gt;over.db" in html and "<b>over" not in html
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", html)
    cut_short, over = cells[:7], cells[7:]
    assert cut_short[:2] == ["interrupted", "5"] and cut_short[4:6] == ["100 (25 %)", "–"]
    assert cut_short[2] in LEARNERS and float(cut_short[3]) < 1
    assert over[:3] == ["finished", "2", "&lt;i&gt;"] and over[3] == f"{verdict.score:.5g}"


def test_races_are_compared_by_their_best_learners(tmp_path):
    run(tmp_path / "small.db", 300), run(tmp_path / "large.db", 600, seed=1)
    html = RaceFolder(tmp_path).compare_html(["small.db", "large.db", "none.db"])
    for part in ('id="c0"', 'id="c1"', ">small.db<", ">large.db<", "<td>300</td>", "<td>600</td>"):
        assert part in html, part
    assert "maximize" not in html  # equal in both


def test_it_goes_on_where_the_race_goes_on_also_with_newcomers(path, cut):
    cut(100, lambda: run(path, 200))
    followed = watched(path)
    assert followed.page().state == INTERRUPTED and followed.page().spent == 100
    resume(path, LEARNERS, progress=False)
    assert followed.update() and followed.page().state == FINISHED
    resume(path, LEARNERS, progress=False, budget=600, add={"new": curve(2, 2.0)})
    assert followed.update()
    page = followed.page()
    assert page.state == FINISHED and page.best == read_verdict(path).name == "new"
    assert {one.name for one in page.learners} == {*LEARNERS, "new"}
    assert all(page.curves[one.arm].pulls == one.pulls for one in page.learners)
    assert "new" in " ".join(one.text for one in page.events)  # it is said that it joined
