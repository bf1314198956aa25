"""`RaceSearchCV` races estimators that you name, `RaceRandomSearchCV` many settings of one."""

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from latebloomer._util.text import NAME, brief
from latebloomer.errors import Interrupted, LearnerError, SettingError, need_whole, require
from latebloomer.integrations.sklearn import scoring, splits, training
from latebloomer.integrations.sklearn.scoring import Table
from latebloomer.integrations.sklearn.search_race import SearchRace
from latebloomer.racing.progress import print_aside
from latebloomer.racing.race_state import RaceView, check_callbacks
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import Event, ScoreReported

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Support no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


ALL = "all"  # candidates of a grid


def _best_has(method: str) -> Callable[[Any], bool]:
    """Return a check of whether the best estimator (before `fit`: every one) has a method."""

    def check(self: Any) -> bool:
        fitted = hasattr(self, "best_estimator_")
        models = [self.best_estimator_] if fitted else self._given().values()
        return all(hasattr(model, method) for model in models)

    return check


def _of_best(name: str, summary: str) -> Any:
    """Return a method that calls the best estimator's, if it has one."""

    def method(self: Any, X: Any) -> Any:
        return getattr(self._best(), name)(X)

    method.__name__, method.__doc__ = name, summary
    return available_if(_best_has(name))(method)


def _kept_by_best(name: str, summary: str) -> Any:
    """Return a property with the value that the best estimator has."""
    return property(lambda self: getattr(self._best(), name), doc=summary)


@dataclass(eq=False, repr=False, kw_only=True)  # `__init__` only sets attributes, as it must
class BaseRaceSearch(CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A race as a scikit-learn estimator. Its settings are part of each search's description.

    Parameters
    ----------
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
        Seed for data splits, row order, estimators, and candidates that are drawn.
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
    """

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

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        _, _, shared = str(inspect.getdoc(BaseRaceSearch)).partition("----------\n")
        cls.__doc__ = str(inspect.getdoc(cls)).replace("{shared}", shared)

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
        given = self._given()
        scorer = scoring.metrics_of(self).scorer(next(iter(given.values())))
        return splits.router_for(self, given, scorer, self.cv)

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Race, then refit the winner on all rows if `refit` says so.

        `params` are passed on as in scikit-learn's searches: `sample_weight`, `groups` for the
        splitter, and by metadata routing if that is switched on.
        """
        raced = SearchRace(self, self._raced(), X, y, params)
        if self.verbose and self.refit:
            whence = f"{raced.refit_cost} {'on top of' if self.extra_refit else 'of'} the budget"
            print_aside(f"The refit of the winner on all rows takes {whence}.")
        tasks = FitTasks(self, X, y)
        try:
            verdict = raced.run([*check_callbacks(self.callbacks), tasks])
        except KeyboardInterrupt as stopped:
            raise self._interrupted(stopped, raced) from None
        tasks.end(keep=1)
        self._keep(verdict, raced, tasks)
        tasks.end(keep=0)
        return self

    def _keep(self, verdict: Verdict, raced: SearchRace, tasks: "FitTasks") -> None:
        """Set the results, and the best estimator: the race's, or trained again by `refit`."""
        metrics, names = raced.metrics, list(raced.estimators)
        self.n_splits_, self.multimetric_ = raced.n_splits, metrics.leading != scoring.ONE
        self.verdict_ = replace(verdict, learner=None, loader=None)  # it can be pickled then
        table = self._publish(verdict, raced)
        index = self.refit(table) if callable(self.refit) else names.index(verdict.name)
        self.best_index_ = need_whole("refit(results)", index)
        require(0 <= self.best_index_ < len(names), "refit(results)", index,
                f"from 0 to {len(names) - 1}", "it is the row to refit")  # fmt: skip
        name, made, started = names[self.best_index_], None, perf_counter()
        self.best_score_ = verdict[name].score
        if self.refit:
            tasks.begin("refit-with-best-params")
            made = raced.refit(name, verdict)
        self.refit_kind_, self.refit_time_, self.refit_pulls_ = "race", 0.0, 0
        if made is not None:
            self.refit_kind_, self.refit_time_ = "refit", perf_counter() - started
            whole = raced.budget.get("pulls_per_training") or made.full_steps
            self.refit_pulls_ = round(made.steps * whole / made.full_steps)
        self.best_estimator_ = (verdict.learner if made is None else made).model
        self.scorer_ = metrics.scorers(self.best_estimator_)

    def _interrupted(self, stopped: KeyboardInterrupt, raced: SearchRace) -> Interrupted:
        """Return what Ctrl-C ends `fit` with, and print it before the traceback."""
        place = getattr(stopped, "journal", self.journal if raced.has_journal else None)
        journal = None if place is None else str(place)
        advice = f"Call fit again with journal={journal!r} to continue."
        text = advice if journal else "The search had no journal, so it cannot be continued."
        print_aside(f"Stopped. {text}")
        return Interrupted(f"Stopped. {text}", journal)

    # --- the best estimator's methods ---

    predict = _of_best("predict", "Predict with the best estimator.")
    predict_proba = _of_best("predict_proba", "Return class probabilities of the best estimator.")
    predict_log_proba = _of_best("predict_log_proba", "Return logarithms of class probabilities.")
    decision_function = _of_best("decision_function", "Return its decision function.")
    transform = _of_best("transform", "Transform with the best estimator.")

    @available_if(_best_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of the best estimator, by `scoring`; of several metrics, by `refit`'s.

        `params` are for the scorer.
        """
        best, metrics = self._best(), scoring.metrics_of(self)
        several = isinstance(self.scorer_, dict)
        scorer = self.scorer_[metrics.leading] if several else self.scorer_
        found = scorer(best, X, y, **splits.score_params(self, params))
        return found[metrics.leading] if isinstance(found, dict) else float(found)

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    classes_ = _kept_by_best("classes_", "The classes, if the estimators are classifiers.")
    n_features_in_ = _kept_by_best("n_features_in_", "Number of columns in `fit`.")
    feature_names_in_ = _kept_by_best("feature_names_in_", "Names of the columns, if any.")


class FitTasks:
    """The tasks of one `fit`, for callbacks of scikit-learn (from 1.9 on), such as a progress bar.

    A search is a task of two: the race, whose own tasks are its pulls, and the refit. A callback
    that asks to stop after a pull stops the race.
    """

    def __init__(self, search: Any, X: Any, y: Any) -> None:
        self._watched = {"estimator": search, "X": X, "y": y}
        # Its name begins with "_", and scikit-learn documents it for those who write estimators.
        begin = getattr(search, "_init_callback_context", None)
        self._open = [] if begin is None else [begin(max_subtasks=1 + bool(search.refit))]
        for task in self._open:
            task.call_on_fit_task_begin(**self._watched)

    def begin(self, name: str, subtasks: int | None = 0) -> None:
        """Begin a task of the innermost one."""
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
            view.stop("a callback of scikit-learn asked for it")


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
    {shared}

    Raises
    ------
    LearnerError
        An estimator is a class, has no `fit`, or stops its training itself.
    NoneLearns
        In `fit`: every estimator fails.

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
        for name in dict(named_estimators(self.estimators)).keys() & params.keys():
            self.estimators = with_replaced(self.estimators, name, params.pop(name))
        super().set_params(**params)
        return self

    def _given(self) -> dict[str, Any]:
        return dict(named_estimators(self.estimators))

    def _raced(self) -> dict[str, Any]:
        return checked_estimators(self.estimators, set(self.get_params(deep=False)))

    def _publish(self, verdict: Verdict, raced: SearchRace) -> Table:
        self.results_ = scoring.results_table(verdict, raced)
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
    {shared}

    Raises
    ------
    LearnerError
        The estimator is a class, has no `fit`, or stops its training itself.
    NoneLearns
        In `fit`: every candidate fails.

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
        training.model_class(self.estimator)  # raises an error unless it is an estimator
        self._candidates = drawn_params(self.param_distributions, self.n_iter, self.random_state)
        return with_params(self.estimator, self._candidates)

    def _publish(self, verdict: Verdict, raced: SearchRace) -> Table:
        self.cv_results_ = scoring.cv_results_table(verdict, raced, self._candidates)
        return self.cv_results_

    @property
    def best_params_(self) -> dict[str, Any]:
        """Settings of the best candidate."""
        return dict(self.cv_results_["params"][self.best_index_])


# --- estimators as a dict, a list of pairs or a bare list, and their names ---


def named_estimators(estimators: Any) -> list[tuple[str, Any]]:
    """Return names and estimators in whatever form they are given; bare ones get their class's.

    >>> from sklearn.naive_bayes import BernoulliNB, GaussianNB
    >>> [name for name, _ in named_estimators([GaussianNB(), BernoulliNB(), BernoulliNB(alpha=2)])]
    ['gaussiannb', 'bernoullinb-1', 'bernoullinb-2']
    """
    if isinstance(estimators, Mapping):
        return list(estimators.items())
    if not isinstance(estimators, list | tuple):
        return []
    if all(isinstance(item, tuple) and len(item) == 2 for item in estimators):
        return list(estimators)
    kinds = [type(item).__name__.lower() for item in estimators]
    names = [
        f"{kind}-{kinds[: k + 1].count(kind)}" if kinds.count(kind) > 1 else kind
        for k, kind in enumerate(kinds)
    ]
    return list(zip(names, estimators, strict=True))


def with_replaced(estimators: Any, name: str, new: Any) -> Any:
    """Return the same collection with another estimator under a name; the given one stays."""
    pairs = [(key, new if key == name else old) for key, old in named_estimators(estimators)]
    if isinstance(estimators, Mapping):
        return dict(pairs)
    if all(isinstance(item, tuple) for item in estimators):
        return pairs
    return [estimator for _, estimator in pairs]


def checked_estimators(estimators: Any, reserved: set[str]) -> dict[str, Any]:
    """Return the estimators by name; raise an error unless all can race against each other."""
    pairs = named_estimators(estimators)
    require(len(pairs) >= 2, "estimators", estimators, "at least 2",
            "a dict of names and estimators, a list of such pairs or of estimators")  # fmt: skip
    names = [name for name, _ in pairs]
    for name in names:
        text = isinstance(name, str) and name.strip() and "__" not in name
        if not text or name in reserved or names.count(name) > 1:
            needed = "text without '__' that no other estimator or setting of the search has"
            raise SettingError(f"an estimator is called {name!r}, but a name must be {needed}")
    for name, estimator in pairs:
        try:
            training.model_class(estimator)
        except LearnerError as error:
            raise LearnerError(f"estimator {name!r}: {error}") from None
    kinds = {name: _kind(estimator) for name, estimator in pairs}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(f"{name} is a {kind}" for name, kind in kinds.items())
        why = "but their scores must be comparable: race one kind at a time"
        raise SettingError(f"estimators are of different kinds ({listed}), {why}")
    return dict(pairs)


def _kind(estimator: Any) -> str:
    if is_classifier(estimator):
        return "classifier"
    return "regressor" if is_regressor(estimator) else "neither classifier nor regressor"


# --- settings of one estimator ---


def drawn_params(distributions: Any, n_iter: Any, random_state: Any) -> list[dict[str, Any]]:
    """Return the settings that race: drawn as scikit-learn draws them, or a whole grid."""
    spaces = [distributions] if isinstance(distributions, Mapping) else distributions
    try:
        lists = [{k: v for k, v in one.items() if not hasattr(v, "rvs")} for one in spaces]
        size = len(ParameterGrid(lists))  # checks the lists
    except (AttributeError, TypeError, ValueError) as error:
        needed = "a dict of settings and lists or distributions, or a list of such dicts"
        said = f"param_distributions={brief(distributions)}, but param_distributions must be"
        raise SettingError(f"{said} {needed}: {error}") from None
    endless = sum(map(len, lists)) < sum(map(len, spaces))
    require(not isinstance(n_iter, str) or (n_iter == ALL and not endless), "n_iter", n_iter,
            "an integer, or 'all' of lists of values", "a distribution has no end")  # fmt: skip
    wanted = size if n_iter == ALL else need_whole("n_iter", n_iter)
    require(wanted >= 2, "n_iter", wanted, "at least 2", "with one there is nothing to choose")
    require(endless or wanted <= size, "n_iter", wanted, f"at most {size}, or 'all'",
            "there are no more settings in the lists")  # fmt: skip
    return list(ParameterSampler(spaces, wanted, random_state=random_state))


def with_params(estimator: Any, candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a clone of an estimator for each candidate, by the candidate's name."""
    made = [clone(estimator).set_params(**clone(one, safe=False)) for one in candidates]
    return dict(zip(candidate_names(candidates), made, strict=True))


def candidate_names(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each candidate: its number, and the settings that vary, to 3 digits.

    A long name is shortened in its settings' names, never in their values.

    >>> candidate_names([{"net__alpha": 0.00123456, "net__beta": 1}, {"net__alpha": 1.0}])
    ['#0 alpha=0.00123 beta=1', '#1 alpha=1']
    >>> candidate_names([{"C": 1}, {"C": 10}])
    ['#0 C=1', '#1 C=10']
    """
    settings = dict.fromkeys(name for one in candidates for name in one)
    varying = [
        name for name in settings if len({brief(one.get(name, ALL)) for one in candidates}) > 1
    ]
    ends = [name.rpartition("__")[2] for name in varying]
    labels = {
        name: end if ends.count(end) == 1 else name
        for name, end in zip(varying, ends, strict=True)
    }
    return [
        _fitted(f"#{k}", {labels[name]: _value(one[name]) for name in varying if name in one})
        for k, one in enumerate(candidates)
    ]


def _value(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.3g}"
    if hasattr(value, "get_params"):  # a step of a pipeline
        return type(value).__name__
    return value if isinstance(value, str) else brief(value)


def _fitted(number: str, values: Mapping[str, str]) -> str:
    """Return a name with labels as long as there is room for, and at least 3 characters."""
    for room in range(max([3, *map(len, values)]), 2, -1):
        short = (label if len(label) <= room else f"{label[: room - 1]}…" for label in values)
        text = " ".join([number, *map("=".join, zip(short, values.values(), strict=True))])
        if len(text) <= NAME:
            break
    return text
