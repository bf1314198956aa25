"""The journal: what is in it, who may write it, and what happens when the disk does not help."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from latebloomer import UCBE, JournalFile, LocalRunner, race, read_verdict, resume
from latebloomer.errors import JournalError, JournalInUse, JournalMismatch, SettingError
from latebloomer.policies.registry import REGISTRY, make_policy
from latebloomer.racing.checkpoints.storage import digest_of
from latebloomer.racing.journal import connections, files, recovery
from latebloomer.racing.journal.schema import COLUMNS
from latebloomer.racing.recorded_race import process_started
from latebloomer.racing.settings import Settings
from latebloomer.session.events import KINDS, Created, ProcessClosed, ScoreReported
from tests.helpers.journals import change, entries_in, limit_pages, rows
from tests.helpers.learners import LEARNERS, Saves, saves
from tests.helpers.races import run
from tests.helpers.repository import ROOT

SETTINGS = Settings(policy=make_policy("r-sr"), budget=40)


def created(names):
    return Created("race", SETTINGS.as_dict(), tuple(names))


def test_pulls_settings_versions_and_verdict_can_be_read_with_any_sqlite_tool(path):
    verdict = run(path, seed=3, policy="r-sr")
    pulls = rows(path, "SELECT t, arm, n, score, seconds, at FROM pulls ORDER BY t")
    assert [pull[0] for pull in pulls] == list(range(1, 41))
    for arm, name in enumerate(LEARNERS):
        mine = [pull for pull in pulls if pull[1] == arm]
        assert [pull[2] for pull in mine] == list(range(1, verdict.pulls[name] + 1))
        assert [pull[3] for pull in mine] == verdict.curve(name)
    assert all(seconds >= 0 and at > 1e9 for *_, seconds, at in pulls)
    settings = dict(rows(path, "SELECT key, value FROM settings"))
    assert (settings["budget"], settings["seed"], settings["maximize"]) == (40, 3, 1)
    assert json.loads(settings["policy"])["repr"] == repr(make_policy("r-sr"))
    kept = dict(rows(path, "SELECT key, value FROM verdict"))
    assert (kept["name"], kept["spent"]) == (verdict.name, 40)
    assert kept.keys() == verdict.summary().keys()
    ((versions, ended),) = rows(path, "SELECT versions, ended FROM processes")
    assert json.loads(versions)["latebloomer"] and ended


GUIDE = (ROOT / "docs" / "journal.md").read_text()
VIEWS = dict(re.findall(r"^\| `(\w+)` \| `([a-z, _]+)`", GUIDE.partition("## Views")[2], re.M))


def test_the_guide_names_every_column_and_event_and_what_it_promises_can_be_asked_for(tmp_path):
    def fails():
        yield 0.5
        raise RuntimeError("boom")

    path, learners = tmp_path / "race.db", LEARNERS | {"fails": fails, "saved": Saves}
    saving = LocalRunner(checkpoint_every=3)
    race(learners, 60, journal=path, progress=False, runner=saving, winner_share=0.3)
    assert len(VIEWS) == 8
    for view, columns in VIEWS.items():
        assert rows(path, f"SELECT {columns} FROM {view}"), view
    table = GUIDE.partition("## The table")[2].partition("## Views")[0]
    assert all(f"`{column}`" in table for column in COLUMNS)
    assert all(f"`{kind}`" in table for kind in KINDS)
    (first,) = re.findall(r'^sqlite3 race.db "(.*)"$', GUIDE, re.M)
    assert len(rows(path, first)) == len(learners)


@pytest.mark.parametrize("name", REGISTRY)
def test_the_policy_is_rebuilt_from_the_journal(name):
    policy = UCBE(gaps=(0.0, 0.1, 0.2)) if name == "ucb-e" else make_policy(name)
    settings = Settings(policy=policy, budget=60)
    stored = json.loads(json.dumps(settings.as_dict()))
    assert Settings.from_dict(stored) == settings


def test_two_processes_cannot_race_on_one_journal(path):
    journal = files.create(path, created(LEARNERS))
    journal.append(process_started())
    code = "import sys; from latebloomer.racing.journal import files; files.reopen(sys.argv[1])"
    ran = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert f"process {os.getpid()} on " in ran.stderr and "is in use by" in ran.stderr
    for call in (files.reopen, run):
        with pytest.raises(JournalInUse):
            call(path)
    journal.close()
    files.reopen(path).close()


def test_a_journal_without_a_pull_makes_way(tmp_path, path):
    files.create(path, created("xyz")).close()
    assert run(path).spent == 40
    stopped = tmp_path / "stopped.db"
    connections.connect(stopped, "normal").close()  # a process was stopped while it made the file
    assert stopped.stat().st_size > 0
    with pytest.raises(JournalError, match="no race has started in it"):
        resume(stopped, LEARNERS)
    assert run(stopped).spent == 40


def test_files_that_are_no_journal_are_told_apart(tmp_path):
    text, empty, other = (tmp_path / f"{name}.db" for name in ("text", "empty", "other"))
    text.write_text("hello " * 100)
    empty.touch()
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE trials (id)")
    for path, said in (
        (tmp_path / "none.db", "There is no journal"),
        (text, "is not a journal"),
        (empty, "empty"),
        (other, "another program wrote it"),
    ):
        for call in (read_verdict, lambda path: recovery.repair(path, tmp_path / "new.db")):
            with pytest.raises(JournalError, match=said):
                call(path)
    with pytest.raises(JournalError, match="another program wrote it"):
        run(other)
    assert rows(other, "SELECT name FROM sqlite_master") == [("trials",)]


@pytest.mark.parametrize(
    "version, way", [(3, "Start a new race in another file"), (99, "Upgrade latebloomer")]
)
def test_a_journal_of_another_format_is_refused_in_one_sentence(path, version, way):
    run(path)
    change(path, f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    said = f"has format {version}, and this latebloomer reads only format 4. {way}."
    for call in (read_verdict, run, lambda path: resume(path, LEARNERS)):
        with pytest.raises(JournalError, match=re.escape(said)):
            call(path)
    assert path.read_bytes() == before


def test_a_journal_that_the_rule_would_not_have_written_is_refused(tmp_path):
    run(tmp_path / "race.db")
    events = [entry.event for entry in entries_in(tmp_path / "race.db")]
    told = [k for k, event in enumerate(events) if isinstance(event, ScoreReported)]
    events[told[4]] = ScoreReported(2, 0.5)  # the fifth pull was of the second learner
    with closing(files.create(tmp_path / "forged.db", events[0])) as forged:
        for event in events[1:]:
            forged.append(event)
    # Within a phase the order is free: it shows when the third learner has had all its pulls.
    said = r"Event 35 of the journal does not fit Foresight.* for arm c, .* asked for arm b"
    with pytest.raises(JournalMismatch, match=said):
        read_verdict(tmp_path / "forged.db")


def test_a_full_disk_stops_the_race_and_the_journal_resumes(tmp_path, monkeypatch):
    path, whole = tmp_path / "race.db", run(tmp_path / "whole.db", 3000)
    with monkeypatch.context() as full:
        limit_pages(full, 30)
        with pytest.raises(JournalError, match=r"A pull could not be .*disk is full.* safe"):
            run(path, 3000)
    assert 0 < read_verdict(path).spent < 3000
    assert resume(path, LEARNERS, progress=False).summary() == whole.summary()
    assert rows(path, "SELECT count(*), max(t) FROM pulls") == [(3000, 3000)]


def test_a_folder_that_is_missing_or_read_only_is_said_at_the_start(tmp_path):
    with pytest.raises(JournalError, match=r"there is no folder .* Create it"):
        run(tmp_path / "none" / "race.db")
    with pytest.raises(JournalError, match=r"is a folder\. Give a file"):
        run(tmp_path)
    if Path("/proc/self").is_dir():
        with pytest.raises(JournalError, match="cannot be written"):
            run("/proc/self/race.db")


def test_full_durability_waits_for_the_disk(path):
    run(JournalFile(path, durability="full"))
    for again, waits in [(path, 2), (JournalFile(path), 1), (path, 1)]:  # FULL, NORMAL
        with closing(files.reopen(again)) as journal:
            assert journal.query("PRAGMA synchronous") == (waits,)
            journal.append(ProcessClosed())
    with pytest.raises(SettingError, match=r"durability='some', but .* 'normal' or 'full'"):
        JournalFile(path, durability="some")


KEPT = {"a": saves(0.9), "b": saves(0.7)}


@pytest.mark.parametrize("changed", [False, True])
def test_resume_repeats_only_what_is_not_in_the_newest_checkpoint(path, changed):
    verdict = race(KEPT, 50, journal=path, progress=False, runner=LocalRunner(checkpoint_every=10))
    if changed:
        ((saved,),) = rows(path, "SELECT folder FROM checkpoints WHERE arm = 0")
        (Path(f"{path}.checkpoints") / saved / "n").write_text("999999")
    again = resume(path, KEPT, progress=False)
    assert again.learner.n == verdict.learner.n == verdict.pulls["a"]
    assert again.learner.made == (again.learner.n if changed else 0)  # the winner was saved
    said = rows(path, "SELECT why FROM changes")
    assert any("was not loaded" in text for (text,) in said) == changed
    assert [arm for (arm,) in rows(path, "SELECT arm FROM checkpoints")] == [0, 1]
    for arm in ("0000", "0001"):  # the newest of each is kept
        assert len(list((Path(f"{path}.checkpoints") / arm).iterdir())) == 1


def test_the_digest_knows_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    first = digest_of(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert digest_of(tmp_path) != first
    (tmp_path / "b").rename(tmp_path / "a")
    assert digest_of(tmp_path) == first == (first[0], 1)
