"""Learners that cost unlike, by shares of their training and by time."""

import os
from pathlib import Path

import numpy as np
import pytest

from latebloomer import RisingSR
from latebloomer.bench import training_times
from latebloomer.bench.training_times import (
    SHARES,
    TIME,
    TimedCurves,
    by_clock,
    by_shares,
    by_time,
    compare_units,
    report,
    without_start,
)
from latebloomer.problems.paper_settings import DATA

LENGTH = 100


def curves(levels, full):
    """Straight rises to a level; training takes `full` seconds in all, evenly."""
    share = np.arange(1, LENGTH + 1) / LENGTH
    return np.outer(levels, share), np.outer(full, share)


def test_by_shares_every_pull_costs_a_hundredth_of_the_learners_own_training():
    scores, seconds = curves([0.9, 0.5, 0.4], [1.0, 1.0, 1.0])
    pick, spent = by_shares(RisingSR(), scores, seconds, limit=1.5)
    assert pick == 0 and spent == pytest.approx(1.5, abs=0.02)


def test_by_time_a_short_training_finishes_and_keeps_its_score():
    # The average training takes 1 s, a pull a hundredth of that: the short one has ten pulls.
    scores, seconds = curves([0.9, 0.5], [0.1, 1.9])
    pick, spent = by_time(RisingSR(), scores, seconds, limit=0.5)
    assert pick == 0 and spent <= 0.52


def test_after_the_same_time_the_slow_learner_looks_worse_than_it_is():
    scores, seconds = curves([0.6, 0.9], [0.1, 10.0])
    assert by_time(RisingSR(), scores, seconds, limit=2.0)[0] == 0
    assert by_shares(RisingSR(), scores, seconds, limit=2.0)[0] == 1


def test_the_clock_stops_a_race_within_a_pull_of_its_time():
    seconds = np.array([0.02, 0.05, 0.01])
    played = by_clock(RisingSR(), 3, 500, 2.0, lambda arm, n: (n / (n + arm + 1), seconds[arm]))
    assert abs(played[1] - 2.0) <= 0.05


def test_what_it_takes_to_begin_is_no_price_of_training():
    # To begin takes 5 s at every size; training itself takes 1 s a pull.
    seconds = 5.0 + np.arange(1, 5.0)[None]
    assert without_start(seconds).tolist() == [[0.75, 1.75, 2.75, 3.75]]


def test_both_ways_stand_side_by_side_in_one_table(monkeypatch):
    made = []
    for k in range(3):
        scores, seconds = curves([0.9, 0.6, 0.5], [1.0, 2.0 + k, 0.5])
        made.append(TimedCurves(f"set-{k}", np.stack([scores, scores], axis=1), seconds))
    monkeypatch.setattr(training_times, "timed_curves", lambda: iter(made))
    cells = compare_units(("r-sr", "sh"), budgets=(1.0, 2.0), draws=2)
    assert {(cell.unit, cell.budget, cell.policy) for cell in cells} == {
        (unit, budget, policy)
        for unit in (SHARES, TIME) for budget in (1.0, 2.0) for policy in ("r-sr", "sh")
    }  # fmt: skip
    by_share = [cell.rank_loss for cell in cells if cell.unit == SHARES]
    assert by_share == [0.0] * 4  # straight rises keep their order at every share
    assert all(0 < cell.spent <= 1.1 for cell in cells)
    text = report(cells, draws=2)
    assert "| policy | 1: same share | 1: same time | 2: same share | 2: same time |" in text


@pytest.mark.skipif(
    not (Path(os.environ.get(DATA, "")) / "data" / "lcdb10" / "lcdb10.npz").is_file(),
    reason=f"{DATA} names no folder with data/lcdb10",
)
def test_the_recorded_set_has_times_that_only_rise():
    first = next(training_times.timed_curves())
    assert first.runs.shape[2] == first.seconds.shape[1] == 100
    assert (np.diff(first.seconds, axis=1) >= 0).all() and (first.seconds > 0).all()
