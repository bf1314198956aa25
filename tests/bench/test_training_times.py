"""Learners whose training costs differ, at the same share of their training and the same time."""

import os
from pathlib import Path

import numpy as np
import pytest

from latebloomer import RisingSR
from latebloomer.bench import Curves, benchmark, curve_sets
from latebloomer.bench.benchmark import (
    bench_times,
    race_in_time,
    same_share,
    same_time,
    without_start,
)
from latebloomer.problems.recorded import DATA

LENGTH = 100


def curves(levels, full):
    """Straight rises to a level; training takes `full` seconds in total, evenly."""
    share = np.arange(1, LENGTH + 1) / LENGTH
    return np.outer(levels, share), np.outer(full, share)


def pick_and_time(unit, levels, full, limit):
    return race_in_time(RisingSR(), *unit(*curves(levels, full)), limit)


def test_by_shares_every_pull_costs_a_hundredth_of_the_learners_own_training():
    _, seconds = same_share(*curves([0.9, 0.5], [1.0, 3.0]))
    assert seconds == pytest.approx(np.outer([0.01, 0.03], np.ones(LENGTH)))
    pick, spent = pick_and_time(same_share, [0.9, 0.5, 0.4], [1.0, 1.0, 1.0], limit=1.5)
    assert pick == 0 and spent == pytest.approx(1.5, abs=0.02)


def test_by_time_a_short_training_finishes_and_keeps_its_score():
    # The average training takes 1 s, a pull a hundredth of that: the short one has ten pulls.
    scores, seconds = same_time(*curves([0.9, 0.5], [0.1, 1.9]))
    assert scores.shape == (2, 190) and np.isfinite(scores[1]).all()
    assert np.isfinite(scores[0]).sum() == 10 and scores[0, 9] == pytest.approx(0.9)
    assert seconds[np.isfinite(scores)] == pytest.approx(0.01)
    pick, spent = pick_and_time(same_time, [0.9, 0.5], [0.1, 1.9], limit=0.5)
    assert pick == 0 and spent <= 0.52


def test_after_the_same_time_the_slow_learner_looks_worse_than_it_is():
    levels, full = [0.6, 0.9], [0.1, 10.0]
    assert pick_and_time(same_time, levels, full, limit=2.0)[0] == 0
    assert pick_and_time(same_share, levels, full, limit=2.0)[0] == 1


def test_the_time_budget_stops_a_race_within_a_pull_of_its_time():
    n, arm = np.arange(1, 501), np.arange(1, 4)[:, None]
    seconds = np.array([[0.02], [0.05], [0.01]]) * np.ones(500)
    spent = race_in_time(RisingSR(), n / (n + arm), seconds, 2.0)[1]
    assert abs(spent - 2.0) <= 0.05


def test_the_cost_of_starting_is_not_a_cost_of_training():
    # To start takes 5 s at every size; training itself takes 1 s a pull.
    seconds = 5.0 + np.arange(1, 5.0)[None]
    assert without_start(seconds).tolist() == [[0.75, 1.75, 2.75, 3.75]]


def test_both_units_are_policies_of_one_report(monkeypatch):
    made = []
    for k in range(3):
        scores, seconds = curves([0.9, 0.6, 0.5], [1.0, 2.0 + k, 0.5])
        runs = np.stack([scores, scores], axis=1)
        made.append(Curves("lcdb10", f"set-{k}", scores, runs=runs, seconds=seconds))
    monkeypatch.setattr(curve_sets, "lcdb10", lambda: iter(made))
    report = bench_times(("r-sr", "sh"), budgets=(1.0, 2.0), draws=2)
    labels = {f"{policy}, {unit}" for policy in ("r-sr", "sh") for unit in benchmark.UNITS}
    assert {line.policy for line in report.lines} == labels
    by_share = [line for line in report.lines if line.policy.endswith("same share")]
    assert {line.rank_loss for line in by_share} == {0.0}  # straight rises keep their order
    assert all(0 < line.spent <= 1.1 for line in report.lines)
    assert "| r-sr, same share | " in str(report) and "*same time*" in str(report)


@pytest.mark.skipif(
    not (Path(os.environ.get(DATA, "")) / "data" / "lcdb10" / "lcdb10.npz").is_file(),
    reason=f"{DATA} names no folder with data/lcdb10",
)
def test_the_recorded_set_has_times_that_only_rise():
    first = next(curve_sets.lcdb10())
    seconds = without_start(first.seconds)
    assert first.runs.shape[2] == seconds.shape[1] == 100
    assert (np.diff(seconds, axis=1) >= 0).all() and (seconds > 0).all()
