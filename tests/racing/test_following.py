"""A race is followed by its journal while another process has it."""

from contextlib import closing

import pytest
from toys import rising

from latebloomer import race, read_verdict
from latebloomer.errors import JournalError, NoScoresYet
from latebloomer.racing import following
from latebloomer.racing.following import follow
from latebloomer.racing.journal import files


@pytest.fixture
def events(tmp_path):
    race({"a": rising(0.7), "b": rising(0.9)}, 20, journal=tmp_path / "made.db", progress=False)
    with closing(files.read(tmp_path / "made.db")) as opened:
        return [entry.event for entry in opened.read()]


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

    monkeypatch.setattr(following.time, "sleep", sleep)
    return tmp_path / "race.db", waits


def test_a_race_is_followed_to_its_end(tmp_path, written_while_asleep, monkeypatch):
    path, waits = written_while_asleep
    seen = list(follow(path))
    spent = [verdict.spent for verdict in seen]
    assert spent == sorted(spent) and len(set(spent)) >= len(spent) - 1  # the end adds no pull
    assert len(seen) > 3 and not seen[0].over and seen[-1].over
    made = read_verdict(tmp_path / "made.db").summary()
    assert seen[-1].summary() == made == read_verdict(path).summary()
    assert all(seconds >= following.EVERY for seconds in waits)


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


def test_only_what_is_new_is_read(written_while_asleep, monkeypatch):
    path, _ = written_while_asleep
    read, real = [], files.SqliteLog.read

    def counted(journal, after=0):
        for entry in real(journal, after):
            read.append(entry.number)
            yield entry

    monkeypatch.setattr(files.SqliteLog, "read", counted)
    list(follow(path))
    assert [number for number in read if number > 1] == list(range(2, max(read) + 1))


def test_an_interrupted_race_is_shown_as_it_stands(tmp_path, cut):
    learners = {"a": rising(0.7), "b": rising(0.9)}
    cut(7, lambda: race(learners, 20, journal=tmp_path / "race.db", progress=False))
    (verdict,) = follow(tmp_path / "race.db")
    assert verdict.spent == 7 and not verdict.over


def test_a_race_without_a_pull_says_so(tmp_path, events):
    files.create(tmp_path / "race.db", events[0]).close()
    with pytest.raises(NoScoresYet, match=r"the race of .*race.db has started"):
        list(follow(tmp_path / "race.db"))
    with pytest.raises(JournalError, match="There is no journal"):
        list(follow(tmp_path / "none.db"))
