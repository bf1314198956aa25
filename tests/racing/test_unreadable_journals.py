"""Journals that cannot be read: refused in one sentence, by the library's own error, unharmed."""

import os
import shutil
import signal
import sqlite3
import tempfile
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from toys import rising
from typer.testing import CliRunner

from latebloomer import race, read_verdict, resume
from latebloomer.cli import app
from latebloomer.errors import AllFailed, JournalError
from latebloomer.racing.journal import files
from latebloomer.racing.journal.listing import list_races

LEARNERS = {"a": rising(0.9), "b": rising(0.7), "c": rising(0.5)}


def run(path, **settings):
    return race(LEARNERS, 60, journal=path, progress=False, **settings)


WAYS = {
    "read_verdict": read_verdict,
    "resume": lambda path: resume(path, LEARNERS, progress=False),
    "race": run,
    "race, resuming": lambda path: run(path, if_exists="resume"),
    "repair": lambda path: files.repair(path, path.with_name("new.db")),
}


# --- a copy in progress ---


@pytest.fixture
def half_copied(tmp_path):
    """A journal of 0 bytes next to a -wal that holds every pull."""
    path, copy = tmp_path / "race.db", tmp_path / "copy" / "race.db"
    copy.parent.mkdir()
    copy.touch()

    def copies():
        for n in count(1):
            if n == 10:
                shutil.copy(f"{path}-wal", f"{copy}-wal")
            yield n / (n + 5)

    race(LEARNERS | {"copies": copies}, 60, journal=path, progress=False)
    assert Path(f"{copy}-wal").stat().st_size > 10_000
    return copy


@pytest.mark.parametrize("way", WAYS)
def test_an_empty_file_beside_a_full_wal_is_refused_and_both_stay(half_copied, way):
    before = Path(f"{half_copied}-wal").read_bytes()
    with pytest.raises(JournalError, match=r"0 bytes.*race\.db-wal"):
        WAYS[way](half_copied)
    assert half_copied.stat().st_size == 0
    assert Path(f"{half_copied}-wal").read_bytes() == before
    assert [found.state for found in list_races(half_copied.parent)] == ["unreadable"]


# --- no permission ---


@pytest.fixture
def forbidden():
    """A journal that this process may not read; root gives up its rights for it."""
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as folder:
        path = Path(folder) / "race.db"
        run(path)
        path.chmod(0)
        root = os.geteuid() == 0
        if root:
            os.chmod(folder, 0o777)
            os.seteuid(65534)
        try:
            yield path
        finally:
            if root:
                os.seteuid(0)


@pytest.mark.parametrize("way", WAYS)
def test_a_file_without_permission_is_an_error_of_this_library(forbidden, way):
    with pytest.raises(JournalError, match=r"race\.db cannot be read \(Permission denied\)"):
        WAYS[way](forbidden)
    shown = CliRunner().invoke(app, ["races", str(forbidden.parent)]).output
    assert "race.db" in shown and "unreadable" in shown and "Permission denied" in shown


# --- repair ---


def killed_in_statement(number, call):
    """Run a call in a child that SIGKILL ends before a statement; whether it came so far."""

    class Killed(sqlite3.Connection):
        left = number

        def execute(self, *words):
            Killed.left -= 1
            if Killed.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().execute(*words)

    if child := os.fork():
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    real = sqlite3.connect
    sqlite3.connect = lambda *words, **more: real(*words, **more, factory=Killed)
    call()
    os._exit(0)


def test_a_repair_that_was_killed_can_be_repeated(tmp_path):
    path, new = tmp_path / "race.db", tmp_path / "new.db"
    run(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE events SET score = 0.25 WHERE id = 30")
        db.commit()
    for number in count(1, 2):
        if not killed_in_statement(number, lambda: files.repair(path, new)):
            break
        assert not new.exists()
    assert number > 20 and files.repair(path, tmp_path / "other.db").pulls > 0
    assert read_verdict(new).spent == read_verdict(tmp_path / "other.db").spent


@pytest.mark.parametrize("kept", [100, 1024, 2048])
def test_repair_is_recommended_only_where_it_recovers_something(tmp_path, kept):
    path = tmp_path / "race.db"
    run(path)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:kept] + bytes(size - kept))
    said = []
    for way in (read_verdict, WAYS["repair"]):
        with pytest.raises(JournalError) as raised:
            way(path)
        said.append(str(raised.value))
    assert said[0] == said[1] and "nothing can be recovered" in said[0]


# --- every learner has failed ---


def test_the_reasons_of_a_failed_race_are_listed_shown_and_reported(tmp_path):
    def broken(why):
        raise ValueError(why)

    path, learners = tmp_path / "race.db", {why: partial(broken, why) for why in ("old", "no GPU")}
    with pytest.raises(AllFailed):
        race(learners, 40, journal=path, progress=False)
    assert [found.state for found in list_races(tmp_path)] == ["failed"]
    assert CliRunner().invoke(app, ["report", str(path)]).exit_code == 0
    page = path.with_suffix(".html").read_text()
    assert "<h1>Every learner failed</h1>" in page
    for text in (CliRunner().invoke(app, ["show", str(path)]).stdout, page):
        assert "ValueError: old" in text and "ValueError: no GPU" in text
