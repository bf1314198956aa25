"""Races with the real libraries are killed; `measurements/kill_survival.py` counts the results."""

from importlib import import_module

import pytest

from tests.helpers.killed_races import ends_as_if_never_killed
from tests.helpers.libraries import library
from tests.helpers.repository import ROOT


@pytest.mark.parametrize("file", ["torch", "keras", "lightning", "transformers"])
def test_a_race_killed_and_resumed_ends_the_same(file, tmp_path):
    tests = import_module(f"tests.integrations.test_{file}")
    verdict = ends_as_if_never_killed(tests.__name__, tests.learners, tmp_path)
    assert verdict.learner.steps == verdict.pulls[verdict.name]
    assert verdict.learner.evaluate() == pytest.approx(verdict.score, abs=1e-6)


@pytest.fixture
def survival(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from measurements import kill_survival

    monkeypatch.setenv("LATEBLOOMER_STEP_SECONDS", "0")
    monkeypatch.setattr(kill_survival, "MOMENTS", (0.5,))
    return kill_survival


@pytest.mark.slow
def test_a_race_repeats_one_step_a_study_never_ends_a_trial_and_halving_starts_again(survival):
    (row,) = survival.measured("latebloomer, a checkpoint each step")
    assert (row["again"], row["never"], row["more"], row["pick"]) == (1, 0, 0, "same")
    (row,) = survival.measured("scikit-learn")
    assert (row["again"], row["never"], row["more"]) == (round(row["steps"] / 2), 0, 0)
    library("optuna")  # without heartbeats
    (row,) = survival.measured("Optuna, SQLite")
    assert row["again"] == 0 and row["never"] > 0


@pytest.mark.slow
def test_every_player_was_killed_at_every_moment(survival):
    rows = [(row["player"], float(row["killed_at"])) for row in survival.recorded()]
    assert rows == [(player, at) for player in survival.PLAYERS for at in (0.25, 0.5, 0.75)]
