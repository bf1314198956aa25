"""`RaceSearchCV` races estimators that you name, `RaceRandomSearchCV` many settings of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from sklearn.base import clone

from latebloomer.integrations.sklearn.base_search import BaseRaceSearch
from latebloomer.integrations.sklearn.candidates import (
    candidate_names,
    checked_estimators,
    drawn_iter,
    named_estimators,
    need_trainable,
    with_replaced,
)
from latebloomer.integrations.sklearn.scoring import Table, cv_results_table, results_table
from latebloomer.integrations.sklearn.search_race import SearchRace
from latebloomer.racing.verdict.verdict import Verdict


@dataclass(eq=False, repr=False)
class RaceSearchCV(BaseRaceSearch):
    """Race estimators under one budget and, by default, refit the best one on all rows.

    Each pull trains one estimator a little more (`SklearnLearner`); estimators that fall behind
    are dropped, the others keep what they have learned.

    Give one budget. `trainings=3` is worth three full trainings, by what each estimator declares
    (`max_iter` epochs, `n_estimators` trees, one pass over the rows): a pull is the same fraction
    of each. `seconds=600` is time. `budget=2000` counts pulls, each a batch of `batch` rows (64)
    or `step` trees. Default: half a training for each estimator, at least 2, and one for the
    refit.

    An estimator that trains in one step (k-nearest neighbors, a tree, a kernel machine) has one
    pull and has finished then. With `trainings` each costs one, which is deducted first.

    `refit=True` trains a fresh clone of the winner on all rows, as in scikit-learn. The budget
    pays for it, and its cost is reserved first: one full training, the time that the winner's
    steps take by the measured pace, or as many pulls as the winner had (`horizon`, if given).
    `extra_refit=True` spends it on top of the budget, and `refit_pulls_` is its cost. If the time
    is too short after all, the search warns and keeps the model of the race; `refit_kind_` is
    "refit" or "race". With `refit=False` the winner stays as the race trained it:
    `winner_share=0.3` reserves that share of the budget for it.

    With a journal, `fit` resumes the race that the file holds; a larger budget extends it, and
    more estimators join it.

    Parameters
    ----------
    estimators : Any
        A dict of names and estimators, a list of pairs, or bare estimators, named by their class.
    trainings : float | None
        Budget in full trainings.
    seconds : float | None
        Budget in seconds of wall-clock time.
    budget : int | None
        Budget in pulls.
    policy : Any
        Rule that decides which estimator trains next and which is dropped, as in `race`.
    scoring : Any
        Metric, as in scikit-learn; several need `refit`. Default: the estimators' own score.
    cv : Any
        Held-out rows: a share (0.2), a number of folds, a splitter, or splits.
    horizon : int | None
        Number of pulls per estimator at which estimators are compared, with `budget`.
    winner_share : float
        Fraction of the race's budget reserved for training the winner after it is selected.
    min_pulls : int
        Number of pulls every estimator gets before any can be dropped.
    pulls_per_training : int | None
        Number of pulls in a full training. Default: 20, up to 100 so that the budget is good for
        10 pulls of each, 100 with `seconds`; or the steps of the shortest training if these are
        fewer and at least 10.
    refit : bool | str | Callable[[Table], int]
        Whether to train the winner again on all rows; with several metrics, the name of the one
        that decides the race; or a function of the table of results that returns the row to keep.
    extra_refit : bool
        Whether the refit is on top of the budget.
    batch : int | None
        Rows of a step, for estimators with `partial_fit`.
    step : int
        Trees or iterations of a step, for the others.
    return_train_score : bool
        Whether to score the training rows as well, for the tables.
    random_state : Any
        Seed for data splits, row order and estimators.
    n_jobs : int | None
        Number of estimators trained at the same time, with Ray; -1 means all cores.
    journal : Any
        File that records every pull; `fit` resumes or extends the race that it holds. A
        `JournalFile` also says how checkpoints are written.
    verbose : bool
        Whether to show the race.
    watch : bool
        Whether to serve a live page of the race; needs a journal.
    callbacks : Any
        Functions called with every event, as in `race`.
    stop : str | None
        "certified" ends the race once its winner is certified.

    Raises
    ------
    LearnerError
        An estimator is a class, has no `fit`, or stops its training itself.
    NoneLearns
        In `fit`: every estimator refuses the data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {"bayes": GaussianNB(), "linear": SGDClassifier(alpha=10)}
    >>> search = RaceSearchCV(models, trainings=2, random_state=0).fit(X, y)
    >>> search.best_name_, search.verdict_.spent, search.refit_pulls_  # one training each
    ('bayes', 12, 12)
    >>> search.predict(X[:3])
    array([0, 0, 0])
    """

    estimators: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all settings; with `deep` also `name` and `name__setting` of every estimator."""
        params: dict[str, Any] = super().get_params(deep=False)
        for name, estimator in named_estimators(self.estimators) if deep else []:
            params[name] = estimator
            if hasattr(estimator, "get_params") and not isinstance(estimator, type):
                inner = estimator.get_params(deep=True)
                params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set settings, whole estimators by name, or an estimator's by `name__setting`."""
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        for name in {name for name, _ in named_estimators(self.estimators)} & set(params):
            self.estimators = with_replaced(self.estimators, name, params.pop(name))
        super().set_params(**params)
        return self

    def _given(self) -> dict[str, Any]:
        return dict(named_estimators(self.estimators))

    def _raced(self) -> dict[str, Any]:
        return checked_estimators(self.estimators, set(self.get_params(deep=False)))

    def _publish(self, verdict: Verdict, raced: SearchRace) -> Table:
        self.results_ = results_table(verdict, raced)
        return self.results_

    @property
    def best_name_(self) -> str:
        """Name of the best estimator."""
        return str(self.results_["name"][self.best_index_])

    @property
    def best_params_(self) -> dict[str, Any]:
        """Name of the best estimator, and its settings."""
        return {"name": self.best_name_, **self.results_["params"][self.best_index_]}


@dataclass(eq=False, repr=False)
class RaceRandomSearchCV(BaseRaceSearch):
    """Race many settings of one estimator under one budget and refit the best one.

    As scikit-learn's `RandomizedSearchCV` and `HalvingRandomSearchCV`, but by iterations, and each
    candidate continues from where it was instead of starting again. From lists alone candidates
    are drawn without repetition, and `n_iter="all"` is the whole grid.

    The budget and the refit are as in `RaceSearchCV`. `cv_results_` has a row for each candidate:
    `rank_test_score` (1 for the winner, then the candidates that stayed to the end, then by the
    level at which they were dropped), `n_resources` (steps of training: epochs, trees),
    `dropped_at` (the level, in the candidate's own pulls; nan for those that stayed).
    `mean_test_score` is the latest score of each, so compare scores within one level.

    Parameters
    ----------
    estimator : Any
        A scikit-learn estimator or pipeline.
    param_distributions : Any
        A dict of settings and lists or distributions, or a list of such dicts.
    n_iter : int | str
        Number of candidates to draw, or "all" of a grid.
    trainings : float | None
        Budget in full trainings.
    seconds : float | None
        Budget in seconds of wall-clock time.
    budget : int | None
        Budget in pulls.
    policy : Any
        Rule that decides which candidate trains next and which is dropped, as in `race`.
    scoring : Any
        Metric, as in scikit-learn; several need `refit`. Default: the estimator's own score.
    cv : Any
        Held-out rows: a share (0.2), a number of folds, a splitter, or splits.
    horizon : int | None
        Number of pulls per candidate at which candidates are compared, with `budget`.
    winner_share : float
        Fraction of the race's budget reserved for training the winner after it is selected.
    min_pulls : int
        Number of pulls every candidate gets before any can be dropped.
    pulls_per_training : int | None
        Number of pulls in a full training. Default: 20, up to 100 so that the budget is good for
        10 pulls of each, 100 with `seconds`; or the steps of the shortest training if these are
        fewer and at least 10.
    refit : bool | str | Callable[[Table], int]
        Whether to train the winner again on all rows; with several metrics, the name of the one
        that decides the race; or a function of the table of results that returns the row to keep.
    extra_refit : bool
        Whether the refit is on top of the budget.
    batch : int | None
        Rows of a step, for estimators with `partial_fit`.
    step : int
        Trees or iterations of a step, for the others.
    return_train_score : bool
        Whether to score the training rows as well, for the tables.
    random_state : Any
        Seed for candidates, data splits, row order and estimators.
    n_jobs : int | None
        Number of candidates trained at the same time, with Ray; -1 means all cores.
    journal : Any
        File that records every pull; `fit` resumes or extends the race that it holds. A
        `JournalFile` also says how checkpoints are written.
    verbose : bool
        Whether to show the race.
    watch : bool
        Whether to serve a live page of the race; needs a journal.
    callbacks : Any
        Functions called with every event, as in `race`.
    stop : str | None
        "certified" ends the race once its winner is certified.

    Raises
    ------
    LearnerError
        The estimator is a class, has no `fit`, or stops its training itself.
    NoneLearns
        In `fit`: every candidate refuses the data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import SGDClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"alpha": [1e-4, 1e-2, 100], "penalty": ["l2", "l1"]}
    >>> search = RaceRandomSearchCV(
    ...     SGDClassifier(max_iter=50), grid, n_iter="all", trainings=3, random_state=0
    ... ).fit(X, y)
    >>> search.best_params_["alpha"] < 100, search.cv_results_["rank_test_score"].min()
    (True, np.int64(1))
    """

    estimator: Any
    param_distributions: Any
    n_iter: int | str = 10

    def _given(self) -> dict[str, Any]:
        return {"estimator": self.estimator}

    def _raced(self) -> dict[str, Any]:
        need_trainable("estimator", self.estimator)
        self._candidates = drawn_iter(
            self.estimator, self.param_distributions, self.n_iter, self.random_state
        )
        made = [
            clone(self.estimator).set_params(**clone(params, safe=False))
            for params in self._candidates
        ]
        return dict(zip(candidate_names(self._candidates), made, strict=True))

    def _publish(self, verdict: Verdict, raced: SearchRace) -> Table:
        self.cv_results_ = cv_results_table(verdict, raced, self._candidates)
        return self.cv_results_

    @property
    def best_params_(self) -> dict[str, Any]:
        """Settings of the best candidate."""
        return dict(self.cv_results_["params"][self.best_index_])
