"""Made for a library: without it one line says what to install; with it the example runs."""

import inspect
import os
import re
import sys
import textwrap
from importlib import import_module

import pytest
from libraries import library

from latebloomer import race
from latebloomer.errors import LearnerError, MissingExtra
from latebloomer.integrations import library_learner
from latebloomer.racing.learner import ADAPTERS

os.environ["KERAS_BACKEND"] = "torch"  # before it is imported for the first time

DATA = ([[0.0], [1.0]], [0, 1])
CALLS = {  # of each adapter, by its module
    "xgboost.XGBoostLearner": lambda make: make({}, DATA, DATA, metric="auc"),
    "lightgbm.LightGBMLearner": lambda make: make({}, DATA, DATA, metric="auc"),
    "catboost.CatBoostLearner": lambda make: make({}, DATA, DATA, metric="AUC"),
    "torch.TorchLearner": lambda make: make(None, None, [], None, None),
    "keras.KerasLearner": lambda make: make(None, DATA, DATA),
    "lightning.LightningLearner": lambda make: make(None, DATA, DATA, full_steps=3),
    "transformers.HuggingFaceLearner": lambda make: make(None),
    "loggers.MLflowLogger": lambda make: make(),
    "loggers.WandbLogger": lambda make: make(),
    "loggers.TensorBoardLogger": lambda make: make(),
    "syne_tune.RaceScheduler": lambda make: make({}, 2, "race.db", metric="loss", budget=9),
    "ray_tune.RaceScheduler": lambda make: make(2, "race.db", budget=9),
    "optuna.race_study": lambda make: make(None, None),
    "optuna.LatebloomerPruner": lambda make: make(9, 2, 9),
    "optuna.TunerLearner": lambda make: make(print),
}
OTHERS = {  # the library and the extra where the module is not named after both
    "syne_tune": ("syne_tune", "syne-tune"),
    "ray_tune": ("ray", "tune"),
}


def parts_of(name):
    """Return an adapter, its library and the extra that installs it."""
    module, _, what = name.rpartition(".")
    found = getattr(import_module(f"latebloomer.integrations.{module}"), what)
    own = what.removesuffix("Logger").lower() if module == "loggers" else module
    return found, *OTHERS.get(own, (own, own))


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_library_is_one_line(name, monkeypatch):
    make, needed, extra = parts_of(name)
    for loaded in [name for name in sys.modules if name.startswith(f"{needed}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, needed, None)
    with pytest.raises(MissingExtra) as caught:
        CALLS[name](make)
    said = str(caught.value)
    assert f"need {needed}: pip install 'latebloomer[{extra}]'" in said and "\n" not in said


def test_a_library_that_is_too_old_is_one_line(monkeypatch):
    asked = ["rich>=13.7", "numpy[all]>=1.26; extra == 'numbers'", "typing-extensions>=9"]
    monkeypatch.setattr(library_learner.metadata, "requires", lambda _: asked)
    numbers = "numpy.linalg", "numbers", "numbers"
    for version in ("1.26", "1.26.0+cpu", "2.4.6", "10.0"):
        monkeypatch.setattr(library_learner.metadata, "version", lambda _, has=version: has)
        assert library_learner.library(*numbers).__name__ == "numpy.linalg"
    monkeypatch.setattr(library_learner.metadata, "version", lambda _: "1.9.3")
    with pytest.raises(MissingExtra) as caught:
        library_learner.library(*numbers)
    assert str(caught.value) == (
        "numbers need numpy 1.26 or newer, not 1.9.3: pip install --upgrade 'latebloomer[numbers]'"
    )
    assert library_learner.library("json", "texts", "texts").__name__ == "json"
    with pytest.raises(MissingExtra, match="types need typing_extensions 9 or newer"):
        library_learner.library("typing_extensions", "types", "types")


# --- examples ---


@pytest.mark.parametrize("name", [*CALLS, "syne_tune.RaceCallback"])
def test_the_example_runs_and_two_runs_are_the_same(name, tmp_path, monkeypatch):
    thing, needed, _ = parts_of(name)
    library(needed)
    if "ray_tune" in name:
        for one in ("tensorboardX", "ray.tune"):
            library(one)
        sys.modules["ray"].init(
            "local", num_cpus=2, include_dashboard=False, log_to_driver=False,
            logging_level="error", ignore_reinit_error=True,
        )  # fmt: skip
    text = re.search(r"^Examples\n-+\n::\n\n(.*)", inspect.getdoc(thing), re.S | re.M)[1]
    made = []
    for folder in ("first", "second") if name.endswith("Learner") else ("first",):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        made.append({"__name__": "example"})
        exec(compile(textwrap.dedent(text), name, "exec"), made[-1])
    if len(made) == 2:  # learners have random weights, which an example must seed
        first, second = (names["verdict"] for names in made)
        assert first.over and first.summary() == second.summary()
        assert all(first.curve(row.name) == second.curve(row.name) for row in first.learners)


@pytest.fixture(scope="module", autouse=True)
def end_ray():
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


# --- objects of the libraries are no learners, but there is one for them ---


def of_library(home, base=object):
    return type("Estimator", (base,), {"__module__": f"{home}.some.place"})


def refusal(given):
    with pytest.raises(LearnerError) as caught:
        race({"a": given, "b": given}, budget=10, journal=None, progress=False)
    return str(caught.value)


@pytest.mark.parametrize("home", ADAPTERS)
def test_a_refusal_names_the_learner_that_fits(home):
    kind = of_library(home)
    module, _, what = ADAPTERS[home].rpartition(".")
    for given in (kind(), kind, type("Mine", (kind,), {})()):  # an object, a class, a subclass's
        assert f": use {module}.{what}, five lines, docs/" in refusal(given)
    assert hasattr(import_module(module), what)


def test_a_callable_model_is_no_learner_and_an_object_with_pull_is_one():
    net = of_library("xgboost", type("Module", (), {"__call__": lambda self, x: x}))
    assert refusal(net()) == (
        "learner 'a' is of another library: Estimator: use "
        "latebloomer.integrations.xgboost.XGBoostLearner, five lines, docs/training-libraries.md"
    )
    kind = of_library("torch", type("Net", (), {"pull": lambda self: 0.5}))
    assert race({"a": kind(), "b": kind()}, budget=10, journal=None, progress=False)
