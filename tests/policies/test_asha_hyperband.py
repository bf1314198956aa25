"""What people use, as policies: ASHA and Hyperband do what they say, and are no more than that."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer.errors import SettingError
from latebloomer.policies.rungs import ASHA, Hyperband, deal
from latebloomer.racing.verdict.history import Curve, _asha, _cuts, _rungs_below
from latebloomer.session.session import Session


def play(policy, rewards, budget, horizon=None, batch=1):
    session = Session(policy, len(rewards), budget, horizon)
    while not session.over:
        for arm in session.ask_phase(batch) if batch > 1 else [session.ask()]:
            session.tell(arm, float(rewards[arm][session.pulls[arm]]))
    return session


@pytest.mark.parametrize(
    ("make", "bad"),
    [
        (ASHA, {"eta": 1}),
        (ASHA, {"grace": 0}),
        (ASHA, {"workers": 0}),
        (Hyperband, {"eta": 1.5}),
    ],
)
def test_settings_outside_their_range_are_errors(make, bad):
    with pytest.raises(SettingError, match=next(iter(bad))):
        make(**bad)


# --- ASHA ---


def test_asha_by_hand():
    # eta 4, rungs 1 and 4, horizon 6. Arm 0 is the first at both rungs and goes to 6. Arm 1 is
    # worse at pull 1: out. Arm 2 is better at 1, worse at 4: out. Arm 3 ties at both and goes on.
    flat = [[0.5] * 6, [0.4] * 6, [0.6, 0.6, 0.6, 0.3, 1, 1], [0.6, 0, 0, 0.5, 0.7, 0.9]]
    session = play(ASHA(), flat, 50, 6)
    assert session.pulls == (6, 1, 4, 6)
    assert session.recommend().arm == 3 and session.spent == 17  # 33 pulls are not used


def test_asha_lets_one_in_eta_go_on():
    # with 8 arms at a rung max(1, 8 // 4) = 2 may go on: the last arm is second best and does
    rewards = [[x] * 3 for x in (0.9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)]
    assert play(ASHA(), rewards, 99, 3).pulls == (3, 1, 1, 1, 1, 1, 1, 3)


def test_asha_spends_a_small_budget_on_the_first_arm():
    assert play(ASHA(), np.ones((4, 10)), 10, 10).pulls == (10, 0, 0, 0)


def test_asha_with_workers_trains_arms_in_turns():
    session = Session(ASHA(workers=2), 3, 12, 12)
    asked = []
    for _ in range(6):
        asked.append(session.ask())
        session.tell(asked[-1], 0.5)
    assert asked == [0, 1, 0, 1, 0, 1]


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(1, 70))
def test_asha_is_what_a_race_reports_in_hindsight(seed, arms, horizon):
    rewards = np.random.default_rng(seed).integers(0, 6, (arms, horizon)) / 5.0
    known = [Curve(row, None) for row in rewards]
    pick, pulls = _asha(known, _cuts(known, _rungs_below(horizon)), horizon)
    session = play(ASHA(), rewards, arms * horizon, horizon)
    assert (session.recommend().arm, session.spent) == (pick, pulls)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_several_at_once_stop_nothing_that_leads(seed, batch):
    rewards = np.random.default_rng(seed).uniform(0, 1, (6, 20))
    session = play(ASHA(), rewards, 120, 20, batch)
    assert max(session.pulls) == 20 and min(session.pulls) >= 1


# --- Hyperband ---


def test_arms_are_dealt_out_in_the_proportions_of_hyperband():
    # R = 81, eta 3: ceil(5 * 3^s / (s + 1)) for s = 4, ..., 0
    assert deal(143, 81, 3) == [81, 34, 15, 8, 5]
    assert deal(2, 81, 3) == [1, 1, 0, 0, 0]


def test_hyperband_by_hand():
    # H = 9, 13 arms: s = 2, 1, 0 would have 9, 5 and 3; largest remainders give 7, 4 and 2.
    assert deal(13, 9, 3) == [7, 4, 2]
    # 7 to 1, 2 to 3, 1 to 9; 4 to 3, 1 to 9; 2 to 9
    rewards = [[arm / 20] * 9 for arm in range(13)]
    session = play(Hyperband(), rewards, 13 * 9, 9)
    assert session.pulls == (1, 1, 1, 1, 1, 3, 9, 3, 3, 3, 9, 9, 9)
    assert session.recommend().arm == 12


@given(st.integers(2, 30), st.integers(0, 300), st.integers(1, 100), st.integers(2, 4))
def test_hyperband_fits_the_budget_and_would_not_with_more(arms, more, horizon, eta):
    budget, policy = arms + more, Hyperband(eta=eta)
    brackets = policy.brackets(arms, budget, horizon)
    assert sum(bracket.keep[0] for bracket in brackets) == arms
    assert sum(bracket.cost for bracket in brackets) <= budget
    (last,) = {bracket.upto[-1] for bracket in brackets}
    assert last <= horizon
    again = policy.brackets(arms, budget + arms * horizon, horizon)
    assert max(bracket.upto[-1] for bracket in again) == min(horizon, budget + arms * horizon)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_hyperband_in_parallel_pulls_the_same(seed, batch):
    rewards = np.random.default_rng(seed).uniform(0, 1, (7, 30))
    one, many = play(Hyperband(), rewards, 90, 30), play(Hyperband(), rewards, 90, 30, batch)
    assert one.pulls == many.pulls and one.recommend().arm == many.recommend().arm
