"""Journals that are lost, unreadable or damaged: what is sound is kept, the rest is said."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner

from latebloomer import LocalRunner, race, read_verdict, resume
from latebloomer.cli import app
from latebloomer.errors import AllFailed, JournalError
from latebloomer.racing import race_clock
from latebloomer.racing.journal import event_log, files, recovery
from latebloomer.racing.journal.event_log import SqliteLog
from latebloomer.racing.journal.races_folder import list_races
from latebloomer.racing.journal.schema import checksum
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners import learner_host, local
from latebloomer.session.events import Created, Saved, ScoreReported
from tests.helpers.journal_fuzz import fuzz_journals
from tests.helpers.journals import change, entries_in, limit_pages, rows
from tests.helpers.learners import LEARNERS, Saves, acts, saves
from tests.helpers.races import run

PAGE = 4096  # four of the journal's


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished race of 600 pulls, and its journal as bytes."""
    path = tmp_path_factory.mktemp("whole") / "race.db"
    return run(path, 600).summary(), path.read_bytes()


def repaired(tmp_path, data):
    """What is kept of a damaged journal; None where that is nothing."""
    path, new = tmp_path / "race.db", tmp_path / "new.db"
    path.write_bytes(data)
    for way in ("read_verdict", "resume"):
        with pytest.raises(JournalError):
            WAYS[way](path)
    try:
        pulls, _, cause = recovery.repair(path, new)
    except JournalError:
        assert not list(tmp_path.glob("new.db*"))
        return None
    finally:
        assert path.read_bytes() == data
    assert pulls > 0 and cause
    assert RaceState.replayed(entries_in(new)).session.spent == pulls
    return pulls


@pytest.mark.parametrize("fill", ["noise", "zeros", "some noise", "cut off"])
def test_pages_of_garbage_cost_what_comes_after_them(tmp_path, whole, fill):
    summary, data = whole
    rng, kept = random.Random(0), []
    for page in range(0, len(data) // PAGE, 2):
        start, size = page * PAGE, 100 if fill == "some noise" else PAGE
        garbage = bytes(size) if fill == "zeros" else rng.randbytes(size)
        folder = tmp_path / str(page)
        folder.mkdir()
        rest = b"" if fill == "cut off" else garbage + data[start + size :]
        kept.append(repaired(folder, data[:start] + rest) or 0)
        if kept[-1]:
            assert resume(folder / "new.db", LEARNERS, progress=False).summary() == summary
    # The first pages are SQLite's own and the table's root: nothing is found without them.
    assert kept[0] == 0 and max(kept) > 400
    assert fill != "cut off" or kept == sorted(kept)


@pytest.mark.parametrize(
    "done",
    [
        "UPDATE events SET score = 0.25",
        "UPDATE events SET arm = 2 - arm, elapsed = elapsed + 1",
        "UPDATE events SET id = 9999",
        "UPDATE events SET kind = 'nonsense'",
        "UPDATE events SET score = 'text'",
        "UPDATE events SET at = x'ff'",
        "UPDATE events SET checksum = checksum + 1",
        "DELETE FROM events",
    ],
)
def test_rows_before_one_that_was_changed_are_kept_as_they_were(tmp_path, whole, done):
    summary, data = whole
    good, bad = tmp_path / "good.db", tmp_path / "bad.db"
    for path in (good, bad):
        path.write_bytes(data)
    change(bad, f"{done} WHERE id = 300")
    with pytest.raises(JournalError, match=r"is damaged after event 299 \(.*latebloomer repair"):
        read_verdict(bad)
    pulls, events, cause = recovery.repair(bad, tmp_path / "new.db")
    assert events == 299 and cause
    assert entries_in(tmp_path / "new.db") == entries_in(good)[:299]  # their times included
    again = resume(tmp_path / "new.db", LEARNERS, progress=False)
    assert again.summary() == summary and pulls < 299


def test_a_damaged_definition_costs_no_pull(tmp_path, whole, path):
    summary, data = whole
    path.write_bytes(data.replace(b"CREATE VIEW pulls", b"??????????? pulls"))  # old copies too
    with pytest.raises(JournalError, match=r"is damaged after event \d+ .*`latebloomer repair "):
        read_verdict(path)
    pulls, _, cause = recovery.repair(path, tmp_path / "new.db")
    assert pulls == 600 and "malformed" in cause
    assert read_verdict(tmp_path / "new.db").summary() == summary


def test_a_full_disk_leaves_no_half_of_a_repair(tmp_path, whole, monkeypatch):
    (tmp_path / "race.db").write_bytes(whole[1][: 10 * PAGE])
    limit_pages(monkeypatch, 7)
    with pytest.raises(JournalError, match=r"new.db cannot be written .*full\). Make room"):
        recovery.repair(tmp_path / "race.db", tmp_path / "new.db")
    assert not list(tmp_path.glob("new.db*"))


def test_a_sound_journal_is_not_written_again_also_after_a_kill(tmp_path, cut, path):
    cut(100, lambda: run(path, 600))
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tmp_path.glob("race.db*"):
        shutil.copy(file, copy)
    pulls, _, cause = recovery.repair(copy / "race.db", copy / "new.db")
    assert (pulls, cause) == (100, "") and not (copy / "new.db").exists()


WAYS = {
    "read_verdict": read_verdict,
    "resume": lambda path: resume(path, LEARNERS, progress=False),
    "race": run,
    "race, resuming": lambda path: run(path, if_exists="resume"),
    "repair": lambda path: recovery.repair(path, path.with_name("new.db")),
}


@pytest.fixture
def half_copied(tmp_path):
    """A journal of 0 bytes next to a -wal that holds every pull."""
    path, copy = tmp_path / "race.db", tmp_path / "copy" / "race.db"
    copy.parent.mkdir()
    copy.touch()

    copies = acts(10, lambda: shutil.copy(f"{path}-wal", f"{copy}-wal"))
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


CLIENT = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("SELECT * FROM arms").fetchall()
db.close()
"""


def test_a_look_at_a_race_of_the_same_process_does_not_end_its_locks(path):
    """Else another program, as the last to leave the file, removes the -wal under the race."""
    with closing(files.create(path, Created("race", {}, ("a", "b")))):
        files.read(path).close()
        subprocess.run([sys.executable, "-c", CLIENT, path], check=True)
        assert Path(f"{path}-wal").exists()


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
    with pytest.raises(JournalError, match=r"race\.db cannot be read \(unable to open"):
        WAYS[way](forbidden)
    shown = CliRunner().invoke(app, ["races", str(forbidden.parent)]).output
    assert "race.db" in shown and "unreadable" in shown and "unable to open" in shown


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
    change(path, "UPDATE events SET score = 0.25 WHERE id = 30")
    for number in count(1, 2):
        if not killed_in_statement(number, lambda: recovery.repair(path, new)):
            break
        assert not new.exists()
    assert number > 20 and recovery.repair(path, tmp_path / "other.db").pulls > 0
    assert read_verdict(new).spent == read_verdict(tmp_path / "other.db").spent


@pytest.mark.parametrize("kept", [100, 1024, 2048])
def test_repair_is_recommended_only_where_it_recovers_something(path, kept):
    run(path)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:kept] + bytes(size - kept))
    said = []
    for way in (read_verdict, WAYS["repair"]):
        with pytest.raises(JournalError) as raised:
            way(path)
        said.append(str(raised.value))
    assert said[0] == said[1] and "nothing can be recovered" in said[0]


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


def lose(path, how):
    if how == "deleted":
        for file in path.parent.glob("race.db*"):
            if file.is_file():
                file.unlink()
    else:
        run(path.with_name("other.db"))
        os.replace(path.with_name("other.db"), path)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_it_is_noticed_and_all_that_is_known_is_in_a_new_file(tmp_path, how, path):
    whole = run(tmp_path / "whole.db", 80)
    losing = LEARNERS | {"a": acts(4, lambda: lose(path, how))}
    verdict = race(losing, 80, journal=path, progress=False)
    rescued = tmp_path / "race.rescued.db"
    assert verdict.journal == str(rescued) and verdict.summary() == whole.summary()
    said = "race.db was deleted or replaced during the race: all of it is in"
    assert any(said in warning for warning in verdict.warnings)
    assert read_verdict(rescued).summary() == whole.summary()
    assert resume(rescued, LEARNERS, progress=False).summary() == whole.summary()


@pytest.mark.parametrize("folder", [False, True], ids=["file", "folder"])
def test_it_may_be_deleted_again_and_with_its_folder(tmp_path, folder):
    """Each time all of it is written again, with the times at which it happened."""
    whole, place = run(tmp_path / "whole.db", 80), tmp_path / "races"
    place.mkdir()

    def delete(event, view):
        if isinstance(event, ScoreReported) and view.spent in (4, 80):
            shutil.rmtree(place)
            if not folder:
                place.mkdir()

    verdict = run(place / "race.db", 80, callbacks=[delete])
    rescued = place / "race.rescued.db"
    assert verdict.journal == str(rescued) and verdict.summary() == whole.summary()
    assert sum("was deleted or replaced" in warning for warning in verdict.warnings) == 2
    assert read_verdict(rescued).summary() == whole.summary()
    times = [time for (time,) in rows(rescued, "SELECT elapsed FROM events ORDER BY id")]
    assert times == sorted(times) and len(set(times)) > 80


def test_checkpoints_move_along(path):

    class Loses(Saves):
        def pull(self):
            if self.n == 9:
                path.unlink()
            return super().pull()

    given = {"a": lambda: Loses(0.9), "b": saves(0.7), "c": saves(0.5)}
    verdict = race(given, 60, journal=path, progress=False, runner=LocalRunner(checkpoint_every=5))
    folder = Path(f"{verdict.journal}.checkpoints")
    assert folder.is_dir() and not Path(f"{path}.checkpoints").exists()
    later = dict.fromkeys(given, saves(0.5))
    assert resume(verdict.journal, later, progress=False).learner.n == verdict.trained.pulls


@pytest.fixture
def ticking(monkeypatch):
    """A clock that advances by 1 ms whenever it is read."""
    ticks = count()
    for module in (race_clock, local, learner_host):
        monkeypatch.setattr(module, "perf_counter", lambda: next(ticks) / 1000)


@pytest.mark.usefixtures("ticking")
@pytest.mark.parametrize("settings", [{"budget": 200, "winner_share": 0.5}, {"seconds": 1.0}])
def test_looking_at_any_moment_is_a_snapshot(tmp_path, settings):
    path, seen = tmp_path / "race.db", []

    def nosy():
        for n in count(1):
            if seen or n > 1:
                seen.append(read_verdict(path).spent)
            yield 0.95 * n / (n + 5)

    race(LEARNERS | {"nosy": nosy}, journal=path, progress=False, **settings)
    assert len(seen) > 10 and seen == sorted(seen)


@pytest.mark.usefixtures("ticking")
def test_a_clock_that_is_set_back_changes_no_times(tmp_path, monkeypatch, cut):
    path, now = tmp_path / "race.db", [1e9]
    monkeypatch.setattr(event_log, "time", lambda: now[0])
    cut(20, lambda: race(LEARNERS, seconds=1, journal=path, progress=False))
    before = entries_in(path)[-1].elapsed
    now[0] -= 3600
    resume(path, LEARNERS, progress=False)
    times = [entry.elapsed for entry in entries_in(path)]
    assert before > 0 and times == sorted(times) and times[-1] > before


def test_damage_is_refused_or_does_no_harm(seed):
    found = fuzz_journals(120, seed)
    assert found["refused"] > 60 and found["repaired and resumed"] > 20


def test_the_place_of_a_checkpoint_follows_from_arm_and_pull_whatever_a_journal_says(tmp_path):
    run(tmp_path / "race.db")
    first = entries_in(tmp_path / "race.db")[0].event
    with closing(files.create(tmp_path / "forged.db", first)) as forged:
        forged.append(ScoreReported(0, 0.1))
        forged.append(Saved(0, 1, "0" * 64, 1, 0.0))
        data = '{"n":1,"digest":"0","size":1,"folder":"../../elsewhere"}'
        row = (3, "Saved", 0, None, 0.0, None, data, 1.0, 0.0, 0)
        before = forged.query("SELECT checksum FROM events WHERE id = 2")[0]
        forged.query("UPDATE events SET data = ?, seconds = 0.0, at = 1.0, elapsed = 0.0, "
                     "checksum = ? WHERE id = 3", data, checksum(before, row))  # fmt: skip
    with pytest.raises(JournalError, match=r"damaged after event 2.*folder"):
        resume(tmp_path / "forged.db", LEARNERS, progress=False)


def test_a_checksum_depends_on_every_cell_and_on_the_row_before():
    score = (5, "ScoreReported", 1, 0.5, 0.1, None, None, 9.0, 1.0, 0)
    other = (6, "LearnerLeft", 1, None, None, None, '{"how": "failed"}', 9.0, 1.0, 0)
    for row in (score, other):
        seen = {checksum(0, row), checksum(1, row)}
        for place, value in ((0, 7), (2, 2), (7, 8.0), (8, 2.0)):
            seen.add(checksum(0, (*row[:place], value, *row[place + 1 :])))
        assert len(seen) == 6


def test_a_stale_lock_is_no_lock_and_one_is_given_back(tmp_path, monkeypatch, path):
    Path(f"{path}.lock").touch()
    assert run(path).spent == 40
    other = tmp_path / "other.db"
    Path(f"{other}.lock").write_text("of another program")
    assert run(other).spent == 40
    assert Path(f"{other}.lock").read_text() == "of another program"
    path = tmp_path / "failed.db"

    def broken(*_):
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteLog, "write", broken)
        with pytest.raises(JournalError, match="disk I/O error"):
            run(path)
    assert run(path).spent == 40


def test_drafts_of_killed_processes_are_swept_on_resume(path, cut):
    given = {"a": saves(0.9), "b": saves(0.7)}
    saving = LocalRunner(checkpoint_every=4)
    cut(30, lambda: race(given, 60, journal=path, progress=False, runner=saving))
    draft = Path(f"{path}.checkpoints") / "0001" / "9.1234abcd.draft"
    draft.mkdir(parents=True)
    resume(path, given, progress=False)
    assert not draft.exists()
