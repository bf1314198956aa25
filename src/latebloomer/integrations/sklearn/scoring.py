"""What a search scores by: the metric that decides the race, and others that are only recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer_names

from latebloomer._util.text import brief
from latebloomer.errors import SettingError, require, unknown
from latebloomer.integrations.sklearn.training import Scorer, last_step

ONE = "score"  # what a metric is called if there is no other
FoldScores: TypeAlias = dict[str, list[float]]  # the scores of each metric, by fold
Range: TypeAlias = tuple[float | None, float | None]


def scorer_for(estimator: Any, scoring: Any) -> Scorer:
    """Return what scores an estimator: its own `score`, a metric by name, or a function."""
    if scoring is not None:
        need_scoring(scoring)
    return check_scoring(estimator, scoring=scoring)


def need_scoring(scoring: Any) -> None:
    """Raise an error unless something is a metric's name or a function."""
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        raise unknown("scoring", scoring, get_scorer_names())
    if not isinstance(scoring, str) and not callable(scoring):
        raise SettingError(
            f"scoring={brief(scoring)}, but scoring must be one metric's name, a function of "
            "(estimator, X, y), or None: a race has one winner"
        )


SHARES = ("accuracy", "precision", "recall", "f1", "jaccard", "roc_auc")  # metrics from 0 to 1


def score_range_of(estimator: Any, scoring: Any) -> Range | None:
    """Return the lowest and highest possible score; None if not known, or for an open end.

    >>> from sklearn.linear_model import SGDClassifier, SGDRegressor
    >>> score_range_of(SGDClassifier(), None), score_range_of(SGDRegressor(), "r2")
    ((0, 1), (None, 1))
    """
    if scoring is None:
        own = getattr(type(last_step(estimator)), "score", None)
        if own is ClassifierMixin.score:
            return 0, 1
        return (None, 1) if own is RegressorMixin.score else None
    if not isinstance(scoring, str):
        return None
    if scoring.startswith("neg_"):
        return None, 0
    if any(name in scoring for name in SHARES):
        return 0, 1
    return (None, 1) if scoring in ("r2", "explained_variance") else None


class Metrics(NamedTuple):
    """The metrics of a search."""

    scoring: Any  # as given, or a dict of them if there are several
    leading: str  # the metric that decides the race

    @property
    def several(self) -> bool:
        """True if there are several metrics, as far as it is known before they are computed."""
        return isinstance(self.scoring, dict)

    def scorer(self, estimator: Any) -> Scorer:
        """Return what scores an estimator; with several metrics it returns a dict."""
        if self.several:
            return check_scoring(estimator, scoring=self.scoring)
        return scorer_for(estimator, self.scoring)

    def scorers(self, estimator: Any) -> Any:
        """Return the value of `scorer_`: the scorer, or a dict of them."""
        if self.several:
            return {name: scorer_for(estimator, one) for name, one in self.scoring.items()}
        return scorer_for(estimator, self.scoring)

    def range_of(self, estimator: Any) -> Range | None:
        """Return the range of the leading metric, if it is known."""
        leading = self.scoring[self.leading] if self.several else self.scoring
        return score_range_of(estimator, leading)

    def by_fold(self, scored: list[Any]) -> FoldScores:
        """Return the scores by metric, from what a scorer returned for each fold."""
        if not isinstance(scored[0], Mapping):
            return {ONE: [float(one) for one in scored]}
        if self.leading not in scored[0]:
            raise SettingError(
                f"scoring returns {', '.join(map(repr, scored[0]))}, but one of them must decide "
                f"the race: name it, as refit={next(iter(scored[0]), 'accuracy')!r}"
            )
        return {name: [float(one[name]) for one in scored] for name in scored[0]}


def metrics_of(scoring: Any, refit: Any) -> Metrics:
    """Return the metrics of a search by its settings, checked.

    >>> metrics_of(["accuracy", "f1"], "f1")
    Metrics(scoring={'accuracy': 'accuracy', 'f1': 'f1'}, leading='f1')
    >>> metrics_of(["accuracy", "f1"], True)
    Traceback (most recent call last):
    latebloomer.errors.SettingError: refit=True with 2 metrics, but one of them must decide ...
    """
    if isinstance(scoring, list | tuple | set | Mapping):
        named = dict(scoring) if isinstance(scoring, Mapping) else _named(scoring)
        for one in named.values():
            need_scoring(one)
        if refit not in named or isinstance(refit, bool):
            raise SettingError(
                f"refit={brief(refit)} with {len(named)} metrics, but one of them must decide the "
                f"race: refit must be {' or '.join(map(repr, named)) or 'the name of one'}"
            )
        return Metrics(named, refit)
    if scoring is not None:
        need_scoring(scoring)
    if isinstance(refit, str) and callable(scoring):  # it may return a dict
        return Metrics(scoring, refit)
    require(isinstance(refit, bool | np.bool_), "refit", refit, "True or False",
            "a name is for several metrics, as scoring=['accuracy', 'f1'], refit='f1'; "
            "extra_refit=True spends the refit on top of the budget")  # fmt: skip
    return Metrics(scoring, ONE)


def _named(scoring: Any) -> dict[str, Any]:
    for one in scoring:
        if not isinstance(one, str):
            raise SettingError(
                f"scoring has {brief(one)}, but a list must have metrics' names: a function needs "
                "one, as scoring={'mine': function}"
            )
    return {one: one for one in scoring}


class Notes:
    """What a search keeps of one candidate: its latest scores by fold, and its error.

    The scores are also in a file, if one is given: a candidate may train in another process, or in
    a race that is resumed.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._scores = file, FoldScores()
        self.error: Exception | None = None

    @property
    def scores(self) -> FoldScores:
        """The latest scores of each metric by fold; empty if none are known."""
        if not self._scores and self._file is not None and self._file.exists():
            self._scores = json.loads(self._file.read_text(encoding="utf-8"))
        return self._scores

    def note(self, scores: FoldScores) -> None:
        """Keep the scores of a pull."""
        self._scores = scores
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps(scores), encoding="utf-8")
