"""The demo, the tuners' example and the recipes run and say what they promise."""

import importlib.util
import os
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from libraries import library
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import HalvingGridSearchCV

from latebloomer import check_learner, race
from latebloomer.racing.journal.listing import list_races

os.environ["HF_HUB_OFFLINE"] = "1"
EXAMPLES = Path(__file__).parents[2] / "examples"
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


@pytest.mark.filterwarnings("default")  # as when it is run as a script
def test_the_demo_keeps_the_late_bloomer_and_writes_its_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["race_digits.py"])
    runpy.run_path(str(EXAMPLES / "race_digits.py"), run_name="__main__")
    said = capsys.readouterr()
    assert "Keep deep net: score " in said.err and "Late bloomer: forest led" in said.err
    assert "deep net, refitted on all rows, gets 98.6% of 500 test images" in said.out
    assert "with the same amount of training, keeps forest" in said.out
    assert "deep net" in (tmp_path / "race.html").read_text()
    last = said.out.splitlines()[-1]
    assert "race.html" in last and last.endswith("latebloomer watch")
    assert list_races(Path("races"))[0].winner == "deep net"  # what that command shows
    # A terminal shows the table of learners in the place of the lines about each.
    names = tuple(load("race_digits").learners())
    about_each = [line for line in said.err.splitlines() if line.strip().startswith(names)]
    lines = len([line for line in (said.err + said.out).splitlines() if line])
    assert lines - len(about_each) + len(names) + 2 <= 27


def test_the_demo_races_at_least_eight_learners_on_rows_apart_from_the_test():
    demo = load("race_digits")
    assert len(demo.learners()) >= 8
    X, X_test, y, y_test = demo.data(seed=0)
    assert len(X) + len(X_test) == len(y) + len(y_test) == 1797
    assert not {row.tobytes() for row in X} & {row.tobytes() for row in X_test}


@pytest.mark.parametrize("count", [4, 9, 10])
def test_the_demos_rungs_are_those_of_scikit_learn(count, rng):
    ours = load("race_digits").rungs(count, 900)
    halving = HalvingGridSearchCV(
        SGDClassifier(loss="log_loss", tol=None), {"alpha": np.geomspace(1e-4, 1, count)},
        factor=3, cv=2, refit=False, resource="max_iter", max_resources=ours[-1][1],
        min_resources="exhaust",
    ).fit(rng.random((12, 2)), np.arange(12) % 2)  # fmt: skip
    assert ours == list(zip(halving.n_candidates_, halving.n_resources_, strict=True))
    assert sum(size * each for size, each in ours) <= 900


def test_the_tuners_race(monkeypatch, capsys):
    library("optuna")
    example = load("race_tuners")
    monkeypatch.setattr(example, "BUDGET", 12)
    example.main()
    said = capsys.readouterr().out
    assert "The race keeps" in said and "on test" in said


@pytest.mark.parametrize("name", [file.stem for file in (EXAMPLES / "recipes").glob("*.py")])
def test_a_recipe_races_repeats_itself_and_is_the_same_after_a_resume(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for one in RECIPES[name]:
        library(one, "integrations")
    assert importlib.util.find_spec(name) is None  # as a script, it would hide that library
    given = load(f"recipes/{name}").LEARNERS
    runs = [race(given, trainings=0.3, journal=None, progress=False) for _ in range(2)]
    assert runs[0].over and runs[0].learner is not None
    assert runs[0].summary() == runs[1].summary()
    if name != "sb3_ppo":  # whose random states are not saved
        assert check_learner(next(iter(given.values())), pulls=2).exact
