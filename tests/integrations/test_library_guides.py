"""docs/training-libraries.md, tuners.md, callbacks.md: examples run, tables are complete."""

import contextlib
import io
import os
import re
from importlib import import_module
from pathlib import Path

import pytest
from libraries import library

from latebloomer import read_verdict
from latebloomer.integrations import loggers
from latebloomer.policies.registry import REGISTRY
from latebloomer.racing.learner import ADAPTERS
from latebloomer.session.session import Session

TRAINING, TUNERS, CALLBACKS = (
    (Path(__file__).parents[2] / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("training-libraries", "tuners", "callbacks")
)
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
ROWS, *EXAMPLES = BLOCK.findall(TRAINING)
OURS = re.compile(r"^from latebloomer\.integrations\.(\w+) import (\w+)", re.MULTILINE)
TITLES = [OURS.search(example)[1] for example in EXAMPLES]
HOSTS = {OURS.search(text).groups(): text for text in BLOCK.findall(TUNERS) if OURS.search(text)}


def test_there_is_an_example_for_each_learner_and_a_line_in_the_table():
    elsewhere = {"sklearn", "optuna"}  # docs/scikit-learn.md, docs/tuners.md
    found = {name.split(".")[2]: name.rpartition(".")[2] for name in ADAPTERS.values()}
    assert found.keys() - elsewhere == set(TITLES)
    assert all(f"| `{found[title]}` | " in TRAINING for title in TITLES)


@pytest.mark.parametrize("title", TITLES)
def test_an_example_runs_and_two_runs_are_the_same(title, tmp_path, monkeypatch):
    library(title)
    os.environ.setdefault("KERAS_BACKEND", "torch")
    example, verdicts = EXAMPLES[TITLES.index(title)], []
    for run in ("first", "second"):
        (tmp_path / run).mkdir()
        monkeypatch.chdir(tmp_path / run)
        said: dict = {}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(ROWS, said)
            exec(example, said)
        verdicts.append(said["verdict"])
    kind = getattr(import_module(f"latebloomer.integrations.{title}"), OURS.search(example)[2])
    assert isinstance(verdicts[0].learner, kind) and verdicts[0].learner.model is not None
    assert verdicts[0].summary() == verdicts[1].summary()


def test_the_loggers_of_the_table_are_there():
    rows = re.findall(r"^\| `(\w+Logger)\(.*?\)` \|", CALLBACKS, re.MULTILINE)
    assert {*rows, "RaceLogger"} == set(loggers.__all__)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNETUNE_FOLDER", str(tmp_path / "syne"))


def test_the_example_for_optuna_runs(elsewhere):
    library("optuna")
    exec(HOSTS["optuna", "race_study"], said := {})
    assert said["verdict"].spent <= 324
    assert said["verdict"].name == f"trial {said['study'].best_trial.number}"


def test_the_example_for_ray_tune_runs(elsewhere):
    ray = library("ray")
    library("tensorboardX", "tune")  # what Ray Tune needs beyond Ray
    path = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False,
             runtime_env={"env_vars": path})  # fmt: skip
    said: dict = {"__name__": "__main__"}
    try:
        exec(HOSTS["ray_tune", "RaceScheduler"], said)
    finally:
        ray.shutdown()
    verdict = read_verdict("races/tune.db")
    assert verdict.over and verdict.spent <= 40 and verdict.unspent < 4
    assert verdict.name == said["scheduler"].verdict().name


def test_the_example_for_syne_tune_runs(elsewhere):
    library("syne_tune", "syne-tune")
    (script,) = (text for text in BLOCK.findall(TUNERS) if text.startswith("# train.py"))
    Path("train.py").write_text(script)
    exec(HOSTS["syne_tune", "RaceCallback"], {})
    verdict = read_verdict("races/syne.db")
    assert verdict.over and verdict.spent <= 40 and verdict.unspent < 4


def test_the_policies_that_the_guide_names_are_those_with_phases():
    (listed,) = re.findall(r"Policies with \[phases\]\S+ are (.*?);", TUNERS, re.DOTALL)
    named = set(re.findall(r"`([\w-]+)`", listed)) - {"auto"}
    assert named <= set(REGISTRY)
    for name in REGISTRY:
        session = Session(REGISTRY[name].examples()[0], 8, 800, 100)
        phased = not session.decides_every_pull and not session.policy.decides_after_sweeps()
        assert phased == (name in named), name
