"""`RaceSearchCV`: a race as a scikit-learn estimator."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from latebloomer.errors import AllFailed
from latebloomer.integrations.sklearn.candidates import checked, pairs_of, with_replaced
from latebloomer.integrations.sklearn.search_learners import Squad, data_of, runner_for
from latebloomer.integrations.sklearn.search_results import results_of
from latebloomer.integrations.sklearn.sklearn_learner import scorer_for
from latebloomer.racing.api import race, resume
from latebloomer.racing.runners.contract import Runner
from latebloomer.racing.verdict.verdict import Verdict

EACH = 40  # pulls per estimator where no budget is given


class NoneLearns(AllFailed, ValueError, TypeError):
    """Every estimator refused the data; the text has each one's reason."""


def _can(method: str) -> Callable[[Any], bool]:
    """Whether the best estimator (before `fit`: every one) has a method."""

    def check(self: Any) -> bool:
        if hasattr(self, "best_estimator_"):
            getattr(self.best_estimator_, method)
            return True
        return all(hasattr(estimator, method) for _, estimator in pairs_of(self.estimators))

    return check


class RaceSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Race estimators for one budget of training and become the best of them.

    Each pull trains one estimator a little more (`SklearnLearner`); those that fall behind are
    dropped, the others keep what they have learned. `budget` counts pulls over all estimators
    (40 for each if not given); `policy` is as in `race`. With `refit=True` the winner is then
    trained on to `horizon` pulls (the budget if not given) on all rows, those held out among them:
    `refit_pulls_` is what that cost on top. With `refit=False` it stays as the race trained it:
    `deliver=0.3` keeps that share of the budget for it.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {"bayes": GaussianNB(), "linear": SGDClassifier(alpha=10)}
    >>> search = RaceSearchCV(models, budget=40, batch=10, random_state=0).fit(X, y)
    >>> search.best_name_, search.results_["pulls"], search.refit_pulls_
    ('bayes', array([20, 20]), 20)
    >>> search.predict(X[:3])
    array([0, 0, 0])
    """

    def __init__(
        self,
        estimators: Any,
        *,
        budget: int | None = None,
        policy: Any = "auto",
        scoring: Any = None,
        validation: Any = 0.2,
        horizon: int | None = None,
        deliver: float = 0.0,
        refit: bool = True,
        batch: int = 64,
        step: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
        journal: Any = None,
        verbose: bool = False,
    ) -> None:
        self.estimators = estimators
        self.budget = budget
        self.policy = policy
        self.scoring = scoring
        self.validation = validation
        self.horizon = horizon
        self.deliver = deliver
        self.refit = refit
        self.batch = batch
        self.step = step
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.journal = journal
        self.verbose = verbose

    # --- settings, with those of the estimators by name ---

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings; with `deep` also `name` and `name__setting` of every estimator."""
        params: dict[str, Any] = super().get_params(deep=False)
        for name, estimator in pairs_of(self.estimators) if deep else []:
            params[name] = estimator
            if hasattr(estimator, "get_params") and not isinstance(estimator, type):
                inner = estimator.get_params(deep=True)
                params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> RaceSearchCV:
        """Set settings, whole estimators by name, or an estimator's by `name__setting`."""
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        for name in {name for name, _ in pairs_of(self.estimators)} & set(params):
            self.estimators = with_replaced(self.estimators, name, params.pop(name))
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(estimator) for _, estimator in pairs_of(self.estimators)]
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
        candidates = checked(self.estimators, set(self.get_params(deep=False)))
        runner = runner_for(self.n_jobs)
        X, y = data_of(X, y, self)
        squad = Squad(self, candidates, X, y)
        verdict = self._race(squad, runner)
        learner = verdict.learner
        self.refit_pulls_ = squad.train_on(verdict) if self.refit else 0
        self.best_name_ = verdict.name
        self.best_index_ = list(candidates).index(verdict.name)
        self.best_score_ = verdict.score
        self.best_estimator_ = squad.refitted.model if self.refit else learner.model
        self.scorer_ = scorer_for(self.best_estimator_, self.scoring)
        self.results_ = results_of(verdict, candidates, squad.how)
        self.verdict_ = replace(verdict, learner=None)
        return self

    def _race(self, squad: Squad, runner: str | Runner) -> Verdict:
        learners = {name: squad.factory(name) for name in squad.candidates}
        budget = EACH * len(learners) if self.budget is None else self.budget
        if self.journal is not None and Path(self.journal).exists():
            squad.must_be_mine(self.journal, budget)
            return resume(self.journal, learners, policy=self.policy, runner=runner,
                          progress=bool(self.verbose))  # fmt: skip
        try:
            return race(
                learners, budget, policy=self.policy, horizon=self.horizon, deliver=self.deliver,
                journal=self.journal, runner=runner, seed=squad.token, retries=0,
                progress=bool(self.verbose),
            )  # fmt: skip
        except AllFailed as error:
            if all(isinstance(e, ValueError | TypeError) for e in squad.errors.values()):
                raise NoneLearns(str(error)) from next(iter(squad.errors.values()), None)
            raise

    # --- the best estimator's methods ---

    @available_if(_can("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Predict with the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_can("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(_can("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of class probabilities by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(X)

    @available_if(_can("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """The best estimator's decision function."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    @available_if(_can("score"))  # type: ignore[untyped-decorator]
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
