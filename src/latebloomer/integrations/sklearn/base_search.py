"""What both searches share: settings, one `fit`, and the best estimator's methods."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import Any, Self, TypeVar

from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from latebloomer._util.text import span_of_time
from latebloomer.errors import AllFailed, Interrupted, need_whole, require
from latebloomer.integrations.sklearn.scoring import ONE, Table, metrics_of
from latebloomer.integrations.sklearn.search_race import (
    OVERTIME,
    TICK,
    RefitReserve,
    SearchBudget,
    SearchRace,
    refit_is_inside,
    search_budget,
    train_in_time,
)
from latebloomer.integrations.sklearn.sklearn_learner import SklearnLearner
from latebloomer.integrations.sklearn.splits import (
    RoutedParams,
    checked_data,
    routed_params,
    router_for,
    score_params,
)
from latebloomer.integrations.sklearn.training import last_step
from latebloomer.racing.api import race, resume
from latebloomer.racing.callbacks import Callback, RaceView, check_callbacks
from latebloomer.racing.progress import print_aside
from latebloomer.racing.settings import need_same, race_in
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import Event, ScoreReported

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9
    Method = TypeVar("Method", bound=Callable[..., Any])

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Support no callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method unchanged."""
        return method


PASSED_ON = ("winner_share", "min_pulls", "stop")  # settings that `race` takes unchanged
EXTENDS = ("budget", "trainings", "seconds")  # a larger one extends the race of a journal


class NoneLearns(AllFailed, ValueError, TypeError):
    """Every estimator refused the data; the text has the reason of each."""


def _best_has(method: str) -> Callable[[Any], bool]:
    """Return a check of whether the best estimator (before `fit`: every one) has a method."""

    def check(self: Any) -> bool:
        if hasattr(self, "best_estimator_"):
            getattr(self.best_estimator_, method)
            return True
        return all(hasattr(estimator, method) for estimator in self._given().values())

    return check


@dataclass(eq=False, repr=False, kw_only=True)  # `__init__` only sets attributes, as it must
class BaseRaceSearch(CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A race as a scikit-learn estimator; `RaceSearchCV` describes its settings."""

    trainings: float | None = None
    seconds: float | None = None
    budget: int | None = None
    policy: Any = "auto"
    scoring: Any = None
    cv: Any = 0.2
    horizon: int | None = None
    winner_share: float = 0.0
    min_pulls: int = 1
    pulls_per_training: int | None = None
    refit: bool | str | Callable[[Table], int] = True
    extra_refit: bool = False
    batch: int | None = None
    step: int = 1
    return_train_score: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    journal: Any = None
    verbose: bool = False
    watch: bool = False
    callbacks: Any = None
    stop: str | None = None

    @abstractmethod
    def _given(self) -> dict[str, Any]:
        """Return the given estimators by name, unchecked."""

    @abstractmethod
    def _raced(self) -> dict[str, Any]:
        """Return what races, by name, checked."""

    @abstractmethod
    def _publish(self, verdict: Verdict, raced: SearchRace) -> Table:
        """Set the attributes that only this search has, and return its table of results."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(estimator) for estimator in self._given().values()]
        if inner:
            # An estimator that cannot take the data fails; the race continues with the others.
            for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
                setattr(tags, name, copy.deepcopy(getattr(inner[0], name)))
            tags.input_tags.sparse = any(one.input_tags.sparse for one in inner)
            tags.input_tags.allow_nan = any(one.input_tags.allow_nan for one in inner)
            tags.non_deterministic = any(one.non_deterministic for one in inner)
        return tags

    def get_metadata_routing(self) -> Any:
        """Return what `fit` and `score` pass on to which part, for metadata routing."""
        first = last_step(next(iter(self._given().values())))
        scorer = metrics_of(self.scoring, self.refit).scorer(first)
        return router_for(self, self._given(), scorer, self.cv)

    def _routed(self, params: Any, raced: Any, X: Any) -> RoutedParams:
        """Return which part gets what; settings of one estimator all get what that asks for."""
        given = self._given()
        routes = {name: name if name in given else next(iter(given)) for name in raced}
        return routed_params(self, params, routes, X)

    # --- the race ---

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Race, then refit the winner on all rows if `refit` says so.

        `params` are passed on as in scikit-learn's searches: `sample_weight`, `groups` for the
        splitter, and by metadata routing if that is switched on.
        """
        estimators, metrics = self._raced(), metrics_of(self.scoring, self.refit)
        X, y = checked_data(self, X, y)
        routed = self._routed(params, estimators, X)
        raced = SearchRace(self, estimators, metrics, X, y, routed)
        budget = search_budget(self, raced)
        if self.verbose and self.refit:
            print_aside(budget.announcement(self))
        tasks = FitTasks(self, X, y)
        try:
            verdict = self._race(raced, budget, tasks)
        except KeyboardInterrupt as stopped:
            raise self._interrupted(stopped, raced) from None
        self.n_splits_, self.multimetric_ = raced.n_splits, metrics.leading != ONE
        self.verdict_ = replace(verdict, learner=None, loader=None)  # it can be pickled then
        table, names = self._publish(verdict, raced), list(estimators)
        index = self.refit(table) if callable(self.refit) else names.index(verdict.name)
        self.best_index_ = _checked_index(index, len(names))
        self.best_score_ = verdict[names[self.best_index_]].score
        self._keep(names[self.best_index_], verdict, raced, budget, tasks)
        self.scorer_ = metrics.scorers(self.best_estimator_)
        tasks.end()
        return self

    def _race(self, raced: SearchRace, budget: SearchBudget, tasks: FitTasks) -> Verdict:
        callbacks = tasks.listeners(self.callbacks)
        if self.seconds is not None and refit_is_inside(self):
            callbacks.append(RefitReserve(self.seconds, raced.refit_ratio))
        how: dict[str, Any] = {
            "policy": self.policy, "runner": raced.runner, "progress": bool(self.verbose),
            "callbacks": callbacks, "watch": self.watch,
        }  # fmt: skip
        made, passed_on = raced.factories(), {name: getattr(self, name) for name in PASSED_ON}
        if raced.has_journal:
            need_same(
                self.journal, race_in(self.journal).settings, passed_on,
                "Give the same settings to resume it, or another journal.",
            )  # fmt: skip
            asked = {name: budget.race[name] for name in EXTENDS if name in budget.race}
            return resume(self.journal, made, **asked, **how)
        try:
            return race(
                made, **budget.race, **passed_on, **how, journal=self.journal, seed=raced.seed,
                score_range=raced.score_range,
            )  # fmt: skip
        except AllFailed as error:
            reasons = [notes.error for notes in raced.notes.values() if notes.error is not None]
            if all(isinstance(reason, ValueError | TypeError) for reason in reasons):
                raise NoneLearns(str(error)) from next(iter(reasons), None)
            raise

    def _interrupted(self, stopped: KeyboardInterrupt, raced: SearchRace) -> Interrupted:
        """Return what Ctrl-C ends `fit` with, and print it before the traceback."""
        place = getattr(stopped, "journal", self.journal if raced.has_journal else None)
        text = "Stopped. The search had no journal, so it cannot be continued."
        if place is not None:
            text = f"Stopped. Call fit again with journal={str(place)!r} to continue."
        print_aside(text)
        return Interrupted(text, None if place is None else str(place))

    # --- the refit ---

    def _keep(
        self,
        name: str,
        verdict: Verdict,
        raced: SearchRace,
        budget: SearchBudget,
        tasks: FitTasks,
    ) -> None:
        """Set the best estimator: the winner of the race, trained again on all rows by `refit`."""
        started = perf_counter()
        made = None
        if self.refit:
            made = tasks.refit(lambda: self._refit(name, verdict, raced, budget))
        self.refit_kind_ = "race" if made is None else "refit"
        self.refit_time_ = 0.0 if made is None else perf_counter() - started
        self.refit_pulls_ = 0
        self.best_estimator_ = verdict.learner.model if made is None else made.model
        if made is not None:
            whole = budget.race.get("pulls_per_training", made.full_steps)
            self.refit_pulls_ = round(made.steps * whole / made.full_steps)

    def _refit(
        self, name: str, verdict: Verdict, raced: SearchRace, budget: SearchBudget
    ) -> SklearnLearner | None:
        """Return a fresh clone of an estimator, trained on all rows, or None if time is short."""
        one, learner = verdict[name], raced.on_all_rows(name)
        made = one.pulls if one.steps is None else one.steps
        pace = raced.refit_ratio * one.seconds / max(1, made)
        steps, least, seconds = budget.refit_steps(self, verdict, name), 0, inf
        steps = learner.full_steps if steps == inf else int(steps)
        if self.seconds is not None and refit_is_inside(self) and name == verdict.name:
            left = self.seconds - verdict.seconds
            steps, least = min(steps, max(made, int(left / max(pace, TICK)))), made
            seconds = OVERTIME * left
        if self.verbose:
            about = span_of_time(steps * pace)
            print_aside(f"refitting {name} on all {raced.rows:,} rows, about {about}")
        if steps * pace <= seconds:
            train_in_time(learner, steps, seconds)
        if learner.finished or learner.steps >= max(1, least):
            return learner
        warnings.warn(
            f"The time left was too short to refit {name}: best_estimator_ is the model of the "
            f"race, trained on the training rows only ({made} steps). Give more seconds, or set "
            "refit=False or extra_refit=True.",
            RuntimeWarning, stacklevel=2,
        )  # fmt: skip
        return None

    # --- the best estimator's methods ---

    @available_if(_best_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Predict with the best estimator."""
        return self._best().predict(X)

    @available_if(_best_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities of the best estimator."""
        return self._best().predict_proba(X)

    @available_if(_best_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Return logarithms of class probabilities of the best estimator."""
        return self._best().predict_log_proba(X)

    @available_if(_best_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Return the best estimator's decision function."""
        return self._best().decision_function(X)

    @available_if(_best_has("transform"))  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Any:
        """Transform with the best estimator."""
        return self._best().transform(X)

    @available_if(_best_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of the best estimator, by `scoring`; of several metrics, by `refit`'s.

        `params` are for the scorer, if scikit-learn's metadata routing is switched on.
        """
        best, metrics = self._best(), metrics_of(self.scoring, self.refit)
        scorer = self.scorer_[metrics.leading] if metrics.several else self.scorer_
        found = scorer(best, X, y, **score_params(self, params))
        return found[metrics.leading] if isinstance(found, dict) else float(found)

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    @property
    def classes_(self) -> Any:
        """The classes, if the estimators are classifiers."""
        return self._of_best("classes_")

    @property
    def n_features_in_(self) -> int:
        """Number of columns in `fit`."""
        return self._of_best("n_features_in_")

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns in `fit`, if they had any."""
        return self._of_best("feature_names_in_")

    def _of_best(self, name: str) -> Any:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{name} is known after fit: call fit(X, y) first")
        return getattr(self.best_estimator_, name)


def _checked_index(index: Any, count: int) -> int:
    """Return what a function `refit` returned, or raise a `SettingError`."""
    number = need_whole("refit(results)", index)
    require(0 <= number < count, "refit(results)", index, f"from 0 to {count - 1}",
            "it is the row of the results to refit")  # fmt: skip
    return number


class FitTasks:
    """The tasks of one `fit`, for callbacks of scikit-learn (from 1.9 on), such as a progress bar.

    A search is a task of two: the race, whose own tasks are its pulls, and the refit. A callback
    that asks to stop after a pull stops the race.
    """

    def __init__(self, search: Any, X: Any, y: Any) -> None:
        self._watched = {"estimator": search, "X": X, "y": y}
        self._root: Any = None
        self._race: Any = None
        # Its name begins with "_", and scikit-learn documents it for those who write estimators.
        begin = getattr(search, "_init_callback_context", None)
        if begin is not None:
            self._root = begin(max_subtasks=1 + bool(search.refit))
            self._root.call_on_fit_task_begin(**self._watched)

    def listeners(self, own: Any) -> list[Callback]:
        """Return the callbacks of the race: the user's own, and one for those of scikit-learn."""
        return [*check_callbacks(own), *([self._after_event] if self._root is not None else [])]

    def _after_event(self, event: Event, view: RaceView) -> None:
        if not isinstance(event, ScoreReported):
            return
        if self._race is None:
            left = None if view.settings.seconds is not None else view.budget - view.spent + 1
            self._race = self._begin(self._root, "race", left)
        pull = self._begin(self._race, f"pull of {view.names[event.arm]}", 0)
        if pull.call_on_fit_task_end(**self._watched):
            view.stop("a callback of scikit-learn asked for it")

    def _begin(self, parent: Any, name: str, subtasks: int | None) -> Any:
        task = parent.subcontext(task_name=name, max_subtasks=subtasks)
        return task.call_on_fit_task_begin(**self._watched)

    def refit(self, train: Callable[[], Any]) -> Any:
        """Train the winner, as a task."""
        self._end_race()
        if self._root is None:
            return train()
        task = self._begin(self._root, "refit-with-best-params", 0)
        trained = train()
        task.call_on_fit_task_end(**self._watched)
        return trained

    def _end_race(self) -> None:
        if self._race is not None:
            self._race.call_on_fit_task_end(**self._watched)
            self._race = None

    def end(self) -> None:
        """Report the end of `fit`."""
        self._end_race()
        if self._root is not None:
            self._root.call_on_fit_task_end(**self._watched)
