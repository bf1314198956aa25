"""Regret while learning: the best sequence of pulls, by trying all."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer import Problem
from latebloomer.simulation import hindsight
from tests.helpers.simulations import quiet

TABLES = st.tuples(st.integers(2, 4), st.integers(1, 4), st.booleans(), st.integers(0, 2**32 - 1))


@given(TABLES, st.integers(1, 20))
def test_no_sequence_of_pulls_earns_more(table, budget):
    arms, horizon, rises, seed = table
    means = np.random.default_rng(seed).uniform(-0.5, 1, (arms, horizon)).round(2)
    means = np.sort(means, axis=1) if rises else means
    found, sums = hindsight.best_totals(lambda: iter(means), budget), hindsight.totals(means)
    best = {}
    for pulls in product(range(horizon + 1), repeat=arms):
        earned = sum(sums[arm, n] for arm, n in enumerate(pulls))
        best[sum(pulls)] = max(best.get(sum(pulls), -np.inf), earned)
    expected = [best[t] for t in range(min(budget, arms * horizon) + 1)]
    assert found == pytest.approx(expected)


def test_pulling_in_turn_misses_what_the_better_arm_earns_later():
    n = np.arange(1, 61)
    (row,) = quiet(Problem(np.array([n / 60, n / 120])), "rr", 60, 1).rows()
    assert row["learning_regret"] == pytest.approx(n.sum() / 60 - 465 * (1 / 60 + 1 / 120))


def test_a_difference_of_two_policies_is_that_of_their_regrets():
    found = quiet("paper-a:sigma=0.1", ["r-ucbe:noise=0.1", "rr"], 200, 50)
    one, other = (row["learning_regret"] for row in found.rows())
    (row,) = found.compare("r-ucbe:noise=0.1", "rr").rows
    difference = row["learning_regret_difference"]
    assert abs(difference) == pytest.approx(abs(one - other), rel=1e-9)
    assert row["learning_regret_difference_low"] < difference < 0
    assert "learning regret" in str(found)


def test_where_the_best_sequence_would_take_too_long_the_regret_is_not_known(monkeypatch):
    monkeypatch.setattr(hindsight, "MOST_STEPS", 10)
    falls = np.tile(np.linspace(1, 0, 60), (2, 1))
    found = quiet(Problem(falls), "rr", 60, 2)
    assert found.rows()[0]["learning_regret"] is None
    assert "-" in str(found)
