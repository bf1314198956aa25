"""docs/tuners.md: every example runs and ends in a verdict."""

import os
import re
from pathlib import Path

import pytest
from libraries import library

from latebloomer import read_verdict
from latebloomer.policies.registry import REGISTRY
from latebloomer.session.session import Session

GUIDE = (Path(__file__).parents[2] / "docs" / "tuners.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def block(word):
    """The example that imports our part for a tool."""
    ours = f"from latebloomer.integrations.{word} import Race"
    (found,) = (text for text in BLOCKS if ours in text or f"{word} import race_study" in text)
    return found


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNETUNE_FOLDER", str(tmp_path / "syne"))


def test_the_example_for_optuna_runs():
    library("optuna")
    said: dict = {}
    exec(block("optuna"), said)
    assert said["verdict"].spent <= 324
    assert said["verdict"].name == f"trial {said['study'].best_trial.number}"


def test_the_example_for_ray_tune_runs():
    ray = library("ray")
    library("tensorboardX", "tune")  # what Ray Tune needs beyond Ray
    path = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False,
             runtime_env={"env_vars": path})  # fmt: skip
    said: dict = {"__name__": "__main__"}
    try:
        exec(block("ray_tune"), said)
    finally:
        ray.shutdown()
    verdict = read_verdict("races/tune.db")
    assert verdict.over and verdict.spent <= 40 and verdict.unspent < 4
    assert verdict.name == said["scheduler"].verdict().name


def test_the_example_for_syne_tune_runs():
    library("syne_tune", "syne-tune")
    (script,) = (text for text in BLOCKS if text.startswith("# train.py"))
    Path("train.py").write_text(script)
    exec(block("syne_tune"), {})
    verdict = read_verdict("races/syne.db")
    assert verdict.over and verdict.spent <= 40 and verdict.unspent < 4


def test_the_policies_that_the_guide_names_are_those_with_phases():
    (listed,) = re.findall(r"Policies with \[phases\]\S+ are (.*?);", GUIDE, re.DOTALL)
    named = set(re.findall(r"`([\w-]+)`", listed)) - {"auto"}
    assert named <= set(REGISTRY)
    for name in REGISTRY:
        session = Session(REGISTRY[name].examples()[0], 8, 800, 100)
        phased = not session.decides_every_pull and not session.policy.decides_after_sweeps()
        assert phased == (name in named), name
