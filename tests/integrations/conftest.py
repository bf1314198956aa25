"""The first lines of a run say which versions of the libraries are tested."""

from importlib import metadata

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
