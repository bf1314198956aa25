"""The recipes for other libraries run, end in a verdict, and repeat themselves."""

import os
import runpy
from pathlib import Path

import pytest
from libraries import library

from latebloomer import check_learner, race

os.environ["HF_HUB_OFFLINE"] = "1"
RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
NEEDS = {
    "stable_baselines3": ["stable_baselines3"],
    "flax_optax": ["flax", "optax"],
    "lora": ["transformers", "peft"],
    "data_size": ["sklearn"],
}


def learners(name):
    for one in NEEDS[name]:
        library(one, "integrations")
    return runpy.run_path(str(RECIPES / f"{name}.py"))["LEARNERS"]


def test_every_recipe_is_tested():
    assert {file.stem for file in RECIPES.glob("*.py")} == set(NEEDS)


@pytest.mark.parametrize("name", NEEDS)
def test_a_recipe_races_and_repeats_itself(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = learners(name)
    runs = [race(given, trainings=0.3, journal=None, progress=False) for _ in range(2)]
    assert runs[0].over and runs[0].learner is not None
    assert runs[0].summary() == runs[1].summary()


@pytest.mark.parametrize("name", ["lora", "flax_optax", "data_size"])
def test_a_recipe_is_the_same_after_a_resume(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = next(iter(learners(name).values()))
    assert check_learner(first, pulls=2).exact
