"""The base class of both searches: a race as a scikit-learn estimator."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from latebloomer._util.console import print_aside
from latebloomer.errors import Interrupted, need_whole, require
from latebloomer.integrations.sklearn import metadata_routing
from latebloomer.integrations.sklearn.ensemble import members_of
from latebloomer.integrations.sklearn.metrics import ONE, metrics_of, own_scores_differ
from latebloomer.integrations.sklearn.refit import refit
from latebloomer.integrations.sklearn.results_tables import Table
from latebloomer.integrations.sklearn.search_budget import dear_steps, early_drop
from latebloomer.integrations.sklearn.search_race import SearchRace
from latebloomer.integrations.sklearn.sklearn_learner import SklearnLearner
from latebloomer.integrations.sklearn.user_warnings import warn_user
from latebloomer.racing.callbacks import RaceView, check_callbacks
from latebloomer.racing.runners.native_threads import limited_threads
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import FAILED, Event, ScoreReported

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Support no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


def _best_has(method: str) -> Callable[[Any], bool]:
    """Return a check that the best estimator has a method; before `fit`, that all have it."""

    def check(self: Any) -> bool:
        fitted = hasattr(self, "best_estimator_")
        models = [self.best_estimator_] if fitted else self._given().values()
        return all(hasattr(model, method) for model in models)

    return check


# Scikit-learn requires an `__init__` that only sets attributes.
@dataclass(eq=False, repr=False, kw_only=True)
class BaseRaceSearch(CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A race as a scikit-learn estimator. The docstrings of the searches describe its settings."""

    trainings: float | None = None
    seconds: float | None = None
    budget: int | None = None
    policy: Any = "auto"
    scoring: Any = None
    cv: Any = 0.2
    horizon: int | None = None
    winner_share: float = 0.0
    min_pulls: int | None = None
    pulls_per_training: int | None = None
    refit: bool | str | Callable[[Table], int] = True
    extra_refit: bool = False
    best_iteration: bool | None = None
    ensemble: bool = False
    batch: int | None = None
    step: int = 1
    return_train_score: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    threads: int | None = None
    journal: Any = None
    verbose: bool = False
    watch: bool = False
    callbacks: Any = None
    stop: str | None = None

    compares_models: ClassVar[bool] = False  # whether the estimators are of different kinds

    @abstractmethod
    def _given(self) -> dict[str, Any]:
        """Return the estimators that the user passed, by name, without checks."""

    @abstractmethod
    def _raced(self) -> dict[str, Any]:
        """Return the estimators that race, by name; raise an error if they cannot."""

    @abstractmethod
    def _publish(self, verdict: Verdict, raced: SearchRace) -> Table:
        """Set the attributes that only this search has, and return its table of results."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(estimator) for estimator in self._given().values()]
        if inner:
            # An estimator that cannot use the data fails; the race continues with the others.
            for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
                setattr(tags, name, copy.deepcopy(getattr(inner[0], name)))
            tags.input_tags.sparse = any(own.input_tags.sparse for own in inner)
            tags.input_tags.allow_nan = any(own.input_tags.allow_nan for own in inner)
            tags.non_deterministic = any(own.non_deterministic for own in inner)
        return tags

    def get_metadata_routing(self) -> Any:
        """Return which parameters `fit` and `score` pass on to each part, for metadata routing."""
        estimators = self._given()
        scorer = metrics_of(self).scorer(next(iter(estimators.values())))
        return metadata_routing.router_for(self, estimators, scorer, self.cv)

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Run the race, then refit the winner on all rows if `refit` is set.

        `params` are passed on as in scikit-learn's searches: `sample_weight` to the estimators,
        `groups` to the splitter, and others by metadata routing if it is enabled.
        """
        with limited_threads(self.threads):
            raced = SearchRace(self, self._raced(), X, y, params)
            doubts = self._doubts(raced)
            for text in doubts:
                warn_user(text)
            if self.verbose and self.refit:
                place = "on top of" if self.extra_refit else "which is part of"
                cost = f"{raced.budget.refit_cost}, {place} the budget"
                print_aside(f"The refit of the winner on all rows takes {cost}.")
            tasks = FitTasks(self, X, y)
            try:
                verdict = raced.run([*check_callbacks(self.callbacks), tasks])
            except KeyboardInterrupt as stopped:
                raise self._interrupted(stopped, raced) from None
            tasks.end(keep=1)
            self._keep(verdict, raced, tasks, doubts)
            tasks.end(keep=0)
        return self

    def _doubts(self, raced: SearchRace) -> list[str]:
        """Return warnings, before the race, of what makes its comparison doubtful."""
        if not self.compares_models:
            return []
        doubts = (
            early_drop(self, raced.examples),
            own_scores_differ(self.scoring, raced.estimators),
        )
        return [text for text in doubts if text is not None]

    def _keep(
        self, verdict: Verdict, raced: SearchRace, tasks: "FitTasks", warned: list[str]
    ) -> None:
        """Set the results and the best estimator: the model of the race, or the refitted one."""
        self.n_splits_, self.multimetric_ = raced.n_splits, raced.metrics.leading != ONE
        texts = (*verdict.warnings, *warned, *self._warn_of(verdict, raced))
        # Without the learner, the verdict can be pickled.
        self.verdict_ = replace(verdict, learner=None, loader=None, warnings=texts)
        unknown = None if verdict.leads else raced.why_no_row_scores()
        if unknown is not None:
            self.verdict_ = replace(self.verdict_, leads_missing=unknown)
        names, table = list(raced.estimators), self._publish(verdict, raced)
        self.best_index_ = self._best_index(table, names, verdict)
        name = names[self.best_index_]
        best = raced.examples[name].keeps_best
        self.best_score_ = verdict[name].best_score if best else verdict[name].score
        members = members_of(raced, verdict, name) if self.ensemble else None
        self.best_estimator_ = self._winner(name, verdict, raced, tasks).model
        if self.ensemble and members is None:
            self.ensemble_weights_ = {}
        if members is not None:
            self.best_estimator_ = members.with_winner(self.best_estimator_, raced.y)
            self.ensemble_weights_ = dict(members.ensemble.weights)
            self.verdict_ = replace(self.verdict_, ensemble=members.ensemble)
        self.scorer_ = raced.metrics.scorers(self.best_estimator_)

    def _warn_of(self, verdict: Verdict, raced: SearchRace) -> list[str]:
        """Warn of candidates that failed or whose steps took long; return the latter warnings."""
        texts = []
        if self.trainings is not None and raced.budget.pulls_per_training:
            texts = dear_steps(verdict, raced.examples, raced.budget.pulls_per_training)
        for text in texts:
            warn_user(text)
        failed = failures_of(verdict)
        if failed:
            warn_user(failed, FitFailedWarning)
        return texts

    def _best_index(self, table: Table, names: list[str], verdict: Verdict) -> int:
        """Return the row of the winner, or the row that the user's function chooses."""
        index = self.refit(table) if callable(self.refit) else names.index(verdict.name)
        row = need_whole("refit(results)", index)
        limits = f"from 0 to {len(names) - 1}"
        require(0 <= row < len(names), "refit(results)", index, limits, "it is the row to refit")
        return row

    def _winner(
        self, name: str, verdict: Verdict, raced: SearchRace, tasks: "FitTasks"
    ) -> SklearnLearner:
        """Return the learner to keep, refitted or as raced, and set how it was made."""
        refitted, started = None, perf_counter()
        if self.refit:
            tasks.begin("refit-with-best-params")
            refitted = refit(raced, name, verdict)
        self.refit_kind_, self.refit_time_, self.refit_pulls_ = "race", 0.0, 0
        if refitted is not None:
            self.refit_kind_, self.refit_time_ = "refit", perf_counter() - started
            whole = raced.budget.pulls_per_training or refitted.full_steps
            self.refit_pulls_ = round(refitted.steps * whole / refitted.full_steps)
        if raced.examples[name].keeps_best:
            kept = raced.trained(name, verdict)
            steps = kept.best_steps if refitted is None else refitted.steps
            self.best_iteration_ = kept.iterations(steps)
        return raced.trained(name, verdict) if refitted is None else refitted

    def _interrupted(self, stopped: KeyboardInterrupt, raced: SearchRace) -> Interrupted:
        """Return the exception with which Ctrl-C ends `fit`, and print it before the traceback."""
        place = getattr(stopped, "journal", self.journal if raced.has_journal else None)
        journal = None if place is None else str(place)
        advice = f"Call fit again with journal={journal!r} to continue."
        text = advice if journal else "The search had no journal, so it cannot be continued."
        print_aside(f"Stopped. {text}")
        return Interrupted(f"Stopped. {text}", journal)

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
        """Return logarithms of the class probabilities of the best estimator."""
        return self._best().predict_log_proba(X)

    @available_if(_best_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the best estimator."""
        return self._best().decision_function(X)

    @available_if(_best_has("transform"))  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Any:
        """Transform with the best estimator."""
        return self._best().transform(X)

    @available_if(_best_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of the best estimator by `scoring`, or by the metric named in `refit`.

        `params` are passed to the scorer.
        """
        best, metrics = self._best(), metrics_of(self)
        several = isinstance(self.scorer_, dict)
        scorer = self.scorer_[metrics.leading] if several else self.scorer_
        value = scorer(best, X, y, **metadata_routing.score_params(self, params))
        return value[metrics.leading] if isinstance(value, dict) else float(value)

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    @property
    def classes_(self) -> Any:
        """The classes, if the estimators are classifiers."""
        return self._best().classes_

    @property
    def n_features_in_(self) -> Any:
        """Number of columns in `fit`."""
        return self._best().n_features_in_

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns, if any."""
        return self._best().feature_names_in_


def failures_of(verdict: Verdict) -> str:
    """Return text that says which estimators failed and why, each reason once; empty if none."""
    reasons: dict[str, list[str]] = {}
    for view in verdict.learners:
        if view.state == FAILED:
            reasons.setdefault(view.why, []).append(view.name)
    count = sum(map(len, reasons.values()))
    if not count:
        return ""
    each = "\n".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
    return f"{count} of {len(verdict.learners)} estimators failed and cannot be kept:\n{each}"


class FitTasks:
    """The tasks of one `fit`, for callbacks of scikit-learn 1.9 or later, such as a progress bar.

    The task of a search has two subtasks: the race, whose subtasks are its pulls, and the refit.
    If a callback asks to stop after a pull, the race stops.
    """

    def __init__(self, search: BaseRaceSearch, X: Any, y: Any) -> None:
        self._watched = {"estimator": search, "X": X, "y": y}
        # Its name begins with "_", but scikit-learn documents it for authors of estimators.
        begin = getattr(search, "_init_callback_context", None)
        self._open = [] if begin is None else [begin(max_subtasks=1 + bool(search.refit))]
        for task in self._open:
            task.call_on_fit_task_begin(**self._watched)

    def begin(self, name: str, subtasks: int | None = 0) -> None:
        """Begin a subtask of the innermost task."""
        if self._open:
            task = self._open[-1].subcontext(task_name=name, max_subtasks=subtasks)
            self._open.append(task.call_on_fit_task_begin(**self._watched))

    def end(self, keep: int) -> bool:
        """End all but the outer `keep` tasks; return whether a callback asks to stop."""
        asked = False
        while len(self._open) > keep:
            asked = bool(self._open.pop().call_on_fit_task_end(**self._watched))
        return asked

    def __call__(self, event: Event, view: RaceView) -> None:
        """Report a pull; the first one begins the race."""
        if not isinstance(event, ScoreReported):
            return
        if len(self._open) == 1:
            timed = view.settings.seconds is not None
            self.begin("race", None if timed else view.budget - view.spent + 1)
        self.begin(f"pull of {view.names[event.arm]}")
        if self.end(keep=2):
            view.stop("a callback of scikit-learn stopped it")
