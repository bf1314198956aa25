"""What a search scores by, what it keeps of scores, and its tables of results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer_names

from latebloomer._util.text import brief
from latebloomer.errors import SettingError, require, unknown
from latebloomer.integrations.sklearn.training import FoldModel, Scorer, last_step
from latebloomer.session.events import FAILED

if TYPE_CHECKING:
    from latebloomer.integrations.sklearn.search_race import SearchRace
    from latebloomer.racing.verdict.verdict import Verdict

ONE = "score"  # what a metric is called if there is no other
FoldScores: TypeAlias = dict[str, list[float]]  # by fold, of "test_accuracy" and others
Table: TypeAlias = dict[str, Any]
Range: TypeAlias = tuple[float | None, float | None]


class Metrics(NamedTuple):
    """The metrics of a search or a learner, checked."""

    scoring: Any  # as given, or a dict of them if there are several
    leading: str = ONE  # the metric that decides the race
    train: bool = False  # whether training rows are scored too

    def scorer(self, estimator: Any) -> Scorer:
        """Return what scores an estimator; with several metrics it returns a dict."""
        return check_scoring(last_step(estimator), scoring=self.scoring)

    @property
    def _whole(self) -> bool:
        """True if a function of the user's scores, which may look at a pipeline's own rows."""
        several = isinstance(self.scoring, dict)
        given = self.scoring.values() if several else [self.scoring]
        return any(callable(one) and not _is_sklearns(one) for one in given)

    def scorers(self, estimator: Any) -> Any:
        """Return the value of `scorer_`: the scorer, or a dict of them."""
        if isinstance(self.scoring, dict):
            return {name: Metrics(one).scorer(estimator) for name, one in self.scoring.items()}
        return self.scorer(estimator)

    def scores(self, scorer: Scorer, models: Sequence[FoldModel]) -> FoldScores:
        """Return the scores of each metric by fold."""
        found = FoldScores()
        for rows in ("test", "train")[: 1 + self.train]:
            scored = [model.score(scorer, rows == "train", self._whole) for model in models]
            if not isinstance(scored[0], Mapping):
                scored = [{ONE: one} for one in scored]
            if self.leading not in scored[0]:
                said = f"scoring returns {', '.join(map(repr, scored[0]))}"
                raise SettingError(f"{said}, but one must decide the race: name it with refit=")
            found |= {f"{rows}_{name}": [float(one[name]) for one in scored] for name in scored[0]}
        return found

    def range_of(self, estimator: Any) -> Range | None:
        """Return the lowest and highest possible score (None: an open end); None if not known.

        >>> from sklearn.linear_model import SGDClassifier, SGDRegressor
        >>> Metrics(None).range_of(SGDClassifier()), Metrics("r2").range_of(SGDRegressor())
        ((0, 1), (None, 1))
        """
        one = self.scoring[self.leading] if isinstance(self.scoring, dict) else self.scoring
        if one is None:
            one = OWN.get(getattr(type(last_step(estimator)), "score", None))
        if not isinstance(one, str):
            return None
        return next((found for names, found in RANGES.items() if one.startswith(names)), None)


def _is_sklearns(scorer: Any) -> bool:
    return type(scorer).__module__.startswith("sklearn.")  # such as what make_scorer returns


def metrics_of(search: Any) -> Metrics:
    """Return the metrics of a search by its settings, checked.

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
        require(all(isinstance(one, str) for one in scoring), "scoring", scoring,
                "metrics' names", "a function needs one, as {'mine': function}")  # fmt: skip
        scoring = {one: one for one in scoring}
    if isinstance(scoring, Mapping):
        named = {name: need_scoring(one) for name, one in scoring.items()}
        leading = next(iter(named), "") if callable(refit) else refit
        if isinstance(leading, bool) or leading not in named:
            said = f"refit={brief(refit)} with {len(named)} metrics, but one of them must decide"
            needed = " or ".join(map(repr, named)) or "the name of one"
            raise SettingError(f"{said} the race: refit must be {needed}")
        return Metrics(named, leading, train)
    need_scoring(scoring)
    if isinstance(refit, str) and callable(scoring):  # it may return a dict
        return Metrics(scoring, refit, train)
    require(isinstance(refit, bool | np.bool_) or callable(refit), "refit", refit,
            "True, False or a function of the results that returns the best index",
            "a name is for several metrics, as scoring=['accuracy', 'f1'], refit='f1'; "
            "extra_refit=True spends the refit on top of the budget")  # fmt: skip
    return Metrics(scoring, ONE, train)


def need_scoring(scoring: Any) -> Any:
    """Return one metric, or raise an error unless it is a name, a function or None."""
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        raise unknown("scoring", scoring, get_scorer_names())
    require(scoring is None or isinstance(scoring, str) or callable(scoring), "scoring", scoring,
            "one metric's name, a function of (estimator, X, y), or None",
            "a race has one winner")  # fmt: skip
    return scoring


# Lowest and highest values of scikit-learn's metrics, by how their names begin.
RANGES: dict[tuple[str, ...], Range] = {
    ("accuracy", "average_precision", "balanced_accuracy", "completeness", "f1", "fowlkes_mallows",
     "homogeneity", "jaccard", "normalized_mutual_info", "precision", "rand_score", "recall",
     "roc_auc", "top_k_accuracy", "v_measure"): (0, 1),
    ("r2", "explained_variance", "d2_", "adjusted_mutual_info"): (None, 1),
    ("neg_",): (None, 0),
    ("mutual_info", "positive_likelihood_ratio"): (0, None),
    ("matthews_corrcoef",): (-1, 1),
    ("adjusted_rand",): (-0.5, 1),
}  # fmt: skip
OWN: dict[Any, str] = {ClassifierMixin.score: "accuracy", RegressorMixin.score: "r2"}


class Notes:
    """What a search keeps of one candidate: its latest scores by fold.

    They are also in a file, if one is given: a candidate may train in another process, or in
    a race that is resumed.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._scores = file, FoldScores()

    @property
    def scores(self) -> FoldScores:
        """The latest scores of each metric by fold; empty if none are known."""
        if not self._scores and self._file is not None and self._file.exists():
            self._scores = json.loads(self._file.read_text(encoding="utf-8"))
        return self._scores

    @scores.setter
    def scores(self, scores: FoldScores) -> None:
        self._scores = scores
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps(scores), encoding="utf-8")


# --- tables: `results_` in the terms of a race, `cv_results_` in those of scikit-learn ---

COLUMNS = ("pulls", "score", "estimate", "lower", "upper", "state", "left_at", "why", "seconds")


def results_table(verdict: Verdict, raced: SearchRace) -> Table:
    """Return `results_`: one row per estimator, in the order given."""
    names, arms = list(raced.estimators), [verdict[name] for name in raced.estimators]
    table: Table = {"name": np.array(names, dtype=object), **_columns(arms, COLUMNS)}
    table["rank"] = _ranks(verdict, names)
    table["how"] = np.array([raced.examples[name].how for name in names], dtype=object)
    table["params"] = np.array([raced.estimators[name].get_params() for name in names], object)
    return table | _score_columns(verdict, raced)


def cv_results_table(verdict: Verdict, raced: SearchRace, params: list[dict[str, Any]]) -> Table:
    """Return `cv_results_`: one row per candidate, in the order drawn.

    `n_resources` is the number of steps it was trained, `dropped_at` the level (its own pulls) at
    which it was dropped, nan if it was not. `mean_fit_time` includes scoring.
    """
    names, arms = list(raced.estimators), [verdict[name] for name in raced.estimators]
    steps = [arm.pulls if arm.steps is None else arm.steps for arm in arms]
    out = [np.nan if arm.left_at is None else float(arm.pulls) for arm in arms]
    table: Table = {"mean_fit_time": np.array([arm.seconds for arm in arms]) / raced.n_splits}
    table |= _param_columns(params) | {"params": params} | _score_columns(verdict, raced)
    table[f"rank_test_{raced.metrics.leading}"] = _ranks(verdict, names)
    table |= {"n_resources": np.array(steps), "dropped_at": np.array(out)}
    return table | _columns(arms, ("state", "why"))


def _columns(arms: list[Any], names: Iterable[str]) -> Table:
    return {name: np.array([getattr(arm, name) for arm in arms]) for name in names}


def _param_columns(params: list[dict[str, Any]]) -> Table:
    """Return a masked column for each setting: a candidate may not have it."""
    columns: Table = {}
    for name in dict.fromkeys(name for one in params for name in one):
        kinds = {type(one[name]) for one in params if name in one}
        plain = kinds <= {int, float, np.int64, np.float64} and len(kinds) == 1
        empty = np.empty(len(params), dtype=kinds.pop() if plain else object)
        column = np.ma.MaskedArray(empty, mask=True)
        for row, one in enumerate(params):
            if name in one:
                column[row] = one[name]
        columns[f"param_{name}"] = column
    return columns


def _score_columns(verdict: Verdict, raced: SearchRace) -> Table:
    """Return the latest score by fold, their mean and spread for each metric; nan without any."""
    names, leading = list(raced.estimators), f"test_{raced.metrics.leading}"
    noted = [raced.notes[name].scores for name in names]
    nothing = [np.nan] * raced.n_splits
    columns: Table = {}
    for metric in dict.fromkeys([leading, *(metric for one in noted for metric in one)]):
        folds = np.array([one.get(metric, nothing) for one in noted])
        for number, scores in enumerate(folds.T):
            columns[f"split{number}_{metric}"] = scores
        columns[f"mean_{metric}"] = folds.mean(axis=1)
        columns[f"std_{metric}"] = folds.std(axis=1)
    # The score that decided the race, whatever became of the folder in which scores are kept.
    columns[f"mean_{leading}"] = np.array([verdict[name].score for name in names])
    return columns


def _ranks(verdict: Verdict, names: list[str]) -> np.ndarray[Any, Any]:
    """Return 1 for the winner, then by how long each stayed and by estimate; failed ones last."""

    def merit(name: str) -> tuple[bool, bool, float, float]:
        arm = verdict[name]
        stayed = np.inf if arm.left_at is None else float(arm.left_at)
        estimate = np.nan_to_num(arm.estimate, nan=-np.inf)
        return (name == verdict.name, arm.state != FAILED, stayed, estimate)

    order = sorted(names, key=merit, reverse=True)
    return np.array([order.index(name) + 1 for name in names])
