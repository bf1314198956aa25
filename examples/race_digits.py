"""Twelve classifiers of handwritten digits race for a third of the cost of training them all.

The data are scikit-learn's bundled digits (8 x 8 pixels); the training images are there nine
times, eight of them shifted by one pixel. Boosting, forests, nets and a linear model differ in
what a step is, so a pull is the same share of each model's own full training. Then all twelve are
trained, for comparison; `--alone` leaves that out.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterable
from time import process_time
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.ensemble import HistGradientBoostingClassifier as HistBoosting
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from latebloomer import RaceSearchCV

BUDGET = {"trainings": 4}  # one training refits the winner


def digits(seed=0):
    """Return rows, labels, which rows train and which validate, test rows and their labels."""
    X, y = load_digits(return_X_y=True)
    settings = {"stratify": y, "random_state": seed}
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.4, **settings)
    X, X_val, y, y_val = train_test_split(X, y, stratify=y, random_state=seed)
    padded = np.pad(X.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))  # to shift by one pixel
    shifted = [padded[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)]
    X = np.concatenate([np.concatenate(shifted).reshape(-1, 64), X_val])
    y = np.concatenate([np.tile(y, 9), y_val])
    train, validate = np.split(np.arange(len(X)), [len(X) - len(X_val)])
    return X, y, (train, validate), X_test, y_test


def models():
    """Return twelve classifiers by name."""
    boosting = {"n_estimators": 150, "n_jobs": 1, "verbose": -1}
    net = {"max_iter": 60, "tol": 0}
    return {
        "boosting": LGBMClassifier(**boosting),
        "slow boosting": LGBMClassifier(learning_rate=0.05, **boosting),
        "small boosting": LGBMClassifier(num_leaves=8, **boosting | {"n_estimators": 200}),
        "hist boosting": HistBoosting(max_iter=60, early_stopping=False),
        "forest": RandomForestClassifier(200),
        "extra trees": ExtraTreesClassifier(200),
        "small net": MLPClassifier((64,), **net | {"max_iter": 100}),
        "net": MLPClassifier((256,), **net),
        "deep net": MLPClassifier((128, 128), **net),
        "regular net": MLPClassifier((256,), alpha=0.1, **net),
        "sgd net": MLPClassifier((256,), solver="sgd", learning_rate_init=0.01, **net),
        "logistic": SGDClassifier(loss="log_loss", max_iter=100, tol=None),
    }


def search(
    data: tuple[Any, ...], seed: int = 0, among: dict[str, Any] | None = None, **settings: Any
) -> RaceSearchCV:
    """Return the search, fitted to the training and validation rows of `data`."""
    X, y, split, _, _ = data
    chosen = {"cv": [split], "threads": 1, "random_state": seed} | (settings or BUDGET)
    return RaceSearchCV(among or models(), **chosen).fit(X, y)


def trained_in_full(
    data: tuple[Any, ...], seed: int = 0, names: Iterable[str] | None = None
) -> dict[str, tuple[Any, float]]:
    """Return each model trained in full on the training rows, and its score on validation rows."""
    X, y, (train, validate), _, _ = data
    trained, templates = {}, models()
    for name in names or templates:
        model = templates[name].set_params(random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # trained as long as it says
            model.fit(X[train], y[train])
        trained[name] = model, model.score(X[validate], y[validate])
    return trained


def refitted(name: str, data: tuple[Any, ...], seed: int = 0) -> Any:
    """Return a model trained in full on training and validation rows."""
    X, y, *_ = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return models()[name].set_params(random_state=seed).fit(X, y)


def main(compare: bool = True) -> None:
    data = digits()
    X_test, y_test = data[3:]
    began = process_time()
    race = search(data, verbose=True, journal="races/", **BUDGET)
    cost = process_time() - began
    page = race.verdict_.report("race.html")
    right = race.score(X_test, y_test)
    print(race.verdict_)
    print(f"The race: {cost:.1f} s of processor time. {race.best_name_}, refitted on all rows, "
          f"gets {right:.1%} of {len(y_test)} test images right.")  # fmt: skip
    if compare:
        print(f"Training all {len(models())}, for comparison ...")
        began = process_time()
        trained = trained_in_full(data)
        best = max(trained, key=lambda name: trained[name][1])
        right = refitted(best, data).score(X_test, y_test)
        print(f"Training all: {process_time() - began:.1f} s. {best} has the best validation "
              f"score and, refitted on all rows, gets {right:.1%} right.")  # fmt: skip
    print(f"The report {page} shows why. To watch a race live, run this again and, in another "
          f"terminal: {watch_command()}")  # fmt: skip


def watch_command() -> str:
    """Return the command to type here, even if the environment is not activated."""
    if shutil.which("latebloomer"):
        return "latebloomer watch"
    return f"{os.path.relpath(sys.executable)} -m latebloomer watch"


if __name__ == "__main__":
    with threadpool_limits(1):  # too few rows to share among threads
        main(compare="--alone" not in sys.argv)
