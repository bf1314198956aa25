"""The metrics of a search."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier

from latebloomer._util.text import brief, quoted
from latebloomer.errors import SettingError, require, unknown
from latebloomer.integrations.sklearn.training.estimators import last_step
from latebloomer.integrations.sklearn.training.fold_model import Accuracy, FoldModel, Scorer

if TYPE_CHECKING:
    from latebloomer.integrations.sklearn.base_search import BaseRaceSearch

ONE = "score"  # name of the metric if there is only one
# Scores by fold, under names such as "test_accuracy".
FoldScores: TypeAlias = dict[str, list[float]]
Range: TypeAlias = tuple[float | None, float | None]


class Metrics(NamedTuple):
    """The metrics of a search or a learner, checked."""

    scoring: Any  # the user's `scoring`, or a dict by name if there are several metrics
    leading: str = ONE  # the metric that decides the race
    train: bool = False  # whether training rows are scored too

    def scorer(self, estimator: Any) -> Scorer:
        """Return the scorer of an estimator; for several metrics, it returns a dict of scores."""
        return check_scoring(last_step(estimator), scoring=self.scoring)

    def quick_scorer(self, estimator: Any, y: Any) -> Scorer:
        """Return the scorer for pulls; `y` are the held-out targets, which it may check once."""
        scorer = self.scorer(estimator)
        metric = None if isinstance(self.scoring, dict) else self.leading_metric(estimator)
        plain = isinstance(y, np.ndarray) and y.ndim == 1
        return (
            Accuracy(scorer)
            if plain and isinstance(metric, str) and metric == "accuracy"
            else scorer
        )

    def leading_metric(self, estimator: Any) -> Any:
        """Return the metric that decides the race: its name or a function; None if not known."""
        metric = self.scoring[self.leading] if isinstance(self.scoring, dict) else self.scoring
        if metric is None:
            own = getattr(type(last_step(estimator)), "score", None)
            metric = OWN.get(own) or OTHERS.get(getattr(own, "__qualname__", ""))
        return metric

    @property
    def is_users_own(self) -> bool:
        """True if the race is decided by a function of the user, whose formula is unknown."""
        several = isinstance(self.scoring, dict)
        metric = self.scoring[self.leading] if several else self.scoring
        return callable(metric) and not is_sklearns(metric)

    @property
    def _scores_whole_pipelines(self) -> bool:
        """True if a user's function scores: it may read the untransformed rows of a pipeline."""
        several = isinstance(self.scoring, dict)
        metrics = self.scoring.values() if several else [self.scoring]
        return any(callable(metric) and not is_sklearns(metric) for metric in metrics)

    def scorers(self, estimator: Any) -> Any:
        """Return the value of `scorer_`: the scorer, or a dict of them."""
        if isinstance(self.scoring, dict):
            return {
                name: Metrics(metric).scorer(estimator) for name, metric in self.scoring.items()
            }
        return self.scorer(estimator)

    def scores(self, scorer: Scorer, models: Sequence[FoldModel]) -> FoldScores:
        """Return the scores of each metric by fold."""
        scores = FoldScores()
        for rows in ("test", "train")[: 1 + self.train]:
            whole = self._scores_whole_pipelines
            scored = [model.score(scorer, rows == "train", whole) for model in models]
            if not isinstance(scored[0], Mapping):
                scored = [{ONE: score} for score in scored]
            if self.leading not in scored[0]:
                names = ", ".join(map(repr, scored[0]))
                raise SettingError(
                    f"scoring returns {names}, but one must decide the race: name it with refit="
                )
            for name in scored[0]:
                scores[f"{rows}_{name}"] = [float(of_fold[name]) for of_fold in scored]
        return scores

    def range_of(self, estimator: Any) -> Range | None:
        """Return the lowest and highest possible score (None: no limit); None if not known.

        >>> from sklearn.linear_model import SGDClassifier, SGDRegressor
        >>> Metrics(None).range_of(SGDClassifier()), Metrics("r2").range_of(SGDRegressor())
        ((0, 1), (None, 1))
        """
        metric = self.leading_metric(estimator)
        if not isinstance(metric, str):
            return None
        return next((ends for names, ends in RANGES.items() if metric.startswith(names)), None)


def own_scores_differ(scoring: Any, estimators: Mapping[str, Any]) -> str | None:
    """Return a warning if estimators are compared by `score` methods that may differ; else None.

    >>> from sklearn.linear_model import PoissonRegressor, Ridge
    >>> own_scores_differ(None, {"count": PoissonRegressor(), "ridge": Ridge()})
    "count may have another `score` than the others, which have r2: give scoring='r2'"
    """
    if scoring is not None:
        return None
    own = {name: Metrics(None).leading_metric(model) for name, model in estimators.items()}
    usual, count = Counter(own.values()).most_common(1)[0]
    if count == len(own):
        return None
    usual = usual or next(metric for metric in own.values() if metric is not None)
    others = ", ".join(quoted(name) for name, metric in own.items() if metric != usual)
    have = f"than the others, which have {usual}: give scoring={usual!r}"
    return f"{others} may have another `score` {have}"


def is_sklearns(scorer: Any) -> bool:
    """Return whether a scorer belongs to scikit-learn, and so reads only predictions."""
    return type(scorer).__module__.startswith("sklearn.")  # such as the result of make_scorer


def metrics_of(search: "BaseRaceSearch") -> Metrics:
    """Return the metrics of a search from its settings, checked.

    If `refit` is a function, the first of several metrics decides the race.

    >>> from latebloomer import RaceSearchCV
    >>> metrics_of(RaceSearchCV([], scoring=["accuracy", "f1"], refit="f1")).scoring
    {'accuracy': 'accuracy', 'f1': 'f1'}
    >>> metrics_of(RaceSearchCV([], scoring=["accuracy", "f1"], refit=True))
    Traceback (most recent call last):
    latebloomer.errors.SettingError: refit=True with 2 metrics, but one of them must decide ...
    """
    scoring, refit, train = search.scoring, search.refit, bool(search.return_train_score)
    if isinstance(scoring, list | tuple | set):
        require(
            all(isinstance(metric, str) for metric in scoring),
            "scoring",
            scoring,
            "metrics' names",
            "a function needs one, as {'mine': function}",
        )
        scoring = {metric: metric for metric in scoring}
    if isinstance(scoring, Mapping):
        named = {name: need_scoring(metric) for name, metric in scoring.items()}
        leading = next(iter(named), "") if callable(refit) else refit
        if isinstance(leading, bool) or leading not in named:
            needed = " or ".join(map(repr, named)) or "the name of one"
            raise SettingError(
                f"refit={brief(refit)} with {len(named)} metrics, but one of them must decide the "
                f"race: refit must be {needed}"
            )
        return Metrics(named, leading, train)
    need_scoring(scoring)
    if isinstance(refit, str) and callable(scoring):  # the function may return a dict
        return Metrics(scoring, refit, train)
    require(
        isinstance(refit, bool | np.bool_) or callable(refit),
        "refit",
        refit,
        "True, False or a function of the results that returns the best index",
        "a name is for several metrics, as scoring=['accuracy', 'f1'], refit='f1'; "
        "extra_refit=True spends the refit on top of the budget",
    )
    return Metrics(scoring, ONE, train)


def need_scoring(scoring: Any) -> Any:
    """Return one metric, or raise an error unless it is a name, a function or None."""
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        raise unknown("scoring", scoring, get_scorer_names())
    require(
        scoring is None or isinstance(scoring, str) or callable(scoring),
        "scoring",
        scoring,
        "one metric's name, a function of (estimator, X, y), or None",
        "a race has one winner",
    )
    return scoring


# Lowest and highest values of scikit-learn's metrics, by the first part of their names.
RANGES: dict[tuple[str, ...], Range] = {
    (
        "accuracy",
        "average_precision",
        "balanced_accuracy",
        "completeness",
        "f1",
        "fowlkes_mallows",
        "homogeneity",
        "jaccard",
        "normalized_mutual_info",
        "precision",
        "rand_score",
        "recall",
        "roc_auc",
        "top_k_accuracy",
        "v_measure",
    ): (0, 1),
    ("r2", "explained_variance", "d2_", "adjusted_mutual_info"): (None, 1),
    ("neg_",): (None, 0),
    ("mutual_info", "positive_likelihood_ratio"): (0, None),
    ("matthews_corrcoef",): (-1, 1),
    ("adjusted_rand",): (-0.5, 1),
}
# The metrics of the estimators' own method `score`: for scikit-learn by function, and by name for
# CatBoost, which may be missing.
OWN: dict[Any, str] = {
    ClassifierMixin.score: "accuracy",
    KNeighborsClassifier.score: "accuracy",
    RadiusNeighborsClassifier.score: "accuracy",
    DummyClassifier.score: "accuracy",
    RegressorMixin.score: "r2",
    DummyRegressor.score: "r2",
}
OTHERS = {"CatBoostClassifier.score": "accuracy", "CatBoostRegressor.score": "r2"}
