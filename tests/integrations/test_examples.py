"""The demo, the tuners' example and the recipes run and say what they promise."""

import importlib.util
import inspect
import os
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from latebloomer import check_learner, race
from latebloomer.racing.journal.races_folder import list_races
from tests.helpers.libraries import library
from tests.helpers.repository import ROOT

os.environ["HF_HUB_OFFLINE"] = "1"
EXAMPLES = ROOT / "examples"
RECIPES = {  # and the libraries that they need
    "sb3_ppo": ["stable_baselines3"],
    "flax_optax": ["flax", "optax"],
    "lora": ["transformers", "peft"],
    "data_size": ["sklearn"],
}


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow  # the same race as README's first example, which every `make test` runs
@pytest.mark.filterwarnings("default")  # as when it is run as a script
def test_the_demo_keeps_a_late_bloomer_and_writes_its_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["race_digits.py", "--alone"])
    runpy.run_path(str(EXAMPLES / "race_digits.py"), run_name="__main__")
    said = capsys.readouterr()
    assert said.out.startswith("Keep boosting: score ")
    assert "boosting is a late bloomer: forest still led" in said.out
    assert "boosting, refitted on all rows, gets 98.7% of 719 test images" in said.out
    assert "Warning" not in said.err
    assert "boosting" in (tmp_path / "race.html").read_text()
    last = said.out.splitlines()[-1]
    assert "race.html" in last and last.endswith("latebloomer watch")
    assert list_races(Path("races"))[0].winner == "boosting"  # what that command shows


def test_the_demo_tests_on_images_that_no_model_has_seen():
    demo = load("race_digits")
    X, y, (train, validate), X_test, y_test = demo.digits(seed=0)
    assert len(train) == 9 * 808 and len(validate) == 270 and len(y_test) == 719
    assert sorted([*train, *validate]) == list(range(len(X))) and len(y) == len(X)
    assert not {row.tobytes() for row in X} & {row.tobytes() for row in X_test}


def test_the_demo_trains_each_model_that_it_is_compared_with():
    demo = load("race_digits")
    X, y, *rest = demo.digits()
    few = np.arange(60), np.arange(60, 90)
    trained = demo.trained_in_full((X, y, few, *rest[1:]), names=["forest", "logistic"])
    assert {name: 0 < score <= 1 for name, (_, score) in trained.items()} == {
        "forest": True,
        "logistic": True,
    }
    assert len(demo.models()) == 12


def test_the_readme_shows_the_data_and_the_models_of_the_demo():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    demo = load("race_digits")
    assert inspect.getsource(demo.digits) in text and inspect.getsource(demo.models) in text


def test_the_tuners_race(monkeypatch, capsys):
    library("optuna")
    example = load("race_tuners")
    monkeypatch.setattr(example, "BUDGET", 12)
    example.main()
    said = capsys.readouterr().out
    assert "The best configuration is" in said and "on test" in said


@pytest.mark.parametrize("name", [file.stem for file in (EXAMPLES / "recipes").glob("*.py")])
def test_a_recipe_races_repeats_itself_and_is_the_same_after_a_resume(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for one in RECIPES[name]:
        library(one)
    assert importlib.util.find_spec(name) is None  # as a script, it would hide that library
    given = load(f"recipes/{name}").LEARNERS
    runs = [race(given, trainings=0.3, journal=None, progress=False) for _ in range(2)]
    assert runs[0].over and runs[0].learner is not None
    assert runs[0].summary() == runs[1].summary()
    if name != "sb3_ppo":  # whose random states are not saved
        assert check_learner(next(iter(given.values())), pulls=2).exact
