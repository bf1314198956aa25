"""Changes as small messages: put together, they are the page."""

import json
import random
import re
from contextlib import ExitStack
from uuid import uuid4

import pytest

from latebloomer.policies.registry import make_policy
from latebloomer.racing.journal.files import create
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Created, ScoreReported
from latebloomer.watch.live_page import FollowedRace, LivePage, RaceContent


class Written:
    """A journal that is written pull by pull, by a race without learners."""

    def __init__(self, path, arms=5, budget=4000):
        settings = Settings(policy=make_policy("foresight"), budget=budget)
        created = Created("race", settings.as_dict(), tuple(f"arm {i}" for i in range(arms)))
        self._session, self._rng = RaceState(created).session, random.Random(0)
        self.journal = create(path, created)
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

        def start(budget=4000):
            made = Written(tmp_path / f"{uuid4()}.db", budget=budget)
            stack.callback(made.journal.close)
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
    written = writing()
    written.pull(1)
    tab = Tab(written.live)
    for count in (1, 1, 1, 5, 40, 300, 900, 1500):  # curves are thinned on the way
        written.pull(count)
        tab.follow()
        fresh = Tab(written.live)
        assert tab.curves == fresh.curves and tab.rows == fresh.rows
    assert len(tab.curves) == 5


def test_tabs_share_messages_and_a_tab_that_is_far_behind_gets_the_page(writing):
    written = writing()
    written.pull(10)
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
        written = writing(budget=100_000)
        written.pull(before)
        written.read_all()
        tab = Tab(written.live)
        written.pull(10)
        sizes.append(sum(map(len, tab.follow())))
    assert max(sizes) < 12_000


def test_a_long_journal_is_shown_before_all_of_it_is_read(writing):
    written = writing(budget=100_000)
    written.pull(45_000)
    body, _ = written.live.body()
    assert "Reading the journal, up to pull" in body and written.live.content.hurries
    written.read_all()
    assert "45,000 of 100,000 pulls" in written.live.body()[0]
