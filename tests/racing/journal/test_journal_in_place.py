"""A race keeps its journal: whatever copies, queries or removes its files while it runs."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from latebloomer import race, read_verdict, resume
from latebloomer.errors import JournalError, JournalInUse, SettingError
from latebloomer.racing.journal import event_log, files, locks, races_folder
from latebloomer.racing.journal.event_log import SqliteLog
from latebloomer.racing.journal.locks import FilesInPlace, RaceLock, is_locked
from latebloomer.session.events import ScoreReported
from tests.helpers.journals import rows
from tests.helpers.learners import LEARNERS
from tests.helpers.races import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

QUERY = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('{}').fetchone()[0])"
COUNT = QUERY.format("SELECT count(*) FROM pulls")
TRUNCATE = QUERY.format("PRAGMA wal_checkpoint(TRUNCATE)")
RESUME = """
import sys
from tests.helpers.learners import LEARNERS
from latebloomer import resume
from latebloomer.errors import JournalInUse
try:
    resume(sys.argv[1], LEARNERS, progress=False)
except JournalInUse:
    print("in use")
"""


def python(code, *words):
    """What a program prints."""
    ran = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(ran, capture_output=True, text=True, check=True).stdout.strip()


def in_child(act):
    """Call a function that kills its process."""
    child = os.fork()
    if not child:
        try:
            act()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def killed(path, act, at=20, pulls=40):
    """Race in a child process that acts after one of its pulls, and is killed after another."""

    def callback(event, view):
        if not isinstance(event, ScoreReported):
            return
        if view.spent == at:
            act()
        if view.spent == pulls:
            os.kill(os.getpid(), signal.SIGKILL)

    in_child(lambda: run(path, 100, callbacks=[callback]))
    assert rows(path, "SELECT count(*) FROM pulls") == [(pulls,)]
    assert read_verdict(path).spent == pulls
    assert resume(path, LEARNERS, progress=False).spent == 100


def copied_and(path, code, *words):
    """Copy the folder as a callback of the race does, which loses all locks of SQLite's kind."""

    def act():
        shutil.copytree(path.parent, path.parent.with_name("backup"))
        (path.parent / "said").write_text(python(code, path, *words))

    return act


@pytest.fixture
def place(tmp_path):
    (tmp_path / "races").mkdir()
    return tmp_path / "races" / "race.db"


def test_a_copy_by_the_races_own_process_does_not_unlock_it(place):
    killed(place, copied_and(place, RESUME))
    assert (place.parent / "said").read_text() == "in use"


@pytest.mark.parametrize("code", [COUNT, TRUNCATE])
def test_a_query_from_outside_after_a_copy_takes_nothing_away(place, code):
    killed(place, copied_and(place, code))
    assert (place.parent / "said").read_text() in ("20", "0")


@pytest.mark.skipif(sys.platform != "linux", reason="needs locks of open files, as on Linux")
def test_not_even_the_pulls_before_the_next_one_are_lost(place):
    killed(place, copied_and(place, COUNT), pulls=20)


def without_locks_of_open_files(monkeypatch):
    """As on systems that have none: nothing keeps another process from removing the files."""
    monkeypatch.setattr(locks, "HAS_LOCKS_OF_OPEN_FILES", False)


def test_without_such_locks_the_race_sees_that_its_wal_was_removed(place, monkeypatch):
    without_locks_of_open_files(monkeypatch)
    killed(place, copied_and(place, COUNT))


@pytest.mark.parametrize("ends", [["-wal"], ["-wal", "-shm"]], ids="+".join)
@pytest.mark.parametrize("pulls", [21, 40])
def test_a_wal_that_is_removed_by_hand_is_written_again_with_the_next_pull(path, ends, pulls):
    def remove():
        for end in ends:
            os.unlink(f"{path}{end}")

    killed(path, remove, pulls=pulls)


@pytest.mark.skipif(sys.platform != "linux", reason="needs locks of open files, as on Linux")
@pytest.mark.parametrize("pulls", [21, 40])
def test_a_shm_that_is_removed_by_hand_takes_nothing_away(place, pulls):
    def remove():
        shutil.copytree(place.parent, place.parent.with_name("backup"))
        os.unlink(f"{place}-shm")
        python(TRUNCATE, place)  # by a new -shm: of the journal's process it knows nothing

    killed(place, remove, pulls=pulls)


@pytest.mark.parametrize("size", [0, 5000])
def test_a_wal_that_another_program_cuts_is_written_again(path, size):
    killed(path, lambda: os.truncate(f"{path}-wal", size), pulls=21)


@pytest.mark.parametrize("at", [20, 100])
def test_a_race_whose_wal_was_cut_ends_as_if_undisturbed(path, at):
    def cut(event, view):
        if isinstance(event, ScoreReported) and view.spent == at:
            os.truncate(f"{path}-wal", 0)

    verdict = run(path, 100, callbacks=[cut])
    said = "race.db-wal was cut during the race: the journal was written again"
    assert verdict.warnings == ((said,) if at == 20 else ())
    assert read_verdict(path).summary() == verdict.summary()
    assert resume(path, LEARNERS, progress=False).spent == 100


def removing(path, at=20):
    def remove(event, view):
        if isinstance(event, ScoreReported) and view.spent == at:
            os.unlink(f"{path}-wal")

    return remove


def test_the_verdict_says_that_the_wal_was_removed(tmp_path, path):
    calm = run(tmp_path / "calm.db", 100)
    verdict = run(path, 100, callbacks=[removing(path)])
    said = "race.db-wal was removed during the race: the journal was written again"
    assert verdict.warnings == (said,) and verdict.spent == calm.spent
    assert sorted(rows(path)) == sorted(rows(tmp_path / "calm.db"))
    assert sorted(file.name for file in tmp_path.glob("race.db*")) == ["race.db", "race.db.lock"]


def test_a_wal_that_was_moved_away_is_noticed_with_the_next_drop(tmp_path, path):
    def move(event, view):
        if isinstance(event, ScoreReported) and view.spent == 20:
            os.rename(f"{path}-wal", tmp_path / "elsewhere")

    verdict = run(path, 100, callbacks=[move])
    assert "all of it is in" in verdict.warnings[0]
    assert read_verdict(verdict.journal).spent == 100


def test_if_it_cannot_be_written_again_the_race_stops_and_nothing_is_lost(path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(event_log.os, "replace", full)
        with pytest.raises(JournalError, match=r"No space left on device.* everything .* is safe"):
            run(path, 100, callbacks=[removing(path)])
    assert read_verdict(path).spent == 20
    assert resume(path, LEARNERS, progress=False).spent == 100


def killed_while_rewriting(path, call="_close_files"):
    """Race until its -wal is gone, and a kill comes while the journal is written again."""
    real = getattr(SqliteLog, call)

    def killed_in(log):
        if Path(f"{path}.rewritten").exists() or call == "_watch_files":
            os.kill(os.getpid(), signal.SIGKILL)
        real(log)

    def remove(event, view):
        if isinstance(event, ScoreReported) and view.spent == 20:
            os.unlink(f"{path}-wal")
            setattr(SqliteLog, call, killed_in)

    in_child(lambda: run(path, 100, callbacks=[remove]))


def resumes_with_all_pulls(path):
    assert run(path, 100, if_exists="resume").spent == 100
    assert rows(path, "SELECT count(*), max(t) FROM pulls") == [(100, 100)]
    assert len({at for (at,) in rows(path, "SELECT at FROM pulls WHERE t <= 21")}) > 1
    assert rows(path, "SELECT count(*) FROM events WHERE kind = 'ProcessStarted'") == [(2,)]
    assert not Path(f"{path}.rewritten").exists()


@pytest.mark.parametrize("call", ["_close_files", "_watch_files"])
def test_a_kill_while_it_is_written_again_loses_nothing(path, call):
    killed_while_rewriting(path, call)
    resumes_with_all_pulls(path)


def test_a_second_kill_while_that_is_put_in_place_loses_nothing_either(path, monkeypatch):
    killed_while_rewriting(path)
    with monkeypatch.context() as second:
        second.setattr(files.os, "replace", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        in_child(lambda: resume(path, LEARNERS, progress=False))
    resumes_with_all_pulls(path)


def test_the_damage_of_the_file_it_replaces_does_not_matter(path):
    """As a kill leaves it while SQLite copies from the -wal that has no name any more."""
    killed_while_rewriting(path)
    path.write_bytes(Path(f"{path}.rewritten").read_bytes()[:-2048])
    resumes_with_all_pulls(path)


def test_an_incomplete_copy_replaces_nothing(tmp_path, path):
    longer = tmp_path / "longer.db"
    run(longer, 100)
    run(path, 20)
    Path(f"{path}.rewritten").write_bytes(longer.read_bytes()[:-1024])
    assert resume(path, LEARNERS, progress=False).spent == 20
    assert not Path(f"{path}.rewritten").exists()


def test_readers_come_and_go_while_the_race_writes(path):
    seen = []

    def look(event, view):
        if isinstance(event, ScoreReported) and view.spent in (10, 50):
            with closing(sqlite3.connect(path)) as db:
                seen.append(db.execute("SELECT count(*) FROM pulls").fetchone()[0])
            seen.append(read_verdict(path).spent)
            seen.append(races_folder.listed_race(path).state)

    run(path, 60, callbacks=[look])
    assert seen == [10, 10, "running", 50, 50, "running"]


def test_a_lock_ends_with_the_races_process_and_not_with_its_children(tmp_path):
    file = tmp_path / "race.db"
    lock, (read, write) = RaceLock(file), os.pipe()
    child = os.fork()
    if not child:
        os.close(write)
        os.read(read, 1)  # until the test is over
        os._exit(0)
    assert is_locked(file)
    with pytest.raises(BlockingIOError):
        RaceLock(file)
    lock.close()
    assert not is_locked(file)
    os.close(write)
    os.waitpid(child, 0)
    os.close(read)


def test_a_lock_is_on_the_file_that_has_the_name(tmp_path):
    file = tmp_path / "race.db"
    first = RaceLock(file)
    os.unlink(f"{file}.lock")
    with closing(RaceLock(file)):
        first.close()
        assert is_locked(file)


def test_closing_a_journal_leaves_no_lock_and_no_file_of_sqlites(tmp_path, path):
    run(path)
    with closing(RaceLock(path)), closing(sqlite3.connect(path)) as db:
        db.execute("SELECT count(*) FROM pulls").fetchone()
        files = FilesInPlace(path)
        assert files.wal_is_in_place()
        files.release()
        files.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["race.db", "race.db.lock"]


# --- names and links ---


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal", ".lock", ".draft", ".rewritten"])
def test_a_name_that_belongs_to_another_journal_is_refused(path, end):
    with pytest.raises(JournalError, match=f"no journal may end in '{end}'"):
        run(f"{path}{end}")


@pytest.fixture
def link(tmp_path):
    (tmp_path / "disk").mkdir()
    made = tmp_path / "link.db"
    made.symlink_to(tmp_path / "disk" / "real.db")
    return made


def test_a_journal_behind_a_link_is_the_file_that_the_link_leads_to(link, tmp_path):
    killed(link, lambda: None)
    assert link.is_symlink() and rows(tmp_path / "disk" / "real.db", "SELECT max(t) FROM pulls")
    with pytest.raises(JournalError, match=r"real.db already holds a finished race"):
        run(link)
    assert not Path(f"{link}.lock").exists()


def test_a_running_race_behind_a_link_is_seen_as_such(link):
    seen = []

    def look(event, view):
        if isinstance(event, ScoreReported) and view.spent == 10:
            seen.append(races_folder.listed_race(link).state)
            with pytest.raises(JournalInUse):
                resume(link, LEARNERS, progress=False)

    run(link, callbacks=[look])
    assert seen == ["running"]


ODD = ["net-\udcff.yaml", "a\0old", "$float", "\ud83d", "é\0"]


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_any_text_can_name_a_learner_also_one_that_joins(path, name):
    learners = {name: LEARNERS["a"], "b": LEARNERS["b"]}
    first = race(learners, 40, journal=path, progress=False)
    assert resume(path, learners, progress=False).summary() == first.summary()
    assert races_folder.listed_race(path).learners == (name, "b")
    joins = {f"{name}!": LEARNERS["c"]}
    assert resume(path, learners, budget=60, add=joins, progress=False).spent == 60
    assert resume(path, learners | joins, progress=False).spent == 60
    assert races_folder.listed_race(path).learners == (name, "b", f"{name}!")
    assert len(rows(path, "SELECT arm, name FROM arms")) == 3


def test_a_setting_that_is_no_path_is_refused_as_before():
    with pytest.raises(SettingError, match="NUL"):
        run("a\0b.db")
