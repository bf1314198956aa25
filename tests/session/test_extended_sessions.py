"""Sessions that are given more: a larger budget, another horizon, newcomers."""

import pickle
from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer import UCBE
from latebloomer.errors import LatebloomerError, SettingError, TellError
from latebloomer.session import events
from latebloomer.session.session import Session
from latebloomer.session.session_state import Stage
from tests.helpers.played_sessions import ARMS, SPECS, STOPPING, play, policies, reward

BUDGET = 60
LEAVING = (events.FAILED, events.FINISHED)


def extend(session, budget, horizon=None, revive=True):
    horizon = session.horizon if horizon is None else horizon
    session.apply(events.Extended(budget, budget, horizon, revive))
    return session


@pytest.mark.parametrize("policy", [p for p in SPECS if p not in STOPPING])
@pytest.mark.parametrize("pulls", [0, 7, 31, None])
@pytest.mark.parametrize("budget", [BUDGET, 75, 150, 400])
def test_it_decides_as_if_the_budget_had_been_that_large_from_the_start(policy, pulls, budget):
    extended = play(extend(play(Session(policy, ARMS, BUDGET, 40), pulls), budget))
    fresh = play(Session(policy, ARMS, budget, 40))
    assert extended.spent <= budget and extended.over
    before = play(Session(policy, ARMS, BUDGET, 40), pulls).pulls
    wasted = sum(max(0, had - n) for had, n in zip(before, fresh.pulls, strict=True))
    if Session(policy, ARMS, BUDGET).decides_every_pull or wasted:
        # i-epoch ends where its one choice is at the horizon
        assert policy == "i-epoch" or extended.spent >= min(fresh.spent, budget - ARMS)
    else:
        assert extended.pulls == fresh.pulls
        assert extended.recommend().arm == fresh.recommend().arm
        assert extended.recommend().estimates == fresh.recommend().estimates
        assert sorted(extended.racing) == sorted(fresh.racing)


def test_who_the_new_plan_still_has_at_its_level_comes_back():
    session = play(Session("r-sr", ARMS, BUDGET))
    assert len(session.racing) == 1 and min(session.pulls) == 7
    extend(session, 2 * BUDGET)
    # log_bar(5) = 107/60, so N_1 was ceil(60 55 / (107 5)) = 7 and is ceil(60 115 / (107 5)) = 13
    assert session.racing == tuple(range(ARMS))
    assert session.ask_phase() == {i: 13 - n for i, n in enumerate(session.pulls) if n < 13}
    left = play(Session("r-sr", ARMS, BUDGET))  # nobody does where that is not wanted
    (last,), pulls = left.racing, left.pulls
    play(extend(left, 100, horizon=100, revive=False))
    assert left.racing == (last,) and left.spent == 100
    assert {i for i in range(ARMS) if left.pulls[i] != pulls[i]} == {last}


def test_arms_that_are_ahead_wait_and_are_compared_by_what_they_showed_at_the_same_pulls():
    # "early" is best up to its 30th pull and falls then; "late" overtakes at 20.
    def score(arm, n):
        return (0.5 if n <= 30 else 0.0, 0.4 + 0.02 * min(n, 12), 0.1, 0.1)[arm]

    session = Session("sh:judge=latest", ["early", "late", "c", "d"], 40, 100)
    while not session.over:
        arm = session.ask()
        session.tell(arm, score(arm, session.pulls[arm] + 1))
    extend(session, 64)
    ahead = session.pulls
    asked = session.ask_phase()
    assert all(n >= max(ahead[i] for i in asked) for i, n in enumerate(ahead) if i not in asked)


@policies
def test_the_horizon_stays_unless_given(policy):
    session = play(Session(policy, ARMS, BUDGET))
    assert extend(session, 100).horizon == BUDGET
    assert extend(session, 140, horizon=140).horizon == 140
    play(session)
    assert session.spent <= 140 and max(session.pulls) <= 140


def test_the_certificate_covers_all_pull_counts_up_to_the_horizon():
    from latebloomer.theory.certificate import certificate

    session = play(extend(play(Session("r-sr", 3, 30, 200)), 60))
    rewards = [session.scores(i) for i in range(3)]
    mine, whole = session.certificate(0.01), certificate(rewards, 0.01, 200)
    assert mine.lower.tolist() == whole.lower.tolist()
    assert mine.upper.tolist() == whole.upper.tolist()
    narrower = certificate(rewards, 0.01, 200, budget=60)
    assert (mine.upper > narrower.upper).all()


def test_a_race_that_was_stopped_or_delivered_goes_on():
    stopped = play(Session("r-sr", ARMS, BUDGET), 20)
    stopped.apply(events.Stopped("enough", final=True))
    assert play(extend(stopped, 90)).spent == 90 and "spent" in stopped.reason
    named = play(Session("r-sr", ARMS, BUDGET, winner_share=0.5))
    named.apply(events.WinnerSelected(named.best_arm, BUDGET))
    play(named)
    named.apply(events.Extended(120, 90, 60))
    assert named.winner is None
    play(named)
    assert named.stage is Stage.SELECTING and named.spent <= 90
    named.apply(events.WinnerSelected(named.best_arm, 120))
    assert play(named).over and named.spent <= 120


def test_arms_that_have_left_stay_away():
    session = play(Session("r-sr", ARMS, BUDGET), 12)
    session.apply(events.LearnerLeft(4, events.FAILED))
    session.apply(events.LearnerLeft(0, events.FINISHED))
    play(session)
    before = session.pulls
    play(extend(session, 150))
    assert 4 not in session.racing and session.spent == 150
    assert (session.pulls[0], session.pulls[4]) == (before[0], before[4])


@pytest.mark.parametrize("policy", ["r-sr", "sh", "auto", "rr", "r-ucbe", "rest-sure"])
def test_a_newcomer_catches_up_from_the_new_budget(policy):
    session = play(Session(policy, ["a", "b", "c"], 90, 200))
    session.apply(events.Joined(3, "new"))
    assert session.names == ("a", "b", "c")  # not yet
    extend(session, 200)
    assert session.names == ("a", "b", "c", "new") and 3 in session.racing
    assert session.ask() == 3
    play(session)
    assert session.spent >= 199 and session.pulls[3] >= min(min(session.pulls[:3]), 4)
    if policy == "r-sr":  # it is the session of four
        four = play(Session("r-sr", session.names, 200, 200))
        assert session.pulls == four.pulls and session.best_arm == four.best_arm


def test_a_rule_with_a_number_for_each_arm_has_none_for_a_newcomer():
    session = play(Session(UCBE(gaps=(0.0, 0.1, 0.2)), 3, 30))
    session.apply(events.Joined(3, "new"))
    before = pickle.dumps(session)
    with pytest.raises(SettingError, match="4 learners"):
        extend(session, 60)
    assert pickle.loads(before) == session
    for policy in ("asha", "hyperband", "prob-1"):  # have no room for one
        with pytest.raises(TellError, match="cannot join"):
            play(Session(policy, ARMS, BUDGET)).apply(events.Joined(ARMS, "new"))


@pytest.mark.parametrize(
    "event, error",
    [
        (events.Extended(59, 59, 60), SettingError),
        (events.Extended(100, 59, 60), TellError),
        (events.Extended(100, 101, 60), TellError),
        (events.Extended(100, 100, 5), SettingError),
        (events.Extended("100", 100, 60), SettingError),
        (events.Extended(100, 100, None), SettingError),
        (events.Joined(5, "1"), TellError),
        (events.Joined(6, "x"), TellError),
        (events.Joined(5, 7), SettingError),
    ],
)
def test_what_makes_no_sense_changes_nothing(event, error):
    session = play(Session("r-sr", ARMS, BUDGET))
    before = pickle.dumps(session)
    with pytest.raises(error):
        session.apply(event)
    assert pickle.loads(before) == session


KINDS = {
    "pull": (1, 30), events.FAILED: (0, ARMS + 1), events.FINISHED: (0, ARMS + 1), "plan": (1, 60),
    "phase": (1, 3), "extend": (0, 90), "survivors": (0, 90), "join": (0, 90), "stop": (0, 1),
    "name": (0, 40), "horizon": (0, 40),
}  # fmt: skip
happenings = st.lists(
    st.one_of(*(st.tuples(st.just(kind), st.integers(*ends)) for kind, ends in KINDS.items())),
    max_size=9,
)


def live_through(session, happened):
    for kind, value in happened:
        try:
            one_thing(session, kind, value)
        except LatebloomerError:
            continue
        phase = session.ask_phase()
        assert (not phase) == session.over
        assert sum(phase.values()) <= session.budget - session.spent
        assert session.spent == sum(session.pulls) == len(session.history)
    return play(session)


def one_thing(session, kind, value):
    more = session.budget + value
    if kind == "pull":
        play(session, value)
    elif kind == "phase":
        for arm, pulls in reversed(session.ask_phase(value).items()):
            for _ in range(pulls):
                session.tell(arm, reward(arm, session.pulls[arm] + 1))
    elif kind == "plan":
        session.apply(events.BudgetReplanned(session.spent + value, session.spent + value))
    elif kind in (events.FAILED, events.FINISHED):
        session.apply(events.LearnerLeft(value, kind))
    elif kind == "stop":
        session.apply(events.Stopped("enough", bool(value)))
    elif kind == "name":
        session.apply(events.WinnerSelected(session.best_arm, more))
    elif kind == "join":
        session.apply(events.Joined(len(session.names), f"new {len(session.names)}"))
        extend(session, more)
    elif kind == "horizon":
        extend(session, more, horizon=session.horizon + value)
    else:
        extend(session, more, revive=kind == "extend")


@given(policy=st.sampled_from(SPECS), happened=happenings)
def test_whatever_happens_it_is_the_same_again_and_within_its_budget(policy, happened):
    first, second = (live_through(Session(policy, ARMS, BUDGET), happened) for _ in range(2))
    assert first == second and first.spent <= first.budget
    assert first.over and not first.ask_phase()
    assert pickle.loads(pickle.dumps(first)) == first
    assert first.replay(first.history) == first
    again = Session(policy, ARMS, BUDGET)
    for event in first.events:
        again.apply(event)
    assert again == first
    if any(first.pulls[i] for i in first.racing):
        assert first.recommend().arm in first.racing


def test_arms_handed_out_before_are_not_awaited_any_more():
    session = play(Session("r-ucbe", ARMS, BUDGET), 25)
    session.apply(events.BatchIssued(3))
    assert len(session.ask_phase()) == 3
    assert len(extend(session, 90).ask_phase()) == 1 and play(session).spent == 90


@pytest.mark.parametrize("policy", ["etc", "rising-bandits", "rest-sure", "hybrid"])
@pytest.mark.parametrize("kinds", [*combinations_with_replacement(LEAVING, 2)])
@pytest.mark.parametrize("revive", [True, False])
def test_a_session_whose_arms_have_left_can_be_extended(policy, kinds, revive):
    session = play(Session(policy, 2, BUDGET), 12)
    for arm, how in enumerate(kinds):
        session.apply(events.LearnerLeft(arm, how))
    extend(session, 90, revive=revive)
    assert session.over and session.spent == 12
    assert session.reason.startswith("no learner is left to train")
    assert session.racing == tuple(arm for arm, how in enumerate(kinds) if how == events.FINISHED)


@pytest.mark.parametrize("budget, deciding", [(-1, 66), (59, 60), (70, -1), (0, 0)])
def test_a_session_with_a_winner_refuses_a_budget_below_what_is_spent(budget, deciding):
    session = play(Session("r-sr", ARMS, BUDGET, horizon=200, winner_share=0.3))
    session.apply(events.WinnerSelected(session.best_arm, BUDGET))
    play(session)
    before = pickle.dumps(session)
    with pytest.raises(TellError, match="60 pulls are already spent"):
        session.apply(events.BudgetReplanned(budget, deciding))
    assert pickle.loads(before) == session
    session.apply(events.BudgetReplanned(80, 42))
    assert play(session).spent == 80
