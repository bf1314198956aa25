"""Sessions whose arms leave and whose budgets move."""

import pytest

from latebloomer.errors import TellError
from latebloomer.session import events
from latebloomer.session.session import Session
from tests.helpers.played_sessions import ARMS, STOPPING, play, policies

BUDGET = 120


def replan(session, budget):
    session.apply(events.BudgetReplanned(budget, budget))


@policies
@pytest.mark.parametrize("kind", [events.FAILED, events.FINISHED])
@pytest.mark.parametrize("when", [1, 4, 5, 33, 70])
def test_what_an_arm_does_not_take_goes_to_the_others(policy, kind, when):
    session = play(Session(policy, ARMS, BUDGET), when)
    arm = session.ask() if kind == events.FAILED or session.pulls[session.ask()] else 0
    if not session.pulls[arm] and kind == events.FINISHED:
        pytest.skip("an arm without a pull cannot be finished")
    before, alone = session.pulls[arm], session.trainable == [arm]
    session.apply(events.LearnerLeft(arm, kind))
    play(session)
    assert session.pulls[arm] == before
    if alone:  # the others were dropped, and stay dropped
        assert session.spent == when
    elif policy not in STOPPING:
        assert session.spent > BUDGET - 2 * ARMS  # all but a remainder that no sweep fills
    assert session.spent <= BUDGET
    if kind == events.FAILED and session.racing:
        assert session.recommend().arm != arm


@pytest.mark.parametrize("policy", ["r-sr", "etc", "rest-sure", "rising-bandits"])
def test_a_finished_arm_can_win_by_its_score(policy):
    session = Session(policy, ["short", "a", "b"], 90)
    for _ in range(3):
        for arm, value in zip(("short", "a", "b"), (0.9, 0.3, 0.29), strict=True):
            session.tell(arm, value)
    session.apply(events.LearnerLeft("short", events.FINISHED))
    assert session.racing == (0, 1, 2) and session.trainable == [1, 2]
    while not session.over:
        arm = session.ask()
        session.tell(arm, 0.3 - 0.01 * arm)
    assert session.recommend().name == "short" and session.pulls[0] == 3
    assert session.recommend().estimates[0] == 0.9
    assert session.replay(session.history) == session


def test_a_projection_is_not_made_for_an_arm_that_is_finished():
    session = Session("r-ucbe", ["short", "a", "b"], 90)
    while session.pulls[0] < 6:
        arm = session.ask()
        session.tell(arm, (0.1, 0.001, 0.0)[arm] * (session.pulls[arm] + 1))
    session.apply(events.LearnerLeft("short", events.FINISHED))
    assert session.recommend().estimates[0] == pytest.approx(0.1 * session.pulls[0])


@policies
def test_where_every_arm_is_finished_the_best_score_wins(policy):
    session = Session(policy, 3, 300)
    while not session.over:
        arm = session.ask()
        if session.pulls[arm] == 4:
            session.apply(events.LearnerLeft(arm, events.FINISHED))
        else:
            session.tell(arm, (0.9, 0.5, 0.2)[arm] * (session.pulls[arm] + 1))
    assert session.spent <= 12 and session.recommend().arm == 0


@pytest.mark.parametrize("budget", [70, 400])
def test_replanning_with_less_cuts_earlier_and_with_more_later(budget):
    session = play(Session("r-sr", ARMS, BUDGET), 40)
    replan(session, budget)
    assert play(session).spent == budget and len(session.racing) == 1


def test_a_score_that_looks_to_the_horizon_moves_with_it():
    session, longer = (play(Session("r-ucbe:noise=0.01", ARMS, b), 25) for b in (100, 100))
    replan(longer, 1000)
    before, after = session.recommend().estimates, longer.recommend().estimates
    assert longer.horizon == 1000 and before != after
    fixed = play(Session("r-ucbe:noise=0.01", ARMS, 100, horizon=100), 25)
    replan(fixed, 1000)
    assert fixed.recommend().estimates == before


@policies
def test_an_arm_that_never_gave_a_reward_is_no_trouble_to_a_new_plan(policy):
    session = Session(policy, ARMS, BUDGET)
    session.apply(events.LearnerLeft(1, events.FAILED))
    for budget in (3 * BUDGET, 2 * BUDGET):
        play(session, 40)
        replan(session, budget)
    assert play(session).pulls[1] == 0
    assert policy in STOPPING or session.spent > 2 * BUDGET - 2 * ARMS


@policies
def test_a_new_plan_does_not_change_the_number_of_the_phase(policy):
    # A time budget replans when the number changes, so a change would cause the next replan.
    session = Session(policy, ARMS, BUDGET)
    while not session.over:
        play(session, ARMS)
        if not session.over:
            phase = session.phase[0]
            for budget in (session.budget + 1, session.budget):
                replan(session, budget)
                assert session.phase[0] == phase


@pytest.mark.parametrize("kind", [events.FAILED, events.FINISHED])
def test_pulls_stay_unspent_when_the_last_remaining_arm_leaves(kind):
    session = play(Session("i-epoch", ARMS, BUDGET), 70)
    (last,) = session.racing
    session.apply(events.LearnerLeft(last, kind))
    assert session.over and session.spent == 70
    best = session.recommend().name
    said = f"all remaining learners failed; {best}, dropped before, is kept"
    if kind == events.FINISHED:
        said = "no learner is left to train"
        assert session.recommend().arm == last
    else:  # the arm that was dropped last is the next best
        dropped = [view for view in session.standings()[1:] if view.state == "dropped"]
        assert session.explain(best).state == "winner" and best != str(last)
        assert "but every arm that remained then failed. Selected" in session.explain(best).why
        assert all(view.departed_at <= 60 for view in dropped) and len(dropped) == ARMS - 2
    assert session.reason == f"{said}; 50 of 120 pulls are left over"
    assert session.replay(session.history) == session
    session.apply(events.Extended(BUDGET, BUDGET, BUDGET))
    assert last not in session.trainable and play(session).spent == BUDGET


@pytest.mark.parametrize("policy", ["r-ucbe", "prob-1", "asha"])
def test_a_batch_does_not_exceed_what_is_left_nor_a_smaller_budget_while_under_way(policy):
    session = play(Session(policy, ARMS, BUDGET), 25)
    assert len(session.ask_phase(4)) > 1
    replan(session, session.spent + 1)
    assert len(session.ask_phase()) == 1
    assert play(session).spent == session.budget
    if policy == "prob-1":
        session = play(Session(policy, ARMS, BUDGET), BUDGET - 2)
        said = "A batch of 3 arms cannot be issued now: 2 of 120 pulls left"
        with pytest.raises(TellError, match=said):
            session.apply(events.BatchIssued(3))
        assert len(session.ask_phase(4)) == 2


def test_one_pull_that_is_left_over_is_one():
    session = Session("auto", ["a", "b"], 3)
    while not session.over:
        session.tell(session.ask(), 0.5)
    assert session.reason == "the plan is complete; 1 of 3 pulls is left over"
