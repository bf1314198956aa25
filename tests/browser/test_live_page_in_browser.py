"""The live page in a browser while a race runs in another process."""

import json
import os
import socket
import subprocess
import sys
from itertools import product
from urllib.parse import urlsplit

import pytest

from tests.helpers.page_checks import check_page

TOKEN = "0123456789abcdef"
# A race that makes as many pulls as it is allowed to, one number a line.
RACE = """
import random, sys
from threading import Semaphore, Thread
from latebloomer import LocalRunner, race

allowed = Semaphore(0)
def listen():
    for line in sys.stdin:
        allowed.release(int(line))
Thread(target=listen, daemon=True).start()

def curve(slow, best, fail=None):
    def scores(seed):
        rng = random.Random(seed)
        for n in range(1, 10_000):
            if n == fail:
                raise ValueError("out of <b>memory</b>")
            allowed.acquire()
            yield best * n / (n + slow) + rng.gauss(0, 0.003)
    return scores

learners = {
    "late": curve(40, 1.0), "early": curve(1, 0.7), "<img src=x onerror=hacked=1>": curve(9, 0.6),
    "weak": curve(5, 0.4), "fails": curve(5, 0.5, fail=12),
}
race(learners, 400, journal=sys.argv[1], progress=False, runner=LocalRunner(retries=0))
"""


class Race:
    """A race in a process of its own, pull by pull."""

    def __init__(self, journal):
        words = [sys.executable, "-c", RACE, str(journal)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, text=True)

    def allow(self, pulls):
        self._process.stdin.write(f"{pulls}\n")
        self._process.stdin.flush()

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()


class Server:
    """`latebloomer watch` in a process of its own; started again, it has the same address."""

    def __init__(self, place):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        words = ["-m", "latebloomer", "watch", str(place), "--port", str(port)]
        self._words = [sys.executable, *words]
        self.start()

    def start(self):
        env = {**os.environ, "LATEBLOOMER_WATCH_TOKEN": TOKEN}
        self._process = subprocess.Popen(self._words, stdout=subprocess.PIPE, text=True, env=env)
        said = self._process.stdout.readline()
        self.address = next(word for word in said.split() if word.startswith("http"))

    def stop(self):
        self._process.terminate()
        self._process.wait(20)
        self._process.stdout.close()


@pytest.fixture
def race(tmp_path):
    made = Race(tmp_path / "race.db")
    yield made
    made.stop()


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path)
    yield made
    made.stop()


PATH = "document.querySelector('#c0 path:not(.raw)')?.getAttribute('d')"
POINTS = f"({PATH} || '').split('L').length"
TITLE = "document.querySelector('h1').textContent"
WHEN = "document.querySelector('#when').textContent"  # how long it took, once it has a verdict
SPENT = "(document.querySelector('#progress progress')?.value ?? 0)"
FEED = "(document.querySelector('.feed')?.textContent || '')"


@pytest.fixture
def page(new_page, server, race):
    """The page of the race, found in the list."""
    race.allow(1)
    page = new_page()
    page.open(server.address)
    page.wait_for("document.querySelector('#races a') !== null")
    page.open(page.value("document.querySelector('#races a').href"))
    page.wait_for("document.querySelector('#page').dataset.connected === 'yes'")
    return page


def test_curves_grow_a_drop_appears_and_the_verdict_comes(page, server, race, picture):
    race.allow(39)
    page.wait_for(f"{SPENT} >= 40")
    page.wait_for(f"{POINTS} >= 8")
    before = page.value(POINTS)
    race.allow(25)
    page.wait_for(f"{POINTS} > {before}")
    page.wait_for(f"{FEED}.includes('out of <b>memory</b>')")  # a failure, as it happens
    check_page(page)
    page.screenshot(picture("growing"))
    race.allow(200)
    page.wait_for(f"{FEED}.includes('dropped at race pull')")
    page.wait_for("document.querySelectorAll('#marks .cross').length >= 2")
    assert page.value("document.querySelectorAll('#marks line.level').length") > 0
    for theme, width in product(("dark", "light"), (390, 768, 1400)):
        page.color(theme)
        page.resize(width)
        check_page(page, words=False)  # one learner's name is markup
    page.screenshot(picture("dropped"))
    race.allow(400)
    page.wait_for(f"{TITLE} === 'Keep late' && {WHEN}.includes(' took ')")
    assert page.value("document.querySelector('#others').textContent").count("would have") == 2
    check_page(page)
    assert page.value("typeof hacked") == "undefined"
    asked = {urlsplit(address).netloc for address in page.requests()}
    assert asked == {urlsplit(server.address).netloc}
    page.screenshot(picture("kept"))


def test_what_grew_by_small_messages_is_what_a_reload_shows(page, race):
    details = "document.querySelector('#r0 details')"
    for pulls in (30, 60, 110):
        points = page.value(POINTS)
        race.allow(pulls)
        page.wait_for(f"{POINTS} > {points}")
        if pulls == 30:  # what a reader opened or hid stays so
            page.value(f"{details}.open = true")
            page.value("document.querySelector('#raw').click()")
    assert page.value(f"{details}.open") is True
    assert page.value("document.querySelector('#raw').checked") is False
    race.allow(700)
    page.wait_for(f"{TITLE} === 'Keep late' && {WHEN}.includes(' took ')")
    shown = """JSON.stringify([...document.querySelectorAll(`#title, #why, #axes, #marks, #rows tr,
        #curves path:not(.area), #certainty, #others`)].map(
        (one) => one.tagName === 'path' ? one.getAttribute('d') : one.textContent))"""
    order = "JSON.stringify([...document.querySelectorAll('#rows tr')].map((one) => one.id))"
    grown, rows = sorted(json.loads(page.value(shown))), page.value(order)
    page.open()
    assert sorted(json.loads(page.value(shown))) == grown and page.value(order) == rows


def test_it_goes_on_when_the_server_comes_back(page, server, race):
    race.allow(49)
    page.wait_for(f"{SPENT} >= 50")
    server.stop()
    page.wait_for("document.querySelector('#status').textContent.includes('Disconnected')")
    race.allow(50)
    assert page.value(TITLE).startswith("Leading: ")  # what was seen stays
    server.start()
    page.wait_for(f"{SPENT} >= 100")
    page.wait_for("document.querySelector('#status').textContent === ''")


def test_the_list_tells_states_apart(new_page, tmp_path, server, race, picture):
    over, cut = Race(tmp_path / "over.db"), Race(tmp_path / "cut.db")
    page = new_page(width=360)
    page.open(server.address)
    for one, pulls in ((over, 1000), (cut, 30), (race, 30)):
        one.allow(pulls)
    rows = "[...document.querySelectorAll('#races tbody tr')]"
    page.wait_for(f"{rows}.filter((one) => one.textContent.includes('30 pulls (8')).length === 2")
    cut.stop()
    states = f"{rows}.map((one) => one.children[1].textContent).join()"
    page.wait_for(f"{states} === 'running,interrupted,finished'")
    check_page(page, words=False)  # the folder's name is one long word
    page.screenshot(picture("list"))
    page.value("document.querySelector('#races a').focus()")
    assert page.value("document.activeElement.textContent") == "race.db"  # by the keyboard alone
    page.value("Object.assign(document.querySelector('#filter'), { value: 'over' }).dispatchEvent("
               "new Event('input', { bubbles: true }))")  # fmt: skip
    assert page.value(f"{rows}.filter((one) => one.offsetHeight).length") == 1
    page.value("document.querySelectorAll('input[name=race]').forEach((one) => one.click())")
    page.value("document.querySelector('form').submit()")
    drawn = "document.querySelectorAll('#curves .curve').length === 3"
    page.wait_for(f"document.readyState === 'complete' && {drawn}")
    check_page(page)
    page.open(f"{server.address}no/such/page")
    page.value("document.querySelector('a').click()")
    page.wait_for("document.querySelector('#races') !== null")
    over.stop()
