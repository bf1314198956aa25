"""What other papers play, as policies: each does what its docstring says, worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer.core.ledger import PULLS, RACERS
from latebloomer.core.run_memory import lists_for
from latebloomer.errors import BudgetError
from latebloomer.policies.power_law import NOW, drop_dominated
from latebloomer.policies.registry import make_policy
from latebloomer.policies.related.power_thresholds import PTRR, Hybrid
from latebloomer.policies.related.rested_ucb import RestedUCB
from latebloomer.policies.related.tuner_rules import IEpoch, MaxUCB, RisingBandits
from latebloomer.policies.rising_ucbe import UCBE
from latebloomer.policies.rungs import ASHA, Hyperband, deal
from latebloomer.problems import problem
from latebloomer.racing.verdict.hindsight import Curve, asha
from tests.helpers.played_policies import asked, play


def test_i_epoch_looks_once_and_stays():
    # At pull 2 arm 1 leads with .5; that arm 0 would be best at the end is never seen.
    rewards = [[0.1, 0.2] + [0.9] * 10, [0.3, 0.5] + [0.5] * 10, [0.4, 0.4] + [0.6] * 10]
    session = play(IEpoch(i=2), rewards, 12)
    assert session.pulls == (2, 8, 2) and session.recommend().arm == 1
    assert play(IEpoch(), rewards, 12).recommend().arm == 2
    assert play(IEpoch(), [[0.1] * 5, [0.2] * 5], 30, 5).pulls == (1, 5)  # to the horizon
    with pytest.raises(BudgetError, match="i-epoch needs at least 12"):
        IEpoch(i=3).plan(4, 11)


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
    # of equal arms the first stays: u = l after the second sweep
    assert play(RisingBandits(span=1), np.full((3, 20), 0.5), 30, 20).pulls == (20, 2, 2)


def test_max_ucb_by_hand():
    # alpha = 1. After one pull each, rewards .2, .6, .4 are scaled to 0, 1, .5; t = 4 and the
    # bonus is log(4)^2 = 1.92 for all: arm 1. It shows .2: its maximum stays 1, and at t = 5 the
    # bonuses are log(5)^2 = 2.59, (log(5)/2)^2 = .65, 2.59: arm 2 with 3.09. It shows .5: .75 +
    # (log(6)/2)^2 = 1.55, arm 1 1 + .80 = 1.80, arm 0 0 + log(6)^2 = 3.21: arm 0.
    rewards = [[0.2] * 9, [0.6, 0.2, 0.2, 0.2], [0.4, 0.5, 0.5, 0.5]]
    session = play(MaxUCB(alpha=1.0), rewards, 50, pulls=6)
    assert asked(session) == [0, 1, 2, 1, 2, 0]
    assert session.recommend().estimates == pytest.approx((0.2, 0.6, 0.5))  # the maxima


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100), st.floats(-50, 50))
def test_max_ucb_does_not_depend_on_the_scale_of_rewards(seed, times, plus):
    rewards = np.random.default_rng(seed).integers(0, 8, (4, 40)) / 8
    one, other = (play(MaxUCB(), x, 40) for x in (rewards, times * rewards + plus))
    assert one.pulls == other.pulls


def test_r_ed_ub_extends_the_latest_step_to_the_coming_pull():
    # After two pulls each t = 5: .4 + (5 - 2) * .1 = .7 and .6 + 0: arm 0. It shows .45: at t = 6
    # .45 + (6 - 3) * .05 = .6, a tie, and the lower index wins. It shows .45 again: at t = 7 .45
    # against .6, and from there on arm 1, which does not move.
    rewards = [[0.3, 0.4, 0.45, 0.45], [0.6] * 9]
    session = play(RestedUCB(form="deterministic"), rewards, 9)
    assert asked(session)[4:] == [0, 0, 1, 1, 1]
    assert session.recommend().estimates == pytest.approx((0.45, 0.6))


def by_definition(rewards, t, noise, alpha, window):
    """B_i(t) of one arm, each sum written out."""
    n = len(rewards)
    h = int(window * n)
    late = range(n - h, n)  # places of the window, counted from 0: the pull number is l + 1
    values = [rewards[k] + (t - k - 1) * (rewards[k] - rewards[k - h]) / h for k in late]
    return np.mean(values) + noise * (t - n + h - 1) * np.sqrt(10 * alpha * np.log(t) / h**3)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.02, 0.3]), st.floats(2.1, 6))
def test_r_ed_ucb_pulls_the_largest_bound(seed, noise, alpha):
    rng = np.random.default_rng(seed)
    rewards = np.sort(rng.uniform(0, 1, (3, 60)), axis=1) + rng.normal(0, 0.05, (3, 60))
    policy = RestedUCB(noise=noise, alpha=alpha, window=0.25)
    seen = [[], [], []]
    for t, arm in enumerate(asked(play(policy, rewards, 60)), start=1):
        if min(map(len, seen)) >= 4:
            bounds = [by_definition(x, t, noise, alpha, 0.25) for x in seen]
            assert bounds[arm] >= max(bounds) - 1e-9 * max(1.0, max(np.abs(bounds)))
        seen[arm].append(rewards[arm][len(seen[arm])])


def test_r_ed_ucb_loses_less_while_it_learns_than_a_rule_for_arms_that_do_not_change():
    # The authors' two arms (src/model.py of their repository, 1), a hundred times faster: the
    # late one rises in a line to 1, the quick one is ahead at first and ends at .4.
    n = np.arange(1000)
    means = np.array([0.4 * (1 - 500 / (100 * n + 500)), np.minimum(n / 250, 1.0)])
    best = means.cumsum(axis=1).max(axis=0)[499]

    def regret(policy):
        pulls = play(policy, means, 500).pulls
        return best - sum(row[:n].sum() for row, n in zip(means, pulls, strict=True))

    rested = [regret(RestedUCB(form="deterministic")), regret(RestedUCB(noise=0.0))]
    assert max(rested) < 0.5 * regret(UCBE(exploration=1.0))


def test_ptrr_by_hand():
    # K = 3, T = 23: tau = 20, so an arm is in turn while f(n) >= n/20. Arms of .2, .3 and .35 go
    # when n/20 exceeds that, at pulls 5, 7 and 8: 20 in all. The last 3 go to the best value.
    rewards = [[0.2] * 23, [0.3] * 23, [0.35] * 23]
    session = play(PTRR(), rewards, 23)
    assert session.pulls == (5, 7, 11) and session.recommend().arm == 2
    turns = [arm for n, arm in enumerate(asked(session)) if n == 0 or asked(session)[n - 1] != arm]
    assert sorted(turns[:3]) == [0, 1, 2]  # one after the other
    # A smaller alpha is stricter early: f(n) >= (n/20)^(1/2), so that .2 holds to
    # n = .04 * 20 = .8, .3 to 1.8, .35 to 2.45.
    assert play(PTRR(alpha=0.5), rewards, 23, pulls=6).pulls == (1, 2, 3)


def test_ptrr_draws_the_order_at_random():
    first = [asked(play(PTRR(), np.ones((4, 9)), 9, seed=seed))[0] for seed in range(60)]
    assert set(first) == {0, 1, 2, 3}  # misses one of four in 60 draws once in 10^7
    rewards = np.tile([0.4, 0.5, 0.6], (12, 1)).T
    assert play(PTRR(), rewards, 12, seed=3).history == play(PTRR(), rewards, 12, seed=3).history


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


def test_asha_by_hand():
    # eta 4, rungs 1 and 4, horizon 6. Arm 0 is the first at both rungs and goes to 6. Arm 1 is
    # worse at pull 1: out. Arm 2 is better at 1, worse at 4: out. Arm 3 ties at both and goes on.
    flat = [[0.5] * 6, [0.4] * 6, [0.6, 0.6, 0.6, 0.3, 1, 1], [0.6, 0, 0, 0.5, 0.7, 0.9]]
    session = play(ASHA(), flat, 50, 6)
    assert session.pulls == (6, 1, 4, 6)
    assert session.recommend().arm == 3 and session.spent == 17  # 33 pulls are not used
    # with 8 arms at a rung max(1, 8 // 4) = 2 may go on: the last arm is second best and does
    rewards = [[x] * 3 for x in (0.9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)]
    assert play(ASHA(), rewards, 99, 3).pulls == (3, 1, 1, 1, 1, 1, 1, 3)
    turns = play(ASHA(workers=2), np.full((3, 12), 0.5), 12, 12, pulls=6)  # two arms in turns
    assert asked(turns) == [0, 1, 0, 1, 0, 1]


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(1, 70))
def test_asha_is_what_a_race_reports_in_hindsight(seed, arms, horizon):
    rewards = np.random.default_rng(seed).integers(0, 6, (arms, horizon)) / 5.0
    known = [Curve(row, None) for row in rewards]
    found = asha([*map(str, range(arms))], known, arms * horizon)
    session = play(ASHA(), rewards, arms * horizon, horizon)
    assert (session.recommend().name, session.spent) == (found.pick, found.pulls)


def test_hyperband_by_hand():
    # R = 81, eta 3: ceil(5 * 3^s / (s + 1)) for s = 4, ..., 0
    assert deal(143, 81, 3) == [81, 34, 15, 8, 5] and deal(2, 81, 3) == [1, 1, 0, 0, 0]
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
def test_several_at_once_stay_within_budget_and_horizon_and_stop_nothing_that_leads(seed, batch):
    rewards = np.random.default_rng(seed).uniform(0, 1, (7, 40))
    for policy in (PTRR(), Hybrid()):
        session = play(policy, rewards, 60, 40, batch=batch)
        assert session.spent <= 60 and max(session.pulls) <= 40
    session = play(ASHA(), rewards, 140, 20, batch=batch)
    assert max(session.pulls) == 20 and min(session.pulls) >= 1
    one, many = (play(Hyperband(), rewards, 90, 30, batch=n) for n in (1, batch))
    assert one.pulls == many.pulls and one.recommend().arm == many.recommend().arm


# Few values, so that ties and differences of exactly `sure` occur, or any.
VALUES = st.sampled_from([-0.3, 0.0, 0.1, 0.2, 0.3, 0.5, 1.0]) | st.floats(-1e6, 1e6)
ENDS = st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=40)


def dropped_by_definition(ends, sure):
    """Every arm whose values another beats at both ends by more than `sure`."""
    return {
        i
        for i, (later, now) in enumerate(ends)
        if any(other[0] - later > sure and other[1] - now > sure for other in ends)
    }


@given(ends=ENDS, sure=st.sampled_from([0.0, 0.1, 0.2, 0.5]) | st.floats(0, 1e6), data=st.data())
def test_one_walk_drops_whom_all_pairs_would_drop(ends, sure, data):
    absent = data.draw(st.sets(st.integers(0, len(ends) - 1), max_size=len(ends) - 2))
    ledger = lists_for(make_policy("rest-sure"), len(ends))
    for i, (later, now) in enumerate(ends):
        ledger.rating[i], ledger.arm[i][NOW] = later, now
    racing = [i for i in range(len(ends)) if i not in absent]
    ledger.racing[: len(racing)], ledger.cursor[RACERS] = racing, len(racing)
    ledger.cursor[PULLS] = 99
    drop_dominated(ledger, sure)
    dropped = dropped_by_definition([ends[i] for i in racing], sure)
    stay = [i for place, i in enumerate(racing) if place not in dropped]
    assert ledger.racing[: ledger.cursor[RACERS]] == stay
    assert [i for i, at in enumerate(ledger.out) if at] == [racing[p] for p in sorted(dropped)]
