"""`RaceSearchCV`: a race as a scikit-learn estimator."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from latebloomer.errors import AllFailed
from latebloomer.integrations.sklearn.search_budget import (
    EXTRA,
    SearchBudget,
    refit_steps,
    search_budget,
)
from latebloomer.integrations.sklearn.search_learners import (
    SearchLearners,
    checked_data,
    checked_estimators,
    named_estimators,
    runner_for,
    with_replaced,
)
from latebloomer.integrations.sklearn.sklearn_learner import batch_rows, scorer_for
from latebloomer.racing.api import race, resume
from latebloomer.racing.runners.contract import Runner
from latebloomer.racing.training_share import Share
from latebloomer.racing.verdict.verdict import Verdict

BATCH = 64  # rows of a pull, where pulls are counted
COLUMNS = ["pulls", "score", "estimate", "lower", "upper", "state", "out_at", "why", "seconds"]


class NoneLearns(AllFailed, ValueError, TypeError):
    """Every estimator refused the data; the text has each one's reason."""


def _best_has(method: str) -> Callable[[Any], bool]:
    """Whether the best estimator (before `fit`: every one) has a method."""

    def check(self: Any) -> bool:
        if hasattr(self, "best_estimator_"):
            getattr(self.best_estimator_, method)
            return True
        return all(
            hasattr(estimator, method) for _, estimator in named_estimators(self.estimators)
        )

    return check


class RaceSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Race estimators for one budget of training and become the best of them.

    Each pull trains one estimator a little more (`SklearnLearner`); those that fall behind are
    dropped, the others keep what they have learned.

    There is one budget. `trainings=3` is worth three full trainings, by what each estimator
    declares (`max_iter` epochs, `n_estimators` trees, one pass over the rows): a pull is the same
    share of each. `seconds=600` is time. `budget=2000` counts pulls, each a batch of `batch` rows
    (64) or `step` trees. Without any of them it is half a training for each estimator, 2 at least,
    and one for the refit.

    `refit=True` trains a fresh clone of the winner on all rows, as in scikit-learn, and what that
    takes is set aside from the budget first: one full training, a third of the time, or as many
    pulls as the winner had (`horizon`, where given). `refit="extra"` spends it on top, and
    `refit_pulls_` says how much. With `refit=False` the winner stays as the race trained it:
    `deliver=0.3` keeps that share of the budget for it.

    `policy`, `grace`, `stop` and `callbacks` are as in `race`; scores with a known range (an
    accuracy, an R2) are certified within it. `checkpoint_format` and `trusted` are as in
    `SklearnLearner`.

    Parameters
    ----------
    estimators : Any
        A dict of names and estimators, a list of pairs, or bare estimators, named by their class.
    trainings : float | None
        The budget in full trainings.
    seconds : float | None
        The budget in time.
    budget : int | None
        The budget in pulls.
    policy : Any
        As in `race`.
    scoring : Any
        As in scikit-learn; the estimator's own score if None.
    validation : Any
        The share of rows held out, a number of folds, or a splitter.
    horizon : int | None
        The pull at which estimators are compared.
    deliver : float
        The share of the race's budget to train the best on.
    grace : int
        As in `race`.
    refit : bool | str
        True, False or "extra": see above.
    batch : int | None
        Rows of a step for estimators with `partial_fit`.
    step : int
        Trees or iterations of a step.
    random_state : Any
        Of splits, orders and estimators.
    n_jobs : int | None
        Estimators trained at once, with Ray.
    journal : Any
        A file for every pull; `fit` goes on with it.
    checkpoint_format : str
        As in `SklearnLearner`.
    trusted : Any
        As in `SklearnLearner`.
    verbose : bool
        Whether the race is shown.
    callbacks : Any
        As in `race`.
    stop : str | None
        As in `race`.

    Raises
    ------
    LearnerError
        An estimator has no way to be trained step by step.
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

    def __init__(
        self,
        estimators: Any,
        *,
        trainings: float | None = None,
        seconds: float | None = None,
        budget: int | None = None,
        policy: Any = "auto",
        scoring: Any = None,
        validation: Any = 0.2,
        horizon: int | None = None,
        deliver: float = 0.0,
        grace: int = 1,
        refit: bool | str = True,
        batch: int | None = None,
        step: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
        journal: Any = None,
        checkpoint_format: str = "pickle",
        trusted: Any = None,
        verbose: bool = False,
        callbacks: Any = None,
        stop: str | None = None,
    ) -> None:
        self.estimators = estimators
        self.trainings = trainings
        self.seconds = seconds
        self.budget = budget
        self.policy = policy
        self.scoring = scoring
        self.validation = validation
        self.horizon = horizon
        self.deliver = deliver
        self.grace = grace
        self.refit = refit
        self.batch = batch
        self.step = step
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.journal = journal
        self.checkpoint_format = checkpoint_format
        self.trusted = trusted
        self.verbose = verbose
        self.callbacks = callbacks
        self.stop = stop

    # --- settings, with those of the estimators by name ---

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings; with `deep` also `name` and `name__setting` of every estimator."""
        params: dict[str, Any] = super().get_params(deep=False)
        for name, estimator in named_estimators(self.estimators) if deep else []:
            params[name] = estimator
            if hasattr(estimator, "get_params") and not isinstance(estimator, type):
                inner = estimator.get_params(deep=True)
                params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> RaceSearchCV:
        """Set settings, whole estimators by name, or an estimator's by `name__setting`."""
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        for name in {name for name, _ in named_estimators(self.estimators)} & set(params):
            self.estimators = with_replaced(self.estimators, name, params.pop(name))
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(estimator) for _, estimator in named_estimators(self.estimators)]
        if inner:
            # One that cannot take the data is out; the race goes on with those that can.
            for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
                setattr(tags, name, copy.deepcopy(getattr(inner[0], name)))
            tags.input_tags.sparse = any(one.input_tags.sparse for one in inner)
            tags.input_tags.allow_nan = any(one.input_tags.allow_nan for one in inner)
            tags.non_deterministic = any(one.non_deterministic for one in inner)
        return tags

    # --- the race ---

    def fit(self, X: Any, y: Any = None) -> RaceSearchCV:
        """Race, then train the winner on to the horizon where `refit` says so."""
        estimators = checked_estimators(self.estimators, set(self.get_params(deep=False)))
        runner = runner_for(self.n_jobs)
        X, y = checked_data(X, y, is_classifier(self))
        learners = SearchLearners(self, estimators, X, y)
        pulls_in_words = learners.pulls_in_words()
        budget = search_budget(self, learners.full)
        if self.verbose and budget.said:
            print(budget.said, file=sys.stderr)
        verdict = self._race(learners, runner, budget)
        best = self._refit(learners, verdict, budget) if self.refit else verdict.learner
        self.best_name_ = verdict.name
        self.best_index_ = list(estimators).index(verdict.name)
        self.best_score_ = verdict.score
        self.best_estimator_ = best.model
        self.scorer_ = scorer_for(self.best_estimator_, self.scoring)
        self.results_ = results_table(verdict, estimators, pulls_in_words)
        self.verdict_ = replace(verdict, learner=None)
        return self

    def batch_rows(self) -> int | None:
        """Rows of a batch; None where a pull is a share of a full training."""
        if self.batch is None:
            return None if self.budget is None else BATCH
        return batch_rows(self.batch)

    def _refit(self, learners: SearchLearners, verdict: Verdict, budget: SearchBudget) -> Any:
        """A fresh clone of the winner, trained on all rows with what was set aside for that."""
        name, one = verdict.name, verdict.settings["pulls_per_training"]
        share = Share(learners.full[name], one) if budget.by_trainings else None
        steps = refit_steps(self, budget, share, verdict.horizon, verdict[name].pulls)
        seconds = budget.aside if self.seconds is not None and self.refit is True else inf
        made = learners.refit(name, steps, seconds)
        self.refit_pulls_ = made.steps if share is None else round(made.steps * one / share.full)
        if self.verbose and self.refit == EXTRA:
            print(f"refitted {name} on all rows: {self.refit_pulls_} pulls", file=sys.stderr)
        return made

    def _race(
        self, learners: SearchLearners, runner: str | Runner, budget: SearchBudget
    ) -> Verdict:
        made, progress = learners.factories(), bool(self.verbose)
        self.refit_pulls_ = 0
        if self.journal is not None and Path(self.journal).exists():
            learners.need_own_journal(self.journal, budget.race)
            return resume(
                self.journal, made, policy=self.policy, runner=runner, progress=progress,
                callbacks=self.callbacks,
            )  # fmt: skip
        try:
            return race(
                made, **budget.race, policy=self.policy, deliver=self.deliver,
                grace=self.grace, journal=self.journal, runner=runner, seed=learners.fingerprint,
                retries=0, progress=progress, callbacks=self.callbacks,
                score_range=learners.score_range, stop=self.stop,
            )  # fmt: skip
        except AllFailed as error:
            reasons = list(learners.errors.values())
            if all(isinstance(reason, ValueError | TypeError) for reason in reasons):
                raise NoneLearns(str(error)) from next(iter(reasons), None)
            raise

    # --- the best estimator's methods ---

    @available_if(_best_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Predict with the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_best_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(_best_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of class probabilities by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(X)

    @available_if(_best_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """The best estimator's decision function."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    @available_if(_best_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None) -> float:
        """The score of the best estimator, by `scoring`."""
        check_is_fitted(self)
        return float(self.scorer_(self.best_estimator_, X, y))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    @property
    def classes_(self) -> Any:
        """The classes, of classifiers."""
        return self._of_best("classes_")

    @property
    def n_features_in_(self) -> int:
        """The number of columns in `fit`."""
        return self._of_best("n_features_in_")

    @property
    def feature_names_in_(self) -> Any:
        """The names of the columns in `fit`, where they had any."""
        return self._of_best("feature_names_in_")

    def _of_best(self, name: str) -> Any:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{name} is known after fit: call fit(X, y) first")
        return getattr(self.best_estimator_, name)


def results_table(
    verdict: Verdict, estimators: dict[str, Any], pulls_in_words: dict[str, str]
) -> dict[str, np.ndarray[Any, Any]]:
    """`results_`: one row per estimator, in the order given."""
    arms = [verdict[name] for name in estimators]
    table = {"name": np.array(list(estimators), dtype=object)}
    for column in COLUMNS:
        values = [getattr(arm, column) for arm in arms]
        plain = all(isinstance(value, int | float) for value in values)
        table[column] = np.array(values, dtype=None if plain else object)
    table["rank"] = _ranks(verdict, list(estimators))
    table["how"] = np.array([pulls_in_words[name] for name in estimators], dtype=object)
    table["params"] = np.array([e.get_params() for e in estimators.values()], dtype=object)
    return table


def _ranks(verdict: Verdict, names: list[str]) -> np.ndarray[Any, Any]:
    """1 for the winner; then who stayed longer, then who was estimated higher."""

    def merit(name: str) -> tuple[bool, float, float]:
        arm = verdict[name]
        stayed = np.inf if arm.out_at is None else float(arm.out_at)
        return (name == verdict.name, stayed, np.nan_to_num(arm.estimate, nan=-np.inf))

    order = sorted(names, key=merit, reverse=True)
    return np.array([order.index(name) + 1 for name in names])
