"""What 100 pulls of a booster cost more than one plain training of the same rounds.

    python -m measurements.booster_overhead [rounds ...]

CPU seconds on one thread, the best of three, 3,000 rows of 20 columns. A learner and the plain
training compute the metric after every round; an estimator, as searches train it, is compared
with its own `fit`, both without a score (CatBoost's has fewer steps than 100). `sampled` draws
rows and columns at random, which the libraries cannot save.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from time import process_time
from typing import Any

import numpy as np

from latebloomer.integrations.sklearn import SklearnLearner

PULLS, REPEATS = 100, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 20)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] * X[:, 2] + RNG.normal(size=4000) > 0).astype(int)
TRAIN, VALID = (X[:3000], Y[:3000]), (X[3000:], Y[3000:])
PLAIN: dict[str, dict[str, Any]] = {
    "xgboost": {"objective": "binary:logistic", "nthread": 1, "seed": 3},
    "lightgbm": {"objective": "binary", "num_threads": 1, "seed": 3, "verbosity": -1},
    "catboost": {"loss_function": "Logloss", "thread_count": 1, "random_seed": 3,
                 "logging_level": "Silent"},
}  # fmt: skip
SAMPLED: dict[str, dict[str, Any]] = {
    "xgboost": {"subsample": 0.6, "colsample_bytree": 0.7, "colsample_bynode": 0.7},
    "lightgbm": {"bagging_fraction": 0.6, "bagging_freq": 1, "feature_fraction": 0.7},
    "catboost": {"bootstrap_type": "Bernoulli", "subsample": 0.5, "rsm": 0.5},
}
KINDS = {"xgboost": "XGBoostLearner", "lightgbm": "LightGBMLearner", "catboost": "CatBoostLearner"}
METRIC = {"xgboost": "logloss", "lightgbm": "binary_logloss", "catboost": "Logloss"}


def plain_training(name: str, params: dict[str, Any], rounds: int) -> None:
    """Train with the library's own function."""
    library = import_module(name)
    if name == "xgboost":
        train, valid = (library.DMatrix(*rows) for rows in (TRAIN, VALID))
        params = params | {"eval_metric": METRIC[name]}
        library.train(params, train, rounds, evals=[(valid, "valid")], verbose_eval=False)
    elif name == "lightgbm":
        train = library.Dataset(*TRAIN)
        valid = library.Dataset(*VALID, reference=train)
        library.train(params | {"metric": METRIC[name]}, train, rounds, valid_sets=[valid])
    else:
        own = {"iterations": rounds, "use_best_model": False, "allow_writing_files": False}
        model = library.CatBoost(params | own | {"eval_metric": METRIC[name]})
        model.fit(library.Pool(*TRAIN), eval_set=library.Pool(*VALID))


def pulled_training(name: str, params: dict[str, Any], rounds: int) -> None:
    """Train with a learner, in 100 pulls."""
    kind = getattr(import_module(f"latebloomer.integrations.{name}"), KINDS[name])
    learner = kind(params, TRAIN, VALID, metric=METRIC[name], full_steps=rounds)
    for _ in range(PULLS):
        learner.pull(steps=rounds // PULLS)


ESTIMATORS = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier",
              "catboost": "CatBoostClassifier"}  # fmt: skip


def fitted_estimator(name: str, params: dict[str, Any], rounds: int) -> None:
    """Train an estimator with its own `fit`."""
    own = {"n_estimators": rounds} | ({"allow_writing_files": False} if name == "catboost" else {})
    getattr(import_module(name), ESTIMATORS[name])(**params | own).fit(*TRAIN)


def pulled_estimator(name: str, params: dict[str, Any], rounds: int) -> None:
    """Train an estimator as a search does, in 100 pulls."""
    estimator = getattr(import_module(name), ESTIMATORS[name])(**params, n_estimators=rounds)
    learner = SklearnLearner(estimator, *TRAIN, validation=VALID, random_state=0)
    for _ in range(pulls := min(PULLS, learner.full_steps)):
        learner.train(learner.full_steps // pulls)


def seconds(train: Callable[..., None], *given: Any) -> float:
    """Return the CPU seconds of the quickest of three trainings."""
    found = []
    for _ in range(REPEATS):
        began = process_time()
        train(*given)
        found.append(process_time() - began)
    return min(found)


WAYS = (plain_training, pulled_training), (fitted_estimator, pulled_estimator)


def main() -> None:
    print("| library | rows and columns | rounds | plain | learner | `fit` | estimator |")
    print("|---|---|---|---|---|---|---|")
    for rounds in map(int, sys.argv[1:] or ("100", "400")):
        for name in PLAIN:
            for how, more in (("all", {}), ("sampled", SAMPLED[name])):
                given = (name, PLAIN[name] | more, rounds)
                cells = []
                for plain, pulled in WAYS:
                    least, found = seconds(plain, *given), seconds(pulled, *given)
                    cells += [f"{least:.3f} s", f"{found / least - 1:+.0%}"]
                print(f"| {name} | {how} | {rounds} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
