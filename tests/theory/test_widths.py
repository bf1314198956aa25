"""Widths and biases of the two estimators against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer.errors import CurveError, SettingError
from latebloomer.theory import (
    optimistic_bias,
    optimistic_weight,
    optimistic_width,
    pessimistic_bias,
    pessimistic_weight,
    pessimistic_width,
)

counts = st.tuples(st.integers(1, 300), st.integers(0, 300), st.floats(0.02, 0.5)).map(
    lambda t: (t[0], t[0] + t[1], t[2])  # pulls <= horizon
)


def weights(n: int, horizon: int, h: int) -> np.ndarray:
    """Noise weights of X_1, ..., X_n in the optimistic estimate, term by term."""
    w = np.zeros(n + 1)
    for m in range(n - h + 1, n + 1):
        w[m] += (1 + (horizon - m) / h) / h
        w[m - h] -= (horizon - m) / h**2
    return w[1:]


@given(counts)
def test_the_closed_form_is_the_sum_of_squared_weights(count):
    n, horizon, window = count
    h = int(window * n)
    if h == 0:
        assert optimistic_weight(n, horizon, window) == pessimistic_weight(n, window) == np.inf
        return
    w = weights(n, horizon, h)
    assert optimistic_weight(n, horizon, window) == pytest.approx(np.sum(w**2), rel=1e-9)
    assert np.sum(w) == pytest.approx(1)  # an average: shifting rewards shifts the estimate


@given(counts)
def test_the_exact_weight_is_below_the_papers_constant_before_the_horizon(count):
    """Sum of squares <= 5 (T-n+h-1)^2 / h^3 for n < T [Mussi24, proof of Lemma 2]."""
    n, horizon, window = count
    if n < horizon and int(window * n) >= 1:
        papers = optimistic_width(1.0, 5.0, n, horizon, window) ** 2
        assert optimistic_weight(n, horizon, window) <= papers * (1 + 1e-12)


def test_at_the_horizon_the_papers_constant_is_too_small():
    # n = T = 4, h = 1: T-n+h-1 = 0, yet the estimate still holds the noise of one reward
    assert optimistic_width(1.0, 5.0, 4, 4, 0.25) == 0
    assert optimistic_weight(4, 4, 0.25) == 1


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(0, 60), st.floats(0.1, 0.5))
def test_the_estimators_of_a_concave_curve_are_within_their_bias(seed, n, more, window):
    """mu_bar <= mu(T) <= mu_bar + bias, mu_tilde - bias <= mu(T) <= mu_tilde [Mussi24, App.]."""
    horizon, h = n + more, int(window * n)
    rises = np.sort(np.random.default_rng(seed).exponential(size=horizon + 1))[::-1]
    curve = np.cumsum(rises)
    last = curve[horizon - 1]
    if h == 0:
        assert pessimistic_bias(curve, n, horizon, window) == np.inf
        return
    bar = np.mean(curve[n - h : n])
    tilde = weights(n, horizon, h) @ curve[:n]
    slack = 1e-9 * horizon
    assert -slack <= last - bar <= pessimistic_bias(curve, n, horizon, window) + slack
    assert -slack <= tilde - last <= optimistic_bias(curve, n, horizon, window) + slack


def test_widths_take_arrays_and_are_infinite_for_empty_windows():
    found = pessimistic_width(0.5, 4.0, [0, 3, 4, 16], window=0.25)
    assert found.tolist() == [np.inf, np.inf, 1.0, 0.5]
    assert optimistic_width(0.0, 4.0, [3, 4], 9, window=0.25).tolist() == [np.inf, 0.0]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: optimistic_weight(5, 4, 0.25), SettingError, r"in \[0, 4\]"),
        (lambda: optimistic_weight(5, 9, 0.6), SettingError, "window=0.6"),
        (lambda: pessimistic_width(-1, 1, 5, 0.25), SettingError, "noise=-1"),
        (lambda: pessimistic_width(1, -1, 5, 0.25), SettingError, "exploration=-1"),
        (lambda: pessimistic_bias([0.1, 0.2], 4, 9, 0.25), CurveError, "end at pull 2"),
    ],
)
def test_bad_input_is_named(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
