"""What other papers play, as policies: each does what its docstring says, worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer.errors import BudgetError, SettingError
from latebloomer.policies.registry import label_of, make_policy, title
from latebloomer.policies.related.power_thresholds import PTRR, Hybrid
from latebloomer.policies.related.tuner_rules import IEpoch, MaxUCB, RisingBandits
from latebloomer.problems import problem
from latebloomer.session.session import Session


def play(policy, rewards, budget, horizon=None, seed=0, batch=1):
    session = Session(policy, len(rewards), budget, horizon, seed)
    while not session.over:
        for arm in session.ask_phase(batch) if batch > 1 else [session.ask()]:
            session.tell(arm, float(rewards[arm][session.pulls[arm]]))
    return session


def asked(session):
    return [arm for arm, _ in session.history]


@pytest.mark.parametrize(
    ("make", "bad"),
    [(IEpoch, {"i": 0}), (IEpoch, {"i": 1.5}), (RisingBandits, {"span": 0}),
     (MaxUCB, {"alpha": -1}), (PTRR, {"alpha": 0}), (PTRR, {"alpha": 1.5}), (PTRR, {"best": 0}),
     (Hybrid, {"best": float("inf")}), (Hybrid, {"alpha": "x"})],
)  # fmt: skip
def test_settings_outside_their_range_are_errors(make, bad):
    with pytest.raises(SettingError, match=next(iter(bad))):
        make(**bad)


def test_they_are_asked_for_by_the_names_of_their_papers():
    assert make_policy("i-epoch:i=3") == IEpoch(i=3)
    assert make_policy("rising-bandits:span=5") == RisingBandits(span=5)
    assert label_of(MaxUCB(alpha=1)) == "max-ucb:alpha=1"
    assert make_policy("ptrr:alpha=0.5,best=0.8") == PTRR(alpha=0.5, best=0.8)
    assert [title(name) for name in ("i-epoch", "max-ucb", "ptrr", "hybrid")] == [
        "i-Epoch", "MaxUCB", "PTRR", "Hybrid",
    ]  # fmt: skip


# --- i-Epoch ---


def test_i_epoch_looks_once_and_stays():
    # At pull 2 arm 1 leads with .5; that arm 0 would be best at the end is never seen.
    rewards = [[0.1, 0.2] + [0.9] * 10, [0.3, 0.5] + [0.5] * 10, [0.4, 0.4] + [0.6] * 10]
    session = play(IEpoch(i=2), rewards, 12)
    assert session.pulls == (2, 8, 2) and session.recommend().arm == 1
    assert play(IEpoch(), rewards, 12).recommend().arm == 2


def test_i_epoch_stops_at_the_horizon_and_needs_its_pulls():
    assert play(IEpoch(), [[0.1] * 5, [0.2] * 5], 30, 5).pulls == (1, 5)
    with pytest.raises(BudgetError, match="i-epoch needs at least 12"):
        IEpoch(i=3).plan(4, 11)


# --- Rising Bandits ---


def test_rising_bandits_drops_who_cannot_catch_up():
    # C = 2, H = 10. After 3 sweeps arm 0 is at .6 and flat: u = .6. Arm 1 is at .3 with slope
    # (.3 - .1)/2 = .1: u = .3 + 7 * .1 = 1.0, above .6. Arm 2 is at .2 with slope .05:
    # u = .2 + 7 * .05 = .55 <= .6, so it goes. After 5 sweeps arm 1 is at .4 with slope 0: out.
    rewards = [[0.6] * 10, [0.1, 0.2, 0.3, 0.4, 0.4, 0.4], [0.1, 0.15, 0.2, 0.25, 0.3, 0.35]]
    session = play(RisingBandits(span=2), rewards, 20, 10)
    # after 4 sweeps: slope (.4 - .2)/2 = .1, u = .4 + 6 * .1; after 5: (.4 - .3)/2, u = .65 > .6
    assert session.pulls == (10, 6, 3)
    assert session.recommend().arm == 0
    assert str(session.explain(2)).startswith("2: dropped at race pull 9: ")


def test_of_equal_arms_the_first_stays():
    session = play(RisingBandits(span=1), np.full((3, 20), 0.5), 30, 20)
    assert session.pulls == (20, 2, 2)  # u = l after the second sweep


def test_rising_bandits_waits_until_a_slope_is_known():
    rewards = [[0.9] * 10, [0.0] * 10]
    assert play(RisingBandits(), rewards, 14, 10).pulls == (7, 7)  # C = 7 needs 8 pulls
    assert play(RisingBandits(), rewards, 18, 10).pulls == (10, 8)


# --- MaxUCB ---


def test_max_ucb_by_hand():
    # alpha = 1. After one pull each, rewards .2, .6, .4 are scaled to 0, 1, .5; t = 4 and the
    # bonus is log(4)^2 = 1.92 for all: arm 1. It shows .2: its maximum stays 1, and at t = 5 the
    # bonuses are log(5)^2 = 2.59, (log(5)/2)^2 = .65, 2.59: arm 2 with 3.09. It shows .5: .75 +
    # (log(6)/2)^2 = 1.55, arm 1 1 + .80 = 1.80, arm 0 0 + log(6)^2 = 3.21: arm 0.
    rewards = [[0.2] * 9, [0.6, 0.2, 0.2, 0.2], [0.4, 0.5, 0.5, 0.5]]
    session = Session(MaxUCB(alpha=1.0), 3, 50)
    for _ in range(6):
        session.tell(session.ask(), rewards[session.ask()][session.pulls[session.ask()]])
    assert asked(session) == [0, 1, 2, 1, 2, 0]
    assert session.recommend().estimates == pytest.approx((0.2, 0.6, 0.5))  # the maxima


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100), st.floats(-50, 50))
def test_max_ucb_does_not_depend_on_the_scale_of_rewards(seed, times, plus):
    rewards = np.random.default_rng(seed).integers(0, 8, (4, 40)) / 8
    one, other = (play(MaxUCB(), x, 40) for x in (rewards, times * rewards + plus))
    assert one.pulls == other.pulls


# --- PTRR ---


def test_ptrr_by_hand():
    # K = 3, T = 23: tau = 20, so an arm is in turn while f(n) >= n/20. Arms of .2, .3 and .35 go
    # when n/20 exceeds that, at pulls 5, 7 and 8: 20 in all. The last 3 go to the best value.
    rewards = [[0.2] * 23, [0.3] * 23, [0.35] * 23]
    session = play(PTRR(), rewards, 23)
    assert session.pulls == (5, 7, 11) and session.recommend().arm == 2
    turns = [arm for n, arm in enumerate(asked(session)) if n == 0 or asked(session)[n - 1] != arm]
    assert sorted(turns[:3]) == [0, 1, 2]  # one after the other


def test_a_smaller_alpha_is_stricter_early():
    # f(n) >= (n/20)^(1/2): .2 holds to n = .04 * 20 = .8, .3 to 1.8, .35 to 2.45
    session = Session(PTRR(alpha=0.5), 3, 23)
    while session.spent < 6:
        arm = session.ask()
        session.tell(arm, (0.2, 0.3, 0.35)[arm])
    assert session.pulls == (1, 2, 3)


def test_ptrr_draws_the_order_at_random():
    first = [asked(play(PTRR(), np.ones((4, 9)), 9, seed=seed))[0] for seed in range(60)]
    assert set(first) == {0, 1, 2, 3}  # misses one of four in 60 draws once in 10^7
    rewards = np.tile([0.4, 0.5, 0.6], (12, 1)).T
    assert play(PTRR(), rewards, 12, seed=3).history == play(PTRR(), rewards, 12, seed=3).history


def test_ptrr_may_end_before_every_arm_had_a_turn():
    # tau = 25: a reward of 1 is below n/25 at pull 26
    assert sorted(play(PTRR(), np.ones((5, 30)), 30).pulls) == [0, 0, 0, 4, 26]


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_in_parallel_turns_are_taken_side_by_side(seed, batch):
    rewards = np.random.default_rng(seed).uniform(0, 1, (6, 40))
    for policy in (PTRR(), Hybrid()):
        session = play(policy, rewards, 60, 40, batch=batch)
        assert session.spent <= 60 and max(session.pulls) <= 40


# --- Hybrid ---


def test_hybrid_commits_when_one_arm_surely_wins():
    # H = 20. After two pulls: arm 0 (.1, .2) has U = .2 + 18 * .1 = 2.0, arm 1 (.5, .5) has
    # L = U = .5, arm 2 (.1, .11) U = .11 + 18 * .01 = .29. Arm 0 is pulled; it shows .2, so that
    # U = .2. Now L of arm 1 is above both.
    rewards = [[0.1] + [0.2] * 19, [0.5] * 20, [0.1, 0.11] + [0.11] * 18]
    session = play(Hybrid(), rewards, 20)
    assert asked(session)[:7] == [0, 1, 2, 0, 1, 2, 0] and set(asked(session)[7:]) == {1}
    assert session.pulls == (3, 15, 2) and session.recommend().arm == 1
    assert "dropped at race pull 7" in str(session.explain(0))


def test_hybrid_finds_the_riser_that_halving_drops():
    # Arm 0 is at n/40, so above the others' .5 at pull 21; halving drops it at pull 12.
    n = np.arange(1, 101)
    rewards = [np.minimum(n / 40, 1), np.full(100, 0.5), np.full(100, 0.45), np.full(100, 0.4)]
    session = play(Hybrid(), rewards, 100)
    assert session.pulls == (94, 2, 2, 2) and session.recommend().arm == 0
    assert play(make_policy("sh"), rewards, 100).recommend().arm == 1


def test_hybrid_hands_over_at_half_of_the_budget():
    # Equal straight risers: no arm is ever sure to win. T = H = 40: the index follows one of them
    # to pull 20, then arms take turns, each while n/32 >= n/37.
    rewards = np.tile(np.arange(1, 41) / 32, (3, 1))
    session = play(Hybrid(), rewards, 40)
    assert asked(session)[6:20] == [0] * 14
    assert len(set(asked(session)[20:])) == 1  # whoever's turn it is keeps it
    first = {asked(play(Hybrid(), rewards, 40, seed=seed))[20] for seed in range(40)}
    assert first == {0, 1, 2}  # misses one of three in 40 draws less than once in 10^6


# --- the problem that these two were made for ---


def delivered(policy, arms, seed=0):
    """What the recommended arm has come to on `one-riser`, of 1 that the best arm comes to."""
    means = problem(f"one-riser:K={arms}:T={50 * arms}").means(50 * arms)
    session = play(make_policy(policy), means, 50 * arms, seed=seed)
    arm = session.recommend().arm
    return means[arm, session.pulls[arm] - 1]


@pytest.mark.parametrize("arms", [4, 8, 16])
def test_r_ucbe_delivers_k_times_less_than_the_best_arm(arms):
    # Its bonus falls with every pull of an arm, so arms of equal projection are pulled in turns:
    # T/K = 50 pulls each and a value of 1/K.
    assert delivered("r-ucbe:exploration=1,noise=0.01", arms) <= 1.1 / arms


def test_ptrr_delivers_a_share_that_does_not_fall_with_the_arms():
    # m = 1/2: a capped arm has its turn until n/(2 tau) > 1/K, about 2 T/K pulls, the best arm to
    # the end. If j arms come before it, it gets T - 2 j T/K: a mean of about 1/4 over j < K/2,
    # its sd .33. The mean of 100 draws is 4.5 of its sd below that, below .1, once in 3 * 10^5.
    found = [delivered("ptrr:best=0.5", 16, seed) for seed in range(100)]
    assert np.mean(found) > 0.1 > delivered("r-ucbe:exploration=1,noise=0.01", 16)
