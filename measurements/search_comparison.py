"""Three searches over settings, compared with the same amount of training.

`python -m measurements.search_comparison [seeds]`. Each has nine full trainings, one of them the
refit on all rows. `RandomizedSearchCV` trains eight candidates in full. `HalvingRandomSearchCV` by
iterations, factor 3, has 54: all for 1/27 of a full training, 18 for 1/9, 6 for 1/3 and 2 in full,
each time from scratch, which is two full trainings a rung. `RaceRandomSearchCV` has the same 54,
or 16 of them: half a training for each. Candidates are drawn with the same
seed and scored on the same three folds; the pick is scored on test rows. No estimator stops early,
so that each costs what is requested; the cost is counted all the same. Times are CPU times.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any, NamedTuple

for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one thread a process; read at import
    os.environ.setdefault(pool, "1")

import numpy as np  # noqa: E402
from scipy.stats import loguniform, uniform  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits  # noqa: E402
from sklearn.ensemble import GradientBoostingRegressor  # noqa: E402
from sklearn.experimental import enable_halving_search_cv  # noqa: E402, F401
from sklearn.linear_model import SGDClassifier  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    train_test_split,
)
from sklearn.neural_network import MLPClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from latebloomer import RaceRandomSearchCV  # noqa: E402

WORKERS = min(2, os.cpu_count() or 1)
FULL = 108  # epochs or trees of a full training: 4, 12, 36 and 108 for halving
TRAININGS, CANDIDATES, FEWER = 9, 54, 16
OURS = f"race of {CANDIDATES}"
NEVER = 10**6  # epochs without an improvement before a net stops


class Task(NamedTuple):
    """A data set, an estimator, and its settings."""

    load: Callable[..., Any]
    estimator: Any
    space: dict[str, Any]
    grows: str  # the setting with the length of the training
    rows: int = NEVER  # maximum number of rows of the data


TASKS = {
    "digits, net": Task(
        load_digits,
        make_pipeline(
            StandardScaler(),
            MLPClassifier(
                (32,), batch_size=100, max_iter=FULL, n_iter_no_change=NEVER, random_state=0
            ),
        ),
        {
            "mlpclassifier__learning_rate_init": loguniform(1e-5, 1e-1),
            "mlpclassifier__alpha": loguniform(1e-6, 1e1),
            "mlpclassifier__activation": ["relu", "tanh", "logistic"],
        },
        "mlpclassifier__max_iter",
        rows=450,
    ),
    "breast cancer, linear": Task(
        load_breast_cancer,
        make_pipeline(
            StandardScaler(),
            SGDClassifier(loss="log_loss", max_iter=FULL, tol=None, random_state=0),
        ),
        {
            "sgdclassifier__alpha": loguniform(1e-6, 1e1),
            "sgdclassifier__learning_rate": ["constant", "invscaling", "optimal"],
            "sgdclassifier__eta0": loguniform(1e-5, 1e0),
            "sgdclassifier__penalty": ["l2", "l1", "elasticnet"],
        },
        "sgdclassifier__max_iter",
    ),
    "diabetes, boosting": Task(
        load_diabetes,
        GradientBoostingRegressor(n_estimators=FULL, random_state=0),
        {
            "learning_rate": loguniform(1e-3, 1e0),
            "max_depth": [1, 2, 3, 4, 6],
            "subsample": uniform(0.3, 0.7),
            "min_samples_leaf": [1, 5, 20],
        },
        "n_estimators",
    ),
}


class Row(NamedTuple):
    """One search: the pick's scores, the seconds, and the full trainings it took."""

    held_out: float  # the score it was picked by
    score: float  # on test rows
    seconds: float
    trainings: float


def searches(task: Task, seed: int) -> dict[str, Any]:
    """Return the searches, equal in everything except the method."""
    folds = KFold(3, shuffle=True, random_state=seed)
    same: dict[str, Any] = {"random_state": seed, "cv": folds}
    given = (task.estimator, task.space)
    races = {
        f"race of {n}": RaceRandomSearchCV(*given, n_iter=n, trainings=TRAININGS, **same)
        for n in (CANDIDATES, FEWER)
    }
    return races | {
        f"halving of {CANDIDATES}": HalvingRandomSearchCV(
            *given, n_candidates=CANDIDATES, factor=3, resource=task.grows,
            min_resources=FULL // 27, max_resources=FULL, return_train_score=False, **same,
        ),
        f"random {TRAININGS - 1}": RandomizedSearchCV(*given, n_iter=TRAININGS - 1, **same),
    }  # fmt: skip


def trainings_of(search: Any) -> float:
    """Return what a search has spent, in full trainings, the refit included."""
    table = search.cv_results_
    steps = table.get("n_resources", np.full(len(table["params"]), FULL))
    return float(np.sum(steps)) / FULL + 1


def one(job: tuple[str, int]) -> dict[str, Row]:
    """Run all searches on one data set, with one seed."""
    warnings.simplefilter("ignore")  # about nets that have not converged
    task, seed = TASKS[job[0]], job[1]
    X, y = task.load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=seed)
    X, y = X[: task.rows], y[: task.rows]
    rows = {}
    for name, search in searches(task, seed).items():
        began = time.process_time()
        search.fit(X, y)
        seconds = time.process_time() - began
        score = search.score(X_test, y_test)
        rows[name] = Row(search.best_score_, score, seconds, trainings_of(search))
    return rows


def show(task: str, rows: list[dict[str, Row]]) -> None:
    """Print lines of the table for the docs."""
    for name in rows[0]:
        own = np.array([row[name].score for row in rows])
        ours = np.array([row[OURS].score for row in rows])
        better, worse = int(np.sum(ours > own)), int(np.sum(ours < own))
        beaten = "" if name == OURS else f"{better} : {worse}"
        seconds = np.mean([row[name].seconds for row in rows])
        trainings = np.mean([row[name].trainings for row in rows])
        held_out = np.mean([row[name].held_out for row in rows])
        print(
            f"| {task} | {name} | {held_out:.3f} | {own.mean():.3f} | {own.min():.3f} | {beaten} "
            f"| {trainings:.1f} | {seconds:.1f} s |"
        )


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    began = time.perf_counter()
    jobs = [(name, seed) for name in TASKS for seed in range(seeds)]
    with get_context("spawn").Pool(WORKERS) as pool:
        rows = pool.map(one, jobs, chunksize=1)
    print("| | search | held out | test | worst | better : worse | trainings | time |")
    print("|---|---|---|---|---|---|---|---|")
    for name in TASKS:
        show(name, [row for (task, _), row in zip(jobs, rows, strict=True) if task == name])
    print(f"{seeds} seeds: {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
