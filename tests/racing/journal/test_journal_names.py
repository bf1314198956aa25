"""Where the journal of a race goes: a new file for each, and never into one that is there."""

import re
import subprocess
import sys

import pytest

from latebloomer import JournalFile, LocalRunner, race, read_verdict, resume
from latebloomer.errors import JournalError, JournalMismatch, SettingError
from latebloomer.racing.journal import new_names
from latebloomer.racing.journal.journal_file import RACES
from latebloomer.racing.journal.new_names import ADJECTIVES, NOUNS, begin
from latebloomer.racing.journal.races_folder import newest_journal
from latebloomer.session.events import Created
from tests.helpers.learners import rising

LEARNERS = {"a": rising(0.7), "b": rising(0.9)}


def run(journal=RACES, budget=20, **settings):
    return race(LEARNERS, budget, journal=journal, progress=False, **settings)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def journals(folder):
    return sorted(path.name for path in folder.glob("*.db"))


def test_each_race_has_a_new_file_in_races(tmp_path, capsys):
    verdicts = [race(LEARNERS, 20) for _ in range(2)]
    named = {verdict.journal for verdict in verdicts}
    assert len(named) == 2
    assert {str(path) for path in (tmp_path / "races").glob("*.db")} == named
    said = capsys.readouterr().err
    for verdict in verdicts:
        name = verdict.journal.removeprefix(f"{tmp_path}/")
        assert re.fullmatch(r"races/\d{4}-\d\d-\d\d-\d{4}-[a-z]+-[a-z]+\.db", name)
        assert said.count(f"Journal: {name}\n") == 1  # at the start
        assert f"\nJournal: {name}" in str(verdict)
        assert read_verdict(verdict.journal).summary() == verdict.summary()
    assert list(tmp_path.iterdir()) == [tmp_path / "races"]


def test_the_words_are_many_and_plain():
    assert len(set(ADJECTIVES)) == len(ADJECTIVES) > 50 and len(set(NOUNS)) == len(NOUNS) > 60
    assert all(word.isascii() and word.isalpha() and word.islower() for word in ADJECTIVES + NOUNS)


def test_a_name_that_is_taken_is_not_taken_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(new_names, "ADJECTIVES", ["calm"])
    monkeypatch.setattr(new_names, "NOUNS", ["oak", "elm"])
    created = Created("one", {}, ("a", "b"))
    first, second = (begin("races/", created) for _ in range(2))
    assert first.path != second.path  # both held
    first.close()
    second.close()
    before = first.path.read_bytes()
    with pytest.raises(JournalError, match="No name is free"):  # both are there, and not open
        begin("races/", created, names=lambda folder: [first.path, second.path])
    assert first.path.read_bytes() == before


def test_processes_at_once_get_names_of_their_own(tmp_path):
    code = (
        "from latebloomer.racing.journal import new_names\n"
        "from latebloomer.session.events import Created\n"
        "new_names.ADJECTIVES, new_names.NOUNS = ['calm'], list('abcdefgh')\n"
        "made = [new_names.begin('races/', Created('x', {}, ('a', 'b'))) for _ in range(2)]\n"
        "print(*(journal.path.name for journal in made))\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    found = " ".join(process.communicate()[0] for process in started).split()
    assert len(found) == len(set(found)) == 6
    assert journals(tmp_path / "races") == sorted(found)


def test_where_no_folder_can_be_made_it_is_said(tmp_path):
    (tmp_path / "races").write_text("a file")
    with pytest.raises(JournalError, match=r"No journal can be written in races .*journal=None"):
        run()
    assert (tmp_path / "races").read_text() == "a file"


def test_without_a_name_the_newest_is_looked_at(tmp_path):
    with pytest.raises(JournalError, match=r"There is no folder races. .*start with race"):
        read_verdict()
    (tmp_path / "races").mkdir()
    with pytest.raises(JournalError, match=r"There is no journal in races. Name the file"):
        read_verdict()
    first, second = run(), run(budget=30)
    assert read_verdict().summary() == second.summary()
    resume(first.journal, LEARNERS, progress=False)  # written last
    (tmp_path / "races" / "zzz.db").write_text("no journal")
    (tmp_path / "races" / "empty.db").touch()
    assert str(newest_journal().absolute()) == first.journal
    assert read_verdict().summary() == first.summary()
    own = run("mine/of/today/")
    assert own.journal.startswith(f"{tmp_path}/mine/of/today/")
    assert read_verdict("mine/of/today").summary() == own.summary()


def test_a_file_that_is_there_is_an_error_with_the_ways_out(tmp_path):
    run("race.db")
    before = (tmp_path / "race.db").read_bytes()
    with pytest.raises(JournalMismatch, match="a finished race of 20 pulls") as raised:
        run("race.db")
    said = str(raised.value)
    for way in ("resume('race.db', learners)", 'if_exists="resume"', 'if_exists="new"'):
        assert way in said
    assert "\n" not in said and (tmp_path / "race.db").read_bytes() == before


def test_a_new_file_beside_it(tmp_path):
    (tmp_path / "race-2.db").write_text("a diary")
    made = [run("race.db", if_exists="new").journal for _ in range(3)]
    assert made == [str(tmp_path / name) for name in ("race.db", "race-3.db", "race-4.db")]
    assert (tmp_path / "race-2.db").read_text() == "a diary"
    assert len({read_verdict(path).summary()["spent"] for path in made}) == 1


def test_a_race_that_is_there_goes_on(tmp_path, cut):
    whole = run("whole.db", if_exists="resume")  # there is none: it begins
    cut(7, lambda: run("race.db"))
    assert run("race.db", if_exists="resume").summary() == whole.summary()
    assert run("race.db", if_exists="resume").summary() == whole.summary()  # it is over
    assert journals(tmp_path) == ["race.db", "whole.db"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"budget": 30},
            "Journal race.db holds another race: budget was 20, is 30. Give.*"
            r"resume\('race.db', learners, budget=...\) to extend it, or if_exists",
        ),
        (
            {"budget": None, "trainings": 2, "full_steps": 20},
            "budget was 20, is 40; .*trainings was None, is 2; full_steps was None, is {'a': 20",
        ),
        ({"seed": 1, "maximize": False}, "race: seed was 0, is 1; maximize was True, is False."),
        ({"score_range": (0, 1)}, r"score_range was None, is .0.0, 1.0.\."),
    ],
)
def test_a_race_of_other_settings_does_not_go_on(tmp_path, settings, text):
    run("race.db")
    before = (tmp_path / "race.db").read_bytes()
    with pytest.raises(JournalMismatch, match=text):
        run("race.db", **settings, if_exists="resume")
    assert (tmp_path / "race.db").read_bytes() == before


def test_a_race_of_ones_own_policy_goes_on_and_what_changes_no_decision_may_differ():
    own = {"score_range": (0, 1), "policy": "r-sr"}
    first = run("race.db", **own)
    again = run("race.db", **own, if_exists="resume", runner=LocalRunner(retries=5))
    assert again.summary() == first.summary()
    with pytest.raises(JournalMismatch, match="was named: leave policy out"):
        run("race.db", score_range=(0, 1), if_exists="resume")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"if_exists": "overwrite"}, "if_exists='overwrite', but if_exists must be 'error'"),
        ({"if_exists": None}, "if_exists=None, but if_exists must be"),
        ({"journal": 3}, "journal=3 must be a file, a folder that ends in a slash"),
        ({"journal": " "}, "journal=' ' must be a file"),
        ({"journal": "a\0b.db"}, "but a path must not have the character NUL"),
    ],
)
def test_nonsense_is_refused_before_anything_is_made(tmp_path, settings, text):
    with pytest.raises(SettingError, match=text):
        run(**settings)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", [JournalFile, read_verdict, lambda n: resume(n, LEARNERS)])
def test_what_is_no_path_is_said_to_be_none(call):
    with pytest.raises(SettingError, match=r"=2, but .* must be a path"):
        call(2)


def test_a_current_folder_that_is_gone_hinders_only_what_starts_from_it(tmp_path, monkeypatch):
    """It may have been a learner's temporary folder."""
    path, folder = tmp_path / "race.db", tmp_path / "gone"
    run(path)
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert resume(path, LEARNERS, progress=False).spent == read_verdict(path).spent
    verdict = resume(path, LEARNERS, progress=False, budget=90)
    verdict.report(tmp_path / "race.html")
    run(tmp_path / "new.db")
    with pytest.raises(JournalMismatch, match="already holds a finished race"):
        run(path)
    for call in (run, read_verdict, lambda: resume("race.db", LEARNERS)):
        with pytest.raises(SettingError, match="starts from the current folder, which has been"):
            call()
