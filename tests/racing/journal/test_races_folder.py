"""The list of races, whatever state a file is in; and races that are followed."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from latebloomer import LocalRunner, race, read_verdict, resume
from latebloomer.errors import JournalError, NoScoresYet
from latebloomer.racing.journal import files
from latebloomer.racing.journal.races_folder import clean, list_races
from latebloomer.watch import journal_follower
from latebloomer.watch.journal_follower import follow
from tests.helpers.journals import change, entries_in
from tests.helpers.learners import acts, rising, saves

LEARNERS = {"a": saves(1.0), "b": saves(2.0), "c": saves(0.5)}


def run(path, budget=30, **settings):
    saving = LocalRunner(checkpoint_every=2)
    return race(LEARNERS, budget, journal=path, progress=False, runner=saving, **settings)


def size_of(folder):
    """Bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_what_is_listed_of_a_race(tmp_path):
    verdict = run(tmp_path / "race.db")
    (listed,) = list_races(tmp_path)
    assert listed.state == "finished" and listed.path == str(tmp_path / "race.db")
    assert (listed.learners, listed.pulls, listed.budget) == (("a", "b", "c"), 30, 30)
    assert (listed.winner, listed.score) == (verdict.name, verdict.score)
    assert listed.certified is verdict.certified
    assert listed.bytes >= (tmp_path / "race.db").stat().st_size
    newest = [max((tmp_path / "race.db.checkpoints").glob(f"000{arm}/*")) for arm in range(3)]
    assert listed.checkpoint_bytes == sum(map(size_of, newest)) > 3000
    json.dumps(vars(listed))


def test_a_race_that_runs_and_one_that_was_cut(tmp_path, cut):
    seen = []
    nosy = acts(5, lambda: seen.extend(list_races(tmp_path)), 1.0)
    race(LEARNERS | {"nosy": nosy}, 40, journal=tmp_path / "on.db", progress=False)
    (listed,) = seen
    assert (listed.state, listed.pulls, listed.winner) == ("running", 19, None)
    cut(7, lambda: run(tmp_path / "cut.db"))
    (listed,) = [one for one in list_races(tmp_path) if one.path.endswith("cut.db")]
    assert (listed.state, listed.pulls, listed.budget) == ("interrupted", 7, 30)
    (verdict,) = follow(tmp_path / "cut.db")  # as it stands
    assert verdict.spent == 7 and not verdict.over


def test_bad_files_do_not_keep_the_others_from_being_listed(tmp_path):
    for name in ("good", "cut-off", "rows", "newer", "nothing"):
        run(tmp_path / f"{name}.db")
    whole = (tmp_path / "cut-off.db").read_bytes()
    (tmp_path / "cut-off.db").write_bytes(whole[:5000])
    change(tmp_path / "rows.db", "UPDATE events SET data = 'no json' WHERE kind = 'RaceFinished'")
    change(tmp_path / "newer.db", "PRAGMA user_version = 99")
    change(tmp_path / "nothing.db", "DELETE FROM events")
    change(tmp_path / "other.db", "CREATE TABLE trials (id)")
    (tmp_path / "empty.db").touch()
    (tmp_path / "text.db").write_text("hello " * 100)
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "lost.db").symlink_to(tmp_path / "nowhere")
    found = {Path(race.path).name: race for race in list_races(tmp_path)}
    states = {name: race.state for name, race in found.items()}
    assert states == {
        "good.db": "finished", "cut-off.db": "damaged", "rows.db": "damaged",
        "newer.db": "unreadable", "nothing.db": "damaged", "empty.db": "empty",
    }  # fmt: skip
    assert all(bool(race.wrong) == (race.state not in ("finished", "interrupted", "running"))
               for race in found.values())  # fmt: skip
    assert all("\n" not in race.wrong for race in found.values())


def test_listing_leaves_the_folder_as_it_is_and_goes_by_the_time_of_writing(tmp_path):
    for name in ("z.db", "y.journal", "x.db"):  # whatever the name
        run(tmp_path / name)
    before = sorted(tmp_path.iterdir())
    listed = [(Path(race.path).name, race.state) for race in list_races(tmp_path)]
    assert listed == [("z.db", "finished"), ("y.journal", "finished"), ("x.db", "finished")]
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(JournalError, match="There is no folder"):
        list_races(tmp_path / "none")


def test_cleaning_keeps_winners_and_all_of_races_that_are_not_over(tmp_path, cut):
    whole = run(tmp_path / "race.db")
    cut(20, lambda: run(tmp_path / "cut.db"))
    kept = sorted((tmp_path / "cut.db.checkpoints").rglob("*"))
    before = (tmp_path / "race.db").read_bytes()
    with closing(files.reopen(tmp_path / "race.db")):  # somebody has it
        assert list(clean(tmp_path)) == []
    dropped = sum(size_of(tmp_path / f"race.db.checkpoints/000{arm}") for arm in (0, 2))
    (cleaned,) = clean(tmp_path)
    assert (cleaned.path, cleaned.learners, cleaned.bytes) == (
        str(tmp_path / "race.db"),
        2,
        dropped,
    )
    assert [folder.name for folder in (tmp_path / "race.db.checkpoints").iterdir()] == ["0001"]
    assert sorted((tmp_path / "cut.db.checkpoints").rglob("*")) == kept
    assert (tmp_path / "race.db").read_bytes() == before
    assert list(clean(tmp_path)) == []  # nothing is left to remove
    again = resume(tmp_path / "race.db", LEARNERS, progress=False)
    assert again.summary() == whole.summary() and again.learner.n == whole.learner.n
    assert run(tmp_path / "cut.db", if_exists="resume").summary() == whole.summary()


@pytest.fixture
def events(tmp_path):
    race({"a": rising(0.7), "b": rising(0.9)}, 20, journal=tmp_path / "made.db", progress=False)
    return [entry.event for entry in entries_in(tmp_path / "made.db")]


@pytest.fixture
def written_while_asleep(tmp_path, events, monkeypatch):
    """A journal to which five events are added whenever the follower waits."""
    journal, rest, waits = files.create(tmp_path / "race.db", events[0]), list(events[1:]), []

    def sleep(seconds):
        waits.append(seconds)
        for _ in range(5):
            if rest:
                journal.append(rest.pop(0))
        if not rest:
            journal.close()

    monkeypatch.setattr(journal_follower.time, "sleep", sleep)
    return tmp_path / "race.db", waits


def test_a_race_is_followed_to_its_end(tmp_path, written_while_asleep, monkeypatch):
    path, waits = written_while_asleep
    read, real = [], files.SqliteLog.read

    def counted(journal, after=0):
        for entry in real(journal, after):
            read.append(entry.number)
            yield entry

    with monkeypatch.context() as patched:
        patched.setattr(files.SqliteLog, "read", counted)
        seen = list(follow(path))
    new = [number for number in read if number > 1]
    assert new == list(range(2, max(read) + 1))  # each is read once
    spent = [verdict.spent for verdict in seen]
    assert spent == sorted(spent) and len(set(spent)) >= len(spent) - 1  # the end adds no pull
    assert len(seen) > 3 and not seen[0].over and seen[-1].over
    made = read_verdict(tmp_path / "made.db").summary()
    assert seen[-1].summary() == made == read_verdict(path).summary()
    assert all(seconds >= journal_follower.EVERY for seconds in waits)


def test_who_looks_on_does_not_keep_the_journal_from_being_whole(tmp_path, events):
    journal = files.create(tmp_path / "race.db", events[0])
    onlooker = files.read(tmp_path / "race.db")
    list(onlooker.read())
    journal.append(*events[1:])
    journal.close()
    onlooker.close()
    (tmp_path / "copy.db").write_bytes((tmp_path / "race.db").read_bytes())  # without the -wal
    copy, made = (read_verdict(tmp_path / f"{name}.db").summary() for name in ("copy", "made"))
    assert copy == made


def test_a_race_without_a_pull_says_so(tmp_path, events):
    files.create(tmp_path / "race.db", events[0]).close()
    with pytest.raises(NoScoresYet, match=r"the race of .*race.db has started"):
        list(follow(tmp_path / "race.db"))
    with pytest.raises(JournalError, match="There is no journal"):
        list(follow(tmp_path / "none.db"))


def test_learners_that_were_added_are_listed(tmp_path):
    run(tmp_path / "race.db")
    learners = LEARNERS | {"new": rising(0.8)}
    resume(tmp_path / "race.db", learners, budget=90, progress=False)
    (listed,) = list_races(tmp_path)
    assert listed.learners == tuple(learners)
