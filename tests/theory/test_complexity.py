"""Gaps, complexity, phase lengths; Assumptions 1 and 2; widths and biases of the estimators."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer import theory
from latebloomer.errors import BudgetError, CurveError, SettingError
from latebloomer.problems import lower_bound
from latebloomer.theory.complexity import need
from tests.helpers.curves import setting_a

betas = st.floats(1.05, 4)
some_gaps = st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=12).map(lambda g: [0.0, *g])


def test_setting_a_rises_concavely_has_three_best_arms_in_turn_and_an_exact_tie():
    curves = setting_a(3200)
    assert theory.violations(curves) == ([None] * 5, [None] * 5)
    turns = [theory.best_arm(curves, t) for t in (1, 69, 70, 187, 188, 3200)]
    assert turns == [2, 2, 1, 1, 0, 0]
    # 188/225 and 0.88 * 188/198 are both .8355..., so the problem at T = 188 is infinitely hard
    assert theory.gaps(curves[:, :188], 188)[:2] == pytest.approx([0, 0], abs=1e-15)
    assert theory.h1([0, 0.0, 0.5]) == theory.h2([0, 0.0, 0.5]) == np.inf


@given(some_gaps, st.floats(0.1, 4))
def test_h1_and_h2_differ_by_at_most_a_logarithm(g, eta):
    """[Mussi24, Lemma lem:lemlem]; its left side needs the factor 2 (see `h2`)."""
    assert theory.h2(g, eta) <= 2 * theory.h1(g, eta) * (1 + 1e-12)
    assert theory.h1(g, eta) <= (theory.log_bar(len(g)) - 0.5) * theory.h2(g, eta) * (1 + 1e-12)


@given(some_gaps, st.floats(1.05, 4))
def test_the_budget_of_corollary_1_is_at_least_that_of_theorem_3(g, beta):
    """H_{1,1/beta}^{beta/(beta-1)} >= H_{1,1/(beta-1)} [Mussi24, Lemma lem:ineq_lb]."""
    logs = np.log(theory.h1(g, 1 / beta)) * beta / (beta - 1)
    assert logs >= np.log(theory.h1(g, 1 / (beta - 1))) - 1e-9 * (1 + abs(logs))


@given(st.integers(2, 60), st.integers(0, 10**6), st.integers(1, 10**4))
def test_phase_lengths_equal_their_definition_in_fractions(arms, spare, each):
    total = Fraction(1, 2) + sum(Fraction(1, i) for i in range(2, arms + 1))
    wanted = [ceil(Fraction(spare) / (total * k)) for k in range(arms, 1, -1)]
    assert theory.phase_lengths(arms, arms + spare) == wanted
    if arms <= 12:  # (T - K) / (log_bar K) = each * denominator, exactly, is not rounded up
        budget = arms + each * total.numerator * arms
        assert theory.phase_lengths(arms, budget)[0] == each * total.denominator


def test_the_first_violation_of_each_arm_is_reported_with_its_size():
    # arm 1 falls from pull 3 to 4 by 1/8, and bends up from gamma(1) = 0 to gamma(2) = 1/4
    falls, bends_up = theory.violations([[0, 0.5, 0.75, 0.875], [0.5, 0.5, 0.75, 0.625]])
    assert falls == [None, theory.Violation(arm=1, pull=3, amount=0.125)]
    assert bends_up == [None, theory.Violation(arm=1, pull=1, amount=0.25)]
    assert theory.violations([[0.5, 0.5, 0.75, 0.625]], tolerance=0.25) == ([None], [None])


def test_the_concavity_instances_differ_in_the_last_step_only():
    nu, other = theory.lower_bounds.concavity_instances(50)
    assert not any(map(any, theory.violations(nu)))
    assert theory.violations(other)[1][0] == theory.Violation(arm=0, pull=48, amount=0.5)
    assert np.count_nonzero(nu != other) == 1


@given(betas, st.integers(2, 300), st.floats(0.01, 2))
def test_the_constants_of_a_power_curve_are_found(beta, length, c):
    """gamma(n) = c n^-beta exactly: smallest_c gives c, largest_beta gives beta."""
    n = np.arange(1, length)
    curve = np.concatenate([[0.0], np.cumsum(c * n**-beta)])[None]
    assert theory.smallest_c(curve, beta) == pytest.approx(c, rel=1e-6)
    if length > 2:
        assert theory.largest_beta(curve, c * (1 + 1e-9)) == pytest.approx(beta, abs=1e-3)


@given(st.integers(0, 10**6), betas)
def test_smallest_c_is_enough_and_nothing_smaller_is(seed, beta):
    curves = np.cumsum(np.sort(np.random.default_rng(seed).random((3, 40)))[:, ::-1], axis=1)
    c, n = theory.smallest_c(curves, beta), np.arange(1, 40)
    bound = c * n**-beta
    assert (theory.increments(curves) <= bound * (1 + 1e-12)).all()
    assert (theory.increments(curves) > bound * (1 - 1e-9)).any()
    assert theory.largest_beta(curves, c * (1 + 1e-12)) >= beta * (1 - 1e-9)


def test_constants_at_the_edges():
    assert theory.smallest_c([[0.5, 0.5, 0.5]], beta=2) == 0
    assert theory.largest_beta([[0.5, 0.5, 0.5]], c=1) == np.inf
    assert theory.smallest_c([[0.5]], beta=2) == 0  # one pull shows no increment
    assert theory.largest_beta([[0.0, 0.5, 0.5]], c=0.4) is None  # gamma(1) = 0.5 > c
    assert theory.largest_beta([[0.0, 0.5, 1.0]], c=0.5) == 0  # gamma(2) = c


@given(
    st.lists(st.floats(0.01, 0.5), min_size=1, max_size=6), betas, st.integers(2, 400), st.data()
)
def test_lower_bound_instances_satisfy_both_assumptions(g, beta, length, data):
    """With c = beta - 1, for nu and every nu^(i) [Mussi24, proof of Thm 3]."""
    winner = data.draw(st.none() | st.integers(1, len(g)))
    curves = lower_bound(g, beta, winner).means(length)
    assert not any(map(any, theory.violations(curves)))
    assert theory.smallest_c(curves, beta) <= (beta - 1) * (1 + 1e-9)
    assert (curves[:, 0] == 0).all()


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
    """Before the horizon it is at most 5 (T-n+h-1)^2 / h^3 [Mussi24, proof of Lemma 2]."""
    n, horizon, window = count
    h, weight = int(window * n), theory.optimistic_weight(*count)
    if h == 0:
        assert weight == theory.pessimistic_weight(n, window) == np.inf
        return
    w = weights(n, horizon, h)
    assert weight == pytest.approx(np.sum(w**2), rel=1e-9)
    assert np.sum(w) == pytest.approx(1)  # an average: shifting rewards shifts the estimate
    if n < horizon:
        papers = theory.optimistic_width(1.0, 5.0, n, horizon, window) ** 2
        assert weight <= papers * (1 + 1e-12)


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(0, 60), st.floats(0.1, 0.5))
def test_the_estimators_of_a_concave_curve_are_within_their_bias(seed, n, more, window):
    """mu_bar <= mu(T) <= mu_bar + bias, mu_tilde - bias <= mu(T) <= mu_tilde [Mussi24, App.]."""
    horizon, h = n + more, int(window * n)
    rises = np.sort(np.random.default_rng(seed).exponential(size=horizon + 1))[::-1]
    curve = np.cumsum(rises)
    last = curve[horizon - 1]
    if h == 0:
        assert theory.pessimistic_bias(curve, n, horizon, window) == np.inf
        return
    bar = np.mean(curve[n - h : n])
    tilde = weights(n, horizon, h) @ curve[:n]
    slack = 1e-9 * horizon
    assert -slack <= last - bar <= theory.pessimistic_bias(curve, n, horizon, window) + slack
    assert -slack <= tilde - last <= theory.optimistic_bias(curve, n, horizon, window) + slack


def test_widths_take_arrays_and_are_infinite_for_empty_windows():
    found = theory.pessimistic_width(0.5, 4.0, [0, 3, 4, 16], window=0.25)
    assert found.tolist() == [np.inf, np.inf, 1.0, 0.5]
    assert theory.optimistic_width(0.0, 4.0, [3, 4], 9, window=0.25).tolist() == [np.inf, 0.0]
    # At the horizon the paper's constant is too small: n = T = 4, h = 1: T-n+h-1 = 0, yet the
    # estimate still holds the noise of one reward.
    assert theory.optimistic_width(1.0, 5.0, 4, 4, 0.25) == 0
    assert theory.optimistic_weight(4, 4, 0.25) == 1


SYMBOLS = [
    (SettingError, "window", (0, 0.6)),
    (SettingError, "noise", (-1, np.nan)),
    (SettingError, "delta", (0, 1)),
    (SettingError, "iota", (-0.1, 2)),
    (SettingError, "beta", (1, np.inf)),
    (SettingError, "c", (0,)),
    (SettingError, "exploration", (-1, np.nan)),
    (BudgetError, "budget", (0, 1.5, True)),
    (BudgetError, "horizon", (0,)),
]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: theory.gaps([0.1, 0.2], 1), CurveError, "shape"),
        (lambda: theory.gaps([[0.1, np.nan], [0, 1]], 1), CurveError, r"curves\[0, 1\] is nan"),
        (lambda: theory.gaps([[0.1, 0.2]], 1), SettingError, "arms=1"),
        (lambda: theory.gaps([[0.1], [0.2]], 0), BudgetError, "budget=0"),
        (lambda: theory.h1([0.1, 0.2]), SettingError, "0 for the best arm"),
        (lambda: theory.h1([0.0]), SettingError, "two or more"),
        (lambda: theory.h2([0, 0.2], eta=0), SettingError, "eta=0"),
        (lambda: theory.phase_lengths(1, 10), SettingError, "arms=1"),
        (lambda: theory.phase_lengths(5, 4), BudgetError, "needs 5"),
        (lambda: theory.log_bar(0), SettingError, "arms=0"),
        (lambda: theory.violations([[0.0, 1.0]], tolerance=-1), SettingError, "tolerance=-1"),
        (lambda: theory.optimistic_weight(5, 4, 0.25), SettingError, r"in \[0, 4\]"),
        (lambda: theory.pessimistic_bias([0.1, 0.2], 4, 9, 0.25), CurveError, "end at pull 2"),
        *((lambda name=name, value=value: need(**{name: value}), error, f"{name}={value}")
          for error, name, values in SYMBOLS for value in values),
    ],
)  # fmt: skip
def test_bad_input_is_named(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
