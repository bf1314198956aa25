"""Races on recorded scores and seconds: what they spend, what they pick, what counts."""

import os

import numpy as np
import pytest
from typer.testing import CliRunner

from latebloomer.bench import Curves, bench, curve_sets
from latebloomer.bench.costs import SECONDS, Cost
from latebloomer.bench.timed_runs import race_in_seconds, race_problem
from latebloomer.cli import app
from latebloomer.errors import CurveError

LENGTH = 100
NEEDS_DATA = pytest.mark.skipif(
    not os.environ.get("LATEBLOOMER_DATA"), reason="LATEBLOOMER_DATA names no recorded curves"
)


def straight(levels, full):
    """Scores that rise straight to a level, and seconds that add up to `full`, evenly."""
    share = np.arange(1, LENGTH + 1) / LENGTH
    return np.outer(levels, share), np.outer(full, np.full(LENGTH, 1 / LENGTH))


def test_the_time_budget_stops_a_race_within_a_pull_of_its_time():
    n, arm = np.arange(1, 501), np.arange(1, 4)[:, None]
    seconds = np.array([[0.02], [0.05], [0.01]]) * np.ones(500)
    spent = race_in_seconds(n / (n + arm), seconds, 2.0, "r-sr").elapsed
    assert abs(spent - 2.0) <= 0.05


def test_a_learner_whose_scores_end_has_finished_and_can_win():
    scores, seconds = straight([0.9, 0.5], [1.0, 1.0])
    scores[0, 10:] = np.nan
    scores[0, :10] = 0.8
    state = race_in_seconds(scores, seconds, 1.5, "r-sr")
    assert state.session.best_arm == 0 and state.session.pulls_of(0) == 10


@pytest.mark.parametrize("policy", ["auto", "r-sr", "sh"])
def test_a_race_of_recorded_seconds_counts_what_the_pick_is_worth(policy):
    scores, seconds = straight([0.9, 0.6, 0.3], [1.0, 3.0, 0.5])
    test = 1 - scores  # on test rows the order is the other way round
    curves = Curves("toy", "x", scores, runs=scores[:, None], test=test[:, None],
                    seconds=seconds[:, None])  # fmt: skip
    ((found,),) = race_problem(curves, {"one": {"policy": policy}}, [2.0], 5, 0)
    found = Cost(*found)
    assert found.own_loss == 0.0 and found.regret == 1.0  # the best by validation, worst on test
    assert found.rank_loss == pytest.approx(2 / 3) and found.error == 1.0
    assert 0.9 <= found.spent <= 1.02


def test_both_units_are_lines_of_one_report_and_only_timed_sets_have_seconds():
    report = bench(["tables-fresh", "paper-b"], ["r-sr"], [1.0], draws=1, baseline="r-sr")
    groups = {unit: {line.group for line in report.lines if line.unit == unit}
              for unit in ("seconds", "pulls")}  # fmt: skip
    assert groups == {"seconds": {"tables-fresh"}, "pulls": {"tables-fresh", "paper-b", "all"}}
    text = str(report)
    assert "## Within the same seconds" in text and "## With the same pulls: rank loss" in text
    with pytest.raises(CurveError, match="use tables or lcdb10, or budgets in pulls"):
        bench(["paper-b"], ["r-sr"], [1.0], draws=1, units=[SECONDS])


def test_the_report_says_which_half_is_for_design():
    text = str(bench(["tables"], ["r-sr"], [0.2], draws=1, baseline="r-sr"))
    assert "designed on the 27 whose name has an odd SHA-256" in text
    assert "opened once before" in text
    assert "27 of tables-design, 26 of tables-report, 26 of tables-fresh problems" in text


def test_the_command_runs_offline_without_any_file(monkeypatch):
    monkeypatch.delenv("LATEBLOOMER_DATA", raising=False)
    words = [
        "bench",
        "--policies",
        "r-sr",
        "--baseline",
        "r-sr",
        "--budgets",
        "0.2",
        "--draws",
        "1",
    ]
    ran = CliRunner().invoke(app, [*words, "--quiet"])
    assert ran.exit_code == 0, ran.output
    assert "30 of random-sshaped problems" in ran.stdout and not ran.stderr


@NEEDS_DATA
def test_seconds_of_lcdb_are_of_pulls_and_above_0():
    first = next(curve_sets.lcdb10())
    assert first.runs.shape[2] == first.seconds.shape[2] == 100
    assert first.seconds.shape[1] == 1 and (first.seconds > 0).all()
