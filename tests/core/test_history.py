"""The fast estimators equal their definitions, keep their digits, and do not drift."""

from math import fsum

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from latebloomer import Session
from latebloomer.core.formulas import FIRST_BLOCK, PrefixSums, window_length
from latebloomer.core.history import (
    is_across,
    late_slope,
    newest_bend,
    projected_mean,
    recent_mean,
    reward_at,
    window_sum,
)
from latebloomer.core.policy_moves import moves_of
from latebloomer.core.run_memory import growing_rows, lists_for
from latebloomer.core.running_sums import follow, projected_mean_of
from latebloomer.policies.foresight import Foresight
from latebloomer.policies.rising_sr import RisingSR
from latebloomer.policies.rising_ucbe import RisingUCBE

REWARDS = st.lists(st.floats(-1, 1), min_size=4, max_size=80)
WINDOWS = st.sampled_from([0.1, 0.2, 0.25, 1 / 3, 0.4, 0.5])


def told(rewards, policy=None, window=0.0):
    """A ledger of one arm that has had these rewards."""
    policy = policy or Foresight()
    ledger, keep = lists_for(policy, 1), moves_of(type(policy), policy.memory.past.remember)
    for n, reward in enumerate(rewards, 1):
        for rows in growing_rows(policy, ledger):
            rows[0].append(0.0)
        keep(ledger, 0, n, reward, window)
        ledger.n[0], ledger.last[0] = n, reward
    return ledger


def mu_hat(x, h):
    """Eq. (mu_hat) as it is written; x[k] is the k-th reward."""
    n = len(x) - 1
    return fsum(x[k] for k in range(n - h + 1, n + 1)) / h


def mu_check(x, h, horizon):
    """Eq. (mu_check) as it is written."""
    n = len(x) - 1
    rises = ((horizon - k) * (x[k] - x[k - h]) / h**2 for k in range(n - h + 1, n + 1))
    return fsum([mu_hat(x, h), *rises])


@given(REWARDS, st.data(), st.integers(1, 400))
def test_estimators_equal_their_definitions(rewards, data, horizon):
    h, ledger = data.draw(st.integers(1, len(rewards))), told(rewards)
    assert [reward_at(ledger, 0, n) for n in range(1, len(rewards) + 1)] == rewards
    assert recent_mean(ledger, 0, h) == pytest.approx(mu_hat([0, *rewards], h), abs=1e-12)
    h = data.draw(st.integers(1, len(rewards) // 2))
    definition = mu_check([0, *rewards], h, horizon)
    assert projected_mean(ledger, 0, h, horizon) == pytest.approx(definition, abs=1e-9)
    bend = rewards[-1] - 2 * rewards[-2] + rewards[-3]
    assert newest_bend(ledger, 0) == pytest.approx(bend, abs=1e-13)


@given(REWARDS, WINDOWS, st.integers(1, 400))
def test_the_papers_recurrences_give_the_same_estimates(rewards, window, horizon):
    h = window_length(window, len(rewards))
    sums, ledger = follow(rewards, window), told(rewards)
    assert sums.h == h
    if h > 0:
        assert sums.a / sums.h == pytest.approx(recent_mean(ledger, 0, h), abs=1e-12)
        expected = projected_mean(ledger, 0, h, horizon)
        assert projected_mean_of(sums, horizon) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=8, max_size=60), st.data())
def test_on_a_concave_rising_curve_the_estimators_enclose_the_horizon(steps, data):
    # Lemmas B.2 and B.4: without noise, mu_hat <= mu(T) <= mu_check.
    curve = np.cumsum(sorted(steps, reverse=True))
    n = data.draw(st.integers(4, len(curve)))
    h = data.draw(st.integers(1, n // 2))
    ledger = told(curve[:n].tolist())
    truth = curve[-1]
    assert recent_mean(ledger, 0, h) <= truth + 1e-9
    assert projected_mean(ledger, 0, h, len(curve)) >= truth - 1e-9


# --- sums keep their digits ---

ORDINARY = st.floats(1e-3, 1.0)
HUGE = st.floats(1e3, 1e100) | st.floats(-1e100, -1e3)
AFTER_HUGE = st.tuples(
    st.lists(ORDINARY | HUGE, max_size=12), st.lists(ORDINARY, min_size=2, max_size=30)
)


@given(AFTER_HUGE)
def test_after_scores_of_any_size_a_window_has_the_digits_of_its_own_rewards(rewards):
    early, late = rewards
    ledger, n = told([*early, *late]), len(early) + len(late)
    for h in range(1, len(late) + 1):
        assert recent_mean(ledger, 0, h) == pytest.approx(fsum(late[-h:]) / h, rel=1e-13)
    exact = np.polyfit(range(len(late)), late, 1)[0]
    assert late_slope(ledger, 0, n, len(late)) == pytest.approx(exact, abs=1e-9)


@given(AFTER_HUGE)
@example(([1e100, 1e80], [0.5, 0.7]))
def test_so_has_it_where_sums_alone_are_kept(rewards):
    early, late = rewards
    ledger = told([*early, *late], RisingSR())
    for h in range(1, len(late) + 1):
        assert recent_mean(ledger, 0, h) == pytest.approx(fsum(late[-h:]) / h, rel=1e-13)


@given(AFTER_HUGE, st.data())
def test_a_window_with_the_huge_scores_is_right_to_its_own_digits(rewards, data):
    early, late = rewards
    x = [*early, *late]
    before = data.draw(st.integers(0, len(x) - 1))
    end = data.draw(st.integers(before + 1, len(x)))
    found = window_sum(told(x), 0, before, end)
    size = max(abs(value) for value in x[before:end])
    assert found == pytest.approx(fsum(x[before:end]), rel=1e-12, abs=1e-13 * size)


@given(AFTER_HUGE, WINDOWS, st.integers(1, 400))
def test_running_sums_forget_what_leaves_their_windows(rewards, window, horizon):
    early, late = rewards
    x, policy = [*early, *late * 6], RisingUCBE(window=window)
    h = window_length(window, len(x))
    if 0 < 2 * h <= 6 * len(late):
        project = moves_of(type(policy), projected_mean)
        found = project(told(x, policy, window), 0, h, horizon)
        assert found == pytest.approx(mu_check([0, *x], h, horizon), rel=1e-8, abs=1e-8)


@given(REWARDS, REWARDS, st.lists(st.sampled_from([0.1, 0.3, 0.7, 1e-3]), min_size=1, max_size=20))
def test_equal_windows_have_equal_means_whatever_came_before(one, other, window):
    pulls = max(len(one), len(other))
    pad = [0.5] * pulls
    means = {
        recent_mean(told((before + pad)[:pulls] + window), 0, len(window))
        for before in (one, other)
    }
    assert len(means) == 1


def test_a_reward_that_vanishes_beside_the_sum_begins_a_new_segment():
    ledger = told([1e17, 0.5, 0.25])
    assert is_across(ledger, 0, 0)
    assert not is_across(ledger, 0, 2)
    assert window_sum(ledger, 0, 1, 3) == 0.75
    assert window_sum(ledger, 0, 0, 3) == 1e17


@pytest.mark.parametrize("first", [1e3, 1e16, 1e20, 1e100])
@pytest.mark.parametrize(
    "policy",
    ["r-sr", "rr-sw", "r-ucbe:noise=0.01,exploration=10", "adaptive-rejects", "foresight"],
)
def test_one_early_huge_loss_does_not_keep_the_worst_learner(policy, first):
    session = Session(policy, ["bad", "ok", "good"], 60, maximize=False)
    while not session.over:
        arm = session.ask()
        session.tell(arm, first if session.pulls[arm] == 0 else (0.9, 0.5, 0.1)[arm])
    assert session.recommend().name == "good"


@pytest.mark.parametrize(("policy", "pulls"), [("rr-sw", 8), ("r-sr", 36)])
@pytest.mark.parametrize("early", [(0.1, 0.6), (0.3, 0.2), (0.6, 0.1)])
def test_learners_with_equal_latest_scores_tie_and_the_first_is_kept(policy, pulls, early):
    session = Session(policy, 2, 2 * pulls)
    while not session.over:
        arm = session.ask()
        session.tell(arm, early[arm] if session.pulls[arm] < 6 else 0.7)
    assert session.recommend().arm == 0


@pytest.mark.slow
@pytest.mark.parametrize("window", [0.05, 0.25, 0.5])
def test_a_million_updates_stay_within_1e_9_of_the_definition(window, rng):
    horizon = 1_000_000
    n = np.arange(1, horizon + 1)
    rewards = 0.9 * (1 - 1 / np.sqrt(n)) + 0.1 * rng.standard_normal(horizon)
    x = [0.0, *rewards.tolist()]
    ledger = told(x[1:])
    h = window_length(window, horizon)
    assert recent_mean(ledger, 0, h) == pytest.approx(mu_hat(x, h), abs=1e-9)
    for further in (horizon, 4 * horizon):
        definition = mu_check(x, h, further)
        assert projected_mean(ledger, 0, h, further) == pytest.approx(definition, abs=1e-9)


def powers(last):
    return PrefixSums(lambda m: m**-0.8, last)


@given(st.lists(st.integers(0, 5 * FIRST_BLOCK), max_size=5))
def test_whatever_is_read_first_the_sums_are_those_of_one_addition_to_the_bit(reads):
    sums = powers(5 * FIRST_BLOCK)
    whole = np.cumsum([0.0, *np.arange(1.0, 5 * FIRST_BLOCK + 1) ** -0.8])
    assert [sums[m] for m in reads] == whole[reads].tolist() if reads else True
    assert sums.array().tolist() == whole.tolist()


def test_sums_cost_what_is_read_and_not_what_could_be(peak_bytes):
    assert peak_bytes(lambda: powers(2**53)[5000]) < 2**21
    for m in (8, -1):
        with pytest.raises(IndexError, match="sums 0 to 7"):
            powers(7)[m]
