"""Assumptions 1 and 2, checked on curves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_complexity import setting_a

from latebloomer.errors import SettingError
from latebloomer.theory import (
    Violation,
    increments,
    largest_beta,
    lower_bounds,
    smallest_c,
    violations,
)

betas = st.floats(1.05, 4)


def test_setting_a_is_rising_and_concave():
    assert violations(setting_a(3200)) == ([None] * 5, [None] * 5)


def test_the_first_violation_of_each_arm_is_reported_with_its_size():
    # arm 1 falls from pull 3 to 4 by 1/8, and bends up from gamma(1) = 0 to gamma(2) = 1/4
    falls, bends_up = violations([[0, 0.5, 0.75, 0.875], [0.5, 0.5, 0.75, 0.625]])
    assert falls == [None, Violation(arm=1, pull=3, amount=0.125)]
    assert bends_up == [None, Violation(arm=1, pull=1, amount=0.25)]
    assert violations([[0.5, 0.5, 0.75, 0.625]], tolerance=0.25) == ([None], [None])


def test_the_concavity_instances_differ_in_the_last_step_only():
    nu, other = lower_bounds.concavity_instances(50)
    assert not any(map(any, violations(nu)))
    assert violations(other)[1][0] == Violation(arm=0, pull=48, amount=0.5)
    assert np.count_nonzero(nu != other) == 1


@given(betas, st.integers(2, 300), st.floats(0.01, 2))
def test_the_constants_of_a_power_curve_are_found(beta, length, c):
    """gamma(n) = c n^-beta exactly: smallest_c gives c, largest_beta gives beta."""
    n = np.arange(1, length)
    curve = np.concatenate([[0.0], np.cumsum(c * n**-beta)])[None]
    assert smallest_c(curve, beta) == pytest.approx(c, rel=1e-6)
    if length > 2:
        assert largest_beta(curve, c * (1 + 1e-9)) == pytest.approx(beta, abs=1e-3)


@given(st.integers(0, 10**6), betas)
def test_smallest_c_is_enough_and_nothing_smaller_is(seed, beta):
    curves = np.cumsum(np.sort(np.random.default_rng(seed).random((3, 40)))[:, ::-1], axis=1)
    c, n = smallest_c(curves, beta), np.arange(1, 40)
    bound = c * n**-beta
    assert (increments(curves) <= bound * (1 + 1e-12)).all()
    assert (increments(curves) > bound * (1 - 1e-9)).any()
    assert largest_beta(curves, c * (1 + 1e-12)) >= beta * (1 - 1e-9)


def test_constants_at_the_edges():
    assert smallest_c([[0.5, 0.5, 0.5]], beta=2) == 0
    assert largest_beta([[0.5, 0.5, 0.5]], c=1) == np.inf
    assert smallest_c([[0.5]], beta=2) == 0  # one pull shows no increment
    assert largest_beta([[0.0, 0.5, 0.5]], c=0.4) is None  # gamma(1) = 0.5 > c: no beta helps
    assert largest_beta([[0.0, 0.5, 1.0]], c=0.5) == 0  # gamma(2) = c: beta > 1 is impossible


@given(
    st.lists(st.floats(0.01, 0.5), min_size=1, max_size=6), betas, st.integers(2, 400), st.data()
)
def test_lower_bound_instances_satisfy_both_assumptions(g, beta, length, data):
    """With c = beta - 1, for nu and every nu^(i) [Mussi24, proof of Thm 3]."""
    better = data.draw(st.none() | st.integers(0, len(g)))
    curves = lower_bounds.lower_bound_instance([0, *g], beta, length, better)
    assert not any(map(any, violations(curves)))
    assert smallest_c(curves, beta) <= (beta - 1) * (1 + 1e-9)
    assert (curves[:, 0] == 0).all()


def test_bad_input_is_named():
    with pytest.raises(SettingError, match="beta=1"):
        smallest_c([[0.0, 1.0]], beta=1)
    with pytest.raises(SettingError, match="c=0"):
        largest_beta([[0.0, 1.0]], c=0)
    with pytest.raises(SettingError, match="tolerance=-1"):
        violations([[0.0, 1.0]], tolerance=-1)
