"""What the default budget of a search loses: test AUC and CPU seconds beside training all.

    nice -n 10 python -m measurements.default_budget [first seed] [seeds] [out.csv]

Ten estimators as one has them (three boosters of libraries, scikit-learn's own, two forests, a
net, a linear model, a kernel machine, nearest neighbors) on synthetic tables with gaps: 20,000
rows for the search and 10,000 for the test. Training all fits each on the rows that a search
trains on, scores the held-out rows and fits the best one on all rows. One thread; it needs
XGBoost, LightGBM and CatBoost.
"""

from __future__ import annotations

import csv
import os
import sys
import warnings
from pathlib import Path
from time import process_time
from typing import Any

for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one thread; read at import
    os.environ.setdefault(pool, "1")

import numpy as np  # noqa: E402
from catboost import CatBoostClassifier  # noqa: E402
from lightgbm import LGBMClassifier  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.ensemble import (  # noqa: E402
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.linear_model import SGDClassifier  # noqa: E402
from sklearn.metrics import get_scorer  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC  # noqa: E402
from xgboost import XGBClassifier  # noqa: E402

from latebloomer import RaceSearchCV  # noqa: E402

ROWS, TEST, GAPS = 20_000, 10_000, 0.05
COLUMNS = ("seed", "way", "test_auc", "cpu_seconds", "kept", "pulls")


def filled(model: Any) -> Any:
    """Return a pipeline that fills gaps and scales."""
    return make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), model)


def models(seed: int) -> dict[str, Any]:
    """Return the ten estimators."""
    own = {"random_state": seed}
    return {
        "lightgbm": LGBMClassifier(n_estimators=300, n_jobs=1, verbosity=-1, **own),
        "xgboost": XGBClassifier(n_estimators=300, n_jobs=1, **own),
        "catboost": CatBoostClassifier(
            iterations=400, thread_count=1, verbose=0, allow_writing_files=False, **own
        ),
        "hist": HistGradientBoostingClassifier(max_iter=200, early_stopping=False, **own),
        "forest": filled(RandomForestClassifier(150, **own)),
        "extra trees": filled(ExtraTreesClassifier(150, **own)),
        "net": filled(MLPClassifier((64,), max_iter=40, **own)),
        "linear": filled(SGDClassifier(loss="log_loss", max_iter=50, **own)),
        "svc": filled(SVC()),
        "neighbors": filled(KNeighborsClassifier(15)),
    }


def table(seed: int) -> tuple[Any, Any, Any, Any]:
    """Return rows with gaps, their labels, and those of the test."""
    rng = np.random.default_rng(seed)
    X, y = make_classification(
        ROWS + TEST,
        25,
        n_informative=int(rng.integers(6, 16)),
        n_redundant=4,
        n_clusters_per_class=int(rng.integers(2, 7)),
        flip_y=0.08,
        class_sep=float(rng.uniform(0.5, 1.0)),
        random_state=seed,
    )
    X[rng.random(X.shape) < GAPS] = np.nan
    return X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:]


def trained(seed: int, X: Any, y: Any) -> tuple[Any, str, str]:
    """Train all estimators and fit the best one on all rows."""
    split = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    X_train, X_held, y_train, y_held = split
    score = get_scorer("roc_auc")
    scores = {
        name: score(model.fit(X_train, y_train), X_held, y_held)
        for name, model in models(seed).items()
    }
    best = max(scores, key=lambda name: scores[name])
    return clone(models(seed)[best]).fit(X, y), best, ""


def raced(seed: int, X: Any, y: Any) -> tuple[Any, str, str]:
    """Race them with the default budget."""
    search = RaceSearchCV(models(seed), scoring="roc_auc", random_state=seed, threads=1)
    found = search.fit(X, y)
    return found, found.best_name_, " ".join(f"{k}:{n}" for k, n in found.verdict_.pulls.items())


def main(first: int, seeds: int, out: Path | None) -> None:
    warnings.simplefilter("ignore")
    rows = []
    for seed in range(first, first + seeds):
        X, y, X_test, y_test = table(seed)
        for way, search in (("training all", trained), ("race", raced)):
            began = process_time()
            model, best, pulls = search(seed, X, y)
            cpu = process_time() - began
            auc = get_scorer("roc_auc")(model, X_test, y_test)
            rows.append(dict(zip(COLUMNS, (seed, way, auc, cpu, best, pulls), strict=True)))
            print(*rows[-1].values(), flush=True)
    if out is not None:
        with out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    auc, cpu = (
        np.array(
            [[row[name] for row in rows if row["way"] == way] for way in ("race", "training all")]
        )
        for name in ("test_auc", "cpu_seconds")
    )
    gaps = auc[0] - auc[1]
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
    print(f"test AUC minus training all: {gaps.mean():+.4f} ± {error:.4f}, {len(gaps)} seeds")
    print(
        f"CPU: {cpu[0].sum() / cpu[1].sum():.2f} of training all, worst {max(cpu[0] / cpu[1]):.2f}"
    )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        int(given[0]) if given else 0,
        int(given[1]) if len(given) > 1 else 20,
        Path(given[2]) if len(given) > 2 else None,
    )
