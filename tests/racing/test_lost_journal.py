"""Journals that are deleted, replaced, damaged or forged, and what lies beside them."""

import os
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from fuzz import fuzz_journals
from toys import Saves, rising, saves

from latebloomer import LocalRunner, race, read_verdict, resume
from latebloomer.errors import JournalError
from latebloomer.racing import stopping
from latebloomer.racing.journal import files
from latebloomer.racing.journal import journal as journal_module
from latebloomer.racing.journal.journal import SqliteLog, checksum
from latebloomer.racing.runners import learner_host, local
from latebloomer.session.events import Saved, ScoreReported


def doing(at, do):
    for n, score in enumerate(rising(0.9)(), 1):
        if n == at:
            do()
        yield score


def learners(at=None, do=None):
    first = rising(0.9) if at is None else lambda: doing(at, do)
    return {"a": first, "b": rising(0.7), "c": rising(0.5), "d": rising(0.4)}


# --- deleted or replaced while a race runs ---


def lose(path, how):
    if how == "deleted":
        for file in path.parent.glob("race.db*"):
            if file.is_file():
                file.unlink()
    else:
        race(learners(), 40, journal=path.with_name("other.db"), progress=False)
        os.replace(path.with_name("other.db"), path)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_it_is_noticed_and_all_that_is_known_is_in_a_new_file(tmp_path, how):
    path = tmp_path / "race.db"
    whole = race(learners(), 80, journal=tmp_path / "whole.db", progress=False)
    verdict = race(learners(4, lambda: lose(path, how)), 80, journal=path, progress=False)
    rescued = tmp_path / "race.rescued.db"
    assert verdict.journal == str(rescued) and verdict.summary() == whole.summary()
    said = "race.db was deleted or replaced during the race: all of it is in"
    assert any(said in warning for warning in verdict.warnings)
    assert read_verdict(rescued).summary() == whole.summary()
    assert resume(rescued, learners(), progress=False).summary() == whole.summary()


def test_checkpoints_move_along(tmp_path):
    path = tmp_path / "race.db"

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


# --- looked at while it is written ---


@pytest.fixture
def ticking(monkeypatch):
    """A clock that advances by 1 ms whenever it is read."""
    ticks = count()
    for module in (stopping, local, learner_host):
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

    race(learners() | {"nosy": nosy}, journal=path, progress=False, **settings)
    assert len(seen) > 10 and seen == sorted(seen)


@pytest.mark.usefixtures("ticking")
def test_a_clock_that_is_set_back_changes_no_times(tmp_path, monkeypatch, cut):
    path, now = tmp_path / "race.db", [1e9]
    monkeypatch.setattr(journal_module, "time", lambda: now[0])
    cut(20, lambda: race(learners(), seconds=1, journal=path, progress=False))
    before = elapsed(path)[-1]
    now[0] -= 3600
    resume(path, learners(), progress=False)
    times = elapsed(path)
    assert before > 0 and times == sorted(times) and times[-1] > before


def elapsed(path):
    with closing(files.read(path)) as opened:
        return [entry.elapsed for entry in opened.read()]


# --- damage ---


def test_damage_is_refused_or_does_no_harm(seed):
    found = fuzz_journals(120, seed)
    assert found["refused"] > 60 and found["repaired and resumed"] > 20


def test_a_checkpoint_outside_the_races_own_folder_is_refused(tmp_path):
    race(learners(), 80, journal=tmp_path / "race.db", progress=False)
    with closing(files.read(tmp_path / "race.db")) as opened:
        first = next(opened.read())
    with closing(files.create(tmp_path / "forged.db", first.event)) as forged:
        forged.append(ScoreReported(0, 0.1))
        forged.append(Saved(0, 1, "../../elsewhere", "0" * 64, 1, 0.0))
    with pytest.raises(JournalError, match="not a place of this race"):
        resume(tmp_path / "forged.db", learners(), progress=False)


def test_a_checksum_depends_on_every_cell_and_on_the_row_before():
    score = (5, "ScoreReported", 1, 0.5, 0.1, None, None, 9.0, 1.0, 0)
    other = (6, "LearnerLeft", 1, None, None, None, '{"how": "failed"}', 9.0, 1.0, 0)
    for row in (score, other):
        seen = {checksum(0, row), checksum(1, row)}
        for place, value in ((0, 7), (2, 2), (7, 8.0), (8, 2.0)):
            seen.add(checksum(0, (*row[:place], value, *row[place + 1 :])))
        assert len(seen) == 6


# --- beside it ---


def test_a_stale_lock_is_no_lock(tmp_path):
    path = tmp_path / "race.db"
    Path(f"{path}.lock").touch()
    assert race(learners(), 40, journal=path, progress=False).spent == 40
    other = tmp_path / "other.db"
    Path(f"{other}.lock").write_text("of another program")
    with pytest.raises(JournalError, match=r"cannot be written \(file is not a database"):
        race(learners(), 40, journal=other, progress=False)


def test_the_lock_is_given_back_where_making_a_journal_fails(tmp_path, monkeypatch):
    path = tmp_path / "race.db"

    def broken(*_):
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteLog, "write", broken)
        with pytest.raises(JournalError, match="disk I/O error"):
            race(learners(), 40, journal=path, progress=False)
    assert race(learners(), 40, journal=path, progress=False).spent == 40


def test_drafts_of_killed_processes_are_swept_on_resume(tmp_path, cut):
    path = tmp_path / "race.db"
    given = {"a": saves(0.9), "b": saves(0.7)}
    saving = LocalRunner(checkpoint_every=4)
    cut(30, lambda: race(given, 60, journal=path, progress=False, runner=saving))
    draft = Path(f"{path}.checkpoints") / "0001" / "9.1234abcd.draft"
    draft.mkdir(parents=True)
    resume(path, given, progress=False)
    assert not draft.exists()
