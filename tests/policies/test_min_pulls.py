"""Grace: nobody is dropped before its n-th pull, whatever the plan, and the budget still holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from latebloomer import AdaptiveRejects, RisingSR, SuccessiveHalving, race, read_verdict, resume
from latebloomer.cli import app
from latebloomer.core.ledger import ANY
from latebloomer.errors import BudgetError, SettingError
from latebloomer.policies.base import cost_of, least_budget
from latebloomer.policies.registry import REGISTRY
from latebloomer.session.events import FAILED, BudgetReplanned, LearnerLeft
from latebloomer.session.session import Session

PHASED = [
    policy
    for kind in REGISTRY.values()
    for policy in kind.examples()
    if not kind.decides_after_sweeps() and ANY not in policy.plan(4, 400, 100).keep
]


def play(session, rng):
    while not session.over:
        session.tell(session.ask(), float(rng.standard_normal()))
    return session


def test_levels_by_hand():
    # C (K/m)^1.5 for 40 pulls is 5, 7, 14. With grace 8: 8, 8 and, of the 16 left, half each
    assert AdaptiveRejects().plan(4, 40, 20, min_pulls=8).upto.tolist() == [8, 12, 12]
    # 4 x 8 = 32, and 8 pulls for the last two
    assert AdaptiveRejects().plan(4, 40, 20, min_pulls=8).keep.tolist() == [4, 2, 1]
    assert AdaptiveRejects().plan(4, 40, 20, min_pulls=10).upto.tolist() == [10, 10]


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
    session = play(Session(policy, 9, 160, 80, min_pulls=12), rng)
    assert min(session.pulls) >= 12 and session.spent <= 160
    assert session.replay(session.history) == session


def test_plans_made_anew_keep_it(rng):
    session = Session("auto", 6, 400, 100, min_pulls=20)
    for _ in range(30):
        session.tell(session.ask(), float(rng.standard_normal()))
    session.apply(LearnerLeft(3, FAILED))
    session.apply(BudgetReplanned(250, 250))
    play(session, rng)
    assert min(n for i, n in enumerate(session.pulls) if i != 3) >= 20
    assert session.spent <= 250 and session.replay(session.history) == session


def test_what_cannot_be_is_said():
    with pytest.raises(
        BudgetError, match=r"4 learners with min_pulls=9: at least 36 are needed \(9 pulls"
    ):
        Session("auto", 4, 30, min_pulls=9)
    with pytest.raises(
        SettingError, match="min_pulls=2 cannot be used with rest-sure, which has no phases that"
    ):
        Session("rest-sure", 4, 300, min_pulls=2)
    with pytest.raises(SettingError, match="min_pulls=2 cannot be used with asha"):
        Session("asha", 4, 300, min_pulls=2)
    for bad in (0, 1.5, "two"):
        with pytest.raises(SettingError, match="min_pulls"):
            RisingSR().plan(4, 100, 50, min_pulls=bad)


def rising(best):
    return lambda: (best * n / (n + 5) for n in range(1, 1000))


LEARNERS = {"a": rising(0.9), "b": rising(0.7), "c": rising(0.5)}


def test_a_race_keeps_it_and_its_journal_knows(tmp_path):
    path = tmp_path / "race.db"
    verdict = race(LEARNERS, 60, min_pulls=15, journal=path, progress=False)
    assert min(verdict.pulls.values()) >= 15 and verdict.settings["min_pulls"] == 15
    assert read_verdict(path).settings["min_pulls"] == 15
    assert resume(path, LEARNERS, progress=False).pulls == verdict.pulls


# --- what a plan says of it ---


def test_a_plan_says_when_the_first_drop_is():
    # power 1: 22 pulls for all five of 200 (C = 22.4)
    said = str(Session("auto", 5, 200).policy.describe(5, 200))
    assert "First drop: the lowest-ranked learner at 22 pulls. An improvement after" in said
    assert "Warning" not in said
    halving = str(SuccessiveHalving().describe(8, 24))
    assert "First drop: the lowest-ranked 4 of 8 at 1 pull. An improvement after their" in halving
    assert "Warning: 4 of 8 learners are dropped after one pull; min_pulls=2, fewer" in halving
    assert "First drop" not in str(AdaptiveRejects().describe(4, 80, 20))  # all are trained whole


@pytest.mark.parametrize(
    ("budget", "advised"),
    [(100, ""), (191, ""), (192, "min_pulls=2, "), (255, "min_pulls=2, "), (256, "min_pulls=3, ")],
)
def test_a_plan_advises_only_a_grace_that_the_budget_pays(budget, advised):
    policy = AdaptiveRejects(
        power=3
    )  # steep: at all these budgets arms are dropped after one pull
    said = str(policy.describe(64, budget))
    assert f"are dropped after one pull; {advised}fewer learners or a larger budget" in said
    if advised:
        policy.plan(64, budget, min_pulls=int(advised[10]))


def test_the_command_takes_it():
    words = ["plan", "--learners", "64", "--budget", "200", "--horizon", "50"]
    said = CliRunner().invoke(app, words).output
    assert "learners are dropped after one pull" in said
    said = CliRunner().invoke(app, [*words, "--min-pulls", "2"]).output
    assert "at 2 pulls. An improvement" in said and "Warning" not in said
