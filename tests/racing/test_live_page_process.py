"""`race(..., watch=True)`: a page beside the race, never in its way."""

import os
import signal
import subprocess
import sys
from urllib.request import urlopen

import pytest

from latebloomer import race, resume
from latebloomer.errors import SettingError
from latebloomer.racing import live_page_process
from latebloomer.racing.live_page_process import start_watching

LEARNERS = {"slow": lambda: (n / 99 for n in range(99)), "flat": lambda: iter([0.1] * 99)}


@pytest.fixture
def saying(monkeypatch):
    """Let the page's process be one that prints a line and ends."""

    def use(line):
        real = subprocess.Popen

        def start(words, **settings):
            assert words[1:4] == ["-m", "latebloomer", "watch"] and "--exit-after-idle" in words
            return real([sys.executable, "-c", f"print({line!r})"], **settings)

        monkeypatch.setattr(live_page_process.subprocess, "Popen", start)

    return use


def test_its_address_is_printed_once(tmp_path, saying, capsys):
    saying("http://127.0.0.1:1/secret/race/race.db")
    race(LEARNERS, 40, journal=tmp_path / "race.db", progress=False, watch=True)
    said = "Watch the race at http://127.0.0.1:1/secret/race/race.db\n"
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("line", ["MissingExtra: live pages need uvicorn", ""])
def test_a_race_that_cannot_be_watched_runs_all_the_same(tmp_path, saying, line):
    saying(line)
    with pytest.warns(RuntimeWarning, match=r"cannot be watched \(.*later: latebloomer watch"):
        verdict = race(LEARNERS, 40, journal=tmp_path / "race.db", progress=False, watch=True)
    assert verdict.name == "slow"


def test_ctrl_c_while_the_page_starts_leaves_a_journal_that_can_be_resumed(path, monkeypatch):
    """Also as long as the program keeps the exception, and with it the frames of the call."""

    def press(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(live_page_process.Thread, "join", press)
    with pytest.raises(KeyboardInterrupt) as kept:
        race(LEARNERS, 40, journal=path, progress=False, watch=True)
    monkeypatch.undo()
    assert resume(path, LEARNERS, progress=False).spent == 40
    assert kept.value is not None


def test_without_a_journal_there_is_nothing_to_watch():
    with pytest.raises(SettingError, match="watch=True needs a journal"):
        race(LEARNERS, 40, journal=None, watch=True)


def test_the_page_is_there_and_outlives_the_race(path, capsys):
    pytest.importorskip("starlette")
    race(LEARNERS, 40, journal=path, progress=False)
    child = start_watching(path)
    try:
        address = capsys.readouterr().err.split()[-1]
        with urlopen(address, timeout=20) as answer:
            assert b"Keep slow" in answer.read()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
