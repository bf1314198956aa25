"""`benchmarks/kill_survival.py` counts what it says: killed with the real libraries, quickly."""

from pathlib import Path

import pytest
from libraries import library

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow  # kills processes of other libraries too


@pytest.fixture
def survival(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import kill_survival

    monkeypatch.setenv("LATEBLOOMER_STEP_SECONDS", "0")
    monkeypatch.setattr(kill_survival, "MOMENTS", (0.5,))
    return kill_survival


def test_a_race_repeats_the_step_that_was_under_way_and_no_other(survival):
    (row,) = survival.measured("latebloomer, a checkpoint each step")
    assert (row["again"], row["never"], row["more"], row["pick"]) == (1, 0, 0, "same")


def test_a_study_without_heartbeats_never_ends_the_trial_that_was_killed(survival):
    library("optuna")
    (row,) = survival.measured("Optuna, SQLite")
    assert row["again"] == 0 and row["never"] > 0


def test_scikit_learns_halving_begins_anew(survival):
    library("sklearn")
    (row,) = survival.measured("scikit-learn")
    assert (row["again"], row["never"], row["more"]) == (round(row["steps"] / 2), 0, 0)


def test_every_player_was_killed_at_every_moment(survival):
    rows = [(row["player"], float(row["killed_at"])) for row in survival.recorded()]
    assert rows == [(player, at) for player in survival.PLAYERS for at in (0.25, 0.5, 0.75)]
