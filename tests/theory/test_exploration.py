"""y_i(a), a*(iota) and the guarantees of R-UCBE."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from latebloomer import theory
from latebloomer.errors import SettingError
from latebloomer.theory import rising_ucbe_bounds as rising_ucbe
from tests.helpers.curves import curves_to, setting_a


def y_by_definition(curve, gap, a, budget, noise, window):
    """The largest y <= T satisfying [Mussi24, Eq. (implicit_NiT)], by trying them all."""

    def left(y: int) -> float:
        h, n = int(window * y), int((1 - 2 * window) * y)
        if h == 0 or n == 0:
            return math.inf
        return budget * (curve[n] - curve[n - 1]) + 2 * budget * noise * math.sqrt(a / h**3)

    return max((y for y in range(1, budget + 1) if left(y) >= gap), default=0)


random_curves = st.tuples(st.integers(0, 10**6), st.integers(2, 4), st.integers(8, 60)).map(
    lambda t: np.cumsum(
        np.sort(np.random.default_rng(t[0]).exponential(0.02, (t[1], t[2])) ** 3)[:, ::-1], axis=1
    )
)
exploration = st.floats(-7, 1).map(lambda x: 10**x)


@given(random_curves, exploration, st.sampled_from([0.1, 0.25, 0.4]))
def test_y_is_what_its_definition_says(curves, a, window):
    budget = curves.shape[1]
    found = theory.y_bound(a, curves, budget, noise=0.003, window=window)
    wanted = [
        y_by_definition(curve, gap, a, budget, 0.003, window)
        for curve, gap in zip(curves, theory.gaps(curves, budget), strict=True)
    ]
    assert found.tolist() == wanted


@given(random_curves, st.sampled_from([0.0, 0.1, 0.3, 0.5]), st.sampled_from([0.1, 0.25, 0.4]))
def test_the_limit_is_the_largest_exploration_that_leaves_room(curves, iota, window):
    """Eq. (ucb_can_be_learned) holds at a*(iota) and fails at the next larger float."""
    budget = curves.shape[1]

    def room(a: float) -> float:
        y = theory.y_bound(a, curves, budget, 0.003, window)
        return round((1 - iota) * budget, 9) - (y.sum() - y[theory.best_arm(curves, budget)])

    limit = theory.exploration_limit(curves, budget, 0.003, window, iota)
    if isinstance(limit, theory.NoExploration):
        assert limit.bracket <= 0 and room(0.0) <= 0
    else:
        assert room(limit) > 0 >= room(math.nextafter(limit, math.inf))


def test_the_limit_by_hand_for_two_arms_that_stand_still():
    # T = 40, Delta = 1/2, sigma = 1/10, eps = 1/4: y = 40 has h = 10, and 8 sqrt(a / 1000) >= 1/2
    # first holds at a = 1000/256. With iota = 1/2 the count may not reach 20: h = 5, a = 125/256.
    flat = [[0.75] * 40, [0.25] * 40]
    assert theory.exploration_limit(flat, 40, 0.1, 0.25) == pytest.approx(1000 / 256)
    assert theory.exploration_limit(flat, 40, 0.1, 0.25, iota=0.5) == pytest.approx(125 / 256)
    assert theory.exploration_limit(flat, 40, 0.0, 0.25) == math.inf  # nothing to explore against
    none = theory.exploration_limit(flat, 40, 0.1, 0.25, iota=1.0)
    assert isinstance(none, theory.NoExploration)


def test_corollary_1_by_hand():
    # beta = 2: q = 3/2. T = 1000, gaps 1 and 1/8: H_{1,2/3} = 1 + 4 = 5; (10 - 2)/5 = 1.6;
    # 1.6^1.5 = 2.02386; c (1/2)^-2 = 0.25 * 4 = 1; a* = (1/64) / (4/4) * 1.02386^2 = 0.01637948
    found = theory.exploration_limit_polynomial([0, 1, 0.125], 1000, 0.5, 0.25, beta=2, c=0.25)
    assert found == pytest.approx((1.6**1.5 - 1) ** 2 / 64)
    assert found == pytest.approx(0.01637948, rel=1e-5)
    # beta = 5/4: q = beta. T = 32^5, so T^(1 - 4/5) = 32; gaps 1: H = 2; (32 - 2)/2 = 15
    found = theory.exploration_limit_polynomial([0, 1, 1], 32**5, 0.5, 0.25, beta=1.25, c=1)
    assert found == pytest.approx((15**1.25 - 2**1.25) ** 2 / 64)


@given(
    st.lists(st.floats(0.05, 1), min_size=1, max_size=4),
    st.floats(1.1, 3),
    st.floats(0.01, 2),
    st.floats(0, 0.9),
    st.integers(1, 4000),
)
def test_no_exploration_names_the_first_budget_that_would_do(g, beta, c, iota, budget):
    def limit(budget):
        return theory.exploration_limit_polynomial([0, *g], budget, 0.1, 0.25, beta, c, iota)

    found = limit(budget)
    if not isinstance(found, theory.NoExploration):
        assert found > 0
        return
    first = found.smallest_budget
    assert found.bracket <= 0
    if first is not None and first < 10**12:
        assert first > budget and limit(first) > 0
        assert isinstance(limit(first - 1), theory.NoExploration)


@settings(max_examples=60)
@given(
    st.lists(st.floats(0.2, 1), min_size=1, max_size=3),
    st.floats(1.2, 2.5),
    st.floats(0.001, 0.2),
    st.sampled_from([0.0, 0.2, 0.5]),
    st.integers(30, 4000),
    st.sampled_from([0.15, 0.25, 0.4]),
)
def test_the_closed_form_is_never_above_the_limit_itself(g, beta, c, iota, budget, window):
    """Cor. 1 follows from Thm 1 for curves with gamma(n) <= c n^-beta, here with equality."""
    assume(budget ** (2 / 3) > 1 + max(1 / window, 1 / (1 - 2 * window)))
    closed = theory.exploration_limit_polynomial([0, *g], budget, 0.01, window, beta, c, iota)
    assume(not isinstance(closed, theory.NoExploration))
    curves = curves_to([1.0, *(1 - x for x in g)], budget, beta, c)
    limit = theory.exploration_limit(curves, budget, 0.01, window, iota)
    assert not isinstance(limit, theory.NoExploration)
    assert limit >= closed * (1 - 1e-9)


def test_the_share_iota_belongs_outside_the_power():
    """With ((1-iota) T)^(1-1/q), as in the paper's proof, Thm 1's condition fails."""
    budget, beta, c, iota, noise, window = 20_000, 1.45, 0.001, 0.9, 0.01, 0.25
    curves = curves_to([1.0, 0.5], budget, beta, c)
    ratio = (((1 - iota) * budget) ** (1 - 1 / beta) - 1) / 0.5 ** (-1 / beta)
    as_proved = window**3 / (4 * noise**2) * (ratio**beta - c * 0.5**-beta) ** 2
    assert theory.y_bound(as_proved, curves, budget, noise, window)[1] > 2 * (1 - iota) * budget
    ours = theory.exploration_limit_polynomial([0, 0.5], budget, noise, window, beta, c, iota)
    assert theory.y_bound(ours, curves, budget, noise, window)[1] < (1 - iota) * budget


@pytest.mark.parametrize("budget", [100, 400, 1600, 3200])
def test_setting_a_has_no_closed_form_up_to_3200(budget):
    """The bracket is negative, whatever `a` the published experiments used."""
    curves = setting_a(3200)
    c = theory.smallest_c(curves, 1.3)
    assert 0.80 < c < 0.81  # 37 n^1.3 / ((37+n)(38+n)), largest near n = 69
    gaps = theory.gaps(curves, budget)
    found = theory.exploration_limit_polynomial(gaps, budget, 0.01, 0.25, 1.3, c)
    assert isinstance(found, theory.NoExploration) and found.bracket < 0
    assert found.smallest_budget > 10**6


def test_error_and_regret_bounds_by_hand():
    # 2 * 1000 * 5 * e^-10 = .45400; the a for delta = .05 is 10 log(200000) = 122.06
    assert rising_ucbe.error_right_side(5, 1000, 100) == pytest.approx(0.453999, rel=1e-5)
    assert theory.theory_exploration(5, 1000, 0.05) == pytest.approx(10 * math.log(2e5))
    # best curve n / 800, then 1/2: iota = 1/4 reads it at pull 100, iota = 1/2 at pull 200
    curves = [np.minimum(np.arange(1, 401) / 800, 0.375), [0.2] * 400]

    def regret(iota):
        return rising_ucbe.simple_regret_bound(curves, 400, math.inf, 0.0, 0.25, iota)

    assert regret(0.25) == pytest.approx(0.375 - 0.125)
    assert regret(0.5) == pytest.approx(0.375 - 0.25)
    # c 2^beta iota^-beta T^(1-beta) = 1/4 * 4 * 4 / 100
    found = rising_ucbe.simple_regret_bound_polynomial(
        [0, 1.0], 100, math.inf, 0.0, 0.25, beta=2, c=0.25, iota=0.5
    )
    assert found == pytest.approx(0.04)


def test_bounds_of_r_ucbe_are_nan_above_the_limit_and_without_assumption_1():
    flat = [[0.75] * 400, [0.25] * 400]
    limit = theory.exploration_limit(flat, 400, 0.1, 0.25)
    beyond = math.nextafter(limit, math.inf)
    assert rising_ucbe.error_bound(flat, 400, limit, 0.1, 0.25) > 0
    assert math.isnan(rising_ucbe.error_bound(flat, 400, beyond, 0.1, 0.25))
    falls = [[0.75] * 200 + [0.7] * 200, [0.25] * 400]
    assert math.isnan(rising_ucbe.error_bound(falls, 400, 1e-9, 0.1, 0.25))
    assert math.isnan(rising_ucbe.simple_regret_bound(flat, 400, limit, 0.1, 0.25, iota=0.5))
    closed = theory.exploration_limit_polynomial([0, 0.5], 4000, 0.1, 0.25, 2, 0.1, iota=0.5)
    for a in (closed, math.nextafter(closed, math.inf)):
        found = rising_ucbe.simple_regret_bound_polynomial(
            [0, 0.5], 4000, a, 0.1, 0.25, beta=2, c=0.1, iota=0.5
        )
        assert math.isnan(found) == (a > closed)
    assert "nan unless" in rising_ucbe.error_bound.__doc__


@given(st.floats(1.2, 3), st.floats(0.01, 0.3), st.floats(0.05, 1), st.integers(20, 2000))
def test_the_polynomial_regret_bound_is_never_below_the_one_from_the_curves(beta, c, iota, budget):
    assume(iota * budget >= 1)
    curves = curves_to([1.0, 0.5], budget, beta, c)
    known = (0.0, 0.25)  # without noise any exploration is allowed, if a*(iota) exists
    exact = rising_ucbe.simple_regret_bound(curves, budget, 500.0, *known, iota)
    gaps = theory.gaps(curves, budget)
    loose = rising_ucbe.simple_regret_bound_polynomial(gaps, budget, 500.0, *known, beta, c, iota)
    assert math.isnan(exact) or math.isnan(loose) or exact <= loose * (1 + 1e-9)


def test_bad_input_is_named():
    flat = [[1.0] * 9, [0.0] * 9]
    with pytest.raises(SettingError, match=r"above 0 and below 0.5"):
        theory.exploration_limit(flat, 9, 0.1, 0.5)
    with pytest.raises(SettingError, match="no curve has a pull 0"):
        rising_ucbe.simple_regret_bound(flat, 9, 1.0, 0.1, 0.25, 0.1)
