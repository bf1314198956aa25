"""Tallies: exact sums that do not depend on how the runs were split."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer import RisingSR, RoundRobin, SuccessiveRejects
from latebloomer.errors import ResultsError
from latebloomer.simulation.results import tally
from latebloomer.simulation.results.counts import join_ranges, mean_of, missing_ranges, quantile
from tests.helpers.simulations import tally_of

POLICIES = {"sr": SuccessiveRejects(), "r-sr": RisingSR(), "rr": RoundRobin()}
MEANS = np.array([[0.1, 0.5, 0.9, 0.95], [0.3, 0.4, 0.45, 0.5], [0.2, 0.6, 0.7, 0.95]])


def chunk(rng, runs, policies=3, arms=3, budget=4):
    recommended = rng.integers(0, arms, (policies, runs))
    pulls = rng.multinomial(budget, np.ones(arms) / arms, (policies, runs))
    return recommended, pulls


def filled(cuts, recommended, pulls, first=0):
    made = tally_of(POLICIES, MEANS, budget=4)
    edges = [0, *sorted(cuts), recommended.shape[1]]
    for a, b in pairwise(edges):
        made.add(first + a, recommended[:, a:b], pulls[:, a:b])
    return made


def state(made):
    return made.cells(), made.pairs()


def test_a_tally_worked_by_hand():
    # Arms 0 and 2 tie at the horizon, so both are right; the best mean there is 0.95.
    # run 0: sr takes arm 0 after 3 pulls (regret .05), r-sr arm 1 after 2 (.55), rr arm 2 after 4
    # run 1: sr takes arm 1 after 1 (.65), r-sr arm 1 after 4 (.45), rr arm 1 without a pull (.65)
    made = tally_of(POLICIES, MEANS, budget=4)
    recommended = np.array([[0, 1], [1, 1], [2, 1]])
    pulls = np.array([[[3, 1, 0], [2, 1, 1]], [[1, 2, 1], [0, 4, 0]], [[0, 0, 4], [4, 0, 0]]])
    made.add(10, recommended, pulls)
    cells = {cell.policy: cell for cell in made.cells()}
    assert [cells[p].errors for p in POLICIES] == [1, 2, 1]
    assert [cells[p].recommendations for p in POLICIES] == [(1, 1, 0), (0, 2, 0), (0, 1, 1)]
    assert cells["sr"].regret().value == pytest.approx((0.05 + 0.65) / 2, rel=1e-11)
    assert cells["r-sr"].regret().value == pytest.approx((0.55 + 0.45) / 2, rel=1e-11)
    assert cells["rr"].regret().value == pytest.approx(0.65 / 2, rel=1e-11)
    assert cells["sr"].pulls == ({3: 1, 2: 1}, {1: 2}, {0: 1, 1: 1})
    assert cells["sr"].ranges == ((10, 12),)
    pair = next(p for p in made.pairs() if {p.first, p.second} == {"sr", "r-sr"})
    # R-SR is first in the order of the paper: it alone errs in run 0, both err in run 1
    assert (pair.first, pair.only_first, pair.only_second) == ("r-sr", 1, 0)
    assert pair.regret().value == pytest.approx((0.50 - 0.20) / 2, rel=1e-10)


def units_of(made, recommended, pulls):
    """The regrets in units, one by one, with exact fractions."""
    unit, best = Fraction(2) ** made.unit, MEANS[:, -1].max()
    return [
        [
            round(Fraction(float(best - MEANS[arm, max(int(n[arm]), 1) - 1])) / unit)
            for arm, n in zip(arms, by_run, strict=True)
        ]
        for arms, by_run in zip(recommended.tolist(), pulls, strict=True)
    ]


def test_sums_of_regrets_are_those_of_exact_arithmetic(rng):
    recommended, pulls = chunk(rng, 200)
    made = filled([77], recommended, pulls)
    exact = units_of(made, recommended, pulls)
    for cell, units in zip(made.cells(), exact, strict=True):
        assert cell.regret_sum == sum(units)
        assert cell.regret_squares == sum(u * u for u in units)
    by_label = dict(zip(POLICIES, exact, strict=True))
    for pair in made.pairs():
        both = zip(by_label[pair.first], by_label[pair.second], strict=True)
        differences = [a - b for a, b in both]
        assert pair.regret_sum == sum(differences)
        assert pair.regret_squares == sum(d * d for d in differences)


def test_sums_are_exact_where_regrets_are_as_large_as_can_be():
    # just below a power of two, so that regrets round to 2^40 units and products sum to 2^53
    top = np.nextafter(1.0, 0.0)
    means = np.array([[-top, top], [-top, -top]])
    made = tally_of({"rr": RoundRobin()}, means, budget=2)
    runs = 3 * tally.BLOCK + 1
    made.add(0, np.ones((1, runs), int), np.ones((1, runs, 2), int))
    (cell,) = made.cells()
    assert (cell.regret_sum, cell.regret_squares) == (runs * 2**40, runs * 2**80)
    assert cell.regret() == (2.0, 2.0, 2.0)
    assert tally.BLOCK * (2**20) ** 2 == 2**53  # the last whole number that float64 is sure of


@given(
    seed=st.integers(0, 2**32 - 1),
    runs=st.integers(1, 60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    block=st.sampled_from([1, 7, 8192]),
)
def test_any_chunks_give_the_same_bits(seed, runs, cuts, block):
    recommended, pulls = chunk(np.random.default_rng(seed), runs)
    whole = filled([], recommended, pulls)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally, "BLOCK", block)
        assert state(filled([c for c in cuts if c <= runs], recommended, pulls)) == state(whole)


def test_pulls_far_apart_are_counted_by_sorting():
    assert tally.histogram(np.array([10**9, 3, 10**9])) == {3: 1, 10**9: 2}


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200), st.integers(0, 20))
def test_quantiles_are_numpys_inverted_cdf(numbers, twentieths):
    data, q = np.array(numbers), twentieths / 20
    found = tally.histogram(data)
    ranked = sorted(numbers)
    place = max(1, -(-twentieths * len(numbers) // 20))  # ceil(q n), in whole numbers
    assert quantile(found, q) == ranked[place - 1]
    assert mean_of(found) == pytest.approx(data.mean(), rel=1e-15)


def test_a_run_counts_once(rng):
    made = filled([], *chunk(rng, 10))
    with pytest.raises(ResultsError, match="both have the runs 8 to 9, and a run counts once"):
        made.add(8, *chunk(rng, 5))
    assert made.ranges == ((0, 10),)
    (cell, *_), (pair, *_) = made.counts()
    for one in (cell, pair):
        with pytest.raises(ResultsError, match="both have the runs 0 to 9"):
            one.merge(one)
    other = tally_of(POLICIES, MEANS + 1e-3, 4).cells()[0]
    with pytest.raises(ResultsError, match="Cannot merge results of sr at budget 4: means is"):
        cell.merge(other)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=8), st.integers(0, 40))
def test_ranges_are_sets_of_runs(parts, last):
    covered, runs = (), set()
    for first, length in parts:
        new = set(range(first, first + length))
        if runs & new:
            with pytest.raises(ResultsError):
                join_ranges(covered, ((first, first + length),))
        else:
            covered, runs = join_ranges(covered, ((first, first + length),)), runs | new
    assert {run for a, b in covered for run in range(a, b)} == runs
    assert all(b < a for (_, b), (a, _) in pairwise(covered))
    holes = missing_ranges(covered, 0, last)
    assert {run for a, b in holes for run in range(a, b)} == set(range(last)) - runs
