"""Three algorithms, each tuned by Optuna, race for 90 trials: which to keep, with which settings.

The data are scikit-learn's bundled breast cancer measurements. One pull is one trial of one tuner;
its score is the best cross-validated accuracy that the tuner has found so far.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from latebloomer import race
from latebloomer.integrations.optuna import TunerLearner

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


def tuner(build: Callable[[Any], Any], X: Any, y: Any, seed: int) -> TunerLearner:
    def objective(trial: Any) -> float:
        return float(cross_val_score(build(trial), X, y, cv=3).mean())

    return TunerLearner(objective, seed=seed)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    builders = {"svm": svm, "trees": trees, "neighbors": neighbors}
    tuners = {name: partial(tuner, build, X, y) for name, build in builders.items()}
    verdict = race(tuners, budget=BUDGET, journal=None)
    best = verdict.learner.study.best_trial
    model = clone(builders[verdict.name](best)).fit(X, y)
    settings = ", ".join(f"{key}={_short(value)}" for key, value in best.params.items())
    print(f"\nThe race keeps {verdict.name} with {settings}:")
    print(f"  {verdict.score:.1%} in cross-validation, {model.score(X_test, y_test):.1%} on test")


if __name__ == "__main__":
    main()
