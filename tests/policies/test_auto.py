"""The default policy: what "auto" becomes, where it is known, and what is said where it is not."""

import json
import sqlite3
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from latebloomer import AdaptiveRejects, Foresight, Session, race, read_verdict, resume, simulate
from latebloomer.cli import app
from latebloomer.errors import BudgetError, JournalMismatch, SettingError
from latebloomer.policies.registry import choose_policy, label_of, make_policy
from latebloomer.racing.journal import files as journals

DEFAULT = Foresight()
STEEP, EVEN = AdaptiveRejects(), AdaptiveRejects(power=1.0)


def rising(best):
    return lambda: (best * n / (n + 5) for n in range(1, 1000))


LEARNERS = {"a": rising(0.9), "b": rising(0.7), "c": rising(0.5)}


def run(path=None, budget=40, **settings):
    return race(LEARNERS, budget, journal=path, progress=False, **settings)


def run_cli(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


# --- the rule ---


def same_plan(one, other, *size):
    return [part.tolist() for part in one.plan(*size)] == [
        part.tolist() for part in other.plan(*size)
    ]


@pytest.mark.parametrize(
    ("budget", "policy"), [(50, EVEN), (100, EVEN), (101, STEEP), (9999, STEEP)]
)
def test_the_plan_is_steep_from_one_full_training_on(budget, policy):
    assert choose_policy(arms=8, budget=budget, horizon=100) == DEFAULT
    assert Session("auto", 8, budget, horizon=100).policy == DEFAULT
    assert run(budget=budget, horizon=100).settings["policy"]["repr"] == repr(DEFAULT)
    assert same_plan(DEFAULT, policy, 8, budget, 100)


def test_a_budget_too_small_says_what_is_needed():
    for call in (
        lambda: choose_policy(3, 2, 2),
        lambda: Session("auto", 3, 2),
        lambda: run(budget=2),
    ):
        with pytest.raises(
            BudgetError, match="budget=2 is too small for 3 learners: foresight needs at least 3"
        ):
            call()


@pytest.mark.parametrize("name", ["auto", "auto:power=2"])
def test_a_name_alone_does_not_say_which_policy_it_is(name):
    with pytest.raises(SettingError, match=r"choose_policy\(arms, budget, horizon\) to get it"):
        make_policy(name)


# --- races ---


def test_a_race_names_what_it_plays(capfd, tmp_path):
    verdict = race(LEARNERS, 40, journal=tmp_path / "race.db")
    assert capfd.readouterr().err.startswith(
        f"Racing 3 learners with policy {label_of(DEFAULT)} (chosen by auto)"
    )
    assert (
        verdict.policy == f"auto: {label_of(DEFAULT)}"
        and f"{label_of(DEFAULT)}, chosen by auto" in str(verdict)
    )
    assert read_verdict(tmp_path / "race.db").policy == verdict.policy
    assert run(policy="r-sr").policy == "r-sr"


def test_the_journal_has_the_policy_and_that_it_was_left_to_us(tmp_path):
    verdict = run(tmp_path / "race.db")
    with sqlite3.connect(tmp_path / "race.db") as db:
        values = dict(db.execute("SELECT key, value FROM settings"))
    assert json.loads(values["policy"])["name"] == "foresight" and values["auto"] == 1
    for policy in (None, "auto", "foresight"):
        again = resume(tmp_path / "race.db", LEARNERS, policy=policy, progress=False)
        assert again.summary() == verdict.summary()


def test_a_race_that_auto_began_with_another_policy_goes_on_with_that(tmp_path):
    """Journals from when "auto" was Adaptive Rejects."""
    run(tmp_path / "race.db", policy=EVEN)
    opened = journals.read(tmp_path / "race.db")
    created, *events = (entry.event for entry in opened.read())
    opened.close()
    settings = {k: v for k, v in created.settings.items() if k != "min_pulls"} | {"auto": True}
    older = journals.create(tmp_path / "older.db", replace(created, settings=settings))
    for event in events[:15]:
        older.append(event)
    older.close()
    again = resume(tmp_path / "older.db", LEARNERS, policy="auto", progress=False)
    assert again.policy == f"auto: {label_of(EVEN)}"
    assert again.pulls == read_verdict(tmp_path / "race.db").pulls


def test_a_policy_that_was_named_is_not_taken_for_auto(tmp_path):
    run(tmp_path / "race.db", policy="sh")
    with pytest.raises(
        JournalMismatch, match=r"policy='auto', but .* SuccessiveHalving.*, which was named"
    ):
        resume(tmp_path / "race.db", LEARNERS, policy="auto")


# --- everywhere else ---


def test_plan_shows_what_a_race_would_do():
    said = run_cli("plan", "--learners", 4, "--budget", 40).output
    assert said.startswith(str(DEFAULT.describe(4, 40)) + "\nMore than 4 workers will not")
    said = run_cli(
        "plan", "--learners", 4, "--budget", 40, "--horizon", 20, "--policy", "auto"
    ).output
    assert said.startswith(repr(DEFAULT))


def test_the_simulator_chooses_for_each_budget():
    both = ["auto", "adaptive-rejects"]
    plain = {"horizon": 100, "target": "python", "progress": False}
    found = simulate("paper-a", both, [60, 400], 20, **plain)
    settings = {row["budget"]: row["settings"] for row in found.rows() if row["policy"] == "auto"}
    assert settings == {60: repr(DEFAULT), 400: repr(DEFAULT)}
    for budget, power in ((60, 1.0), (400, 1.5)):
        same = Foresight(power=power)
        played = simulate("paper-a", same, budget, 20, **plain)
        assert found.cell("auto", budget).pulls == played.cell(same, budget).pulls
