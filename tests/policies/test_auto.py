"""The default policy, what "auto" becomes; and `min_pulls`, before which no arm is dropped."""

import json
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import latebloomer as lb
from latebloomer.cli import app
from latebloomer.core.ledger import ANY
from latebloomer.errors import BudgetError, JournalMismatch, SettingError
from latebloomer.policies.base import cost_of, least_budget
from latebloomer.policies.registry import REGISTRY, choose_policy, label_of, make_policy
from latebloomer.racing.journal import files as journals
from latebloomer.session.events import FAILED, BudgetReplanned, LearnerLeft
from tests.helpers.played_policies import play

DEFAULT = lb.Foresight()
STEEP, EVEN = lb.AdaptiveRejects(), lb.AdaptiveRejects(power=1.0)


def rising(best):
    return lambda: (best * n / (n + 5) for n in range(1, 1000))


LEARNERS = {"a": rising(0.9), "b": rising(0.7), "c": rising(0.5)}


def run(path=None, budget=40, **settings):
    return lb.race(LEARNERS, budget, journal=path, progress=False, **settings)


def run_cli(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize(
    ("budget", "policy"), [(50, EVEN), (100, EVEN), (150, STEEP), (9999, STEEP)]
)
def test_the_plan_is_even_up_to_one_full_training_and_steep_from_one_and_a_half_on(budget, policy):
    assert choose_policy(arms=8, budget=budget, horizon=100) == DEFAULT
    assert lb.Session("auto", 8, budget, horizon=100).policy == DEFAULT
    assert run(budget=budget, horizon=100).settings["policy"]["repr"] == repr(DEFAULT)
    ours, theirs = (one.plan(8, budget, 100) for one in (DEFAULT, policy))
    assert all(map(np.array_equal, ours, theirs))


def test_a_budget_too_small_says_what_is_needed():
    said = "budget=2 is too small for 3 learners: foresight needs at least 3"
    calls = (
        lambda: choose_policy(3, 2, 2),
        lambda: lb.Session("auto", 3, 2),
        lambda: run(budget=2),
    )
    for call in calls:
        with pytest.raises(BudgetError, match=said):
            call()


@pytest.mark.parametrize("name", ["auto", "auto:power=2"])
def test_a_name_alone_does_not_say_which_policy_it_is(name):
    with pytest.raises(SettingError, match=r"choose_policy\(arms, budget, horizon\) to get it"):
        make_policy(name)


def test_a_race_names_what_it_plays_and_its_journal_has_it(capfd, tmp_path):
    path, label = tmp_path / "race.db", label_of(DEFAULT)
    verdict = lb.race(LEARNERS, 40, journal=path)
    said = f"Racing 3 learners with policy {label} (chosen by auto)"
    assert capfd.readouterr().err.startswith(said)
    assert verdict.policy == f"auto: {label}" and f"{label}, chosen by auto" in str(verdict)
    assert lb.read_verdict(path).policy == verdict.policy
    assert run(policy="r-sr").policy == "r-sr"
    with sqlite3.connect(path) as db:
        values = dict(db.execute("SELECT key, value FROM settings"))
    assert json.loads(values["policy"])["name"] == "foresight" and values["auto"] == 1
    for policy in (None, "auto", "foresight"):
        again = lb.resume(path, LEARNERS, policy=policy, progress=False)
        assert again.summary() == verdict.summary()


def test_a_race_goes_on_with_what_auto_began_and_a_policy_that_was_named_is_not_auto(tmp_path):
    """Journals from when "auto" was Adaptive Rejects."""
    run(tmp_path / "race.db", policy=EVEN)
    opened = journals.read(tmp_path / "race.db")
    created, *events = (entry.event for entry in opened.read())
    opened.close()
    settings = {k: v for k, v in created.settings.items() if k != "min_pulls"} | {"auto": True}
    older = journals.create(tmp_path / "older.db", replace(created, settings=settings))
    for event in events[:15]:
        older.append(event)
    older.close()
    again = lb.resume(tmp_path / "older.db", LEARNERS, policy="auto", progress=False)
    assert again.policy == f"auto: {label_of(EVEN)}"
    assert again.pulls == lb.read_verdict(tmp_path / "race.db").pulls
    said = r"policy='auto', but .* AdaptiveRejects.*, which was named"
    with pytest.raises(JournalMismatch, match=said):
        lb.resume(tmp_path / "race.db", LEARNERS, policy="auto")


def test_plan_shows_what_a_race_would_do():
    size = ("plan", "--learners", 4, "--budget", 40)
    said = run_cli(*size).output
    planned = str(DEFAULT.describe(4, 40)).replace("\n", ", chosen by auto\n", 1)
    assert said.startswith(planned + "\nUp to 4 workers can train")
    assert "foresight, c" in run_cli(*size, "--horizon", 20, "--policy", "auto").output
    words = ("plan", "--learners", 64, "--budget", 200, "--horizon", 50)
    assert "learners are dropped after one pull" in run_cli(*words).output
    said = run_cli(*words, "--min-pulls", 2).output
    assert "at 2 pulls. An improvement" in said and "Warning" not in said


def test_the_simulator_chooses_for_each_budget():
    both = ["auto", "adaptive-rejects"]
    plain = {"horizon": 100, "target": "python", "progress": False}
    found = lb.simulate("paper-a", both, [60, 400], 20, **plain)
    settings = {row["budget"]: row["settings"] for row in found.rows() if row["policy"] == "auto"}
    assert settings == {60: repr(DEFAULT), 400: repr(DEFAULT)}
    for budget, power in ((60, 1.0), (400, 1.5)):
        same = lb.Foresight(power=power)
        played = lb.simulate("paper-a", same, budget, 20, **plain)
        assert found.cell("auto", budget).pulls == played.cell(same, budget).pulls


PHASED = [
    policy
    for kind in REGISTRY.values()
    for policy in kind.examples()
    if not kind.decides_after_sweeps() and ANY not in policy.plan(4, 400, 100).keep
]


def test_levels_by_hand():
    # C (K/m)^1.5 for 40 pulls is 5, 7, 14. With grace 8: 8, 8 and, of the 16 left, half each
    plan = lb.AdaptiveRejects().plan(4, 40, 20, min_pulls=8)
    assert plan.upto.tolist() == [8, 12, 12]
    assert plan.keep.tolist() == [4, 2, 1]  # 4 x 8 = 32, and 8 pulls for the last two
    assert lb.AdaptiveRejects().plan(4, 40, 20, min_pulls=10).upto.tolist() == [10, 10]
    with pytest.raises(lb.LatebloomerError, match="at least 200 are needed"):  # not 4 x 40
        lb.AdaptiveRejects().plan(4, 40, 40, min_pulls=50)


@pytest.mark.parametrize("policy", PHASED, ids=repr)
@given(st.integers(2, 12), st.integers(1, 30), st.integers(0, 300), st.integers(1, 60))
def test_no_phase_ends_earlier_and_the_plan_can_be_paid(policy, arms, min_pulls, spare, horizon):
    budget = least_budget(policy, arms, horizon, min_pulls) + spare
    plan = policy.plan(arms, budget, horizon, min_pulls)
    assert plan.upto[0] >= min(min_pulls, horizon, budget // arms)
    told = policy.describe(arms, budget, horizon, min_pulls)
    assert sum(phase.pulls for phase in told.phases) + told.unspent == budget
    if len(plan.keep) > 1:  # a single phase is played as far as the budget goes
        assert cost_of(plan) <= budget


@pytest.mark.parametrize("policy", PHASED, ids=repr)
def test_in_a_session_every_arm_has_its_pulls(policy, rng):
    session = play(lb.Session(policy, 9, 160, 80, min_pulls=12), rng.standard_normal((9, 160)))
    assert min(session.pulls) >= 12 and session.spent <= 160
    assert session.replay(session.history) == session


def test_plans_made_anew_keep_it(rng):
    session = lb.Session("auto", 6, 400, 100, min_pulls=20)
    rewards = rng.standard_normal((6, 400))
    play(session, rewards, pulls=30)
    session.apply(LearnerLeft(3, FAILED))
    session.apply(BudgetReplanned(250, 250))
    play(session, rewards)
    assert min(n for i, n in enumerate(session.pulls) if i != 3) >= 20
    assert session.spent <= 250 and session.replay(session.history) == session


def test_what_cannot_be_is_said():
    needed = r"4 learners with min_pulls=9: at least 36 are needed \(9 pulls"
    with pytest.raises(BudgetError, match=needed):
        lb.Session("auto", 4, 30, min_pulls=9)
    for name in ("rest-sure", "asha"):
        with pytest.raises(SettingError, match=f"min_pulls=2 cannot be used with {name}, which"):
            lb.Session(name, 4, 300, min_pulls=2)
    for bad in (0, 1.5, "two"):
        with pytest.raises(SettingError, match="min_pulls"):
            lb.RisingSR().plan(4, 100, 50, min_pulls=bad)


def test_a_race_keeps_it_and_its_journal_knows(tmp_path):
    path = tmp_path / "race.db"
    verdict = lb.race(LEARNERS, 60, min_pulls=15, journal=path, progress=False)
    assert min(verdict.pulls.values()) >= 15 and verdict.settings["min_pulls"] == 15
    assert lb.read_verdict(path).settings["min_pulls"] == 15
    assert lb.resume(path, LEARNERS, progress=False).pulls == verdict.pulls


MANY = {str(k): LEARNERS["a"] for k in range(20)}


@pytest.mark.parametrize(
    ("settings", "min_pulls"),
    [
        ({"budget": 80}, 2),
        ({"budget": 79}, 1),
        ({"budget": 90, "winner_share": 0.2}, 1),  # 72 pulls select the winner
        ({"budget": 100, "winner_share": 0.2}, 2),
        ({"budget": 100, "policy": "sh"}, 1),  # it keeps its own plan
        ({"budget": 80, "policy": "asha"}, 1),  # which has no phases
        ({"budget": 80, "min_pulls": 1}, 1),
    ],
)
def test_by_default_no_learner_is_dropped_after_one_pull_if_the_budget_pays(settings, min_pulls):
    verdict = lb.race(MANY, journal=None, progress=False, **settings)
    assert verdict.settings["min_pulls"] == min_pulls
    if min_pulls == 2:
        assert min(verdict.pulls.values()) == 2


def test_plan_and_race_have_the_same_default():
    said = run_cli("plan", "--learners", 20, "--budget", 80).output
    assert "20 learners to 2 each" in said.replace(" pulls", "")
    said = run_cli("plan", "--learners", 20, "--budget", 79).output
    assert "20 learners to 1 pull each" in said


def test_a_plan_says_when_the_first_drop_is():
    # power 1: 22 pulls for all five of 200 (C = 22.4)
    said = str(lb.Session("auto", 5, 200).policy.describe(5, 200))
    assert "First drop: the lowest-ranked learner at 22 pulls. An improvement after" in said
    assert "Warning" not in said
    halving = str(lb.SuccessiveHalving().describe(8, 24))
    assert "First drop: the lowest-ranked 4 of 8 at 1 pull. An improvement after their" in halving
    assert "Warning: 4 of 8 learners are dropped after one pull; min_pulls=2, fewer" in halving
    assert "First drop" not in str(
        lb.AdaptiveRejects().describe(4, 80, 20)
    )  # all are trained whole


@pytest.mark.parametrize(
    ("budget", "advised"),
    [(100, ""), (191, ""), (192, "min_pulls=2, "), (255, "min_pulls=2, "), (256, "min_pulls=3, ")],
)
def test_a_plan_advises_only_a_grace_that_the_budget_pays(budget, advised):
    policy = lb.AdaptiveRejects(power=3)  # steep: here arms are dropped after one pull
    said = str(policy.describe(64, budget))
    assert f"are dropped after one pull; {advised}fewer learners or a larger budget" in said
    if advised:
        policy.plan(64, budget, min_pulls=int(advised[10]))
