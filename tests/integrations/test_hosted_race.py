"""`HostedRace`: what schedulers of other tools ask, without the tools."""

import pickle
import random

import pytest
from hosts import BUDGET, CURVES, HORIZON, our_race, same_verdict, value

from latebloomer import read_verdict
from latebloomer.errors import AllFailed, BudgetError, JournalMismatch, LearnerError, SettingError
from latebloomer.integrations.hosted_race import END, GO_ON, WAIT, HostedRace, need_count
from latebloomer.session.events import FAILED, FINISHED

NAMES = [f"trial {k}" for k in range(6)]
ASKED = {"budget": BUDGET, "horizon": HORIZON}


def hosted(folder, **settings):
    return HostedRace(6, folder / "race.db", **{**ASKED, **settings})


def begin(race):
    return [race.assign(f"id{k}", {"curve": k}) for k in range(6)]


def train(race, rng=None, pulls=None):
    """A host with one worker that takes trials in any order and trains each to its level."""
    while not race.over and (pulls is None or race.session.spent < pulls):
        arms = [arm for arm in range(6) if race.next_of(arm) == GO_ON]
        arm = rng.choice(arms) if rng else arms[0]
        level, now = race.level(arm), GO_ON
        n = race.session.pulls_of(arm)
        while now == GO_ON and n < level and (pulls is None or race.session.spent < pulls):
            n += 1
            now = race.on_event(arm, n, value(*CURVES[arm], n))


@pytest.mark.parametrize("policy", ["auto", "r-sr", "sh", "adaptive-rejects", "rr"])
def test_any_order_within_the_phases_gives_the_verdict_of_our_own_race(tmp_path, policy):
    race = hosted(tmp_path, policy=policy)
    begin(race)
    train(race, random.Random(3))
    same_verdict(our_race(NAMES, policy=policy, **ASKED), race.verdict())
    same_verdict(our_race(NAMES, policy=policy, **ASKED), read_verdict(tmp_path / "race.db"))


def test_a_new_process_goes_on_by_the_journal_whatever_order_its_trials_come_in(tmp_path):
    race = hosted(tmp_path)
    begin(race)
    train(race, pulls=70)
    race.close()
    again = hosted(tmp_path)
    assert [again.assign(f"id{k}", {"curve": k}) for k in (4, 2, 0, 5, 1, 3)] == [4, 2, 0, 5, 1, 3]
    train(again)
    same_verdict(our_race(NAMES, **ASKED), again.verdict())


@pytest.mark.parametrize("policy", ["auto", "sh"])
def test_killed_after_any_pull_and_trained_again_from_the_start(tmp_path, policy):
    ours = our_race(NAMES, policy=policy, **ASKED)
    for pulls in range(1, BUDGET, 6):
        folder = tmp_path / str(pulls)
        race = hosted(folder, policy=policy)
        begin(race)
        train(race, random.Random(pulls), pulls)
        race.close()
        again = hosted(folder, policy=policy)
        begin(again)
        for arm in range(6):  # the other tool has kept no checkpoint
            for n in range(1, again.session.pulls_of(arm) + 1):
                again.on_event(arm, n, value(*CURVES[arm], n))
        assert again.session.spent == pulls
        train(again, random.Random(1))
        same_verdict(ours, again.verdict())
        assert again.verdict().warnings == ours.warnings


def test_what_is_trained_again_is_not_counted_and_must_be_the_same(tmp_path):
    race = hosted(tmp_path)
    begin(race)
    for n in range(1, 4):
        race.on_event(0, n, value(*CURVES[0], n))
    assert race.on_event(0, 2, value(*CURVES[0], 2)) == GO_ON and race.session.spent == 3
    race.on_event(0, 3, 0.5)
    race.on_event(0, 2, 0.5)
    assert race.session.spent == 3
    (warning,) = (w for w in race.verdict().warnings if "made again" in w)
    assert warning.startswith("trial 0: pull 3 scored 0.5 when it was made again, ")


def test_a_trial_waits_at_its_level_for_the_others(tmp_path):
    race = hosted(tmp_path)
    begin(race)
    level = race.level(0)
    said = [race.on_event(0, n, value(*CURVES[0], n)) for n in range(1, level + 1)]
    assert said == [GO_ON] * (level - 1) + [WAIT] and race.level(0) == level
    assert race.on_event(0, level + 1, 0.9) == WAIT and race.session.spent == level  # not counted


def test_a_result_that_is_left_out_is_refused(tmp_path):
    race = hosted(tmp_path)
    begin(race)
    with pytest.raises(LearnerError, match="trial 0 reports its result 2 after 0, but a race"):
        race.on_event(0, 2, 0.5)


def test_trials_that_fail_or_end_give_their_pulls_to_the_others(tmp_path):
    race = hosted(tmp_path)
    begin(race)
    assert race.on_event(0, 1, float("nan")) == END
    race.on_event(3, 1, 0.2)
    race.leave(3, FINISHED, "finished")
    race.leave(5, FINISHED, "finished")  # before its first result: failed
    train(race)
    verdict = race.verdict()
    assert [verdict.learners[k].state for k in (0, 5)] == ["failed", "failed"]
    assert verdict.spent == BUDGET and verdict.name == "trial 1"


def test_without_a_trial_there_is_no_verdict(tmp_path):
    race = hosted(tmp_path)
    for arm in begin(race):
        race.leave(arm, FAILED, "its trial failed")
    assert race.over
    with pytest.raises(AllFailed, match="trial 5: its trial failed"):
        race.verdict()


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
    race = hosted(tmp_path)
    begin(race)
    train(race, pulls=40)
    race.close()
    again = pickle.loads(pickle.dumps(race))
    assert again.session.spent == 40 and again.session == race.session
    again.close()


def test_a_budget_in_full_trainings(tmp_path):
    race = HostedRace(6, tmp_path / "race.db", trainings=2.5, full_steps=60)
    assert race.settings.budget == 150 and race.session.horizon == 60
    race.close()


def test_what_a_trial_reports_is_checked(tmp_path):
    assert need_count(3.0, "epoch") == 3
    for wrong in (0, 1.5, "many", None, float("nan"), float("inf")):
        with pytest.raises(SettingError, match="but epoch must be an integer >= 1"):
            need_count(wrong, "epoch")
    with pytest.raises(LearnerError, match=r"'acc' is not reported\. Reported are: epoch"):
        hosted(tmp_path).on_result(0, {"epoch": 1}, "epoch", "acc", 0.0)


def test_what_cannot_be_is_said_in_words(tmp_path):
    for policy in ("r-ucbe", "asha", "rest-sure"):
        with pytest.raises(SettingError, match=f"policy='{policy}' decides after every pull or "):
            hosted(tmp_path, policy=policy)
    with pytest.raises(SettingError, match="trainings=8 also needs full_steps="):
        HostedRace(6, tmp_path / "race.db", trainings=8)
    with pytest.raises(SettingError, match="n_trials=1, but n_trials must be at least 2"):
        HostedRace(1, tmp_path / "race.db", budget=10)
    with pytest.raises(SettingError, match="journal='races/', but journal must name a file"):
        HostedRace(6, "races/", budget=10)
    with pytest.raises(BudgetError, match="budget=3 is too small for 6 learners"):
        hosted(tmp_path, budget=3)
    race = hosted(tmp_path)
    begin(race)
    train(race, pulls=10)
    race.close()
    with pytest.raises(JournalMismatch, match=r"n_trials was 6, is 7"):
        HostedRace(7, tmp_path / "race.db", **ASKED).state  # noqa: B018
    with pytest.raises(JournalMismatch, match="budget was 150, is 151"):
        hosted(tmp_path, budget=151).state  # noqa: B018
