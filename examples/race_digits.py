"""Nine scikit-learn classifiers race for three full trainings; the winner may lead late.

The task: is a handwritten digit (scikit-learn's bundled digits, 8 x 8 pixels) even or odd? The
learners differ: naive Bayes needs one pass over the rows, linear models and nets need many epochs,
forests and boosting add trees. So a pull is the same share of each learner's own full training, as
the estimator declares it. One of the three trainings refits the winner on all rows.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from math import ceil, floor, log
from typing import Any

from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from latebloomer.integrations.sklearn import RaceSearchCV, SklearnLearner

TRAININGS, VALIDATION, TEST = 3, 0.25, 500
PULLS = 100  # pulls in a full training
FACTOR = 3  # of scikit-learn's halving


def learners() -> dict[str, Any]:
    """Return the learners."""
    return {
        "gaussian bayes": GaussianNB(var_smoothing=0.01),
        "multinomial bayes": MultinomialNB(),
        "bernoulli bayes": BernoulliNB(binarize=0.5),
        "logistic regression": SGDClassifier(loss="log_loss"),
        "linear svm": make_pipeline(StandardScaler(), SGDClassifier(alpha=0.001)),
        "forest": RandomForestClassifier(max_depth=6),
        "boosting": HistGradientBoostingClassifier(),
        "small net": MLPClassifier((8,)),
        "deep net": MLPClassifier((128, 128), max_iter=60),
    }


def data(seed: int) -> list[Any]:
    """Return rows to race on, and test rows for the end."""
    X, digit = load_digits(return_X_y=True)
    return train_test_split(X / 16, digit % 2, test_size=TEST, random_state=seed, stratify=digit)


def search(seed: int, verbose: bool = False, journal: str | None = None) -> RaceSearchCV:
    return RaceSearchCV(
        learners(), trainings=TRAININGS, cv=VALIDATION, random_state=seed, verbose=verbose,
        journal=journal,
    )  # fmt: skip


def learner(name: str, X: Any, y: Any, seed: int, validation: Any = VALIDATION) -> SklearnLearner:
    """Return one learner, trained and scored on the same rows as in the race."""
    return SklearnLearner(
        learners()[name], X, y, batch=None, validation=validation, random_state=seed
    )


def rungs(count: int, budget: int) -> list[tuple[int, int]]:
    """Return (learners, pulls each) as HalvingGridSearchCV plans them, for a total of `budget`.

    >>> rungs(9, 200)
    [(9, 7), (3, 21), (1, 63)]
    """
    steps = range(1 + floor(log(count, FACTOR) + 1e-9))
    sizes = [ceil(count / FACTOR**i) for i in steps]
    least = budget // sum(size * FACTOR**i for i, size in enumerate(sizes))
    return [(size, least * FACTOR**i) for i, size in enumerate(sizes)]


def halving(X: Any, y: Any, seed: int) -> str:
    """Return what Successive Halving picks: every rung trains its learners from scratch."""
    names = list(learners())
    for size, pulls in rungs(len(names), (TRAININGS - 1) * PULLS):
        made = {name: learner(name, X, y, seed) for name in names[:size]}
        scores = {name: one.pull(share(one, pulls)) for name, one in made.items()}
        names = sorted(scores, key=lambda name: -scores[name])
    return names[0]


def share(one: SklearnLearner, pulls: int) -> int:
    """Return the steps of that many pulls of its full training."""
    return max(1, round(one.full_steps * pulls / PULLS))


def fully_trained(name: str, rows: list[Any], seed: int) -> float:
    """Return a learner's accuracy on the test rows, trained in full on all others."""
    X, X_test, y, y_test = rows
    made = learner(name, X, y, seed, validation=(X_test, y_test))
    return made.pull(made.full_steps)


def main(seed: int = 0) -> None:
    began = time.perf_counter()
    rows = data(seed)
    X, X_test, y, y_test = rows
    found = search(seed, verbose=True, journal="races/").fit(X, y)
    page = found.verdict_.report("race.html")
    pick = halving(X, y, seed)
    print(f"{found.best_name_}, refitted on all rows, gets {found.score(X_test, y_test):.1%} of "
          f"{TEST} test images right.")  # fmt: skip
    print(f"Halving as in scikit-learn, with the same amount of training, keeps {pick}: "
          f"{fully_trained(pick, rows, seed):.1%}.")  # fmt: skip
    print(f"The report {page} shows why ({time.perf_counter() - began:.0f} s in total). To watch "
          f"it live, run it again and, in another terminal: {watch_command()}")  # fmt: skip


def watch_command() -> str:
    """Return the command to type here, even if the environment is not activated."""
    if shutil.which("latebloomer"):
        return "latebloomer watch"
    return f"{os.path.relpath(sys.executable)} -m latebloomer watch"


if __name__ == "__main__":
    with threadpool_limits(1):  # too few rows to share among threads
        main(*map(int, sys.argv[1:2]))
