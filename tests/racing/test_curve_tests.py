"""The test of assumptions keeps its promise on false alarms and finds what it is for."""

import numpy as np
import pytest
from scipy import stats

from latebloomer.racing.verdict.history import (
    ALARM,
    BENDS_UP,
    FALLS,
    PLATEAU,
    Finding,
    check_curves,
)

NAMES = ["a", "b", "c", "d"]


def kinds(curves):
    return {(finding.name, finding.kind) for finding in check_curves(NAMES[: len(curves)], curves)}


@pytest.mark.parametrize("pulls", [12, 30, 200])
@pytest.mark.parametrize("noise", ["gaussian", "uniform"])
def test_false_alarms_are_no_more_frequent_than_stated(rng, pulls, noise):
    """Flat curves are the worst case of both assumptions; 400 races of four of them."""
    runs, alarms = 400, 0
    for _ in range(runs):
        draw = rng.normal if noise == "gaussian" else rng.uniform
        curves = [draw(size=pulls) for _ in NAMES]
        alarms += any(finding.contradicts for finding in check_curves(NAMES, curves))
    limit = stats.binom.isf(1e-6, runs, ALARM)  # a true claim fails this once in a million
    assert alarms <= limit, (
        f"{alarms} of {runs}; {ALARM:.0%} gives more than {limit:.0f} once in 10^6"
    )


def test_arms_that_still_gain_are_not_called_flat_more_often_than_stated(rng):
    """All gain a hundredth of their spread from the third to the last quarter, the worst case."""
    runs, alarms, pulls = 400, 0, 80
    for _ in range(runs):
        spread, step = 1.0, 0.01 / (pulls / 4)
        curves = [spread * k / 3 + step * np.arange(pulls) for k in range(4)]
        curves = [curve + 0.001 * rng.normal(size=pulls) for curve in curves]
        alarms += any(finding.kind == PLATEAU for finding in check_curves(NAMES, curves))
    assert alarms <= stats.binom.isf(1e-6, runs, ALARM)


def test_rising_concave_curves_without_noise_raise_no_alarm():
    n = np.arange(1.0, 301)
    curves = [n / (n + 30), 0.7 * (1 - np.exp(-n / 50)), 0.2 * np.sqrt(n), np.full(300, 0.3)]
    assert not any(f.contradicts for f in check_curves(NAMES, curves))


def test_falling_convex_and_flat_curves_are_found(rng):
    n = np.arange(1.0, 201)
    overfits = 0.8 - 0.002 * np.maximum(0, n - 80)
    takes_off = 0.2 + 0.6 / (1 + np.exp(-(n - 140) / 10))
    flat = np.full(200, 0.1)
    rises = n / (n + 40)
    curves = [x + 0.002 * rng.normal(size=200) for x in (overfits, takes_off, flat, rises)]
    found = kinds(curves)
    assert ("a", FALLS) in found and ("b", BENDS_UP) in found and ("c", PLATEAU) in found
    assert not {("d", FALLS), ("d", BENDS_UP), ("d", PLATEAU), ("a", PLATEAU)} & found


def test_where_it_falls_is_said_and_in_which_pulls():
    curve = np.concatenate([np.linspace(0, 1, 100), np.linspace(1, 0.5, 100)])
    noisy = curve + 0.001 * np.sin(np.arange(200) * 7.0)
    (finding,) = (f for f in check_curves(["a", "b"], [noisy, noisy]) if f.name == "a")
    assert finding.kind == FALLS and 80 <= finding.first <= 110 and finding.last == 200
    assert "gets worse by 0." in str(finding) and "never fall" in str(finding)


def test_short_arms_are_not_tested():
    assert check_curves(NAMES, [np.linspace(1, 0, 11)] * 4) == ()
    assert check_curves(NAMES, [np.empty(0)] * 4) == ()


def test_a_number_that_is_beyond_all_sense_is_not_spelled_out():
    found = Finding("a", PLATEAU, 17, 30, 0.0, 1e12)
    assert "(over 1000 standard deviations)" in str(found)
