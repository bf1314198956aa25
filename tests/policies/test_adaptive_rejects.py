"""Adaptive Rejects: its plan and its rating by hand and by definition, and what it guarantees."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from latebloomer.errors import BudgetError
from latebloomer.policies.adaptive_rejects import AdaptiveRejects, sum_of_powers, windows_at
from latebloomer.policies.late_window import WINDOW
from latebloomer.policies.power_levels import cost, power_levels
from latebloomer.problems import Exponential, Problem
from latebloomer.simulation.simulate import simulate
from tests.helpers.played_policies import play, rated

OURS = AdaptiveRejects()


def test_a_whole_number_for_a_setting_is_no_other_type_to_the_compiler():
    numbers = AdaptiveRejects(power=2, shortest=0).settings(5, 100, 100)
    assert [type(number) for number in numbers] == [float, float] and numbers == (2.0, 0.0)


def test_levels_worked_by_hand():
    # (3/2)^1.5 = 1.837: C just below 3 gives 2 and floor(5.51) = 5, and 2 + 2 * 5 = 12
    assert power_levels(3, 12, 12, 1.5) == [2, 5]
    # 11 pulls: C below 5 / 1.837 gives 2 and 4, which cost 10; one pull cannot pay for both of
    # the last two arms, so the phase before has it
    assert power_levels(3, 11, 12, 1.5) == [3, 4]
    # (4/3)^1.5 = 1.540, 2^1.5 = 2.828: C = 5 gives 5, 7 and 14, and 5 + 7 + 2 * 14 = 40
    assert power_levels(4, 40, 20, 1.5) == [5, 7, 14]
    # horizon 10: the last two stop there, C = 7: 7 + 10 + 2 * 10 = 37, and C = 8 costs 38
    assert power_levels(4, 37, 10, 1.5) == [7, 10, 10]
    assert OURS.plan(6, 6).upto.tolist() == [1, 1]  # the least budget is one pull each
    with pytest.raises(BudgetError, match=r"needs at least 6 \(one pull of each learner\)"):
        OURS.plan(6, 5)


@given(st.integers(2, 40), st.integers(0, 3000), st.integers(1, 400), st.floats(0, 4))
def test_the_plan_never_overspends_and_hardly_underspends(arms, more, horizon, power):
    budget = arms + more
    levels = power_levels(arms, budget, horizon, power)
    assert len(levels) == arms - 1
    assert levels == sorted(levels) and levels[0] >= 1 and levels[-1] <= horizon
    assert cost(levels) <= budget
    assert budget - cost(levels) <= 1 or levels[0] == horizon
    assert (levels[0] == horizon) == (budget >= arms * horizon)


def test_a_window_between_worked_by_hand():
    # n = 8, m' = 4; zigzags of 1/2 about slopes 1 and 0. Second differences are all 2 or -2:
    # sigma^2 = 4/6. The zigzag tilts both slopes alike: Var = 1/4, V = 1/4 - (4/6)/5 = .11667,
    # (2 * (4/6) / V)^(1/3) = 11.43^(1/3) = 2.25: h = 2, of at most 4
    zigzag = 0.5 * np.array([1, -1] * 4)
    ledger = rated(OURS, [np.arange(8) + zigzag, zigzag])
    assert ledger.run[WINDOW] == 2
    assert ledger.rating == pytest.approx([6.5, 0.0])
    ledger = rated(AdaptiveRejects(shortest=0.25), [np.arange(12), np.zeros(12)])
    assert ledger.run[WINDOW] == 3 and ledger.rating[0] == 10.0  # never shorter than asked


def by_definition(X):
    """The rating as it is written down, and the window before rounding (None where n < 3)."""
    n = X.shape[1]
    if n < 3:
        return X.mean(axis=1), None
    m = max(3, n // 2)
    noise = np.mean(np.diff(X[:, -(n if n < 6 else m) :], 2) ** 2) / 6
    slopes = np.polyfit(np.arange(m), X[:, -m:].T, 1)[0]
    V = max(0.0, np.var(slopes) - 12 * noise / (m * (m**2 - 1)))
    exact = (2 * noise / V) ** (1 / 3) if V > 0 else np.inf
    h = int(np.clip(np.round(min(exact, n)), 1, n // 2))
    return X[:, -h:].mean(axis=1), exact


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 9),
    st.integers(1, 60),
    st.sampled_from([0.0, 0.01, 0.1, 1.0]),
    st.sampled_from([0.0, 0.01, 0.3]),
)
def test_the_score_is_its_definition(seed, arms, n, noise, slope):
    rng = np.random.default_rng(seed)
    X = slope * rng.standard_normal((arms, 1)) * np.arange(n) + rng.uniform(0, 1, (arms, 1))
    X = X + noise * rng.standard_normal((arms, n))
    rating, exact = by_definition(X)
    if exact is not None and exact < n:  # not where rounding decides between two windows
        assume(abs(exact % 1 - 0.5) > 1e-6 and (noise > 0 or slope > 0))
    assert rated(OURS, X).rating == pytest.approx(rating, rel=1e-9, abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.floats(-1e3, 1e3), st.sampled_from([1e-3, 1.0, 1e3]))
def test_the_verdict_does_not_change_with_the_unit_of_the_reward(seed, level, unit):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 0.1, (5, 1)) * np.arange(16) + rng.standard_normal((5, 16))
    assert rated(OURS, level + unit * X).run[WINDOW] == rated(OURS, X).run[WINDOW]


def test_arms_dropped_and_kept_agree_with_a_plain_program(rng):
    arms, budget, horizon = 7, 160, 60
    X = rng.uniform(0, 1, (arms, 1)) * (1 - 0.95 ** np.arange(1, 61)) + 0.02 * rng.standard_normal(
        (arms, 60)
    )
    session = play(OURS, X, budget, horizon)
    plan, racing, pulls = OURS.plan(arms, budget, horizon), list(range(arms)), [0] * arms
    for keep, upto in zip(plan.keep, plan.upto, strict=True):
        if keep < arms:
            rating = by_definition(X[racing][:, : max(pulls)])[0]
            racing = sorted(sorted(racing, key=lambda i: -rating[racing.index(i)])[:keep])
        for i in racing:
            pulls[i] = upto
    assert session.pulls == tuple(pulls) and session.recommend().arm == racing[0]


def test_the_bound_adds_up_all_windows():
    # two arms, level 8, windows 2, 3, 4; Delta^2 / (16 sigma^2) = 1/16
    policy = AdaptiveRejects(shortest=0.25)
    bound = policy.error_bound([0, 0.5], 16, 16, noise=0.5)
    assert list(windows_at(8, 0.25)) == [2, 3, 4]
    assert bound == pytest.approx(sum(np.exp(-h / 16) for h in (2, 3, 4)))
    # two arms to 2^52 pulls each: windows h from 2^50 to 2^51, as many as make it an integral
    rate = 1e-14 / 16
    integral = (np.exp(-(2**50) * rate) - np.exp(-(2**51) * rate)) / rate
    found = policy.error_bound([0, 1e-7], 2**53, 2**53, noise=1.0)
    assert found == pytest.approx(integral, rel=1e-9)


def test_it_errs_no_more_often_than_the_bound_says():
    others = [Exponential(level, 5.0, 0.2) for level in (0.55, 0.5, 0.45)]
    problem = Problem([Exponential(0.9, 15.0, 0.0), *others], 0.25)
    policy, budget, horizon, runs = AdaptiveRejects(shortest=0.25), 1200, 400, 300
    gaps, best = np.sort(problem.gaps(horizon)), problem.means(horizon)[0]
    levels = power_levels(4, budget, horizon, policy.power)
    for m, level in zip((4, 3, 2), levels, strict=True):  # what the bound asks for
        earliest = level - max(windows_at(level, policy.shortest)) + 1
        assert best[-1] - best[earliest - 1] <= gaps[m - 1] / 2
    claim = policy.error_bound(gaps.tolist(), budget, horizon, 0.25)
    assert claim < 0.5
    found = simulate(problem, policy, budget, runs, horizon=horizon, target="python",
                     progress=False)  # fmt: skip
    wrong = round(found.rows()[0]["error"] * runs)
    limit = stats.binom.isf(1e-6, runs, claim)  # a true claim fails this once in a million
    assert wrong <= limit, f"{wrong} wrong of {runs}; the bound allows {claim:.0%}"


@given(
    st.one_of(st.just(0.0), st.floats(1e-300, 1e3), st.just(np.inf)),
    st.integers(1, 500),
    st.integers(1, 500),
)
def test_the_sum_over_windows_is_that_of_its_terms(signal, first, count):
    windows = range(first, first + count)
    added = sum(np.exp(-h * signal) for h in windows)
    assert sum_of_powers(signal, windows) == pytest.approx(added, rel=1e-12, abs=0)
