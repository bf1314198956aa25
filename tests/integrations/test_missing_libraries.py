"""Without a library: one line that says what to install. With its objects: which learner fits."""

import sys
from importlib import import_module

import pytest

from latebloomer import race
from latebloomer.errors import LearnerError, MissingExtra
from latebloomer.integrations import library_learner
from latebloomer.racing.learner import ADAPTERS

DATA = ([[0.0], [1.0]], [0, 1])
CALLS = {  # of each adapter, and the module that it imports
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
    "MLflowLogger": ("mlflow", "mlflow"),
    "WandbLogger": ("wandb", "wandb"),
    "TensorBoardLogger": ("tensorboard", "tensorboard"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_library_is_one_line(name, monkeypatch):
    module, _, what = name.rpartition(".")
    library, extra = OTHERS.get(what, OTHERS.get(module, (module, module)))
    make = getattr(import_module(f"latebloomer.integrations.{module}"), what)
    for loaded in [name for name in sys.modules if name.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra) as caught:
        CALLS[name](make)
    said = str(caught.value)
    assert f"need {library}: pip install 'latebloomer[{extra}]'" in said and "\n" not in said


def test_a_library_that_is_too_old_is_one_line(monkeypatch):
    asked = ["rich>=13.7", "numpy[all]>=1.26; extra == 'numbers'", "typing-extensions>=9"]
    monkeypatch.setattr(library_learner.metadata, "requires", lambda _: asked)
    for version in ("1.26", "1.26.0+cpu", "2.4.6", "10.0"):
        monkeypatch.setattr(library_learner.metadata, "version", lambda _, has=version: has)
        assert (
            library_learner.library("numpy.linalg", "numbers", "numbers").__name__
            == "numpy.linalg"
        )
    monkeypatch.setattr(library_learner.metadata, "version", lambda _: "1.9.3")
    with pytest.raises(MissingExtra) as caught:
        library_learner.library("numpy.linalg", "numbers", "numbers")
    assert str(caught.value) == (
        "numbers need numpy 1.26 or newer, not 1.9.3: pip install --upgrade 'latebloomer[numbers]'"
    )
    assert library_learner.library("json", "texts", "texts").__name__ == "json"
    with pytest.raises(MissingExtra, match="types need typing_extensions 9 or newer"):
        library_learner.library("typing_extensions", "types", "types")


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


def test_a_callable_model_is_no_function_that_builds_a_learner():
    net = of_library("xgboost", type("Module", (), {"__call__": lambda self, x: x}))
    said = refusal(net())
    assert said == (
        "learner 'a' is of another library: Estimator: use "
        "latebloomer.integrations.xgboost.XGBoostLearner, five lines, docs/training-libraries.md"
    )


def test_an_object_with_pull_is_a_learner_wherever_it_is_from():
    kind = of_library("torch", type("Net", (), {"pull": lambda self: 0.5}))
    assert race({"a": kind(), "b": kind()}, budget=10, journal=None, progress=False)
