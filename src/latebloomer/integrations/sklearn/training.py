"""How a scikit-learn estimator is trained a little more, by what it offers.

`partial_fit` is preferred; else `warm_start`, with more `n_estimators` or `max_iter` each time, or
a booster's own way. Of a pipeline the last step decides: the steps before it are fitted once.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from latebloomer.errors import LearnerError
from latebloomer.integrations.sklearn.booster_training import booster_mode
from latebloomer.integrations.sklearn.checkpoint_formats import FoldState
from latebloomer.integrations.sklearn.convergence import Convergence
from latebloomer.integrations.sklearn.data_splits import (
    Fold,
    RowNumbers,
    row_count,
    take_params,
    take_rows,
)
from latebloomer.integrations.sklearn.fit_params import step_params
from latebloomer.integrations.sklearn.training_mode import TrainingMode
from latebloomer.racing.learner import adapter_for
from latebloomer.racing.training_share import PULLS

Scorer = Callable[..., Any]  # of (estimator, X, y)

GROWING = ("n_estimators", "max_iter")  # what warm_start is given more of
FEWEST_ROWS = 10  # of a step of an estimator that is trained by one pass
BINNED = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)


class PartialFit(TrainingMode):
    """One more batch."""

    batched = True

    def __init__(self, model: Any, classes: Any) -> None:
        takes = "classes" in inspect.signature(model.partial_fit).parameters
        self._first = {"classes": classes} if takes and classes is not None else {}
        self.epochs = model.get_params(deep=False).get("max_iter")

    def prepare(self, model: Any) -> None:
        pass

    def train(
        self, model: Any, X: Any, y: Any, done: int, steps: int, params: Mapping[str, Any]
    ) -> bool:
        model.partial_fit(X, y, **({} if done else self._first), **params)
        return False

    def full_steps(self, batch: int, rows: int) -> int:
        return (self.epochs or 1) * -(-rows // batch)

    def describe(self, batch: int, rows: int) -> str:
        if batch == rows:
            return f"partial_fit: an epoch of all {rows} rows a step, reshuffled each time"
        return f"partial_fit: {batch} of {rows} rows a step, reshuffled every epoch"


class WarmStart(TrainingMode):
    """More trees, stages or iterations on all rows."""

    batched = False

    def __init__(self, model: Any, grows: str, step: int) -> None:
        self._grows, self._step = grows, step
        # Ensembles count what they have; iterative solvers count what a call may add.
        self._counts = grows == "n_estimators" or isinstance(model, BINNED)
        self._whole = model.get_params(deep=False)[grows]

    def prepare(self, model: Any) -> None:
        model.set_params(warm_start=True)

    def train(
        self, model: Any, X: Any, y: Any, done: int, steps: int, params: Mapping[str, Any]
    ) -> bool:
        amount = self._step * (done + steps if self._counts else steps)
        model.set_params(**{self._grows: amount})
        with warnings.catch_warnings():  # it is not meant to converge within a pull
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y, **params)
        return self._made(model) < amount

    def _made(self, model: Any) -> float:
        """Trees or iterations that came of the newest call; fewer than asked: it has converged."""
        names = ("n_estimators_", "n_iter_") if self._counts else ("n_iter_",)
        found = next((getattr(model, name) for name in names if hasattr(model, name)), inf)
        return float(np.max(found))

    def full_steps(self, batch: int, rows: int) -> int:
        return max(1, self._whole // self._step)

    def describe(self, batch: int, rows: int) -> str:
        return f"warm_start: {self._grows} grows by {self._step} a step, on all {rows} rows"


def training_mode(estimator: Any, classes: Any = None, step: int = 1) -> TrainingMode:
    """How an estimator learns incrementally; a `LearnerError` where it does not.

    >>> from sklearn.svm import SVC
    >>> training_mode(SVC())
    Traceback (most recent call last):
    latebloomer.errors.LearnerError: SVC() cannot be trained a little at a time: it has no ...
    """
    if inspect.isclass(estimator):
        raise LearnerError(
            f"{estimator.__name__} is a class, but a learner needs an object: "
            f"{estimator.__name__}()"
        )
    model = last_step(estimator)
    if hasattr(model, "partial_fit"):
        return PartialFit(model, classes)
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    grows = next((name for name in GROWING if name in params), None)
    if "warm_start" in params and grows is not None:
        return WarmStart(model, grows, step)
    booster = booster_mode(model, step)
    if booster is not None:
        return booster
    raise LearnerError(_not_incremental(estimator, model, params))


def last_step(estimator: Any) -> Any:
    """The step of a pipeline that learns; any other estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _not_incremental(estimator: Any, model: Any, params: dict[str, Any]) -> str:
    what = "the last step of the pipeline, " if model is not estimator else ""
    kind, home = type(model).__name__, type(model).__module__.partition(".")[0]
    if home in ("xgboost", "lightgbm", "catboost"):
        return f"{what}{kind} cannot be trained by rounds. {adapter_for(model)}"
    if "warm_start" in params:
        lacks = "no partial_fit, and a warm_start without n_estimators or max_iter to grow"
    else:
        lacks = "no partial_fit and no warm_start"
    return (
        f"{what}{model!r} cannot be trained a little at a time: it has {lacks}. SGDClassifier, "
        "MLPClassifier, naive Bayes, forests, gradient boosting and their regressors can; for a "
        "kernel machine, make_pipeline(Nystroem(), SGDClassifier()) comes near"
    )


# --- one model in training ---


class TrainingSettings(NamedTuple):
    """What a model's training needs beside its rows."""

    classes: Any  # all of them, for the first `partial_fit`; None for a regressor
    batch: int | None  # rows of a batch, where it learns from batches; None: by its epochs
    step: int  # trees or iterations that a step adds, where it does not
    seed: int


@dataclass(eq=False)
class Batches:
    """Row numbers in batches, endlessly; each epoch in a new order.

    >>> batches = Batches(rows=5, size=2, rng=np.random.default_rng(0))
    >>> sorted(int(row) for _ in range(5) for row in batches.next())  # two epochs
    [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    """

    rows: int
    size: int
    rng: np.random.Generator
    left: RowNumbers = field(default_factory=lambda: np.empty(0, np.intp))  # of this epoch

    def next(self) -> RowNumbers:
        """The next batch; one may hold the end of an epoch and the beginning of another."""
        if self.left.size < self.size:
            self.left = np.concatenate([self.left, self.rng.permutation(self.rows)])
        batch, self.left = self.left[: self.size], self.left[self.size :]
        return batch


def batch_size(batch: int | None, rows: int, epochs: int | None) -> int:
    """Rows of a step: as given; else all of them where the estimator counts epochs.

    An estimator that does not is trained by one pass, and a step is a hundredth of it, but at
    least ten rows, so that most classes are in the first.

    >>> batch_size(64, 4000, None), batch_size(None, 4000, 200), batch_size(None, 4000, None)
    (64, 4000, 40)
    """
    if batch is not None:
        return min(batch, rows)
    return rows if epochs is not None else min(rows, max(FEWEST_ROWS, -(-rows // PULLS)))


class FoldModel:
    """A clone of an estimator that trains on one fold's rows and is scored on those held out."""

    def __init__(self, estimator: Any, fold: Fold, settings: TrainingSettings) -> None:
        self._estimator, self._fold = seeded(estimator, settings.seed), fold
        self._mode = training_mode(self._estimator, settings.classes, settings.step)
        rows = row_count(fold.X)
        size = batch_size(settings.batch, rows, self._mode.epochs)
        self._batches = Batches(rows, size, np.random.default_rng(settings.seed))
        self.steps = 0
        self.finished = False  # by its own rule
        self._convergence = Convergence(last_step(self._estimator))
        self._head_params, self._params = step_params(self._estimator, fold.fit_params)
        self._model: Any = None
        self._head: Any = None  # the fitted steps before the last one of a pipeline
        self._has_trained = self._has_scored = False  # here: then its settings have been checked

    @property
    def full_steps(self) -> int:
        """Steps of a full training."""
        return self._mode.full_steps(self._batches.size, self._batches.rows)

    def train(self, steps: int = 1) -> None:
        """So many steps more, or those until its own rule says that it is trained."""
        if self._model is None:
            self._start(clone(last_step(self._estimator)))
            self._mode.prepare(self._model)
        if not self._mode.batched:
            if not self.finished:
                self._step(self._X, self._fold.y, steps, self._params)
            return
        for _ in range(steps):
            if self.finished:
                return
            rows = self._batches.next()
            params = take_params(self._params, rows, self._batches.rows)
            self._step(take_rows(self._X, rows), take_rows(self._fold.y, rows), 1, params)
            if self._batches.size == self._batches.rows:
                self._convergence.note_epoch(self._model, self._X, self._fold.y)
                self.finished = self._convergence.reached

    def _step(self, X: Any, y: Any, steps: int, params: Mapping[str, Any]) -> None:
        with _settings_known(self._has_trained):
            self.finished = self._mode.train(self._model, X, y, self.steps, steps, params)
        self._has_trained = True
        self.steps += steps

    def score(self, scorer: Scorer) -> Any:
        """By the rows held out; with several metrics a dict."""
        if self._fold.y_val is None:
            raise LearnerError("no rows are held out: call train() instead of pull()")
        with _settings_known(self._has_scored):
            found = scorer(self._model, self._X_val, self._fold.y_val, **self._fold.score_params)
        self._has_scored = True
        return found

    @property
    def model(self) -> Any:
        """The trained estimator, as the user gave it: a pipeline where it was one."""
        if self._head is None:
            return self._model
        whole = clone(self._estimator)
        whole.steps = [*self._head.steps, (self._estimator.steps[-1][0], self._model)]
        return whole

    def describe(self) -> str:
        """What a step is, in words."""
        words = self._mode.describe(self._batches.size, self._batches.rows)
        return f"{words}, after steps fitted once" if _has_head(self._estimator) else words

    def state(self) -> FoldState:
        """All that training has changed; the steps before the last are fitted again.

        Without an object of a class of ours: a checkpoint outlives our names.
        """
        rule = self._convergence
        done = {"steps": self.steps, "finished": self.finished, "best": rule.best,
                "idle": rule.idle, **self._mode.state()}  # fmt: skip
        return self._model, dict(vars(self._batches)), done

    def restore(self, state: FoldState) -> None:
        """Become what `state` gave; older ones knew their steps alone."""
        model, batches, done = state
        known: dict[str, Any] = {"steps": done} if isinstance(done, int) else done
        self.steps, self.finished = known["steps"], known.get("finished", False)
        self._convergence.best = known.get("best", inf)
        self._convergence.idle = known.get("idle", 0)
        self._batches = Batches(**batches)
        self._start(model)
        if model is not None:
            self._mode.restore(model, known)

    def _start(self, model: Any) -> None:
        """Fit the steps before the last on all training rows; what they make of rows is kept."""
        self._X, self._X_val = self._fold.X, self._fold.X_val
        if _has_head(self._estimator):
            self._head = clone(self._estimator[:-1])
            self._X = self._head.fit_transform(self._X, self._fold.y, **self._head_params)
            if self._X_val is not None:
                self._X_val = self._head.transform(self._X_val)
        self._model = model


def _settings_known(known: bool) -> AbstractContextManager[Any]:
    """Without scikit-learn's check of settings, which do not change, where it was made once.

    Rows are checked each time. On small data the check takes a tenth of a step.
    """
    return config_context(skip_parameter_validation=True) if known else nullcontext()


def _has_head(estimator: Any) -> bool:
    return isinstance(estimator, Pipeline) and len(estimator.steps) > 1


def seeded(estimator: Any, seed: int) -> Any:
    """A clone whose every `random_state=None` is a number, so that it can be trained again."""
    made = clone(estimator)
    rng = np.random.default_rng([seed, 1])
    params = made.get_params(deep=True)
    free = [k for k in sorted(params) if k.split("__")[-1] == "random_state" and params[k] is None]
    return made.set_params(**{key: int(rng.integers(2**31)) for key in free})
