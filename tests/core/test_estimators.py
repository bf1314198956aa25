"""The fast estimators equal their definitions, the paper's recurrences, and do not drift."""

from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer.core.estimators import (
    FIRST_BLOCK,
    PrefixSums,
    follow,
    newest_bend,
    projected_mean,
    projected_mean_of,
    recent_mean,
    window_length,
)
from latebloomer.core.ledger import remember_slopes
from latebloomer.core.moves import lists_for

REWARDS = st.lists(st.floats(-1, 1), min_size=4, max_size=80)
WINDOWS = st.sampled_from([0.1, 0.2, 0.25, 1 / 3, 0.4, 0.5])


def told(rewards):
    """A ledger of one arm that has had these rewards."""
    ledger = lists_for(1)
    for n, reward in enumerate(rewards, 1):
        ledger.S[0].append(0.0)
        ledger.Q[0].append(0.0)
        ledger.n[0], ledger.last[0] = n, reward
        remember_slopes(ledger, 0, n, reward)
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
