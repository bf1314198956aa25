"""What `ensemble=True` adds to the refitted winner, on test rows: with one split, and with folds.

    nice -n 10 python -m measurements.ensemble

Tables are bundled or synthetic. Each search of seven models of scikit-learn gets four trainings.
The winner alone is a member of the result, so one search gives both scores.
"""

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_friedman1
from sklearn.metrics import get_scorer
from sklearn.model_selection import train_test_split

from latebloomer import RaceSearchCV
from latebloomer.integrations.sklearn import tabular_models

NAMES = ("hist", "forest", "extra trees", "net", "linear")
SEEDS = 5


def tables(seed: int) -> dict[str, tuple]:
    """Return rows, target, task and metric of each table; synthetic ones differ by seed."""
    rough = make_classification(
        3000, 30, n_informative=12, n_classes=2, flip_y=0.1, class_sep=0.6, random_state=seed
    )
    several = make_classification(
        3000, 20, n_informative=10, n_classes=4, class_sep=0.8, random_state=100 + seed
    )
    smooth = make_friedman1(2500, 15, noise=2.0, random_state=seed)
    return {
        "breast_cancer": (*load_breast_cancer(return_X_y=True), "classification", "neg_log_loss"),
        "digits": (*load_digits(return_X_y=True), "classification", "accuracy"),
        "two classes": (*rough, "classification", "roc_auc"),
        "four classes": (*several, "classification", "accuracy"),
        "friedman": (*smooth, "regression", "r2"),
    }


def measure(seed: int, cv: float | int) -> list[dict]:
    """Return test scores of the winner and of the ensemble on each table."""
    found = []
    for name, (X, y, task, metric) in tables(seed).items():
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=seed)
        search = RaceSearchCV(
            tabular_models(task, NAMES),
            trainings=4,
            scoring=metric,
            cv=cv,
            ensemble=True,
            random_state=seed,
        ).fit(X, y)
        scorer, (_, winner) = get_scorer(metric), search.best_estimator_.estimators[0]
        scores = [float(scorer(model, X_test, y_test)) for model in (winner, search)]
        found.append({"table": name, "cv": cv, "seed": seed, "gain": scores[1] - scores[0]})
    return found


def main() -> None:
    """Measure, print a table, and write all gains next to it if a file is named."""
    rows = [row for seed in range(SEEDS) for cv in (0.2, 3) for row in measure(seed, cv)]
    for cv in (0.2, 3):
        gains = np.array([row["gain"] for row in rows if row["cv"] == cv])
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        wins = int((gains > 0).sum())
        print(f"cv={cv}: {gains.mean():+.4f} ± {error:.4f}, better in {wins} of {len(gains)}")
        for name in tables(0):
            own = [row["gain"] for row in rows if row["cv"] == cv and row["table"] == name]
            print(f"  {name:15} {np.mean(own):+.4f}")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
