"""What searches that race have in common: one `fit`, and the best estimator's methods."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from latebloomer.errors import AllFailed
from latebloomer.integrations.sklearn.fit_params import (
    RoutedParams,
    routed_params,
    router_for,
    score_params,
)
from latebloomer.integrations.sklearn.fit_tasks import (
    CallbackSupportMixin,
    FitTasks,
    with_callbacks,
)
from latebloomer.integrations.sklearn.search_budget import (
    SearchBudget,
    refit_is_inside,
    refit_steps,
    search_budget,
)
from latebloomer.integrations.sklearn.search_learners import (
    SearchLearners,
    checked_data,
    runner_for,
)
from latebloomer.integrations.sklearn.search_scoring import ONE, metrics_of
from latebloomer.integrations.sklearn.sklearn_learner import batch_rows
from latebloomer.integrations.sklearn.training import last_step
from latebloomer.racing.api import race, resume
from latebloomer.racing.journal.names import names_folder
from latebloomer.racing.live_display import print_aside
from latebloomer.racing.runners.contract import Runner
from latebloomer.racing.training_share import Share
from latebloomer.racing.verdict.verdict import Verdict

BATCH = 64  # rows of a pull, where pulls are counted


class NoneLearns(AllFailed, ValueError, TypeError):
    """Every estimator refused the data; the text has each one's reason."""


def _best_has(method: str) -> Callable[[Any], bool]:
    """Whether the best estimator (before `fit`: every one) has a method."""

    def check(self: Any) -> bool:
        if hasattr(self, "best_estimator_"):
            getattr(self.best_estimator_, method)
            return True
        return all(hasattr(estimator, method) for estimator in self._given().values())

    return check


class BaseRaceSearch(CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A race as a scikit-learn estimator."""

    @abstractmethod
    def __init__(
        self,
        *,
        trainings: float | None,
        seconds: float | None,
        budget: int | None,
        policy: Any,
        scoring: Any,
        cv: Any,
        horizon: int | None,
        winner_share: float,
        min_pulls: int,
        refit: bool | str,
        extra_refit: bool,
        batch: int | None,
        step: int,
        random_state: Any,
        n_jobs: int | None,
        journal: Any,
        checkpoint_format: str,
        trusted: Any,
        verbose: bool,
        callbacks: Any,
        stop: str | None,
    ) -> None:
        self.trainings = trainings
        self.seconds = seconds
        self.budget = budget
        self.policy = policy
        self.scoring = scoring
        self.cv = cv
        self.horizon = horizon
        self.winner_share = winner_share
        self.min_pulls = min_pulls
        self.refit = refit
        self.extra_refit = extra_refit
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

    @abstractmethod
    def _given(self) -> dict[str, Any]:
        """The estimators that were given, by name, as they are."""

    @abstractmethod
    def _raced(self) -> dict[str, Any]:
        """What races, by name, checked."""

    @abstractmethod
    def _publish(self, verdict: Verdict, learners: SearchLearners) -> None:
        """Set the attributes that are the search's own."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(estimator) for estimator in self._given().values()]
        if inner:
            # One that cannot take the data is out; the race goes on with those that can.
            for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
                setattr(tags, name, copy.deepcopy(getattr(inner[0], name)))
            tags.input_tags.sparse = any(one.input_tags.sparse for one in inner)
            tags.input_tags.allow_nan = any(one.input_tags.allow_nan for one in inner)
            tags.non_deterministic = any(one.non_deterministic for one in inner)
        return tags

    def get_metadata_routing(self) -> Any:
        """What `fit` and `score` pass on, and to whom, for scikit-learn's metadata routing."""
        return router_for(self, self._given(), self._first_scorer(), self.cv)

    def _first_scorer(self) -> Any:
        first = last_step(next(iter(self._given().values())))
        return metrics_of(self.scoring, self.refit).scorer(first)

    def _routed(self, params: Any, raced: Any, X: Any) -> RoutedParams:
        """Who gets what; settings of one estimator all get what that asks for."""
        given = self._given()
        routes = {name: name if name in given else next(iter(given)) for name in raced}
        return routed_params(self, params, routes, self._first_scorer(), X)

    # --- the race ---

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Race, then refit the winner on all rows where `refit` says so.

        `params` are passed on as in scikit-learn's searches: `sample_weight`, `groups` for the
        splitter, and by metadata routing where that is switched on.
        """
        raced, runner = self._raced(), runner_for(self.n_jobs)
        metrics = metrics_of(self.scoring, self.refit)
        X, y = checked_data(self, X, y)
        learners = SearchLearners(self, raced, metrics, X, y, self._routed(params, raced, X))
        budget = search_budget(self, learners.full_steps)
        if self.verbose and budget.said:
            print_aside(budget.said)
        tasks = FitTasks(self, X, y)
        verdict = self._race(learners, runner, budget, tasks)
        best = verdict.learner
        if self.refit:
            best = tasks.refit(lambda: self._refit(learners, verdict, budget))
        self._become(best.model, verdict, learners)
        tasks.end()
        return self

    def _become(self, best: Any, verdict: Verdict, learners: SearchLearners) -> None:
        """Set what a fitted search has."""
        self.best_estimator_, self.best_score_ = best, verdict.score
        self.best_index_ = list(learners.estimators).index(verdict.name)
        self.n_splits_ = learners.n_splits
        self.multimetric_ = learners.metrics.leading != ONE
        self.scorer_ = learners.metrics.scorers(best)
        self.verdict_ = replace(verdict, learner=None)
        self._publish(verdict, learners)

    def batch_rows(self) -> int | None:
        """Rows of a batch; None where a pull is a share of a full training."""
        if self.batch is None:
            return None if self.budget is None else BATCH
        return batch_rows(self.batch)

    def _refit(self, learners: SearchLearners, verdict: Verdict, budget: SearchBudget) -> Any:
        """A fresh clone of the winner, trained on all rows with what was set aside for that."""
        name, one = verdict.name, verdict.settings["pulls_per_training"]
        share = Share(learners.full_steps[name], one) if budget.by_trainings else None
        steps = refit_steps(self, budget, share, verdict.horizon, verdict[name].pulls)
        timed = self.seconds is not None and refit_is_inside(self)
        began = perf_counter()
        made = learners.refit(name, steps, budget.aside if timed else inf)
        self.refit_time_ = perf_counter() - began
        self.refit_pulls_ = (
            made.steps if share is None else round(made.steps * one / share.full_steps)
        )
        if self.verbose and self.extra_refit:
            print_aside(f"refitted {name} on all rows: {self.refit_pulls_} pulls")
        return made

    def _race(
        self,
        learners: SearchLearners,
        runner: Runner,
        budget: SearchBudget,
        tasks: FitTasks,
    ) -> Verdict:
        made, progress = learners.factories(), bool(self.verbose)
        callbacks = tasks.listeners(self.callbacks)
        self.refit_pulls_, self.refit_time_ = 0, 0.0
        named = self.journal is not None and not names_folder(self.journal)
        if named and Path(self.journal).exists():
            learners.need_own_journal(self.journal, budget.race)
            return resume(
                self.journal, made, policy=self.policy, runner=runner, progress=progress,
                callbacks=callbacks,
            )  # fmt: skip
        try:
            return race(
                made, **budget.race, policy=self.policy, winner_share=self.winner_share,
                min_pulls=self.min_pulls, journal=self.journal, runner=runner,
                seed=learners.fingerprint, progress=progress, callbacks=callbacks,
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
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """The score of the best estimator, by `scoring`; of several metrics, by `refit`'s.

        `params` are for the scorer, where scikit-learn's metadata routing is switched on.
        """
        check_is_fitted(self)
        metrics = metrics_of(self.scoring, self.refit)
        scorer = self.scorer_[metrics.leading] if metrics.several else self.scorer_
        routed = score_params(self, params)
        found = scorer(self.best_estimator_, X, y, **routed)
        return found[metrics.leading] if isinstance(found, dict) else float(found)

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
