"""The default policy: what "auto" becomes, where it is known, and what is said where it is not."""

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from latebloomer import Session, simulate
from latebloomer.bench import bench
from latebloomer.cli import app
from latebloomer.errors import BudgetError, SettingError
from latebloomer.policies import AdaptiveRejects, RisingSR, choose_policy, make_policy
from latebloomer.racing import OtherRace, look, race, resume

STEEP, EVEN = AdaptiveRejects(), AdaptiveRejects(power=1.0)


def rising(best):
    return lambda: (best * n / (n + 5) for n in range(1, 1000))


LEARNERS = {"a": rising(0.9), "b": rising(0.7), "c": rising(0.5)}


def run(path=None, budget=40, **settings):
    return race(LEARNERS, budget, journal=path, progress=False, **settings)


def run_cli(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


# --- the rule ---


@pytest.mark.parametrize(
    ("budget", "policy"), [(50, EVEN), (100, EVEN), (101, STEEP), (9999, STEEP)]
)
def test_the_plan_is_steep_from_one_full_training_on(budget, policy):
    assert choose_policy(arms=8, budget=budget, horizon=100) == policy
    assert Session("auto", 8, budget, horizon=100).policy == policy
    assert run(budget=budget, horizon=100).settings["policy"]["repr"] == repr(policy)


def test_without_a_horizon_the_budget_is_one_full_training():
    assert Session("auto", 8, 400).policy == EVEN


def test_a_budget_too_small_says_what_is_needed():
    for call in (
        lambda: choose_policy(3, 2, 2),
        lambda: Session("auto", 3, 2),
        lambda: run(budget=2),
    ):
        with pytest.raises(BudgetError, match="budget=2 for 3 arms, but AdaptiveRejects needs 3"):
            call()


@pytest.mark.parametrize("name", ["auto", "auto:power=2"])
def test_a_name_alone_does_not_say_which_policy_it_is(name):
    with pytest.raises(SettingError, match=r"choose_policy\(arms, budget, horizon\) gives it"):
        make_policy(name)


# --- races ---


def test_a_race_names_what_it_plays(capfd, tmp_path):
    verdict = race(LEARNERS, 40, journal=tmp_path / "race.db")
    assert capfd.readouterr().err.startswith(f"auto: {EVEN!r}\n")
    assert verdict.policy == f"auto: {EVEN!r}" and f"by auto: {EVEN!r}" in str(verdict)
    assert look(tmp_path / "race.db").policy == verdict.policy
    assert run(policy="r-sr").policy == repr(RisingSR())


def test_the_journal_has_the_policy_and_that_it_was_left_to_us(tmp_path):
    verdict = run(tmp_path / "race.db")
    with sqlite3.connect(tmp_path / "race.db") as db:
        values = {k: json.loads(v) for k, v in db.execute("SELECT key, value FROM settings")}
    assert values["policy"]["name"] == "adaptive-rejects" and values["auto"] is True
    for policy in (None, "auto", "adaptive-rejects:power=1"):
        again = resume(tmp_path / "race.db", LEARNERS, policy=policy, progress=False)
        assert again.summary() == verdict.summary()


def test_a_policy_that_was_named_is_not_taken_for_auto(tmp_path):
    run(tmp_path / "race.db", policy="sh")
    with pytest.raises(
        OtherRace, match=r"policy='auto', but .* SuccessiveHalving.*, which was named"
    ):
        resume(tmp_path / "race.db", LEARNERS, policy="auto")


def test_a_journal_from_before_opens_and_its_policy_was_named(tmp_path):
    kept = Path(__file__).parents[1] / "racing" / "journals_v1" / "finished.db"
    path = Path(shutil.copy(kept, tmp_path / "race.db"))
    before = look(path).summary()
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM settings WHERE key IN ('auto', 'deliver')")
    assert look(path).summary() == before
    with pytest.raises(OtherRace, match="was named: leave policy out"):
        resume(path, LEARNERS, policy="auto")


@pytest.mark.parametrize(("horizon", "policy"), [(None, EVEN), (30, STEEP)])
def test_by_the_clock_the_horizon_decides(horizon, policy):
    verdict = race(LEARNERS, seconds=0.05, horizon=horizon, journal=None, progress=False)
    assert verdict.policy == f"auto: {policy!r}"


# --- everywhere else ---


def test_plan_shows_what_a_race_would_do():
    said = run_cli("plan", "--arms", 4, "--budget", 40).output
    assert said == str(EVEN.describe(4, 40)) + "\n"
    said = run_cli("plan", "--arms", 4, "--budget", 40, "--horizon", 20, "--policy", "auto").output
    assert said.startswith(repr(STEEP))


def test_the_simulator_chooses_for_each_budget():
    both = ["auto", "adaptive-rejects"]
    found = simulate("paper-a", both, [60, 400], 20, horizon=100, progress=False)
    settings = {row["budget"]: row["settings"] for row in found.rows() if row["policy"] == "auto"}
    assert settings == {60: repr(EVEN), 400: repr(STEEP)}
    played = simulate("paper-a", STEEP, 400, 20, horizon=100, progress=False)
    assert found.cell("auto", 400).errors == played.cell(STEEP, 400).errors


def test_the_bench_chooses_for_each_problem_and_budget(tmp_path, rng):
    for k in range(3):
        curves = np.sort(rng.normal(size=(5, 30)), axis=1)
        np.savez(tmp_path / f"{k}.npz", curves=curves)
    names = ["auto", "adaptive-rejects", "adaptive-rejects:power=1"]
    found = bench(tmp_path, names, [0.1, 1.0, 4.0], draws=4, sigma=0.2)
    loss = {(line.policy, line.budget): line.rank_loss for line in found.lines}
    for budget, same in (("0.1", names[2]), ("1", names[2]), ("4", names[1])):
        assert loss["auto", budget] == loss[same, budget]
