"""Races that are given more: a larger budget, another horizon, newcomers."""

import re

import pytest

from latebloomer import LocalRunner, race, read_verdict, resume
from latebloomer.errors import BudgetError, LearnerError, SettingError
from latebloomer.racing.checks.check_runner import Rising
from latebloomer.session.events import Extended, Joined, Restored
from tests.helpers.journals import rows


def of(best, slow):
    return lambda: Rising(best, slow)


LEARNERS = {"late": of(1.0, 40.0), "a": of(0.7, 5.0), "b": of(0.6, 2.0), "c": of(0.5, 1.0)}
NEW = {"new": of(1.2, 10.0)}


def run(path, budget=60, **settings):
    return race(LEARNERS, budget, journal=path, progress=False, policy="r-sr", **settings)


def pulls(path):
    return rows(path, "SELECT arm, n, score FROM pulls ORDER BY arm, n")


def contents(path):
    return rows(path, "SELECT * FROM events WHERE kind NOT IN ('ProcessStarted', 'ProcessClosed')")


@pytest.mark.parametrize("at", [None, 33])
def test_a_race_goes_on_as_the_race_of_the_larger_budget(tmp_path, cut, at):
    path, runner = tmp_path / "race.db", LocalRunner(checkpoint_every=1)
    if at is None:
        assert run(path, runner=runner).spent == 60
    else:
        cut(at, lambda: run(path))
    more = resume(path, LEARNERS, budget=150, progress=False)
    whole = run(tmp_path / "whole.db", 150, horizon=60)
    assert more.spent == more.budget == 150 and more.horizon == 60
    assert more.pulls == whole.pulls and more.name == whole.name
    assert more.estimates == whole.estimates
    assert pulls(path) == pulls(tmp_path / "whole.db")
    assert more.learner.n == more.pulls[more.name]
    assert read_verdict(path).summary() == more.summary()


def test_what_comes_back_is_announced_before_it_is_paid(tmp_path, capsys):
    path, events = tmp_path / "race.db", []
    first = run(path, runner=LocalRunner(checkpoint_every=5))
    resume(path, LEARNERS, budget=150, callbacks=[lambda e, view: events.append(e)])
    said = capsys.readouterr().err
    back = [name for name in LEARNERS if first[name].state == "dropped"]
    line = next(line for line in said.splitlines() if "Extending" in line)
    revived = ", ".join(f"{name} (at pull {first.pulls[name]})" for name in back)
    # All are at the end of a phase, and were saved when they were dropped: nothing is retrained.
    assert line == (
        f"Extending the budget from 60 to 150 pulls. Revived: {revived}. "
        "The horizon stays at 60 pulls."
    )
    assert "Resumed at pull 60 of 150. Every learner is restored from its checkpoint." in said
    extended = next(k for k, event in enumerate(events) if isinstance(event, Extended))
    assert not any(isinstance(event, Restored) for event in events[:extended])
    assert said.index("Extending") < said.index("Resumed at pull 60 of 150")


def test_without_checkpoints_the_cost_is_announced(path, capsys):
    first = run(path)
    resume(path, LEARNERS, budget=150)
    said = re.findall(r"Retraining (\d+) pulls that no checkpoint", capsys.readouterr().err)
    assert said == [str(sum(arm.pulls for arm in first.learners if arm.state == "dropped"))]


def test_dropped_learners_are_saved_where_checkpoints_are_asked_for(tmp_path):
    first = run(tmp_path / "race.db", runner=LocalRunner(checkpoint_every=1000))
    saved = dict(rows(tmp_path / "race.db", "SELECT arm, n FROM checkpoints"))
    assert saved == {i: arm.pulls for i, arm in enumerate(first.learners)}


def test_survivors_alone(path):
    first = run(path, 60, horizon=200)
    more = resume(path, LEARNERS, budget=100, revive=False, progress=False)
    assert more.name == first.name and more.spent == 100
    for name in LEARNERS:
        assert more.pulls[name] == first.pulls[name] + 40 * (name == first.name)
    assert read_verdict(path).summary() == more.summary()


def test_the_horizon_moves_where_it_is_given_and_the_verdict_says_what_is_not_claimed(tmp_path):
    run(tmp_path / "race.db")
    more = resume(tmp_path / "race.db", LEARNERS, budget=150, horizon=150, progress=False)
    assert more.horizon == 150 and more.spent == 150
    (warning,) = [text for text in more.warnings if "Extending the budget" in text]
    assert "The horizon moves from 60 to 150 pulls" in warning
    assert "After an extension only the certificate still applies" in warning


def test_an_extension_that_the_horizon_blocks_says_which_horizon_to_pass(path):
    race(LEARNERS, 80, horizon=20, journal=path, progress=False)  # all four to the end
    more = resume(path, LEARNERS, budget=600, progress=False)
    assert more.spent == 80
    assert more.reason.endswith(", because the horizon is still 20: pass horizon=600")
    assert resume(path, LEARNERS, budget=600, horizon=600, progress=False).spent > 500


def test_the_same_call_again_only_resumes(path, cut):
    run(path)
    cut(20, lambda: resume(path, LEARNERS, budget=150, add=NEW, progress=False))
    more = resume(path, LEARNERS, budget=150, add=NEW, progress=False)
    again = resume(path, LEARNERS, budget=150, add=NEW, progress=False)
    plain = resume(path, {**LEARNERS, **NEW}, progress=False)
    assert more.summary() == again.summary() == plain.summary() and more.spent == 150
    query = "SELECT kind, count(*) FROM events WHERE kind IN ('Joined', 'Extended') GROUP BY 1"
    assert dict(rows(path, query)) == {"Extended": 1, "Joined": 1}


def test_it_can_be_extended_again_and_again(path):
    run(path, 40, horizon=500)
    for budget in (50, 80, 81, 150):
        verdict = resume(path, LEARNERS, budget=budget, progress=False)
        assert verdict.spent == budget
    assert read_verdict(path).summary() == verdict.summary()


def test_a_race_with_a_delivered_winner_names_it_again(path):
    first = run(path, 60, winner_share=0.3, horizon=300)
    assert first.trained.pulls_after_selection == 18
    more = resume(path, LEARNERS, budget=160, progress=False)
    assert more.spent == 160
    assert more.trained.pulls_after_selection == 30  # 30 % of the 100 new pulls
    assert read_verdict(path).summary() == more.summary()


def test_a_race_that_a_callback_stopped_goes_on(path):
    stopped = run(path, callbacks=[lambda e, view: view.spent == 20 and view.stop("enough")])
    assert stopped.spent == 20
    assert resume(path, LEARNERS, budget=60, progress=False).spent == 60


def test_policies_that_decide_every_pull_go_on_with_all_arms(path):
    race(LEARNERS, 60, journal=path, progress=False, policy="r-ucbe", horizon=100)
    more = resume(path, LEARNERS, budget=120, add=NEW, progress=False)
    assert more.spent == 120 and more.pulls["new"] >= 4


def test_it_works_with_a_process_for_each_learner(path):
    run(path, runner="isolated")
    more = resume(path, LEARNERS, budget=90, progress=False)
    assert more.spent == 90 and more.learner.n == more.pulls[more.name]


def test_a_newcomer_catches_up_and_may_win(path):
    run(path)
    more = resume(path, LEARNERS, budget=200, add=NEW, progress=False)
    four = race({**LEARNERS, **NEW}, 200, journal=None, progress=False, policy="r-sr", horizon=60)
    assert more.name == four.name == "new" and more.pulls == four.pulls
    assert more.learner.n == more.pulls["new"]
    arms = rows(path, "SELECT name FROM arms ORDER BY arm")
    assert arms == [(name,) for name in (*LEARNERS, "new")]
    later = resume(path, {**LEARNERS, **NEW}, budget=220, progress=False)
    assert later.spent == 217 and "has reached the horizon of 60 pulls" in later.reason


def test_callbacks_are_told_and_see_the_newcomer(tmp_path):
    path, seen = tmp_path / "race.db", []
    run(path)

    def note(event, view):
        if isinstance(event, Joined | Extended):
            seen.append((type(event).__name__, len(view.names), view.budget))

    resume(path, LEARNERS, budget=200, add=NEW, progress=False, callbacks=[note])
    assert seen == [("Joined", 5, 200), ("Extended", 5, 200)]  # told when both have happened


BAD = [
    ({"budget": 30}, BudgetError, "budget=30 is below the race's budget of 60 pulls"),
    ({"budget": 0}, BudgetError, "budget=0 is below the race's budget of 60 pulls"),
    ({"budget": "90"}, SettingError, "budget='90'"),
    ({"budget": 90.5}, SettingError, "budget=90.5"),
    ({"budget": 90, "horizon": 3}, SettingError, "horizon=3, but horizon must be at least"),
    ({"horizon": 90}, SettingError, "horizon=90 also needs a larger budget"),
    ({"budget": 90, "revive": "no"}, SettingError, "revive='no'"),
    ({"budget": 90, "add": {"a": of(1, 1)}}, SettingError, "'a' is in this race already"),
    ({"budget": 90, "add": {"new": 7}}, LearnerError, "learner 'new' is 7"),
    ({"budget": 90, "add": {"": of(1, 1)}}, SettingError, "named by text"),
    ({"budget": 90, "add": [1]}, SettingError, "add must be a dict"),
    ({"add": NEW}, SettingError, "also needs a larger budget, which pays for it"),
    ({"revive": "no"}, SettingError, "revive='no', but revive must be True or False"),
    ({"revive": False}, SettingError, "revive=False is an option of extensions, but this call"),
    ({"full_steps": 7}, SettingError, "full_steps=7 is an option of extensions, but this call"),
    ({"budget": 90, "full_steps": 7}, SettingError, "a pull of this race is one step: omit it"),
]


@pytest.mark.parametrize("more, error, text", BAD)
def test_what_cannot_be_is_said_and_nothing_is_changed(path, more, error, text):
    run(path)
    before = contents(path)
    with pytest.raises(error) as said:
        resume(path, LEARNERS, progress=False, **more)
    assert text in str(said.value)
    assert contents(path) == before
