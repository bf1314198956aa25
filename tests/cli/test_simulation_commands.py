"""The files of simulate, bench and reproduce.

What else simulate, bench and download do is tested with what they call.
"""

import json
from importlib import import_module

import pytest
from typer.testing import CliRunner

from latebloomer import errors
from latebloomer.cli import app
from latebloomer.problems import FAMILIES, known_problems

SIMULATE = ["simulate", "--problem", "paper-a", "--budget", "60", "--runs", "4", "--quiet"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def nothing_is_played(monkeypatch):
    def played(*_, **__):
        raise AssertionError("played")

    for module, name in (("simulation.simulate", "simulate"), ("bench.benchmark", "bench")):
        monkeypatch.setattr(import_module(f"latebloomer.{module}"), name, played)


NOT_WRITTEN = [
    ([*SIMULATE, "--plot", "."], "because it is a folder"),
    ([*SIMULATE, "--csv", "t", "--plot", "t"], "--csv and --plot are both 't'"),
    ([*SIMULATE, "--out", "t", "--csv", "t"], "--out and --csv are both 't'"),
    (["bench", "--out", "file"], "Cannot make or write in the folder file (Not a dir"),
    (["reproduce", "setting-a", "--out", "file"], "Cannot make"),
]


@pytest.mark.usefixtures("nothing_is_played")
@pytest.mark.parametrize("words, text", NOT_WRITTEN)
def test_where_nothing_can_be_written_is_said_before_the_work(tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    ran = run(*words)
    assert ran.exit_code == 2 and not ran.stdout
    assert ran.stderr.startswith("OutputError: ") and ran.stderr.count("\n") == 1
    assert text in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


OWN_POLICY = """
from dataclasses import dataclass
from typing import ClassVar

from latebloomer import Problem
from latebloomer.core.history import recent_mean
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Ledger
from latebloomer.policies.base import Policy


@dataclass(frozen=True)
class LastFew(Policy):
    rewards: int = 5
    name: ClassVar[str] = "last-few"

    def levels(self, arms, budget, horizon):
        return [(arms, budget // arms)]

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        return recent_mean(ledger, i, min(5, ledger.n[i]))


READY = LastFew(3)
NUMBER = 7
TWO_ARMS = Problem([lambda n: 0.9 * n / (n + 9), lambda n: 0.3], noise=0.01, label="two arms")
"""


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"own_policies_{tmp_path.name.replace('-', '_')}.py"
    (tmp_path / name).write_text(OWN_POLICY)
    return name


def test_a_policy_of_a_file_is_simulated_next_to_named_ones(own_file):
    found = run(
        *SIMULATE, "--target", "python", "--policy",
        f"{own_file}:LastFew:rewards=4,r-sr,{own_file}:READY", "--json",
    )  # fmt: skip
    assert found.exit_code == 0, found.output + found.stderr
    labels = [row["policy"] for row in json.loads(found.stdout)["rows"]]
    assert len(labels) == 3 and "r-sr" in labels
    assert any(label.startswith("last-few") and "rewards=4" in label for label in labels)


def test_a_problem_of_a_file_is_simulated_and_has_guarantees(own_file):
    where = ("--problem", f"{own_file}:TWO_ARMS", "--budget", "40", "--json")
    simulated = run("simulate", *where, "--policy", "rr", "--runs", "2", "--target", "python")
    assert json.loads(simulated.stdout)["rows"][0]["problem"] == "two arms"
    (found,) = json.loads(run("guarantees", *where).stdout)["guarantees"]
    assert (found["label"], found["arms"], found["noise"]) == ("two arms", 2, 0.01)
    wrong = run("guarantees", "--problem", f"{own_file}:NUMBER", "--budget", "40")
    assert wrong.exit_code == 2
    assert "NUMBER is int, but it must be a Problem: NUMBER = Problem([" in wrong.stderr


def test_a_file_without_a_class_is_not_taken_for_a_policys_name(own_file):
    found = run(*SIMULATE, "--policy", own_file)
    assert found.exit_code == 2 and f"Add its class: {own_file}:CLASS" in found.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("LastFive", "has no 'LastFive'. Did you mean 'LastFew'?"),
        ("NUMBER", "is int, but it must be a policy's class"),
        ("READY:rewards=2", "is an object, which takes no settings"),
        ("LastFew:rewrds=2", "setting of last-few is called 'rewrds'; did you mean 'rewards'"),
        ("Ledger", "is a class, but it must be a policy's class"),
    ],
)
def test_a_file_without_such_a_policy_says_what_to_type(own_file, name, said):
    found = run(*SIMULATE, "--policy", f"{own_file}:{name}")
    assert found.exit_code == 2 and said in found.stderr
    missing = run(*SIMULATE, "--policy", "no_such_file.py:Mine")
    assert missing.exit_code == 2 and "There is no file no_such_file.py" in missing.stderr


def test_the_help_of_simulate_and_reproduce_says_what_one_may_type():
    text = " ".join(run("simulate", "--help").output.split())
    assert all(name in text for name in known_problems() if ":" not in name)
    assert all(family in text for family in FAMILIES) and "mine.py:MyPolicy" in text
    text = " ".join(run("reproduce", "--help").output.split())
    for part in ("argmax B", "published code", "imdb and imdb-arms need recorded curves",
                 "latebloomer.paper.imdb_reviews"):  # fmt: skip
        assert part in text


def test_missing_extras_are_named_together(monkeypatch, tmp_path):
    monkeypatch.setattr(errors, "find_spec", lambda module: None)
    monkeypatch.chdir(tmp_path)
    install = errors.install_command("sim", "plots")
    for words in (["reproduce", "setting-a"], [*SIMULATE, "--plot", "a.png"]):
        found = run(*words)
        assert found.exit_code == 2 and "MissingExtra: " in found.stderr
        assert f"numba and matplotlib: {install}" in " ".join(found.stderr.split())
