"""Made for a library: without it one line says what to install; with it all examples run.

The examples are those of docstrings, docs/training-libraries.md, tuners.md and callbacks.md.
"""

import contextlib
import inspect
import io
import os
import re
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

from latebloomer import race, read_verdict
from latebloomer.errors import LearnerError, MissingExtra, SettingError, install_command
from latebloomer.integrations import library_learner, loggers
from latebloomer.policies.registry import REGISTRY
from latebloomer.racing.learners.entries import ADAPTERS
from latebloomer.session.session import Session
from tests.helpers.libraries import library
from tests.helpers.repository import ROOT

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
    assert f"need {needed}: {install_command(extra)}" in said and "\n" not in said


def test_a_library_that_is_too_old_is_one_line(monkeypatch):
    asked = ["rich>=13.7", "numpy[all]>=1.26; extra == 'numbers'", "typing-extensions>=9"]
    monkeypatch.setattr(library_learner.metadata, "requires", lambda _: asked)
    numbers = "numpy.linalg", "numbers", "numbers"
    for version in ("1.26", "1.26.0+cpu", "2.4.6", "10.0", "2.0rc1", "our own build"):
        monkeypatch.setattr(library_learner.metadata, "version", lambda _, has=version: has)
        assert library_learner.library(*numbers).__name__ == "numpy.linalg"
    monkeypatch.setattr(library_learner.metadata, "version", lambda _: "1.9.3")
    with pytest.raises(MissingExtra) as caught:
        library_learner.library(*numbers)
    cure = install_command("numbers", upgrade=True)
    assert str(caught.value) == f"numbers need numpy>=1.26, not 1.9.3: {cure}"
    assert library_learner.library("json", "texts", "texts").__name__ == "json"
    with pytest.raises(MissingExtra, match="types need typing_extensions>=9, not"):
        library_learner.library("typing_extensions", "types", "types")


TRAINING, TUNERS, CALLBACKS = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("training-libraries", "tuners", "callbacks")
)
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
ROWS, *EXAMPLES = BLOCK.findall(TRAINING)
OURS = re.compile(r"^from latebloomer\.integrations\.(\w+) import (\w+)", re.MULTILINE)
GUIDE = {".".join(OURS.search(text).groups()): ROWS + text for text in EXAMPLES}
TUNING = [text for text in BLOCK.findall(TUNERS) if OURS.search(text)]
HOSTS = {OURS.search(text)[1]: text for text in TUNING[::-1]}  # the first of each


@pytest.fixture(scope="module")
def on_ray():
    """Start Ray for an example, and end it."""

    def start():
        for one in ("tensorboardX", "ray.tune"):  # what Ray Tune needs beyond Ray
            library(one, "tune")
        path = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        sys.modules["ray"].init(
            "local", num_cpus=2, include_dashboard=False, log_to_driver=False,
            logging_level="error", ignore_reinit_error=True, runtime_env={"env_vars": path},
        )  # fmt: skip

    yield start
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


RUN = [(name, False) for name in [*CALLS, "syne_tune.RaceCallback"]]


@pytest.mark.parametrize(("name", "guide"), [*RUN, *((name, True) for name in GUIDE)])
def test_an_example_runs_and_two_runs_are_the_same(name, guide, tmp_path, monkeypatch, on_ray):
    thing, needed, _ = parts_of(name)
    library(needed)
    if needed == "ray":
        on_ray()
    own = re.search(r"^Examples\n-+\n::\n\n(.*)", inspect.getdoc(thing), re.S | re.M)[1]
    text = GUIDE[name] if guide else textwrap.dedent(own)
    made = []
    for folder in ("first", "second") if name.endswith("Learner") else ("first",):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        made.append({"__name__": "example"})
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, name, "exec"), made[-1])
    if len(made) == 2:  # learners have random weights, which an example must seed
        first, second = (names["verdict"] for names in made)
        assert first.over and first.summary() == second.summary()
        assert all(first.curve(row.name) == second.curve(row.name) for row in first.learners)
        assert isinstance(first.learner, thing)
        assert first.learner.model is not None


@pytest.mark.parametrize("module", ["optuna", "ray_tune", "syne_tune"])
def test_the_example_of_a_tuner_in_the_guide_runs(module, tmp_path, monkeypatch, on_ray):
    library(*OTHERS.get(module, (module, module)))
    if module == "ray_tune":
        on_ray()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNETUNE_FOLDER", str(tmp_path / "syne"))
    (script,) = (text for text in BLOCK.findall(TUNERS) if text.startswith("# train.py"))
    Path("train.py").write_text(script)
    said: dict = {"__name__": "__main__"}
    exec(HOSTS[module], said)
    if module == "optuna":
        assert said["verdict"].spent <= 324
        assert said["verdict"].name == f"#{said['study'].best_trial.number}"
    else:
        verdict = read_verdict(next(Path("races").glob("*.db")))
        assert verdict.over and verdict.spent <= 40 and verdict.unspent < 4
        assert verdict.name == said["scheduler"].verdict().name


def test_tables_of_the_guides_are_complete():
    elsewhere = {"sklearn", "optuna"}  # docs/scikit-learn.md, docs/tuners.md
    found = {name.split(".")[2]: name.rpartition(".")[2] for name in ADAPTERS.values()}
    shown = dict(name.split(".") for name in GUIDE)
    assert shown == {home: what for home, what in found.items() if home not in elsewhere}
    assert all(f"| `{what}` | " in TRAINING for what in shown.values())
    rows = re.findall(r"^\| `(\w+Logger)\(.*?\)` \|", CALLBACKS, re.MULTILINE)
    assert {*rows, "RaceLogger"} == set(loggers.__all__)
    (listed,) = re.findall(r"Policies with \[phases\]\S+ are (.*?);", TUNERS, re.DOTALL)
    named = set(re.findall(r"`([\w-]+)`", listed)) - {"auto"}
    assert named <= set(REGISTRY)
    for name in REGISTRY:
        session = Session(REGISTRY[name].examples()[0], 8, 800, 100)
        phased = not session.decides_every_pull and not session.policy.decides_after_sweeps()
        assert phased == (name in named), name


def of_library(home, base=object):
    return type("Estimator", (base,), {"__module__": f"{home}.some.place"})


def refusal(given):
    with pytest.raises(LearnerError) as caught:
        race({"a": given, "b": given}, budget=10, journal=None, progress=False)
    return str(caught.value)


NAMES = {"val_loss": False, "val_acc": True, "val_neg_log_loss": True, "eval_neg_rmse": True}


@pytest.mark.parametrize("metric", NAMES)
def test_the_name_of_a_metric_says_which_direction_is_better(metric):
    better = library_learner.LibraryLearner._higher_is_better
    assert better(None, metric) is NAMES[metric]
    with pytest.raises(SettingError, match="'d2_error_score' does not say whether higher is"):
        better(None, "d2_error_score")


@pytest.mark.parametrize("home", ADAPTERS)
def test_a_refusal_names_the_learner_that_fits(home):
    kind = of_library(home)
    module, _, what = ADAPTERS[home].rpartition(".")
    for given in (kind(), kind, type("Mine", (kind,), {})()):  # an object, a class, a subclass's
        assert f": use {module}.{what}, as docs/" in refusal(given)
    assert hasattr(import_module(module), what)


def test_a_callable_model_is_no_learner_and_an_object_with_pull_is_one():
    net = of_library("xgboost", type("Module", (), {"__call__": lambda self, x: x}))
    assert refusal(net()) == (
        "learner 'a' is of another library: Estimator: use "
        "latebloomer.integrations.xgboost.XGBoostLearner, as docs/training-libraries.md shows"
    )
    kind = of_library("torch", type("Net", (), {"pull": lambda self: 0.5}))
    assert race({"a": kind(), "b": kind()}, budget=10, journal=None, progress=False)
