"""The examples of what is made for a library run as they stand, with the library itself."""

import inspect
import os
import re
import sys
import textwrap
from importlib import import_module

import pytest
from libraries import library

os.environ["KERAS_BACKEND"] = "torch"  # before it is imported for the first time

NEEDS = {  # a class or function of ours, by its module, and the libraries of its example
    "xgboost.XGBoostLearner": ["xgboost"],
    "lightgbm.LightGBMLearner": ["lightgbm"],
    "catboost.CatBoostLearner": ["catboost"],
    "torch.TorchLearner": ["torch"],
    "lightning.LightningLearner": ["lightning"],
    "transformers.HuggingFaceLearner": ["transformers"],
    "keras.KerasLearner": ["keras"],
    "loggers.MLflowLogger": ["mlflow"],
    "loggers.WandbLogger": ["wandb"],
    "loggers.TensorBoardLogger": ["tensorboard"],
    "optuna.TunerLearner": ["optuna"],
    "optuna.race_study": ["optuna"],
    "optuna.LatebloomerPruner": ["optuna"],
    "ray_tune.RaceScheduler": ["ray", "tensorboardX", "ray.tune"],
    "syne_tune.RaceScheduler": ["syne_tune"],
    "syne_tune.RaceCallback": ["syne_tune"],
}


@pytest.mark.parametrize("name", NEEDS)
def test_the_example_runs_and_two_runs_are_the_same(name, tmp_path, monkeypatch):
    for one in NEEDS[name]:
        library(one)
    if "ray_tune" in name:
        begin_ray()
    module, _, thing = name.rpartition(".")
    code = compile(example_of(module, thing), name, "exec")
    runs = [run(code, tmp_path / "first", monkeypatch)]
    if thing.endswith("Learner"):  # learners have random weights, which an example must seed
        runs.append(run(code, tmp_path / "second", monkeypatch))
        first, second = (made["verdict"] for made in runs)
        assert first.over and first.summary() == second.summary()
        assert all(first.curve(row.name) == second.curve(row.name) for row in first.learners)


def run(code, folder, monkeypatch):
    """Run an example in a new folder and return its names."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    made = {"__name__": "example"}
    exec(code, made)
    return made


def example_of(module, thing):
    """The literal block under `Examples`."""
    text = inspect.getdoc(getattr(import_module(f"latebloomer.integrations.{module}"), thing))
    return textwrap.dedent(re.search(r"^Examples\n-+\n::\n\n(.*)", text, re.S | re.M)[1])


def begin_ray():
    library("ray").init("local", num_cpus=2, include_dashboard=False, log_to_driver=False,
                        logging_level="error", ignore_reinit_error=True)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def end_ray():
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()
