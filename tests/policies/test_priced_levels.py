"""The plan of a race in seconds: what it costs, how it rises, and who goes first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer.policies.power_levels import power_levels
from latebloomer.policies.priced_levels import drop_order, priced_levels

PRICES = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=20)


def sweeps_of(prices):
    return [sum(prices[j:]) for j in range(len(prices) - 1)]


def cost(levels, sweeps, now):
    return float(np.dot(np.diff(levels, prepend=now), sweeps))


@given(PRICES, st.integers(1, 50), st.integers(0, 200), st.floats(0, 1e5))
def test_levels_rise_within_the_horizon_and_the_money(prices, now, more, money):
    sweeps, horizon = sweeps_of(prices), now + more
    levels = priced_levels(sweeps, sweeps[0], now, horizon, money)
    assert levels == sorted(levels) and now <= levels[0] and levels[-1] <= horizon
    assert cost(levels, sweeps, now) <= money * (1 + 1e-9) or levels == [now] * len(levels)


@given(PRICES, st.integers(1, 50), st.integers(0, 200), st.floats(0, 1e5))
def test_one_more_pull_in_any_phase_is_not_paid_for(prices, now, more, money):
    """Unless the level after it, or the horizon, is in the way."""
    sweeps, horizon = sweeps_of(prices), now + more
    levels = priced_levels(sweeps, sweeps[0], now, horizon, money)
    raised = [*levels[:-1], levels[-1] + 1]
    assert levels[-1] == horizon or cost(raised, sweeps, now) > money * (1 - 1e-9)


@given(st.integers(2, 20), st.integers(1, 2000), st.integers(1, 200))
def test_equal_prices_give_the_levels_of_adaptive_rejects(arms, budget, horizon):
    levels = priced_levels(range(arms, 1, -1), arms, 0, horizon, max(budget, arms))
    # Rounding (K/m)^q or K/m first can move a level by one.
    assert (
        np.abs(np.subtract(levels, power_levels(arms, max(budget, arms), horizon, 1.5))).max() <= 1
    )


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(1e-3, 1e3)), min_size=2, max_size=20,
                unique_by=lambda pair: pair[0]))  # fmt: skip
def test_the_leader_is_dropped_last_whatever_it_costs(learners):
    ratings, prices = zip(*learners, strict=True)
    for by_waste in (False, True):
        order = drop_order(ratings, prices, by_waste)
        assert sorted(order) == list(range(len(prices)))
        assert ratings[order[-1]] == max(ratings)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=20))
def test_with_equal_prices_waste_is_the_gap(ratings):
    prices = [2.0] * len(ratings)
    assert drop_order(ratings, prices, True) == drop_order(ratings, prices, False)


def test_of_learners_level_with_the_leader_the_dearest_goes_first():
    assert drop_order([0.5, 0.5, 0.5], [2, 9, 1], by_waste=True) == [1, 0, 2]


def test_all_is_trained_to_the_end_if_that_is_paid_for():
    assert priced_levels([10, 6, 3], 10, now=5, horizon=20, money=150) == [20, 20, 20]
    assert priced_levels([10, 6, 3], 10, now=5, horizon=20, money=149)[0] < 20


@pytest.mark.parametrize("dear", [2, 10, 100])
def test_dropping_a_dear_learner_lengthens_the_race_more_than_dropping_a_cheap_one(dear):
    prices = [dear, 1, 1, 1]
    first = priced_levels(sweeps_of(prices), sum(prices), 1, 10**6, 10_000)
    last = priced_levels(sweeps_of(prices[::-1]), sum(prices), 1, 10**6, 10_000)
    assert first[1] / first[0] > last[1] / last[0] > 1
