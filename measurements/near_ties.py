"""How often a verdict claims that one of two nearly equal models is better, and is wrong.

    nice -n 10 python -m measurements.near_ties

150 races of LightGBM with 24 and with 31 leaves, trained in full, scored on 400 validation rows of
a table of their own. The truth is the difference of their scores on 10,000 new rows. A claim is
wrong if the truth is not in its favor.
"""

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification
from sklearn.metrics import get_scorer

from latebloomer import RaceSearchCV

TIES, TRAIN, VALIDATION, NEW = 150, 1_000, 400, 10_000
METRICS = ("roc_auc", "accuracy", "neg_log_loss")


def race_of(seed: int) -> tuple[bool, bool, bool, float]:
    """Return whether the winner was certified and claimed better, wrongly, and the true lead."""
    metric = METRICS[seed % len(METRICS)]
    X, y = make_classification(
        TRAIN + VALIDATION + NEW,
        20,
        n_informative=8,
        flip_y=0.1,
        class_sep=0.7,
        random_state=seed,
    )
    rows = np.arange(TRAIN + VALIDATION)
    models = {
        str(leaves): LGBMClassifier(
            n_estimators=60, num_leaves=leaves, verbose=-1, n_jobs=1, random_state=seed
        )
        for leaves in (24, 31)
    }
    search = RaceSearchCV(
        models,
        trainings=2,
        pulls_per_training=20,
        scoring=metric,
        refit=False,
        cv=[(rows[:TRAIN], rows[TRAIN:])],
        random_state=seed,
        policy="rr",  # both are trained in full
        ensemble=False,
    ).fit(X[rows], y[rows])
    verdict, scorer = search.verdict_, get_scorer(metric)
    truth = {
        name: scorer(model.fit(X[:TRAIN], y[:TRAIN]), X[-NEW:], y[-NEW:])
        for name, model in models.items()
    }
    (lead,) = verdict.leads
    true_lead = float(truth[verdict.name] - truth[lead.rival])
    return verdict.certified, lead.is_better, lead.is_better and true_lead <= 0, true_lead


def main() -> None:
    """Print how many of the races claim something, and how many are wrong."""
    found = [race_of(seed) for seed in range(TIES)]
    certified, claimed, wrong, leads = (np.array(column) for column in zip(*found, strict=True))
    print(f"{TIES} near ties; the true lead is {np.abs(leads).mean():.4f} on average")
    print(f"certified on the validation rows: {certified.sum()} ({certified.mean():.0%})")
    print(f"claimed to be better on new rows: {claimed.sum()} ({claimed.mean():.0%})")
    print(f"claimed wrongly: {wrong.sum()} ({wrong.mean():.1%})")


if __name__ == "__main__":
    main()
