"""Users' functions that are told what happens, and the guides: their examples and tables."""

import re
import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest

from latebloomer import Session, read_verdict, resume
from latebloomer.errors import SettingError
from latebloomer.racing.callbacks import RaceView
from latebloomer.session import events
from latebloomer.session.events import (
    Dropped,
    Extended,
    LearnerLeft,
    ProcessClosed,
    ProcessStarted,
    RaceFinished,
    Revived,
    ScoreReported,
    WinnerSelected,
)
from tests.helpers.journals import rows
from tests.helpers.learners import curve
from tests.helpers.races import quiet
from tests.helpers.repository import ROOT

LEARNERS = {"a": curve(5, 0.9), "b": curve(5, 0.7), "c": curve(5, 0.5)}


def run(budget=60, learners=LEARNERS, **settings):
    return quiet(learners, budget, **settings)


def test_every_event_comes_once_in_order_and_is_in_the_journal(path):
    heard = []
    run(journal=path, winner_share=0.3, callbacks=[lambda event, view: heard.append(event)])
    assert isinstance(heard[0], ProcessStarted) and isinstance(heard[-1], ProcessClosed)
    assert sum(isinstance(event, ScoreReported) for event in heard) == 60
    ends = [type(e) for e in heard if isinstance(e, WinnerSelected | RaceFinished)]
    assert ends == [WinnerSelected, RaceFinished]
    kinds = [kind for (kind,) in rows(path, "SELECT kind FROM events ORDER BY id")]
    recorded = [event for event in heard if not isinstance(event, Dropped | Revived)]
    assert len(kinds) == len(recorded) + 1 and kinds[0] == "Created"


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


def test_a_callback_can_stop_the_race(path):
    def enough(event, view):
        if view.spent == 20:
            view.stop("good enough")

    verdict = run(journal=path, winner_share=0.5, callbacks=[enough])
    assert verdict.spent == 20 and verdict.over
    assert verdict.reason == "stopped after 20 of 60 pulls: good enough"
    assert read_verdict(path).summary() == verdict.summary()
    assert resume(path, LEARNERS, progress=False).summary() == verdict.summary()


@pytest.mark.parametrize("text", ["bad \udcff byte", "nul \0 end", "esc \x1b[31m", "two\nlines"])
def test_a_reason_of_any_characters_can_be_read_by_everyone(path, text):
    def stop(event, view):
        if view.spent == 20:
            view.stop(text)

    verdict = run(journal=path, callbacks=[stop])
    shown = text.encode("unicode_escape", "surrogatepass").decode()
    assert verdict.reason.encode() == f"stopped after 20 of 60 pulls: {shown}".encode()
    assert read_verdict(path).summary() == verdict.summary()
    with closing(sqlite3.connect(path)) as journal:
        for view in ("changes", "verdict"):
            rows_of = journal.execute(f"SELECT * FROM {view}").fetchall()
            assert any(shown in str(cell) for row in rows_of for cell in row)


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
    why = "ValueError: no such thing"
    said = f"the callback broken failed on ProcessStarted ({why}); the race continued"
    assert found == said
    assert sum(isinstance(event, ScoreReported) for event in heard) == 60


def test_on_resume_the_latest_score_comes_again_and_then_what_is_new(tmp_path, cut):
    path, heard = tmp_path / "race.db", []
    cut(25, lambda: run(journal=path))
    resume(path, LEARNERS, progress=False, callbacks=[lambda event, view: heard.append(event)])
    assert sum(isinstance(event, ScoreReported) for event in heard) == 36


# --- drops, which are in no journal ---


def heard_by(events_heard):
    return lambda event, view: events_heard.append(event)


def drops_of(heard):
    """What was dropped or revived, each with the kind of event that came before."""
    found = []
    for before, event in pairwise([None, *heard]):
        if isinstance(event, Dropped | Revived):
            cause = found[-1][0] if isinstance(before, Dropped | Revived) else type(before)
            found.append((cause, type(event), event.arm))
    return found


def test_a_drop_is_heard_right_after_the_score_that_decided_it(path):
    heard = []
    verdict = run(journal=path, policy="r-sr", callbacks=[heard_by(heard)])
    assert drops_of(heard) == [(ScoreReported, Dropped, 2), (ScoreReported, Dropped, 1)]
    for event in heard:
        if isinstance(event, Dropped):
            one = verdict[LEARNERS_IN_ORDER[event.arm]]
            assert (one.departed_at, one.estimate) == (event.at, event.estimate)
            assert one.why == events.text_of(event)
    assert not any(name in {row[0] for row in rows(path, "SELECT kind FROM events")}
                   for name in ("Dropped", "Revived"))  # fmt: skip


LEARNERS_IN_ORDER = list(LEARNERS)


@pytest.mark.parametrize("pulls", [18, 33, 60])
def test_a_kill_between_a_score_and_its_drop_loses_none(tmp_path, cut, pulls):
    """Whatever the moment: after the resume, each was heard of at least once, in order."""
    calm, heard, path = [], [], tmp_path / "race.db"
    run(policy="r-sr", callbacks=[heard_by(calm)])
    # The kill comes when the score is in the journal, before callbacks hear of it.
    cut(pulls, lambda: run(journal=path, policy="r-sr", callbacks=[heard_by(heard)]))
    resume(path, LEARNERS, progress=False, callbacks=[heard_by(heard)])
    assert list(dict.fromkeys(drops_of(heard))) == drops_of(calm)


def test_a_drop_that_follows_from_a_failure_is_heard_after_it():
    heard = []

    def fails():
        yield from (0.9, 0.9, 0.9, 0.9)
        raise RuntimeError("no more")

    learners = {**LEARNERS, "fails": fails}
    run(100, learners, policy="r-sr", callbacks=[heard_by(heard)])
    assert any(isinstance(event, LearnerLeft) for event in heard)
    arms = [arm for _, _, arm in drops_of(heard)]
    assert sorted(arms) == [1, 2]


def test_an_extension_revives_aloud_and_does_not_drop_again_what_stays_out(path):
    run(journal=path, policy="r-sr")
    heard = []
    verdict = resume(path, LEARNERS, budget=300, progress=False, callbacks=[heard_by(heard)])
    back = [arm for cause, kind, arm in drops_of(heard) if kind is Revived]
    assert back and all(cause is Extended for cause, kind, _ in drops_of(heard) if kind is Revived)
    (extended,) = [event for event in heard if isinstance(event, Extended)]
    assert all(LEARNERS_IN_ORDER[arm] in extended.why for arm in back)
    out = {arm for _, kind, arm in drops_of(heard) if kind is Dropped}
    assert {LEARNERS_IN_ORDER[arm] for arm in out} <= {one.name for one in verdict.learners}
    again = []
    resume(path, LEARNERS, budget=310, revive=False, progress=False, callbacks=[heard_by(again)])
    assert not any(kind is Revived for _, kind, _ in drops_of(again))


def test_drops_follow_from_the_events_alone():
    """A replay has the same ones, bit for bit."""
    session = Session("r-sr", 5, 200)
    while not session.over:
        arm = session.ask()
        session.tell(arm, arm / 5 + session.pulls[arm] / 100)
    assert [type(one) for one in session.drops] == [Dropped] * 4
    assert session.replay(session.history).drops == session.drops


@pytest.mark.parametrize("callbacks", [print, 3, [3], [print, None]])
def test_what_is_no_list_of_functions_is_refused(callbacks):
    with pytest.raises(SettingError, match="callbacks"):
        run(callbacks=callbacks)


async def awaited(event, view):
    view.stop("never")


def generated(event, view):
    yield view.stop("never")


@pytest.mark.parametrize("function", [awaited, generated])
def test_functions_whose_code_no_call_runs_are_refused(function):
    with pytest.raises(SettingError, match="Give a plain function"):
        quiet({"a": curve(4, 0.5), "b": curve(4, 0.4)}, 20, callbacks=[function])


@pytest.mark.parametrize("seconds", ["1", None, float("nan"), float("inf"), -5.0, True, 10**400])
def test_a_reserve_that_is_no_time_is_a_warning_and_changes_nothing(seconds):
    seen = set()

    def reserve(event, view):
        seen.add(view.reserved)
        if isinstance(event, ScoreReported):
            view.reserve(seconds)

    learners = {"a": curve(4, 0.5), "b": curve(4, 0.4)}
    verdict = quiet(learners, seconds=0.02, callbacks=[reserve])
    said = "the callback reserve failed on ScoreReported (SettingError: seconds"
    assert seen == {0.0} and any(said in warning for warning in verdict.warnings)


DOCS = ROOT / "docs"


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
    kinds = events.KINDS | {kind.__name__: kind for kind in (Dropped, Revived)}
    assert first_cells(text) == set(kinds)
    for line in re.findall(r"^\| `.*", text, re.MULTILINE):
        names, _, fields = line.strip("| ").split(" | ")
        found = {name for n in re.findall(r"`(\w+)`", names) for name in kinds[n].__match_args__}
        assert found == set(re.findall(r"`(\w+)`", fields)), names
