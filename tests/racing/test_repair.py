"""Damaged journals: what is sound is kept in a new file and goes on; the rest is said."""

import random
import shutil
import sqlite3
from contextlib import closing

import pytest
from toys import rising

from latebloomer import race, read_verdict, resume
from latebloomer.errors import JournalError
from latebloomer.racing.journal import files
from latebloomer.racing.race_state import RaceState

PAGE = 4096  # four of the journal's


LEARNERS = {"a": rising(0.9), "b": rising(0.7), "c": rising(0.5)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished race of 600 pulls, and its journal as bytes."""
    path = tmp_path_factory.mktemp("whole") / "race.db"
    verdict = race(LEARNERS, 600, journal=path, progress=False)
    return verdict.summary(), path.read_bytes()


def entries_in(path):
    with closing(files.read(path)) as journal:
        return list(journal.read())


def repaired(tmp_path, data):
    """What is kept of a damaged journal; None where that is nothing."""
    path, new = tmp_path / "race.db", tmp_path / "new.db"
    path.write_bytes(data)
    with pytest.raises(JournalError):
        read_verdict(path)
    with pytest.raises(JournalError):
        resume(path, LEARNERS, progress=False)
    try:
        pulls, _, cause = files.repair(path, new)
    except JournalError:
        assert not list(tmp_path.glob("new.db*"))
        return None
    finally:
        assert path.read_bytes() == data
    assert pulls > 0 and cause
    with closing(files.read(new)) as journal:
        assert RaceState.replayed(journal.read()).session.spent == pulls
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
    "change",
    [
        "UPDATE events SET score = 0.25 WHERE id = 300",
        "UPDATE events SET arm = 2 - arm, elapsed = elapsed + 1 WHERE id = 300",
        "UPDATE events SET id = 9999 WHERE id = 300",
        "UPDATE events SET kind = 'nonsense' WHERE id = 300",
        "UPDATE events SET score = 'text' WHERE id = 300",
        "UPDATE events SET at = x'ff' WHERE id = 300",
        "UPDATE events SET checksum = checksum + 1 WHERE id = 300",
        "DELETE FROM events WHERE id = 300",
    ],
)
def test_rows_before_one_that_was_changed_are_kept_as_they_were(tmp_path, whole, change):
    summary, data = whole
    good, bad = tmp_path / "good.db", tmp_path / "bad.db"
    for path in (good, bad):
        path.write_bytes(data)
    with closing(sqlite3.connect(bad)) as db:
        db.execute(change)
        db.commit()
    with pytest.raises(JournalError, match=r"is damaged after event 299 \(.*latebloomer repair"):
        read_verdict(bad)
    pulls, events, cause = files.repair(bad, tmp_path / "new.db")
    assert events == 299 and cause
    assert entries_in(tmp_path / "new.db") == entries_in(good)[:299]  # their times included
    again = resume(tmp_path / "new.db", LEARNERS, progress=False)
    assert again.summary() == summary and pulls < 299


def test_a_damaged_definition_costs_no_pull(tmp_path, whole):
    summary, data = whole
    path = tmp_path / "race.db"
    path.write_bytes(data.replace(b"CREATE VIEW pulls", b"??????????? pulls"))  # old copies too
    with pytest.raises(JournalError, match=r"is damaged after event \d+ .*`latebloomer repair "):
        read_verdict(path)
    pulls, _, cause = files.repair(path, tmp_path / "new.db")
    assert pulls == 600 and "malformed" in cause
    assert read_verdict(tmp_path / "new.db").summary() == summary


def test_a_journal_without_a_sound_pull_is_told_so(tmp_path, whole):
    (tmp_path / "race.db").write_bytes(whole[1])
    with closing(sqlite3.connect(tmp_path / "race.db")) as db:
        for change, words in [
            ("UPDATE events SET data = 'other' WHERE id = 1", "its checksum differs"),
            ("DELETE FROM events", "events up to .* are missing"),
        ]:
            db.execute(change)
            db.commit()
            with pytest.raises(JournalError, match=f"damaged .{words}.*nothing can be recovered"):
                files.repair(tmp_path / "race.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_full_disk_leaves_no_half_of_a_repair(tmp_path, whole, monkeypatch):
    (tmp_path / "race.db").write_bytes(whole[1][: 10 * PAGE])
    real = files._connect

    def small(place, durability):
        db = real(place, durability)
        db.execute("PRAGMA max_page_count = 7")
        return db

    monkeypatch.setattr(files, "_connect", small)
    with pytest.raises(JournalError, match=r"new.db cannot be written .*full\). Make room"):
        files.repair(tmp_path / "race.db", tmp_path / "new.db")
    assert not list(tmp_path.glob("new.db*"))


def test_a_sound_journal_is_not_written_again_also_after_a_kill(tmp_path, cut):
    path = tmp_path / "race.db"
    cut(100, lambda: race(LEARNERS, 600, journal=path, progress=False))
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tmp_path.glob("race.db*"):
        shutil.copy(file, copy)
    pulls, _, cause = files.repair(copy / "race.db", copy / "new.db")
    assert (pulls, cause) == (100, "") and not (copy / "new.db").exists()
