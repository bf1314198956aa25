"""The first lines of a run say which versions of the libraries are tested; one thread each."""

from importlib import metadata

import pytest
from threadpoolctl import threadpool_limits

LIBRARIES = (
    "xgboost", "lightgbm", "catboost", "torch", "lightning", "transformers", "peft", "trl",
    "keras", "stable-baselines3", "flax", "optax", "optuna", "ray", "syne-tune", "mlflow", "wandb",
    "tensorboard", "scikit-learn",
)  # fmt: skip


def pytest_report_header():
    installed = {
        one.metadata["Name"].lower().replace("_", "-"): one.version
        for one in metadata.distributions()
    }
    found = [f"{name} {installed[name]}" for name in LIBRARIES if name in installed]
    return f"libraries: {', '.join(found)}"


@pytest.fixture
def one_thread():
    with threadpool_limits(1):  # threads that wait for each other cost more than these fits
        yield
