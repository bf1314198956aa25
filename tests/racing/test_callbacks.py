"""Users' functions that are told what happens, and the guides: their examples and tables."""

import re
from pathlib import Path

import pytest
from toys import curve, quiet, rows

from latebloomer import read_verdict, resume
from latebloomer.errors import SettingError
from latebloomer.racing.race_state import RaceView
from latebloomer.session import events
from latebloomer.session.events import Began, Decided, Ended, ScoreReported, WinnerSelected

LEARNERS = {"a": curve(5, 0.9), "b": curve(5, 0.7), "c": curve(5, 0.5)}


def run(budget=60, learners=LEARNERS, **settings):
    return quiet(learners, budget, **settings)


def test_every_event_comes_once_in_order_and_is_in_the_journal(tmp_path):
    heard = []
    path = tmp_path / "race.db"
    run(journal=path, winner_share=0.3, callbacks=[lambda event, view: heard.append(event)])
    assert isinstance(heard[0], Began) and isinstance(heard[-1], Ended)
    assert sum(isinstance(event, ScoreReported) for event in heard) == 60
    ends = [type(e) for e in heard if isinstance(e, WinnerSelected | Decided)]
    assert ends == [WinnerSelected, Decided]
    kinds = [kind for (kind,) in rows(path, "SELECT kind FROM events ORDER BY id")]
    assert len(kinds) == len(heard) + 1 and kinds[0] == "Created"


def test_the_view_shows_the_race_as_it_stands_after_the_event():
    seen = []

    def note(event, view):
        if isinstance(event, ScoreReported):
            seen.append((view.spent, sum(view.pulls), len(view.events())))
            assert view.names == ("a", "b", "c") and view.budget == 60
            assert view.standings()[0].pulls >= 0 and view.settings.budget == 60

    run(callbacks=[note])
    assert [spent for spent, _, _ in seen] == list(range(1, 61))
    assert all(spent == pulls for spent, pulls, _ in seen)
    assert [count for _, _, count in seen] == sorted({count for _, _, count in seen})


def test_a_callback_can_stop_the_race(tmp_path):
    def enough(event, view):
        if view.spent == 20:
            view.stop("good enough")

    path = tmp_path / "race.db"
    verdict = run(journal=path, winner_share=0.5, callbacks=[enough])
    assert verdict.spent == 20 and verdict.over
    assert verdict.reason == "stopped after 20 of 60 pulls: good enough"
    assert read_verdict(path).summary() == verdict.summary()
    assert resume(path, LEARNERS, progress=False).summary() == verdict.summary()


def test_a_stop_before_the_first_pull_waits_for_it():
    verdict = run(callbacks=[lambda event, view: view.stop("at once")])
    assert verdict.spent == 1


def test_a_failing_callback_is_one_warning_and_the_race_goes_on():
    heard = []

    def broken(event, view):
        raise ValueError("no such thing")

    verdict = run(callbacks=[broken, lambda event, view: heard.append(event)])
    assert verdict.spent == 60
    (found,) = [warning for warning in verdict.warnings if "callback" in warning]
    said = "the callback broken failed on Began (ValueError: no such thing); the race went on"
    assert found == said
    assert sum(isinstance(event, ScoreReported) for event in heard) == 60


def test_on_resume_the_latest_score_comes_again_and_then_what_is_new(tmp_path, cut):
    path, heard = tmp_path / "race.db", []
    cut(25, lambda: run(journal=path))
    resume(path, LEARNERS, progress=False, callbacks=[lambda event, view: heard.append(event)])
    assert sum(isinstance(event, ScoreReported) for event in heard) == 36


@pytest.mark.parametrize("callbacks", [print, 3, [3], [print, None]])
def test_what_is_no_list_of_functions_is_refused(callbacks):
    with pytest.raises(SettingError, match="callbacks"):
        run(callbacks=callbacks)


DOCS = Path(__file__).parents[2] / "docs"


def section(title, page="callbacks.md"):
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.split(f"\n## {title}")[1].split("\n## ")[0]


def introduction(page="callbacks.md"):
    return (DOCS / page).read_text(encoding="utf-8").split("\n## ")[0]


def test_the_example_of_callbacks_prints_and_stops_the_race(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", introduction(), re.DOTALL)
    made = {}
    exec(code, made)
    assert capsys.readouterr().out == "short left: finished after 19 pulls\n"
    assert made["verdict"].reason.endswith("slow is good enough")


def test_the_example_of_full_trainings_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", section("Full trainings", "budget.md"), re.DOTALL)
    made = {}
    exec(code, made)
    assert (made["verdict"].name, made["verdict"].spent) == ("net", 150)


def first_cells(text):
    """The names in the first column of a section's table."""
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return {name.partition("(")[0] for row in rows for name in re.findall(r"`(.*?)`", row)}


def test_the_table_of_the_view_has_all_that_a_view_has():
    public = {name for name in vars(RaceView) if not name.startswith("_")}
    assert first_cells(introduction()) == public


def test_the_table_of_events_has_every_event_with_its_fields():
    text = section("Events")
    kinds = events.KINDS
    assert first_cells(text) == set(kinds)
    for line in re.findall(r"^\| `.*", text, re.MULTILINE):
        names, _, fields = line.strip("| ").split(" | ")
        found = {name for n in re.findall(r"`(\w+)`", names) for name in kinds[n].__match_args__}
        assert found == set(re.findall(r"`(\w+)`", fields)), names
