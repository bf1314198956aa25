"""Guarantees of R-SR and RR-SW, and the lower bounds."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from latebloomer import theory
from latebloomer.errors import BudgetError, CurveError, SettingError
from latebloomer.problems import Problem, lower_bound, problem
from latebloomer.theory import gaps, lower_bounds, phase_lengths
from latebloomer.theory import rising_sr_bounds as rising_sr
from latebloomer.theory import rising_ucbe_bounds as rising_ucbe
from latebloomer.theory import round_robin_window_bounds as round_robin_window
from tests.helpers.curves import curves_to, setting_a

some_gaps = st.lists(st.floats(0.05, 1), min_size=1, max_size=5)
windows = st.sampled_from([0.1, 0.25, 0.5])


def test_the_condition_of_theorem_2_by_hand():
    # K = 2, T = 10: log_bar = 1, N_1 = ceil(8 / 2) = 4; eps = 1/4 reads gamma(3). mu = 1 - 2^-n:
    # gamma(3) = 1/16, and 10/16 is above half the gap, (1 - 2^-10)/2. eps = 1/2 reads gamma(2).
    curves = [[1 - 2.0**-n for n in range(1, 11)], [0.0] * 10]
    found = rising_sr.phase_condition(curves, 10, window=0.25)
    assert found.bias == (0.625,) and found.allowed == ((1 - 2**-10) / 2,)
    assert not found.holds and found.failing == (1,)
    assert rising_sr.phase_condition(curves, 10, window=0.5).bias == (1.25,)
    for budget in (200, 800, 3200):  # setting A never satisfies it
        assert rising_sr.phase_condition(setting_a(3200), budget, 0.25).failing == (1, 2, 3, 4)
    flat = [[0.9] * 5, [0.1] * 5]  # nor does a phase without pulls
    assert rising_sr.phase_condition(flat, 2, 0.25).bias == (math.inf,)
    assert not round_robin_window.bias_condition(flat, 1, 0.25)
    assert round_robin_window.proved_right_side([0, 0.8], 1, 0.1, 0.25) == 1
    assert math.isnan(round_robin_window.proved_error_bound(flat, 1, 0.1, 0.25))


def still(gaps, budget):
    """Arms that never rise and have these gaps: every condition holds."""
    return np.repeat([[1.0 - gap] for gap in gaps], budget, axis=1)


def test_bounds_are_nan_where_their_condition_fails():
    """R-SR's formula gives 8e-6 in setting A at T = 500, where its error is .055."""
    curves = setting_a(3200)
    assert rising_sr.error_right_side(gaps(curves, 500), 500, 0.01, 0.25) < 1e-5
    bounds = (rising_sr.error_bound, rising_sr.proved_error_bound, rising_sr.simple_regret_bound,
              round_robin_window.error_bound, round_robin_window.proved_error_bound)  # fmt: skip
    falls = [[0.9, 0.9, 0.8] * 100, [0.1] * 300]
    bends = [[0.8] * 150 + [0.9] * 150, [0.1] * 300]
    for bound in bounds:
        assert math.isnan(bound(curves, 500, 0.01, 0.25))
        assert math.isnan(bound(falls, 300, 0.1, 0.25))  # Assumption 1: it does not fall,
        assert math.isnan(bound(bends, 300, 0.1, 0.25))  # and is concave
        assert bound(still([0, 0.5], 300), 300, 0.1, 0.25) < 1
        assert "nan unless" in bound.__doc__ and "_condition`" in bound.__doc__
    least = rising_sr.minimum_budget([0, 0.5], 0.25, 2, 0.5)
    for budget in (math.ceil(least) - 1, math.ceil(least)):
        found = rising_sr.simple_regret_bound_polynomial([0, 0.5], budget, 0.1, 0.25, 2, 0.5)
        assert math.isnan(found) == (budget < least)


@pytest.mark.parametrize("name", ["paper-a", "paper-b"])
def test_a_problem_is_as_good_as_its_table_of_means(name):
    known, budget = problem(name), 3200
    table = known.means(budget)
    assert gaps(known, budget).tolist() == gaps(table, budget).tolist()
    for bound in (rising_sr.error_bound, round_robin_window.proved_error_bound):
        ours, theirs = (bound(curves, budget, 0.01, 0.25) for curves in (known, table))
        assert ours == theirs or math.isnan(ours + theirs)
    limits = [theory.exploration_limit(x, budget, 0.01, 0.25) for x in (known, table)]
    assert limits[0] == limits[1]
    closed = [
        theory.exploration_limit_polynomial(x, budget, 0.01, 0.25, 1.5, 1.0)
        for x in (known, gaps(table, budget))
    ]
    assert closed[0] == closed[1]
    assert theory.largest_beta(known, 1.0, budget) == theory.largest_beta(table, 1.0)
    assert theory.smallest_c(known, 1.5, budget) == theory.smallest_c(table, 1.5)
    assert theory.violations(known, budget=budget) == theory.violations(table)
    recorded = Problem(table[:, :100])  # has an end
    assert (theory.increments(recorded) == theory.increments(table[:, :100])).all()
    for wrong in (lambda: theory.h1(known), lambda: theory.increments(known)):
        with pytest.raises(CurveError, match=r"problem\.(gaps|means)\(budget\)"):
            wrong()


@given(st.integers(0, 10**6), st.floats(1.2, 3), st.floats(0.001, 0.1))
@settings(max_examples=30)
def test_the_first_budget_of_remark_1_is_the_first_by_trying_them_all(seed, beta, c):
    rng, most = np.random.default_rng(seed), 300
    curves = np.cumsum(np.sort(rng.exponential(0.01, (3, most)) ** 2)[:, ::-1], axis=1)
    curves += rng.random((3, 1))
    for bounds in (rising_sr, rising_ucbe, round_robin_window):
        wanted = next(
            (T for T in range(1, most + 1)
             if bounds.minimum_budget(gaps(curves, T), 0.25, beta, c) <= T),
            None,
        )  # fmt: skip
        assert bounds.first_budget(curves, 0.25, beta, c, most=most) == wanted


@settings(max_examples=60)
@given(some_gaps, st.floats(1.3, 3), st.floats(0.001, 0.3), st.integers(5, 1000), windows)
def test_budgets_of_corollary_2_and_round_robin_imply_their_conditions(g, beta, c, each, window):
    arms, tested = len(g) + 1, 0
    for bounds, budget, condition in (
        (rising_sr, each * arms + each % arms, rising_sr.phase_condition),
        (round_robin_window, each * arms, round_robin_window.bias_condition),  # N = T/K is whole
    ):
        if budget >= bounds.minimum_budget([0, *g], window, beta, c):
            tested += 1
            curves = curves_to([1.0, *(1 - x for x in g)], budget, beta, c)
            found = condition(curves, budget, window)
            assert getattr(found, "holds", found)
    assume(tested)


def test_bounds_where_an_arm_ties_where_nothing_rises_and_without_noise():
    assert rising_sr.minimum_budget([0, 1, 1], 0.5, 2, 1e-9) == 6  # 2K
    for bounds in (rising_sr, round_robin_window):
        assert bounds.minimum_budget([0, 0, 1], 0.5, 2, 0.125) == math.inf
        assert bounds.error_bound(still([0, 0.5], 50), 50, 0.0, 0.25) == 0
        assert bounds.proved_error_bound(still([0, 0.5], 50), 50, 0.0, 0.25) == 0
        assert bounds.proved_error_bound(still([0, 0.0], 50), 50, 0.1, 0.25) == 1


def test_error_bounds_by_hand():
    gaps, noise, window = [0, 0.25, 0.5], 0.25, 0.25

    def found(bound, budget):
        return pytest.approx(bound(still(gaps, budget), budget, noise, window))

    # R-SR, K = 3, T = 67: (1/4)/(8/16) * 64/(4/3 * 32) = 3/4 with H_2 = max(2 * 16, 3 * 4) = 32
    assert found(rising_sr.error_bound, 67) == 3 * math.exp(-0.75)
    # N = 16, 24: h = 4, 6; Delta^2/sigma^2 = 1 and 4: e^(-16/16) + e^(-24/16) + e^(-6/16)
    assert phase_lengths(3, 67) == [16, 24]
    proved = math.exp(-1) + math.exp(-1.5) + math.exp(-0.375)
    assert found(rising_sr.proved_error_bound, 67) == proved
    # RR-SW, T = 48: 2 exp(-(1/4) 48 / (8 * 3) * 1); h = 4: e^(-4/16) + e^(-16/16)
    assert found(round_robin_window.error_bound, 48) == 2 * math.exp(-0.5)
    assert found(round_robin_window.proved_error_bound, 48) == math.exp(-0.25) + math.exp(-1)


def beaten(curves, best, rival, pulls, noise, window):
    """The exact chance under Gaussian noise that the rival's window mean beats the best arm's."""
    h = max(1, int(window * pulls))
    ahead = np.mean(curves[best][pulls - h : pulls]) - np.mean(curves[rival][pulls - h : pulls])
    return stats.norm.sf(ahead / (noise * math.sqrt(2 / h)))


def line_and_flat(arms: int, budget: int) -> np.ndarray:
    """The best arm rises in a line, (almost) as steep as T gamma <= Delta/2 = 1/2 allows."""
    rising = 1 - 0.49999 / budget * np.arange(budget - 1, -1, -1)
    return np.vstack([rising, np.zeros((arms - 1, budget))])


@given(st.integers(2, 8), st.integers(10, 60), st.floats(0.1, 3), windows)
def test_proved_bounds_cover_the_gaussian_error_of_a_straight_line(arms, each, noise, window):
    """Summed over rivals (and phases) as in the proofs, with all the bias that is allowed."""
    budget = arms * each
    curves = line_and_flat(arms, budget)
    assert round_robin_window.bias_condition(curves, budget, window)
    once = sum(beaten(curves, 0, i, each, noise, window) for i in range(1, arms))
    assert once <= round_robin_window.proved_error_bound(curves, budget, noise, window)
    assert rising_sr.phase_condition(curves, budget, window).holds
    phases = enumerate(phase_lengths(arms, budget), start=1)
    total = sum(j * beaten(curves, 0, 1, n, noise, window) for j, n in phases)
    assert total <= rising_sr.proved_error_bound(curves, budget, noise, window)


def test_the_printed_bound_of_round_robin_is_exceeded_by_a_straight_line():
    """One rival beats the best arm more often than the printed bound allows all nine together."""
    budget, noise = 4000, 0.7
    curves = line_and_flat(10, budget)
    assert round_robin_window.bias_condition(curves, budget, 0.25)
    printed = round_robin_window.error_bound(curves, budget, noise, 0.25)
    assert beaten(curves, 0, 1, 400, noise, 0.25) > printed


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(some_gaps, st.floats(1.5, 3), st.floats(0.001, 0.02), st.integers(20, 600))
def test_the_polynomial_regret_of_rising_sr_is_never_below_the_one_from_curves(g, beta, c, times):
    budget = times * (len(g) + 1)  # T >= 2K, as Cor. 2 has it
    curves = curves_to([1.0, *(1 - x for x in g)], budget, beta, c)
    delta = gaps(curves, budget)
    assume(budget >= rising_sr.minimum_budget(delta, 0.25, beta, c))
    exact = rising_sr.simple_regret_bound(curves, budget, 0.05, 0.25)
    loose = rising_sr.simple_regret_bound_polynomial(delta, budget, 0.05, 0.25, beta, c)
    assert exact <= loose * (1 + 1e-9)


@given(some_gaps, st.floats(1.1, 3))
def test_no_algorithm_needs_less_than_theorem_3_says_ours_do(g, beta):
    """The budgets of Cor. 1 and 2, with the c = beta - 1 of Thm 3, are above its lower bound."""
    least = lower_bounds.minimum_budget([0, *g], beta)
    assert rising_sr.minimum_budget([0, *g], 0.25, beta, beta - 1) >= least
    assert rising_ucbe.minimum_budget([0, *g], 0.25, beta, beta - 1) >= least


@given(st.lists(st.floats(0.05, 0.5), min_size=1, max_size=4), st.floats(1.5, 3), st.data())
def test_lower_bound_instances_have_the_best_arm_and_gaps_of_the_proof(g, beta, data):
    """From 2^(1/(beta-1)) T* on, gaps are at least half of those at infinity [proof of Thm 3]."""
    limits = np.array([0, *g])
    start = math.ceil((1 / min(g)) ** (1 / (beta - 1)))
    better = data.draw(st.integers(0, len(g)))
    curves = lower_bound(g, beta, better or None).means(start + 1)
    found = gaps(curves, start + 1)
    assert found[better] == 0
    asymptotic = np.where(np.arange(len(limits)) == better, 0, limits + limits[better])
    assert (found >= asymptotic / 2 - 1e-12).all()
    assert (found <= asymptotic + 1e-12).all()


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: rising_sr.phase_condition([[0.9] * 5, [0.1] * 5], 6, 0.25), CurveError, "pull 5"),
        (lambda: rising_sr.phase_condition([[0.9]] * 3, 1, 0.25), BudgetError, "needs 3"),
        (lambda: rising_sr.error_right_side([0, 0.1], 2, 0.1, 0.25), SettingError, "budget=2"),
        (lambda: lower_bounds.error_lower_bound(5, 1, 0), SettingError, "complexity=0"),
        (lambda: lower_bounds.error_lower_bound_many_arms(5, 1, 1, 1), SettingError, "arms=1"),
        (lambda: lower_bounds.concavity_instances(0), BudgetError, "budget=0"),
    ],
)
def test_bad_input_is_named(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
