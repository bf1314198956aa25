"""Nine scikit-learn classifiers race; the one that wins is not the one that leads early.

The task: is a handwritten digit (scikit-learn's bundled digits, 8 x 8 pixels) even or odd? Simple
models are quick to learn what a straight cut can tell. A net is slow at first and better in the
end. One pull is a batch of 8 images; the budget is 900 batches for all nine together.
"""

from __future__ import annotations

import sys
import time
from math import ceil, floor, log
from typing import Any

from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from latebloomer.integrations.sklearn import RaceSearchCV, SklearnLearner

BUDGET, HORIZON, BATCH, VALIDATION, TEST = 900, 500, 8, 0.25, 500
FACTOR = 3  # of scikit-learn's halving


def learners() -> dict[str, Any]:
    """The candidates, as one would write them down."""
    return {
        "gaussian bayes": GaussianNB(var_smoothing=0.01),
        "multinomial bayes": MultinomialNB(),
        "bernoulli bayes": BernoulliNB(binarize=0.5),
        "perceptron": Perceptron(),
        "logistic regression": SGDClassifier(loss="log_loss"),
        "linear svm": make_pipeline(StandardScaler(), SGDClassifier(alpha=0.001)),
        "kernel svm": make_pipeline(Nystroem(gamma=0.1, n_components=50), SGDClassifier()),
        "small net": MLPClassifier((8,)),
        "deep net": MLPClassifier((128, 128)),
    }


def data(seed: int) -> list[Any]:
    """Rows to race on and rows that nobody sees before the end."""
    X, digit = load_digits(return_X_y=True)
    return train_test_split(X / 16, digit % 2, test_size=TEST, random_state=seed, stratify=digit)


def search(seed: int, verbose: bool = False, refit: bool = True) -> RaceSearchCV:
    return RaceSearchCV(
        learners(), budget=BUDGET, horizon=HORIZON, batch=BATCH, validation=VALIDATION,
        random_state=seed, refit=refit, verbose=verbose,
    )  # fmt: skip


def learner(name: str, X: Any, y: Any, seed: int) -> SklearnLearner:
    """One candidate, trained and scored on the same rows as in the race."""
    return SklearnLearner(
        learners()[name], X, y, batch=BATCH, validation=VALIDATION, random_state=seed
    )


def rungs(count: int, budget: int) -> list[tuple[int, int]]:
    """(candidates, batches each) as HalvingGridSearchCV lays them out, for a total of `budget`.

    >>> rungs(9, 900)
    [(9, 33), (3, 99), (1, 297)]
    """
    steps = range(1 + floor(log(count, FACTOR) + 1e-9))
    sizes = [ceil(count / FACTOR**i) for i in steps]
    least = budget // sum(size * FACTOR**i for i, size in enumerate(sizes))
    return [(size, least * FACTOR**i) for i, size in enumerate(sizes)]


def halving(X: Any, y: Any, seed: int) -> tuple[SklearnLearner, str, int]:
    """What Successive Halving picks: every rung trains its candidates from scratch."""
    names, spent = list(learners()), 0
    for size, batches in rungs(len(names), BUDGET):
        made = {name: learner(name, X, y, seed) for name in names[:size]}
        scores = {name: score_after(batches, one) for name, one in made.items()}
        spent += size * batches
        names = sorted(scores, key=lambda name: -scores[name])
    return made[names[0]], names[0], spent


def score_after(batches: int, made: SklearnLearner) -> float:
    """Only the last batch is followed by a score: the others need none."""
    for _ in range(batches - 1):
        made.train()
    return made.pull()


def train_on(made: SklearnLearner, X: Any, y: Any) -> Any:
    """Up to the horizon on all rows but the test's, as `refit=True` does it."""
    made.widen(X, y)
    while made.pulls < HORIZON:
        made.train()
    return made.model


def main(seed: int = 0) -> None:
    began = time.perf_counter()
    X, X_test, y, y_test = data(seed)
    found = search(seed, verbose=True).fit(X, y)
    page = found.verdict_.report("race.html")
    rival, pick, spent = halving(X, y, seed)
    other = train_on(rival, X, y)
    rows = f"{len(y_test)} images that nobody has seen"
    print(f"\nThe race keeps the {found.best_name_}; at half-time {found.verdict_.half_time} led.")
    print(f"  Trained on to {HORIZON} batches on all rows (+{found.refit_pulls_} batches) it gets")
    print(f"  {found.score(X_test, y_test):.1%} of {rows}.")
    print(f"Successive Halving as in scikit-learn ({spent} batches, from scratch at each rung)")
    print(f"  picks the {pick}; trained to {HORIZON} batches on all rows it gets")
    print(f"  {other.score(X_test, y_test):.1%} of them.")
    print(f"Why, with pictures: {page} ({time.perf_counter() - began:.0f} s in all)")
    print("To watch a race as it runs: race(..., watch=True), or latebloomer watch in its folder")


if __name__ == "__main__":
    with threadpool_limits(1):  # eight rows are too few to share among threads
        main(*map(int, sys.argv[1:2]))
