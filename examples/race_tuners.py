"""Three algorithms, each tuned by Optuna, race for 90 trials: which to keep, with which settings.

The data are scikit-learn's bundled breast cancer measurements. One pull is one trial of one tuner;
its score is the best cross-validated accuracy that the tuner has found so far. Each tuner begins
with settings that are known to be good, and a trial that takes too long ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import optuna
from optuna.trial import FixedTrial
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from latebloomer import race
from latebloomer.integrations.optuna import TunerLearner, best_configuration

BUDGET = 90


def svm(trial: Any) -> Any:
    """Build a kernel machine: two settings over six decades, good only in a corner."""
    cost = trial.suggest_float("C", 1e-3, 1e3, log=True)
    width = trial.suggest_float("gamma", 1e-5, 10, log=True)
    return make_pipeline(StandardScaler(), SVC(C=cost, gamma=width))


def trees(trial: Any) -> Any:
    """Build a forest: good immediately, hardly better later."""
    depth = trial.suggest_int("max_depth", 1, 12)
    share = trial.suggest_float("max_features", 0.05, 1.0)
    return ExtraTreesClassifier(15, max_depth=depth, max_features=share, random_state=0)


def neighbors(trial: Any) -> Any:
    """Build a nearest-neighbor classifier."""
    count = trial.suggest_int("n_neighbors", 1, 60)
    power = trial.suggest_float("p", 1.0, 4.0)
    weights = trial.suggest_categorical("weights", ["uniform", "distance"])
    return make_pipeline(StandardScaler(), KNeighborsClassifier(count, p=power, weights=weights))


DEFAULTS = {
    "svm": {"C": 1.0, "gamma": 0.03},
    "trees": {"max_depth": 12, "max_features": 0.2},
    "neighbors": {"n_neighbors": 5, "p": 2.0, "weights": "uniform"},
}


def tuner(
    build: Callable[[Any], Any], default: dict[str, Any], X: Any, y: Any, seed: int
) -> TunerLearner:
    def objective(trial: Any) -> float:
        return float(cross_val_score(build(trial), X, y, cv=3).mean())

    return TunerLearner(objective, seed=seed, default=default, timeout=5)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    builders = {"svm": svm, "trees": trees, "neighbors": neighbors}
    tuners = {
        name: partial(tuner, build, DEFAULTS[name], X, y) for name, build in builders.items()
    }
    verdict = race(tuners, budget=BUDGET, journal=None)
    name, params, score = best_configuration(verdict)  # a dropped tuner may have found it
    model = clone(builders[name](FixedTrial(params))).fit(X, y)
    settings = ", ".join(f"{key}={_short(value)}" for key, value in params.items())
    print(f"\nThe best configuration is {name} with {settings}:")
    print(f"  {score:.1%} in cross-validation, {model.score(X_test, y_test):.1%} on test")


if __name__ == "__main__":
    main()
