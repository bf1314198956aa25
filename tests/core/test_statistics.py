"""Intervals and tests: against SciPy, against hand-worked values, and by their coverage."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from latebloomer.core.statistics import (
    Z,
    beta_share,
    mcnemar,
    mean,
    noise_freedom,
    noise_variance,
    paired_share,
    pooled_noise,
    share,
    student,
    student_tail,
)


@given(st.integers(1, 10**7), st.data())
def test_shares_have_wilsons_interval(of, data):
    count = data.draw(st.integers(0, of))
    found = share(count, of)
    assert found.value == count / of
    assert 0 <= found.low <= found.value <= found.high <= 1
    if 0 < count < of:
        wilson = stats.binomtest(count, of).proportion_ci(0.95, "wilson")
        assert found[1:] == pytest.approx([wilson.low, wilson.high], rel=1e-9)


@pytest.mark.parametrize("of", [1, 10, 100, 10**6, 10**9])
def test_without_an_error_the_bound_is_the_exact_one(of):
    # P(no error) = (1 - p)^n is 5 % at the bound; about 3/n
    assert share(0, of).high == pytest.approx(stats.beta.ppf(0.95, 1, of), rel=1e-10)
    assert share(of, of).low == pytest.approx(1 - share(0, of).high, rel=1e-12)
    assert share(0, 10**6).high == pytest.approx(3e-6, rel=2e-3)  # the rule of three


@pytest.mark.parametrize("df", [1, 2, 3, 5, 10, 30, 99, 200, 201, 1000, 10**6])
def test_students_quantiles(df):
    assert student(df) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-9)
    assert pytest.approx(stats.norm.ppf(0.975), rel=1e-15) == Z
    for tail in (1e-2, 1e-4, 1e-6) if df >= 10 else ():
        assert student_tail(tail, df) == pytest.approx(stats.t.isf(tail, df), rel=0.01)


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=50))
def test_means_have_students_interval(numbers):
    found = mean(sum(numbers), sum(x * x for x in numbers), len(numbers))
    center, error = np.mean(numbers), stats.sem(numbers)
    low, high = center + student(len(numbers) - 1) * error * np.array([-1, 1])
    assert found == pytest.approx((center, low, high), rel=1e-9, abs=1e-9)


def test_large_sums_lose_nothing():
    # a million numbers 2^39 and 2^39 + 1: the spread is exactly 1/2, though squares are 2^78
    n, big = 10**6, 2**39
    found = mean(n * big + n // 2, n * big**2 + n * big + n // 2, n)
    half = Z * math.sqrt(0.25 * n / (n - 1) / n)
    assert found.high - found.low == pytest.approx(2 * half, rel=0.2)
    assert found.value == big + 0.5
    found = mean(5, 25, 1)  # one number has no interval
    assert found.value == 5 and math.isnan(found.low) and math.isnan(found.high)


@given(st.floats(0.5, 1e4), st.floats(0.5, 1e4), st.floats(0.001, 0.999))
def test_the_beta_integral_is_scipys(a, b, x):
    assert beta_share(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-8, abs=1e-13)
    assert (beta_share(a, b, 0.0), beta_share(a, b, 1.0)) == (0.0, 1.0)


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_is_the_exact_binomial_test(b, c):
    exact = stats.binomtest(b, b + c).pvalue if b + c else 1.0
    assert mcnemar(b, c) == pytest.approx(exact, rel=1e-9)
    assert mcnemar(b, c) == mcnemar(c, b)


def test_mcnemar_of_millions_and_paired_shares_worked_by_hand():
    few, many = 4_995_000, 5_005_000
    assert mcnemar(few, many) == pytest.approx(2 * stats.binom.cdf(few, few + many, 0.5), rel=1e-5)
    assert mcnemar(10, 10**7) == 0.0
    # 12 - 2 = 10 more; (10 +- 1.96 sqrt(12 + 2 + 1 - 100/102)) / 102
    found = paired_share(12, 2, 100)
    half = 1.959964 * math.sqrt(15 - 100 / 102) / 102
    assert found == pytest.approx((0.1, 10 / 102 - half, 10 / 102 + half), rel=1e-6)
    assert paired_share(2, 12, 100) == pytest.approx((-0.1, -found.high, -found.low))


@pytest.mark.parametrize(("b", "c"), [(0.1, 0.05), (0.01, 0.01), (0.003, 0.0)])
def test_paired_intervals_cover(rng, b, c):
    n, tries = 1000, 20_000
    counts = rng.multinomial(n, [b, c, 1 - b - c], tries)
    found = [paired_share(int(x), int(y), n) for x, y, _ in counts]
    assert all(-1 <= one.low <= one.value <= one.high <= 1 for one in found)
    inside = sum(one.low <= b - c <= one.high for one in found)
    assert inside >= stats.binom.ppf(1e-6, tries, 0.94)  # a true claim fails once in a million


def test_pooled_second_differences_estimate_the_noise(rng):
    # Neighboring second differences correlate by -4/6 and 1/6, so the mean of m squares has
    # relative sd sqrt(2 (1 + 2 (16 + 1)/36) / m) and its root half of that, .00099 for m = 10^6:
    # off by more than 4.9 sd once in a million.
    n = np.arange(1, 1_000_001)
    rewards = n / (n + 50) + 0.03 * rng.standard_normal(len(n))
    d = np.diff(rewards, 2)
    assert pooled_noise([rewards]) == pytest.approx(0.03, rel=4.9 * 0.00099)
    assert noise_variance(float(d @ d), len(d)) == pytest.approx(pooled_noise([rewards]) ** 2)


def test_the_degrees_of_freedom_are_those_of_overlapping_differences(rng):
    # A level with f degrees of freedom has squares of relative variance 2 / f; over 20,000 tries
    # that is known to sqrt(2 / 20,000) = 1 % or so (its tails are a little heavier): allow 6 %.
    level = np.array([pooled_noise([x]) for x in rng.standard_normal((20_000, 42))])
    assert 2 / np.var(level**2) == pytest.approx(noise_freedom(40), rel=0.06)
