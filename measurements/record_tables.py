"""Record learners on tables: `python -m measurements.record_tables OUT.npz [--minutes 20]`.

Twelve learners (five kinds of boosting, two forests, three nets, two linear models) are trained
step by step on data sets that come with scikit-learn and on synthetic ones; each step is a pull.
For each problem, split, learner and pull the file holds the scores on validation and on test rows
(binary ROC AUC, accuracy, or R2 clipped at -1) and the processor seconds of training and of
scoring the validation rows, with one thread. Beside them are the names of problems and learners,
the source of each problem, the numbers of rows and the seeds: splits and learners have the
split's number.

The arrays have the form (problem, split, learner, pull), as `measurements.pack_tables` packs
them into the package. Learners of libraries that are not installed are left out. Problems are
recorded until the minutes are over; a file that exists is continued.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

STEPS, SPLITS = 60, 2
ROWS = {"train": 1200, "valid": 600, "test": 1600}
SHARES = {"train": 0.5, "valid": 0.2, "test": 0.3}  # of data sets with fewer rows
Rows = tuple[np.ndarray, np.ndarray]

# --- problems ---


def problems() -> dict[str, tuple[str, Callable[[], Rows]]]:
    """Return the source and the rows of each problem, by name."""
    from sklearn import datasets as made

    def classes(seed: int, **settings: Any) -> tuple[str, Callable[[], Rows]]:
        settings = {"n_samples": 3400, "random_state": seed} | settings
        return f"make_classification({settings})", lambda: made.make_classification(**settings)

    def of(name: str, **settings: Any) -> tuple[str, Callable[[], Rows]]:
        settings = {"n_samples": 3400, "random_state": 1} | settings
        return f"{name}({settings})", lambda: getattr(made, name)(**settings)

    def bundled(
        name: str, change: Callable[[Rows], Rows] = lambda rows: rows, said: str = ""
    ) -> Any:
        return f"{name} of scikit-learn{said}", lambda: change(
            getattr(made, name)(return_X_y=True)
        )

    def wide(rows: Rows) -> Rows:  # with 40 columns of noise
        noise = np.random.default_rng(7).normal(size=(len(rows[0]), 40))
        return np.hstack([rows[0], noise * rows[0].std()]), rows[1]

    def even(rows: Rows) -> Rows:
        return rows[0], rows[1] % 2

    def curved(rows: Rows) -> Rows:  # with the two columns hidden among products and noise
        rng = np.random.default_rng(5)
        more = rng.normal(size=(len(rows[0]), 10))
        return np.hstack([rows[0] @ rng.normal(size=(2, 6)), more]), rows[1]

    def with_noise(name: str, noise: float, seed: int) -> Any:
        said, rows = of(name, noise=noise, random_state=seed)
        return f"{said}, mixed with 10 columns of noise", lambda: curved(rows())

    return {
        "cancer": bundled("load_breast_cancer"),
        "cancer, wide": bundled("load_breast_cancer", wide, ", 40 columns of noise added"),
        "digits": bundled("load_digits"),
        "digits, even": bundled("load_digits", even, ", even or odd"),
        "wine, wide": bundled("load_wine", wide, ", 40 columns of noise added"),
        "diabetes": bundled("load_diabetes"),
        "easy": classes(1, n_features=20, n_informative=5),
        "noisy labels": classes(2, n_features=20, n_informative=8, flip_y=0.2),
        "many columns": classes(3, n_features=120, n_informative=10, n_redundant=20),
        "clusters": classes(4, n_features=15, n_informative=8, n_clusters_per_class=6),
        "clusters of 5 classes": classes(5, n_features=15, n_informative=10, n_classes=5),
        "rare class": classes(6, n_features=20, n_informative=6, weights=[0.93]),
        "close classes": classes(7, n_features=25, n_informative=12, class_sep=0.4),
        "hastie": of("make_hastie_10_2"),
        "quantiles": of("make_gaussian_quantiles", n_features=10, n_classes=3),
        "quantiles, 2 classes": of("make_gaussian_quantiles", n_features=20, n_classes=2),
        "moons": with_noise("make_moons", 0.25, 8),
        "circles": with_noise("make_circles", 0.15, 9),
        "friedman 1": of("make_friedman1", n_features=10, noise=1.0),
        "friedman 1, wide": of("make_friedman1", n_features=60, noise=3.0),
        "friedman 2": of("make_friedman2", noise=50.0),
        "friedman 3": of("make_friedman3", noise=0.1),
        "linear": of("make_regression", n_features=40, n_informative=10, noise=50.0),
        "sparse linear": of("make_sparse_uncorrelated", n_features=30),
        "low rank": of("make_regression", n_features=60, n_informative=20, effective_rank=8,
                       noise=2.0),
        "blobs": of("make_blobs", n_features=6, centers=8, cluster_std=6.0),
    }  # fmt: skip


def split(rows: Rows, seed: int, classes: bool) -> list[Rows]:
    """Return training, validation and test rows, with scaled columns."""
    X, y = rows
    order = np.random.default_rng([2026, seed]).permutation(len(y))
    counts = [min(ROWS[part], int(SHARES[part] * len(y))) for part in ROWS]
    ends = np.cumsum([0, *counts])
    train = order[: counts[0]]
    mean, sd = X[train].mean(0), X[train].std(0) + 1e-12
    X = (X - mean) / sd
    if not classes:
        y = (y - y[train].mean()) / y[train].std()
    return [(X[order[a:b]], y[order[a:b]]) for a, b in pairwise(ends)]


# --- learners ---


class Boosted:
    """LightGBM, some trees for each step."""

    def __init__(
        self, X: np.ndarray, y: np.ndarray, classes: int, seed: int, trees: int, **more: Any
    ):
        import lightgbm

        goal = {0: "regression", 2: "binary"}.get(classes, "multiclass")
        count = {"num_class": classes} if goal == "multiclass" else {}
        settings = {
            "objective": goal,
            "verbosity": -1,
            "num_threads": 1,
            "seed": seed,
            "deterministic": True,
        }
        self.trees, self.model = (
            trees,
            lightgbm.Booster({**settings, **count, **more}, lightgbm.Dataset(X, y)),
        )

    def step(self) -> None:
        for _ in range(self.trees):
            self.model.update()

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict(X, num_threads=1))


class Fitted:
    """An estimator of scikit-learn: `partial_fit` over all rows, or trees by `warm_start`."""

    def __init__(
        self, X: np.ndarray, y: np.ndarray, classes: int, seed: int, kind: str, **more: Any
    ):
        from sklearn import ensemble, linear_model, neural_network

        name = kind + ("Classifier" if classes else "Regressor")
        homes = (ensemble, linear_model, neural_network)
        home = next(home for home in homes if hasattr(home, name))
        self.model = getattr(home, name)(random_state=seed, **more)
        self.X, self.y, self.classes, self.n = X, y, classes, 0
        self.rng = np.random.default_rng(seed)

    def step(self) -> None:
        self.n += 1
        if hasattr(self.model, "partial_fit"):
            order = self.rng.permutation(len(self.y))
            known = {"classes": np.arange(self.classes)} if self.classes else {}
            self.model.partial_fit(self.X[order], self.y[order], **known)
            return
        count = "max_iter" if hasattr(self.model, "max_iter") else "n_estimators"
        self.model.set_params(**{count: 2 * self.n}, warm_start=True)
        self.model.fit(self.X, self.y)

    def predict(self, X: np.ndarray) -> np.ndarray:
        if not self.classes:
            return np.asarray(self.model.predict(X))
        if not hasattr(self.model, "predict_proba"):
            return np.asarray(self.model.decision_function(X))
        found = np.asarray(self.model.predict_proba(X))
        return found[:, 1] if self.classes == 2 else found


SLOW = {"learning_rate": 0.02, "num_leaves": 15}
DEEP = {"learning_rate": 0.05, "num_leaves": 127, "min_data_in_leaf": 5}
SAMPLED = {"bagging_fraction": 0.5, "bagging_freq": 1, "feature_fraction": 0.5}
AVERAGED = {"alpha": 1e-4, "average": True, "eta0": 0.001, "learning_rate": "constant"}
SETTINGS: dict[str, tuple[type, dict[str, Any]]] = {
    "lgb": (Boosted, {"trees": 2}),
    "lgb slow": (Boosted, {"trees": 2, **SLOW}),
    "lgb deep": (Boosted, {"trees": 1, **DEEP}),
    "lgb sampled": (Boosted, {"trees": 2, **SAMPLED}),
    "hist": (Fitted, {"kind": "HistGradientBoosting", "early_stopping": False}),
    "extra trees": (Fitted, {"kind": "ExtraTrees", "n_jobs": 1}),
    "forest": (Fitted, {"kind": "RandomForest", "n_jobs": 1, "min_samples_leaf": 3}),
    "net": (Fitted, {"kind": "MLP", "hidden_layer_sizes": (32,), "learning_rate_init": 0.01}),
    "net deep": (Fitted, {"kind": "MLP", "hidden_layer_sizes": (100, 100)}),
    "net wide": (
        Fitted,
        {"kind": "MLP", "hidden_layer_sizes": (256,), "learning_rate_init": 3e-4},
    ),
    "sgd": (Fitted, {"kind": "SGD", "alpha": 1e-3}),
    "sgd averaged": (Fitted, {"kind": "SGD", **AVERAGED}),
}
# Those of libraries that are not installed are left out.
LEARNERS = {
    name: partial(kind, **own)
    for name, (kind, own) in SETTINGS.items()
    if kind is not Boosted or find_spec("lightgbm")
}


def score(y: np.ndarray, found: np.ndarray, classes: int) -> float:
    """Return the score of predictions: ROC AUC, accuracy or R2, higher is better."""
    from sklearn.metrics import r2_score, roc_auc_score

    found = np.nan_to_num(found, nan=0.0, posinf=1e6, neginf=-1e6)
    if classes == 0:
        return max(-1.0, float(r2_score(y, found)))
    if classes == 2:
        return float(roc_auc_score(y, found))
    return float((found.argmax(1) == y).mean())


def record(rows: Rows) -> np.ndarray:
    """Return (4, splits, learners, steps): validation, test, seconds of training, of scoring."""
    y = rows[1]
    classes = len(np.unique(y)) if len(np.unique(y)) <= 20 else 0
    y = np.unique(y, return_inverse=True)[1] if classes else y.astype(float)
    found = np.zeros((4, SPLITS, len(LEARNERS), STEPS), np.float32)
    for seed in range(SPLITS):
        train, valid, test = split((rows[0], y), seed, classes > 0)
        for place, make in enumerate(LEARNERS.values()):
            learner = None
            for step in range(STEPS):
                start = time.process_time()
                learner = make(*train, classes, seed) if learner is None else learner
                learner.step()
                trained = time.process_time()
                own = score(valid[1], learner.predict(valid[0]), classes)
                scored = time.process_time()
                out = score(test[1], learner.predict(test[0]), classes)
                found[:, seed, place, step] = own, out, trained - start, scored - trained
    return found


def main() -> None:
    """Record problems into a file, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=20.0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    names: list[str] = []
    made: list[np.ndarray] = []
    if asked.out.is_file():
        kept = np.load(asked.out)
        if kept["learners"].tolist() != list(LEARNERS):
            raise SystemExit(f"{asked.out} holds other learners than can be recorded here")
        names = kept["problems"].tolist()
        made = [np.stack([kept[key][k] for key in KEYS]) for k in range(len(names))]
    start = time.process_time()
    known = problems()
    for name, (_, rows) in known.items():
        if name in names or time.process_time() - start > 60 * asked.minutes:
            continue
        made.append(record(rows()))
        names.append(name)
        about = json.dumps({"rows": ROWS, "splits": SPLITS, "seeds": "the number of the split"})
        arrays = dict(zip(KEYS, np.stack(made, axis=1), strict=True))
        np.savez_compressed(
            asked.out, **arrays, problems=np.array(names), learners=np.array(list(LEARNERS)),
            sources=np.array([known[one][0] for one in names]), about=np.array(about),
        )  # fmt: skip
        print(f"{name}: {time.process_time() - start:.0f} s so far", flush=True)


KEYS = ("valid", "test", "train_seconds", "score_seconds")

if __name__ == "__main__":
    main()
