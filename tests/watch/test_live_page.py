"""A race followed from its journal: the same as read at once, and nothing is changed by it."""

import json
import random
import re
from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256
from itertools import count
from uuid import uuid4

import pytest

from latebloomer import LocalRunner, RisingSR, race, read_verdict, resume
from latebloomer.errors import JournalError
from latebloomer.page.race_html import RaceDrawing, race_html
from latebloomer.page.race_page import FINISHED, INTERRUPTED, RUNNING
from latebloomer.policies.registry import make_policy
from latebloomer.racing.journal import files
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.racing.verdict.page_data import page_data
from latebloomer.session.events import Created, ScoreReported
from latebloomer.watch.followed_race import FollowedRace
from latebloomer.watch.live_page import LivePage
from latebloomer.watch.race_content import RaceContent
from latebloomer.watch.race_folder import RaceFolder


def curve(slow, best, fail=None):
    def scores(seed):
        rng = random.Random(seed)
        for n in count(1):
            if n == fail:
                raise ValueError("out of memory")
            yield best * n / (n + slow) + rng.gauss(0, 0.003)

    return scores


NAMED = {"late": (40, 1.0), "early": (1, 0.7), "middling": (9, 0.6), "weak": (5, 0.4)}
LEARNERS = {name: curve(*how) for name, how in NAMED.items()} | {"fails": curve(5, 0.5, 12)}


def run(path, budget=400, **settings):
    return race(LEARNERS, budget, journal=path, progress=False, **settings)


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
    assert "fails failed: pull 12 failed once: ValueError: out of memory" in said
    assert said.count("out of memory") == 1  # the failure and the end of its race are one thing
    assert "weak: dropped at race pull" in said
    assert [tuple(level) for level in page.levels] == followed.state.session.levels_to_come
    late = next(one for one in page.learners if one.name == "late")
    assert late.forecast.score > late.forecast.level and late.forecast.at > late.pulls
    said = RaceDrawing(page).note()
    assert re.search(r"Earlier forecasts were \d+ % right about the change up to pull \d+", said)
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
    assert cut_short[:2] == ["interrupted", "5"] and cut_short[4:6] == ["100 pulls (25 %)", "–"]
    assert cut_short[2] in LEARNERS and float(cut_short[3]) < 1
    assert over[:3] == ["finished", "2", "&lt;i&gt;"] and over[3] == f"{verdict.score:.4g}"


def test_the_list_says_once_how_much_time_is_left(path):
    seen = []

    def look(event, view):
        if isinstance(event, ScoreReported) and view.spent == 40:
            html = RaceFolder(path.parent).list_html()
            seen.append(re.findall(r"<td[^>]*>([^<]*)</td>", html)[5])

    run(path, callbacks=[look])
    assert len(seen) == 1 and re.fullmatch(r"about .* s", seen[0])


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


class Written:
    """A journal that is written pull by pull, by a race without learners."""

    def __init__(self, path, budget):
        settings = Settings(policy=make_policy("foresight"), budget=budget)
        created = Created("race", settings.as_dict(), tuple(f"arm {i}" for i in range(5)))
        self._session, self._rng = RaceState(created).session, random.Random(0)
        self.journal = files.create(path, created)
        self.live = LivePage(RaceContent(FollowedRace(path)), "here")

    def pull(self, count):
        told = []
        for _ in range(count):
            arm = self._session.ask()
            n = self._session.pulls_of(arm) + 1
            score = (1 + arm) * n / (n + 10 * arm + 10) + self._rng.gauss(0, 0.01)
            self._session.tell(arm, score)
            told.append(ScoreReported(arm, score, 0.01))
        self.journal.append(*told)
        self.live.update()

    def read_all(self):
        while self.live.content.hurries:
            self.live.update()


@pytest.fixture
def writing(tmp_path):
    """A function that starts journals; all are closed at the end."""
    with ExitStack() as stack:

        def start(pulls, budget=4000):
            made = Written(tmp_path / f"{uuid4()}.db", budget)
            stack.callback(made.journal.close)
            made.pull(pulls)
            return made

        yield start


def curves_of(body):
    """Of each learner: its classes, and its two paths."""
    found = re.findall(r'<g id="(c\d+)" class="([^"]*)">.*?(<path .*?)</g>', body)
    return {name: [look, *re.findall(r' d="([^"]*)"', paths)] for name, look, paths in found}


class Tab:
    """What a browser does with messages, as far as curves and rows go."""

    def __init__(self, live):
        self._live = live
        body, self.seen = live.body()
        self._change({"whole": body})

    def follow(self):
        texts, self.seen = self._live.since(self.seen)
        for text in texts:
            self._change(json.loads(text))
        return texts

    def _change(self, message):
        if "whole" in message:
            self.curves = curves_of(message["whole"])
            self.rows = list(map(int, re.findall(r'<tr id="r(\d+)"', message["whole"])))
        for html in message.get("draw", {}).values():
            self.curves.update(curves_of(html))
        for arm, (strong, faint) in message.get("grow", {}).items():
            look, raw, smooth = self.curves[f"c{arm}"]
            self.curves[f"c{arm}"] = [look, raw + faint, smooth + strong]
        for arm, look in message.get("look", {}).items():
            if f"c{arm}" in self.curves:
                self.curves[f"c{arm}"][0] = f"curve {look}"
        self.rows = message.get("order", self.rows)


def test_messages_put_together_are_the_page(writing):
    written = writing(1)
    tab = Tab(written.live)
    for pulls in (1, 1, 1, 5, 40, 300, 900, 1500):  # curves are thinned on the way
        written.pull(pulls)
        tab.follow()
        fresh = Tab(written.live)
        assert tab.curves == fresh.curves and tab.rows == fresh.rows
    assert len(tab.curves) == 5


def test_tabs_share_messages_and_a_tab_that_is_far_behind_gets_the_page(writing):
    written = writing(10)
    one, other, late = (Tab(written.live) for _ in range(3))
    for _ in range(3):
        written.pull(10)
        assert one.follow() == other.follow() != []
    assert one.follow() == []
    for _ in range(100):
        written.pull(1)
    (text,) = late.follow()
    assert "whole" in json.loads(text) and late.curves == Tab(written.live).curves
    late.seen = "elsewhere-3"  # another server's
    assert "whole" in json.loads(late.follow()[0])


def test_an_update_does_not_grow_with_the_race(writing):
    sizes = []
    for before in (300, 30_000):
        written = writing(before, budget=100_000)
        written.read_all()
        tab = Tab(written.live)
        written.pull(10)
        sizes.append(sum(map(len, tab.follow())))
    assert max(sizes) < 12_000


def test_a_long_journal_is_shown_before_all_of_it_is_read(writing):
    written = writing(45_000, budget=100_000)
    body, _ = written.live.body()
    assert "Reading the journal, up to pull" in body and written.live.content.hurries
    written.read_all()
    assert "45,000 of 100,000 pulls" in written.live.body()[0]
