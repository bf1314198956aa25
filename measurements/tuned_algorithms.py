"""Which algorithm, tuned: races of tuners beside Optuna with the algorithm as a parameter.

    nice -n 10 python -m measurements.tuned_algorithms [seeds]

Seven families of scikit-learn and LightGBM on three tables, 12 CPU seconds for each search, the
same spaces, defaults and limit of a trial for all. A configuration is scored on validation rows;
the best one is trained again on all rows and scored on test rows. Each search runs in a process
with one thread.

- race: a `TunerLearner` for each family, a pull is .1 CPU seconds of trials, and the result is
  `best_configuration`
- optuna: one study, whose trials choose the family first (TPE), seeded with the seven defaults
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import get_context
from time import process_time
from typing import Any

for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one thread a process; read at import
    os.environ.setdefault(pool, "1")

import numpy as np  # noqa: E402
import optuna  # noqa: E402
from lightgbm import LGBMClassifier  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_digits, make_classification  # noqa: E402
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

from latebloomer import race  # noqa: E402
from latebloomer._util.interrupts import TimeIsOver, interrupted_after  # noqa: E402
from latebloomer.integrations.optuna import TunerLearner, best_configuration  # noqa: E402

SECONDS, SLICE, TIMEOUT = 12.0, 0.1, 2.0  # of CPU: of a search, of a pull; and of a trial


def svm(t: Any) -> Any:
    """Kernel machine."""
    c, width = (
        t.suggest_float("C", 1e-2, 1e3, log=True),
        t.suggest_float("gamma", 1e-4, 1, log=True),
    )
    return make_pipeline(StandardScaler(), SVC(C=c, gamma=width))


def neighbors(t: Any) -> Any:
    """Nearest neighbors."""
    weights = t.suggest_categorical("weights", ["uniform", "distance"])
    count, power = t.suggest_int("n_neighbors", 1, 50, log=True), t.suggest_int("p", 1, 2)
    return make_pipeline(StandardScaler(), KNeighborsClassifier(count, weights=weights, p=power))


def trees(kind: Callable[..., Any], t: Any) -> Any:
    """Forest of one of two kinds."""
    return kind(
        t.suggest_int("n_estimators", 20, 300, log=True),
        max_features=t.suggest_float("max_features", 0.05, 1.0),
        min_samples_leaf=t.suggest_int("min_samples_leaf", 1, 20, log=True),
        random_state=0,
    )


def boosting(t: Any) -> Any:
    """Gradient boosting."""
    return LGBMClassifier(
        n_estimators=t.suggest_int("n_estimators", 20, 300, log=True),
        learning_rate=t.suggest_float("learning_rate", 0.01, 0.5, log=True),
        num_leaves=t.suggest_int("num_leaves", 4, 128, log=True),
        min_child_samples=t.suggest_int("min_child_samples", 2, 60, log=True),
        n_jobs=1,
        verbosity=-1,
        random_state=0,
    )


def linear(t: Any) -> Any:
    """Logistic regression."""
    c = t.suggest_float("C", 1e-4, 1e3, log=True)
    return make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=500))


def net(t: Any) -> Any:
    """Net of one hidden layer."""
    return make_pipeline(
        StandardScaler(),
        MLPClassifier(
            (t.suggest_int("width", 8, 256, log=True),),
            alpha=t.suggest_float("alpha", 1e-6, 1.0, log=True),
            learning_rate_init=t.suggest_float("learning_rate", 1e-4, 3e-2, log=True),
            max_iter=40,
            random_state=0,
        ),
    )


FAMILIES: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {  # with good settings
    "svm": (svm, {"C": 1.0, "gamma": 0.03}),
    "neighbors": (neighbors, {"n_neighbors": 5, "p": 2, "weights": "uniform"}),
    "forest": (
        partial(trees, RandomForestClassifier),
        {"n_estimators": 100, "max_features": 0.3, "min_samples_leaf": 1},
    ),
    "extra trees": (
        partial(trees, ExtraTreesClassifier),
        {"n_estimators": 100, "max_features": 0.3, "min_samples_leaf": 1},
    ),
    "boosting": (
        boosting,
        {"n_estimators": 100, "learning_rate": 0.1, "num_leaves": 31, "min_child_samples": 20},
    ),
    "linear": (linear, {"C": 1.0}),
    "net": (net, {"width": 100, "alpha": 1e-4, "learning_rate": 1e-3}),
}


def table(name: str, seed: int) -> tuple[Any, ...]:
    """Return the rows of a table for training, validation and testing, and their labels."""
    if name == "synthetic":
        X, y = make_classification(
            4000, 20, n_informative=8, n_clusters_per_class=3, flip_y=0.05, random_state=seed
        )
    else:
        X, y = {"cancer": load_breast_cancer, "digits": load_digits}[name](return_X_y=True)
    split = partial(train_test_split, test_size=1 / 3, random_state=seed)
    X, X_test, y, y_test = split(X, y, stratify=y)
    X_train, X_valid, y_train, y_valid = split(X, y, stratify=y)
    return X_train, y_train, X_valid, y_valid, X_test, y_test


class Clock:
    """Notes the best configuration of a search up to its CPU seconds."""

    def __init__(self, rows: tuple[Any, ...]) -> None:
        self.rows, self.began, self.trials = rows, process_time(), 0

    @property
    def over(self) -> bool:
        """True if the CPU seconds of the search are spent."""
        return process_time() - self.began >= SECONDS

    def score(self, build: Callable[[Any], Any], trial: Any) -> float:
        """Return the accuracy on validation rows."""
        self.trials += 1
        X, y, X_valid, y_valid, *_ = self.rows
        return float(build(trial).fit(X, y).score(X_valid, y_valid))

    def test(self, family: str, params: Mapping[str, Any]) -> float:
        """Return the accuracy on test rows after training on all others."""
        X, y, X_valid, y_valid, X_test, y_test = self.rows
        model = FAMILIES[family][0](optuna.trial.FixedTrial(dict(params)))
        model.fit(np.concatenate((X, X_valid)), np.concatenate((y, y_valid)))
        return float(model.score(X_test, y_test))


def raced(clock: Clock, seed: int) -> tuple[str, dict[str, Any]]:
    """Return the best configuration of a race of tuners."""

    def tuner(build: Callable[[Any], Any], default: Mapping[str, Any], seed: int) -> TunerLearner:
        objective = partial(clock.score, build)
        return TunerLearner(
            objective, seed=seed, default=default, timeout=TIMEOUT, seconds_per_pull=SLICE
        )

    tuners = {name: partial(tuner, *given) for name, given in FAMILIES.items()}
    budget = round(SECONDS / SLICE)
    verdict = race(tuners, budget, journal=None, progress=False, seed=seed, score_range=(0, 1))
    name, params, _ = best_configuration(verdict)
    return name, params


def one_study(clock: Clock, seed: int) -> tuple[str, dict[str, Any]]:
    """Return the best configuration of one study, in which the family is a parameter."""

    def objective(trial: Any) -> float:
        family = trial.suggest_categorical("family", list(FAMILIES))
        try:
            with interrupted_after(TIMEOUT):
                return clock.score(FAMILIES[family][0], Named(trial, family))
        except TimeIsOver:
            raise optuna.TrialPruned from None

    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed, multivariate=False)
    )
    for family, (_, default) in FAMILIES.items():
        own = {f"{family} {key}": value for key, value in default.items()}
        study.enqueue_trial({"family": family} | own)
    while not clock.over:
        study.optimize(objective, n_trials=1)
    best = dict(study.best_params)
    family = best.pop("family")
    return family, {key.removeprefix(f"{family} "): value for key, value in best.items()}


class Named:
    """A trial whose settings have the family's name before theirs."""

    def __init__(self, trial: Any, family: str) -> None:
        self._trial, self._family = trial, family

    def __getattr__(self, name: str) -> Any:
        suggest = getattr(self._trial, name)
        return lambda key, *given, **named: suggest(f"{self._family} {key}", *given, **named)


METHODS: dict[str, Callable[[Clock, int], tuple[str, dict[str, Any]]]] = {
    "race": raced,
    "optuna": one_study,
}
TABLES = ("cancer", "digits", "synthetic")


def measured(case: tuple[str, str, int]) -> tuple[float, float, int, str]:
    """Return test accuracy, CPU seconds, trials and family of a search."""
    method, name, seed = case
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    clock = Clock(table(name, seed))
    family, params = METHODS[method](clock, seed)
    spent = process_time() - clock.began
    return clock.test(family, params), spent, clock.trials, family


def main(seeds: int) -> None:
    cases = [
        (method, name, seed) for seed in range(seeds) for name in TABLES for method in METHODS
    ]
    found = {}
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for case, result in zip(cases, pool.imap(measured, cases), strict=True):
            found[case] = result
            print(*case, *result, flush=True)
    for method in METHODS:
        for name in (*TABLES, None):
            pairs = [(n, s) for s in range(seeds) for n in TABLES if name in (None, n)]
            gaps = [found[method, *p][0] - found["optuna", *p][0] for p in pairs]
            error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
            cpu = np.mean([found[method, *p][1] for p in pairs])
            trials = np.mean([found[method, *p][2] for p in pairs])
            print(
                f"{method} minus optuna, {name or 'all'}: {np.mean(gaps):+.4f} ± {error:.4f} "
                f"({cpu:.1f} CPU s, {trials:.0f} trials)"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
