"""`HostedRace`: what schedulers of other tools ask, without the tools."""

import pickle
import random

import pytest

from latebloomer import read_verdict
from latebloomer.errors import AllFailed, BudgetError, JournalMismatch, LearnerError, SettingError
from latebloomer.integrations.hosted_race import END, GO_ON, WAIT, HostedRace, need_count
from latebloomer.session.events import FAILED, FINISHED
from tests.helpers.hosted_races import (
    BUDGET,
    CURVES,
    HORIZON,
    NAMES,
    our_race,
    same_verdict,
    value,
)
from tests.helpers.libraries import refuses

ASKED = {"budget": BUDGET, "horizon": HORIZON}


def hosted(folder, **settings):
    return HostedRace(6, folder / "race.db", **{**ASKED, **settings})


def begun(folder, **settings):
    race = hosted(folder, **settings)
    assert [race.assign(f"id{k}", {"curve": k}) for k in range(6)] == list(range(6))
    return race


def train(race, rng=None, pulls=None):
    """A host with one worker that takes trials in any order and trains each to its level."""
    while not race.session.over and (pulls is None or race.session.spent < pulls):
        arms = [arm for arm in range(6) if race.next_of(arm) == GO_ON]
        arm = rng.choice(arms) if rng else arms[0]
        level, now = race.level(arm), GO_ON
        n = race.session.pulls_of(arm)
        while now == GO_ON and n < level and (pulls is None or race.session.spent < pulls):
            n += 1
            now = race.on_event(arm, n, value(*CURVES[arm], n))


@pytest.mark.parametrize("policy", ["auto", "r-sr", "sh", "adaptive-rejects", "rr"])
def test_any_order_within_the_phases_gives_the_verdict_of_our_own_race(tmp_path, policy):
    race = begun(tmp_path, policy=policy)
    train(race, random.Random(3))
    same_verdict(our_race(NAMES, policy=policy, **ASKED), race.verdict())
    same_verdict(our_race(NAMES, policy=policy, **ASKED), read_verdict(tmp_path / "race.db"))


@pytest.mark.parametrize("policy", ["auto", "sh"])
def test_killed_after_any_pull_and_trained_again_from_the_start(tmp_path, policy):
    ours = our_race(NAMES, policy=policy, **ASKED)
    for pulls in range(1, BUDGET, 6):
        folder = tmp_path / str(pulls)
        race = begun(folder, policy=policy)
        train(race, random.Random(pulls), pulls)
        race.close()
        again = hosted(folder, policy=policy)
        order = random.Random(pulls).sample(range(6), 6)  # its trials come in any order
        assert [again.assign(f"id{k}", {"curve": k}) for k in order] == order
        for arm in range(6):  # the other tool has kept no checkpoint
            for n in range(1, again.session.pulls_of(arm) + 1):
                again.on_event(arm, n, value(*CURVES[arm], n))
        assert again.session.spent == pulls
        train(again, random.Random(1))
        same_verdict(ours, again.verdict())
        assert again.verdict().warnings == ours.warnings


def test_a_journal_that_is_deleted_during_the_race_is_written_again(tmp_path):
    race = begun(tmp_path)
    train(race, pulls=10)
    (tmp_path / "race.db").unlink()
    train(race)
    verdict = race.verdict()
    assert any("was deleted or replaced" in warning for warning in verdict.warnings)
    assert not (tmp_path / "race.db").exists()
    same_verdict(our_race(NAMES, **ASKED), read_verdict(verdict.journal))


def test_what_is_trained_again_is_not_counted_and_must_be_the_same(tmp_path):
    race = begun(tmp_path)
    for n in range(1, 4):
        race.on_event(0, n, value(*CURVES[0], n))
    assert race.on_event(0, 2, value(*CURVES[0], 2)) == GO_ON and race.session.spent == 3
    race.on_event(0, 3, 0.5)
    race.on_event(0, 2, 0.5)
    assert race.session.spent == 3
    (warning,) = (w for w in race.verdict().warnings if "was repeated" in w)
    assert warning.startswith("#0: pull 3 scored 0.5 when it was repeated, ")


def test_a_trial_waits_at_its_level_and_reports_every_result(tmp_path):
    race = begun(tmp_path)
    level = race.level(0)
    said = [race.on_event(0, n, value(*CURVES[0], n)) for n in range(1, level + 1)]
    assert said == [GO_ON] * (level - 1) + [WAIT] and race.level(0) == level
    assert race.on_event(0, level + 1, 0.9) == WAIT and race.session.spent == level  # not counted
    refuses(LearnerError, "#1 reports its result 2 after 0: ", race.on_event, 1, 2, 0.5)


def test_trials_that_fail_or_end_give_their_pulls_to_the_others(tmp_path):
    race = begun(tmp_path)
    assert race.on_event(0, 1, float("nan")) == END
    race.on_event(3, 1, 0.2)
    race.leave(3, FINISHED, "finished")
    race.leave(5, FINISHED, "finished")  # before its first result: failed
    train(race)
    verdict = race.verdict()
    assert [verdict.learners[k].state for k in (0, 5)] == ["failed", "failed"]
    assert verdict.spent == BUDGET and verdict.name == "#1"


def test_without_a_trial_there_is_no_verdict(tmp_path):
    race = begun(tmp_path)
    for arm in range(6):
        race.leave(arm, FAILED, "its trial failed")
    refuses(AllFailed, "and 2 more: its trial failed", race.verdict)


def test_a_trial_that_was_made_anew_with_other_settings_is_another(tmp_path):
    race = hosted(tmp_path)
    for k in range(5):
        race.assign(f"id{k}", {"curve": k})
    race.on_event(0, 1, 0.3)
    race.close()
    again = hosted(tmp_path)
    assert again.assign("id0", {"curve": 77}) == 5  # the last that was free
    assert again.assign("id1", {"curve": 88}) is None
    assert "id1 and other trials beyond n_trials did not race" in again.verdict().warnings
    assert again.assign("other", {"curve": 0}) == 0  # the same settings under another name


def test_a_race_can_be_pickled_and_finds_its_journal(tmp_path):
    race = begun(tmp_path)
    train(race, pulls=40)
    again = pickle.loads(pickle.dumps(race))  # it takes over, as after Ctrl-C in a notebook
    assert again.session.spent == 40 and again.session == race.session
    again.close()


def test_what_a_trial_reports_is_checked(tmp_path):
    assert need_count(3.0, "epoch") == 3
    for wrong in (0, 1.5, "many", None, float("nan"), float("inf")):
        refuses(SettingError, "but epoch must be an integer >= 1", need_count, wrong, "epoch")
    said, own = r"'acc' is not reported\. Reported are: epoch", hosted(tmp_path)
    refuses(LearnerError, said, own.on_result, 0, {"epoch": 1}, "epoch", "acc", 0.0)


def test_what_cannot_be_is_said_in_words(tmp_path):
    for policy in ("r-ucbe", "asha", "rest-sure"):
        said = f"policy='{policy}' decides after every pull or "
        refuses(SettingError, said, hosted, tmp_path, policy=policy)
    refuses(BudgetError, "budget=3 is too small for 6 learners", hosted, tmp_path, budget=3)
    for wrong, said in [
        ({"trainings": 8}, "trainings=8 also needs full_steps="),
        ({"n_trials": 1, "budget": 10}, "n_trials=1, but n_trials must be at least 2"),
        ({"journal": "races/", "budget": 10}, "journal='races/', but journal must be a file"),
    ]:
        given = {"n_trials": 6, "journal": tmp_path / "race.db"} | wrong
        refuses(SettingError, said, HostedRace, **given)
    whole = HostedRace(6, tmp_path / "race.db", trainings=2.5, full_steps=60).settings
    assert whole.budget == 150 and whole.horizon == 60
    race = begun(tmp_path)
    train(race, pulls=10)
    race.close()
    with pytest.raises(JournalMismatch, match=r"n_trials was 6, is 7"):
        HostedRace(7, tmp_path / "race.db", **ASKED).state  # noqa: B018
    with pytest.raises(JournalMismatch, match="budget was 150, is 151"):
        hosted(tmp_path, budget=151).state  # noqa: B018
