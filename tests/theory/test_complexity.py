"""Gaps, complexity indexes and phase lengths."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer.errors import BudgetError, CurveError, SettingError
from latebloomer.theory import best_arm, gaps, h1, h2, log_bar, phase_lengths

SETTING_A = [
    (37, 1.0),
    (10, 0.88),
    (1, 0.78),
    (10, 0.7),
    (20, 0.5),
]  # (b, c), psi = 1 [Mussi24, App. G]

some_gaps = st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=12).map(lambda g: [0.0, *g])


def setting_a(length: int) -> np.ndarray:
    n = np.arange(1, length + 1)
    return np.array([c * (1 - b / (b + n)) for b, c in SETTING_A])


def test_setting_a_has_three_best_arms_in_turn():
    curves = setting_a(3200)
    assert [best_arm(curves, t) for t in (1, 69, 70, 187, 188, 3200)] == [2, 2, 1, 1, 0, 0]


def test_gaps_of_setting_a_at_its_exact_tie():
    # 188/225 and 0.88 * 188/198 are both .8355..., so the problem at T = 188 is infinitely hard
    found = gaps(setting_a(188), 188)
    assert found[0] == 0 and found[1] == pytest.approx(0, abs=1e-15)
    assert h1([0, 0.0, 0.5]) == h2([0, 0.0, 0.5]) == np.inf


def test_gaps_may_be_asked_below_the_curves_length_but_not_beyond():
    assert gaps([[0, 0.5, 1.0], [0.25, 0.25, 0.25]], 2).tolist() == [0, 0.25]
    with pytest.raises(CurveError, match="end at pull 3, but pull 4"):
        gaps([[0, 0.5, 1.0], [0.25, 0.25, 0.25]], 4)


def test_complexities_by_hand():
    # gaps 1/2, 1/4, 1/8: H_1 = 4 + 16 + 64; H_2 = max(2 * 64, 3 * 16, 4 * 4);
    # with eta = 1: 2 + 4 + 8 and max(2 * 8, 3 * 4, 4 * 2)
    g = [0.25, 0, 0.5, 0.125]
    assert (h1(g), h2(g), h1(g, 1), h2(g, 1)) == (84, 128, 14, 16)


@given(some_gaps, st.floats(0.1, 4))
def test_h1_and_h2_differ_by_at_most_a_logarithm(g, eta):
    """[Mussi24, Lemma lem:lemlem]; its left side needs the factor 2 (see `h2`)."""
    assert h2(g, eta) <= 2 * h1(g, eta) * (1 + 1e-12)
    assert h1(g, eta) <= (log_bar(len(g)) - 0.5) * h2(g, eta) * (1 + 1e-12)


def test_the_lemma_as_printed_fails_for_two_arms():
    assert h2([0, 0.5]) == 2 * h1([0, 0.5])


@given(some_gaps, st.floats(1.05, 4))
def test_the_budget_of_corollary_1_is_at_least_that_of_theorem_3(g, beta):
    """H_{1,1/beta}^{beta/(beta-1)} >= H_{1,1/(beta-1)} [Mussi24, Lemma lem:ineq_lb]."""
    logs = np.log(h1(g, 1 / beta)) * beta / (beta - 1)
    assert logs >= np.log(h1(g, 1 / (beta - 1))) - 1e-9 * (1 + abs(logs))


def exact_phase_lengths(arms: int, budget: int) -> list[int]:
    total = Fraction(1, 2) + sum(Fraction(1, i) for i in range(2, arms + 1))
    return [ceil(Fraction(budget - arms) / (total * k)) for k in range(arms, 1, -1)]


@given(st.integers(2, 60), st.integers(0, 10**6))
def test_phase_lengths_equal_their_definition_in_fractions(arms, spare):
    assert phase_lengths(arms, arms + spare) == exact_phase_lengths(arms, arms + spare)


@given(st.integers(2, 12), st.integers(1, 10**4))
def test_a_whole_quotient_is_not_rounded_up(arms, each):
    total = Fraction(1, 2) + sum(Fraction(1, i) for i in range(2, arms + 1))
    spare = each * total.numerator * arms  # (T - K) / (log_bar K) = each * denominator, exactly
    assert phase_lengths(arms, arms + spare)[0] == each * total.denominator


def test_phase_lengths_where_floats_round_up():
    # log_bar(5) = 107/60 and T - K = 107, so N_j = 60/k: 12, 15, 20, 30; floats say 12, 16, 20, 31
    floats = 0.5 + sum(1 / i for i in range(2, 6))
    assert [ceil(107 / (floats * k)) for k in (5, 4, 3, 2)] != [12, 15, 20, 30]
    assert phase_lengths(5, 112) == [12, 15, 20, 30]


@given(st.integers(2, 40), st.integers(0, 5000))
def test_the_phases_never_spend_more_than_the_budget(arms, spare):
    lengths = phase_lengths(arms, arms + spare)
    assert lengths == sorted(lengths)
    assert sum(lengths) + lengths[-1] <= arms + spare  # the last two survivors both reach N_{K-1}


def test_many_arms_are_no_trouble():
    lengths = phase_lengths(20_000, 10**7)
    assert len(lengths) == 19_999 and lengths[0] == ceil(
        (10**7 - 20_000) / log_bar(20_000) / 20_000
    )


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: gaps([0.1, 0.2], 1), CurveError, "shape"),
        (lambda: gaps([[0.1, np.nan], [0, 1]], 1), CurveError, r"curves\[0, 1\] is nan"),
        (lambda: gaps([[0.1, 0.2]], 1), SettingError, "arms=1"),
        (lambda: gaps([[0.1], [0.2]], 0), BudgetError, "budget=0"),
        (lambda: h1([0.1, 0.2]), SettingError, "0 for the best arm"),
        (lambda: h1([0.0]), SettingError, "two or more"),
        (lambda: h2([0, 0.2], eta=0), SettingError, "eta=0"),
        (lambda: phase_lengths(1, 10), SettingError, "arms=1"),
        (lambda: phase_lengths(5, 4), BudgetError, "needs 5"),
        (lambda: log_bar(0), SettingError, "arms=0"),
    ],
)
def test_bad_input_is_named(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
