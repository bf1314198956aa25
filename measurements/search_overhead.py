"""What a race of 16 candidates costs beside `RandomizedSearchCV` with as many full trainings.

    python -m measurements.search_overhead [sgd] [mlp] [lightgbm] [repeats=3]

CPU seconds on one thread, the least of the repeats, both searches in turn in one process. The
random search trains 8 of the candidates in full, in 3 folds, and the best again on all rows; the
race has 9 full trainings for the same. So a ratio of 1 means that pulls and scores cost nothing.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

from scipy.stats import loguniform, randint
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import RandomizedSearchCV, StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from latebloomer import RaceRandomSearchCV

FULL, CANDIDATES, TRAINED = 80, 16, 8


class Case(NamedTuple):
    """An estimator, its data, and the settings that are searched."""

    title: str
    estimator: BaseEstimator
    X: Any
    y: Any
    space: dict[str, Any]


def sgd() -> Case:
    X, y = load_breast_cancer(return_X_y=True)
    model = SGDClassifier(loss="log_loss", max_iter=FULL, tol=None, random_state=0)
    space = {"alpha": loguniform(1e-6, 1), "eta0": loguniform(1e-3, 1)}
    return Case("SGDClassifier, breast_cancer", model, StandardScaler().fit_transform(X), y, space)


def mlp() -> Case:
    X, y = load_digits(return_X_y=True)
    model = MLPClassifier((32,), max_iter=FULL, tol=0, n_iter_no_change=10**6, random_state=0)
    space = {"learning_rate_init": loguniform(1e-4, 1e-1), "alpha": loguniform(1e-6, 1)}
    return Case("MLPClassifier, digits", model, X / 16, y, space)


def lightgbm() -> Case:
    from lightgbm import LGBMClassifier

    X, y = make_classification(20_000, 30, n_informative=15, random_state=0)
    model = LGBMClassifier(n_estimators=FULL, n_jobs=1, verbose=-1, random_state=0)
    space = {"learning_rate": loguniform(0.01, 0.5), "num_leaves": randint(4, 64)}
    return Case("LGBMClassifier, 20,000 rows of 30 columns", model, X, y, space)


CASES: dict[str, Callable[[], Case]] = {"sgd": sgd, "mlp": mlp, "lightgbm": lightgbm}


def searches(case: Case) -> tuple[Any, Any]:
    """Return a random search and a race of as many full trainings."""
    shared = {"cv": StratifiedKFold(3, shuffle=True, random_state=0), "random_state": 0}
    plain = RandomizedSearchCV(case.estimator, case.space, n_iter=TRAINED, **shared)
    raced = RaceRandomSearchCV(
        case.estimator, case.space, n_iter=CANDIDATES, trainings=TRAINED + 1, **shared
    )
    return plain, raced


def cpu_seconds(search: Any, case: Case) -> float:
    began = process_time()
    search.fit(case.X, case.y)
    return process_time() - began


def main() -> None:
    warnings.filterwarnings("ignore")
    words = sys.argv[1:]
    repeats = next((int(word[8:]) for word in words if word.startswith("repeats=")), 3)
    chosen = [word for word in words if word in CASES] or list(CASES)
    print("| estimator | 8 in full | race of 16 | ratio |\n|---|---|---|---|")
    for name in chosen:
        case = CASES[name]()
        with threadpool_limits(1):
            found = [[cpu_seconds(one, case) for one in searches(case)] for _ in range(repeats)]
        plain, raced = map(min, zip(*found, strict=True))
        ratio = f"{raced / plain:.2f}"
        print(f"| {case.title} | {plain:.2f} s | {raced:.2f} s | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
