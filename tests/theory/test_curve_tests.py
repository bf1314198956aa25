"""Tests of recorded curves: few false alarms, what they find, what other rules would pick."""

import numpy as np
import pytest
from scipy import stats

from latebloomer.racing.verdict.hindsight import Curve, asha, halving
from latebloomer.session.events import FAILED, FINISHED
from latebloomer.session.session import Session
from latebloomer.theory import curve_tests
from latebloomer.theory.curve_tests import BENDS_UP, FALLS, PLATEAU, Finding, check_curves

NAMES = ["a", "b", "c", "d"]
RUNS = 400
N = np.arange(1.0, 201)


def check_alarms(races, is_alarm):
    """Of races of four arms few raise an alarm; a true claim fails this once in 10^6."""
    alarms = sum(any(map(is_alarm, check_curves(NAMES, curves))) for curves in races)
    assert alarms <= stats.binom.isf(1e-6, RUNS, curve_tests.ALARM)


@pytest.mark.parametrize("pulls", [12, 30, 200])
@pytest.mark.parametrize("noise", ["normal", "uniform"])
def test_false_alarms_are_no_more_frequent_than_stated(rng, pulls, noise):
    """Flat curves are the worst case of both assumptions; races of four of them."""
    races = ([getattr(rng, noise)(size=pulls) for _ in NAMES] for _ in range(RUNS))
    check_alarms(races, lambda one: one.contradicts)


def test_arms_that_still_gain_are_not_called_flat_more_often_than_stated(rng):
    """All gain a hundredth of their spread from the third to the last quarter, the worst case."""
    pulls = 80
    curves = [k / 3 + 0.01 / (pulls / 4) * np.arange(pulls) for k in range(4)]
    races = ([x + 0.001 * rng.normal(size=pulls) for x in curves] for _ in range(RUNS))
    check_alarms(races, lambda one: one.kind == PLATEAU)


def test_rising_concave_curves_without_noise_raise_no_alarm():
    curves = [N / (N + 30), 0.7 * (1 - np.exp(-N / 50)), 0.2 * np.sqrt(N), np.full(200, 0.3)]
    assert not any(finding.contradicts for finding in check_curves(NAMES, curves))


def test_falling_convex_and_flat_curves_are_found(rng):
    overfits = 0.8 - 0.002 * np.maximum(0, N - 80)
    takes_off = 0.2 + 0.6 / (1 + np.exp(-(N - 140) / 10))
    true = (overfits, takes_off, np.full(200, 0.1), N / (N + 40))
    found = check_curves(NAMES, [x + 0.002 * rng.normal(size=200) for x in true])
    kinds = {(finding.name, finding.kind) for finding in found}
    assert {("a", FALLS), ("b", BENDS_UP), ("c", PLATEAU)} <= kinds
    assert ("a", PLATEAU) not in kinds and "d" not in {name for name, _ in kinds}


def test_where_it_falls_is_said_and_in_which_pulls():
    curve = np.concatenate([np.linspace(0, 1, 100), np.linspace(1, 0.5, 100)])
    noisy = curve + 0.001 * np.sin(np.arange(200) * 7.0)
    (finding,) = (f for f in check_curves(["a", "b"], [noisy, noisy]) if f.name == "a")
    assert finding.kind == FALLS and 80 <= finding.first <= 110 and finding.last == 200
    assert "gets worse by 0." in str(finding) and "never fall" in str(finding)
    beyond_all_sense = Finding("a", PLATEAU, 17, 30, 0.0, 1e12)
    assert "(over 1000 standard deviations)" in str(beyond_all_sense)


def test_short_arms_are_not_tested():
    assert check_curves(NAMES, [np.linspace(1, 0, 11)] * 4) == ()
    assert check_curves(NAMES, [np.empty(0)] * 4) == ()


def replayed(rule, budget, *values, left=()):
    words = [*left, *[None] * (len(values) - len(left))]
    arrays = [np.array(x, dtype=float) for x in values]
    return rule(NAMES, list(map(Curve, arrays, words)), budget)


def test_halving_with_all_of_the_curves_is_the_policy_itself(rng):
    rewards = rng.normal(size=(4, 40)).cumsum(axis=1)
    session = Session("sh", NAMES, 40)
    while not session.over:
        arm = session.ask()
        session.tell(arm, rewards[arm, session.pulls[arm]])
    found = replayed(halving, 40, *rewards)
    assert found.pick == session.recommend().name and found.pulls == session.spent


def test_halving_stops_where_the_record_does():
    # 4 arms, 2 rounds: with T = 16 each gets 2, then the better two 4 more; b is known to 3 only.
    found = replayed(halving, 16, [1] * 9, [2, 2, 2], [0] * 2, [0] * 2)
    assert found.pick == "b" and found.pulls < 16  # T = 8: 1 each, then 2 more for a and b
    assert "as far as curves were recorded" in found.sentence
    long = replayed(halving, 4000, [1] * 2250, [2] * 750, [0] * 500, [0] * 500)
    assert " with 2,000 pulls of 4,000 (as far as curves were recorded)" in long.sentence
    assert replayed(halving, 40, [1], [1], [1], []).pick is None  # it needs more


@pytest.mark.parametrize("how, pick", [(FINISHED, "a"), (FAILED, "b")])
def test_a_finished_arm_keeps_its_score_and_a_failed_one_loses(how, pick):
    found = replayed(halving, 40, [9], [8] * 20, [1] * 20, [2] * 20, left=[how])
    assert found.pick == pick


def test_asha_stops_whoever_is_not_in_the_top_quarter_so_far():
    # a comes first and runs on alone; b and c are below it at rung 1 and stop there; d goes on.
    found = replayed(asha, 100, [2] * 16, [1, 9, 9, 9], [1, 9, 9, 9], [3] * 16)
    assert found.pick == "d" and found.pulls == 16 + 1 + 1 + 16
