"""How a scikit-learn estimator is trained a little more, by what it offers.

`partial_fit` is preferred; then `warm_start`, with more `n_estimators` or `max_iter` each time;
then a booster's own way (`booster_estimators.py`); any other estimator is trained in one step, by
`fit`. Of a pipeline the last step decides: the steps before it are fitted once.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing

from latebloomer.errors import LearnerError
from latebloomer.integrations.sklearn.splits import (
    Fold,
    Params,
    RowNumbers,
    routing_enabled,
    row_count,
    take_params,
    take_rows,
)
from latebloomer.racing.training_share import PULLS

Scorer: TypeAlias = Callable[..., Any]  # of (estimator, X, y)
FoldState: TypeAlias = tuple[Any, dict[str, Any]]  # the model, and how far it is

GROWING = ("n_estimators", "max_iter")  # the settings that warm_start is given more of
FEWEST_ROWS = 10  # of a step of an estimator that is trained by one pass
BINNED = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)


class TrainingSettings(NamedTuple):
    """What a model's training needs next to its rows."""

    classes: Any  # all of them, for the first `partial_fit`; None for a regressor
    batch: int | None  # rows of a batch, for `partial_fit`; None: by the estimator's epochs
    step: int  # trees or iterations that a step adds, for all others
    seed: int


class FoldModel(ABC):
    """A clone of an estimator that trains on one fold's rows and is scored on held-out rows."""

    def __init__(self, estimator: Any, fold: Fold, settings: TrainingSettings) -> None:
        self._estimator, self._fold = seeded(estimator, settings.seed), fold
        self._settings, self._rows = settings, row_count(fold.X)
        self._head_params, self._params = step_params(self._estimator, fold.fit_params)
        self._scores_by_weight = True  # until the scorer refuses weights
        self._model: Any = None
        self._head: Any = None  # the fitted steps before the last one of a pipeline
        self._checked: set[str] = set()  # what was called here: then settings have been checked
        self.steps, self.finished = 0, False  # finished: by the estimator's own rule

    # --- what a way to train must say ---

    @property
    @abstractmethod
    def full_steps(self) -> int:
        """Number of steps in a full training, by what the estimator declares."""

    @abstractmethod
    def describe(self) -> str:
        """Return what a step is, as text."""

    @abstractmethod
    def _train(self, steps: int) -> None:
        """Train the model further and count the steps."""

    def _prepare(self) -> None:  # noqa: B027
        """Set up a model that has not been trained."""

    def _progress(self) -> dict[str, Any]:
        """Return what training has changed in addition to the model."""
        return {}

    def _restore_progress(self, progress: Mapping[str, Any]) -> None:  # noqa: B027
        """Restore what `_progress` returned."""

    # --- training and scoring ---

    def train(self, steps: int = 1) -> None:
        """Train up to `steps` more steps; fewer if the estimator's own rule stops it."""
        if self._model is None:
            self._start(clone(last_step(self._estimator)))
            self._prepare()
        if not self.finished:
            self._train(steps)

    def _call(self, function: Callable[..., Any], *given: Any, **more: Any) -> Any:
        """Call what trains or scores; the estimator's settings are checked the first time only.

        Settings do not change, and on small data the check takes a tenth of a step. Rows are
        checked each time.
        """
        name = getattr(function, "__name__", "score")
        with _settings_known(name in self._checked):
            result = function(*given, **more)
        self._checked.add(name)
        return result

    def score(self, scorer: Scorer, on_training_rows: bool = False) -> Any:
        """Return the score on the held-out rows; a dict if there are several metrics."""
        if self._fold.y_val is None:
            raise LearnerError("no rows are held out: call train() instead of pull()")
        fold, params = self._fold, self._fold.score_params
        given = self._model, self._X_val, fold.y_val
        if on_training_rows:
            given, params = (self._model, self._X, fold.y), fold.train_score_params
        if not params or not self._scores_by_weight:
            return self._call(scorer, *given)
        try:
            return self._call(scorer, *given, **params)
        except TypeError:
            if routing_enabled():
                raise
            self._scores_by_weight = False  # the scorer takes no weights
            return self._call(scorer, *given)

    @property
    def model(self) -> Any:
        """The trained estimator, in the form that the user gave: a pipeline if it was one."""
        if self._head is None:
            return self._model
        whole = clone(self._estimator)
        whole.steps = [*self._head.steps, (self._estimator.steps[-1][0], self._model)]
        return whole

    def state(self) -> FoldState:
        """Return what training has changed; the steps before the last are fitted again."""
        return self._model, {"steps": self.steps, "finished": self.finished} | self._progress()

    def restore(self, state: FoldState) -> None:
        """Restore what `state` returned."""
        model, progress = state
        self.steps, self.finished = progress["steps"], progress["finished"]
        if model is not None:
            self._start(model)
            self._restore_progress(progress)

    def _start(self, model: Any) -> None:
        """Fit the steps before the last on all training rows; what they make of rows is kept."""
        self._X, self._X_val = self._fold.X, self._fold.X_val
        if has_head(self._estimator):
            self._head = clone(self._estimator[:-1])
            self._X = self._head.fit_transform(self._X, self._fold.y, **self._head_params)
            if self._X_val is not None:
                self._X_val = self._head.transform(self._X_val)
        self._model = model


class BatchModel(FoldModel):
    """Trains by `partial_fit`, a batch of rows at a time; each epoch has a new order."""

    def __init__(self, estimator: Any, fold: Fold, settings: TrainingSettings) -> None:
        super().__init__(estimator, fold, settings)
        model = last_step(self._estimator)
        takes_classes = "classes" in inspect.signature(model.partial_fit).parameters
        self._first = {"classes": settings.classes} if takes_classes else {}
        self._epochs: int | None = model.get_params(deep=False).get("max_iter")
        self._batches = Batches(
            self._rows, batch_size(settings.batch, self._rows, self._epochs), settings.seed
        )
        self._convergence = Convergence(model)

    @property
    def full_steps(self) -> int:
        return (self._epochs or 1) * -(-self._rows // self._batches.size)

    def describe(self) -> str:
        if self._batches.size == self._rows:
            return f"partial_fit: an epoch of all {self._rows} rows a step, reshuffled each time"
        return (
            f"partial_fit: {self._batches.size} of {self._rows} rows a step, reshuffled every "
            "epoch"
        )

    def _train(self, steps: int) -> None:
        for _ in range(steps):
            rows = self._batches.rows_of(self.steps)
            params = take_params(self._params, rows, self._rows)
            if not self.steps and self._settings.classes is not None:
                params |= self._first
            self._call(
                self._model.partial_fit,
                take_rows(self._X, rows), take_rows(self._fold.y, rows), **params,
            )  # fmt: skip
            self.steps += 1
            if self._batches.size == self._rows:
                self._convergence.note_epoch(self._model, self._X, self._fold.y)
                if self._convergence.reached:
                    self.finished = True
                    return

    def _progress(self) -> dict[str, Any]:
        return {"best": self._convergence.best, "idle": self._convergence.idle}

    def _restore_progress(self, progress: Mapping[str, Any]) -> None:
        self._convergence.best, self._convergence.idle = progress["best"], progress["idle"]


class WarmStartModel(FoldModel):
    """Trains by `fit` with `warm_start`: more trees, stages or iterations on all rows."""

    def __init__(self, estimator: Any, fold: Fold, settings: TrainingSettings) -> None:
        super().__init__(estimator, fold, settings)
        model = last_step(self._estimator)
        self._grows = str(grows_by(model))
        # Ensembles count what they have; iterative solvers count what a call may add.
        self._counts = self._grows == "n_estimators" or isinstance(model, BINNED)
        self._whole = model.get_params(deep=False)[self._grows]

    @property
    def full_steps(self) -> int:
        return max(1, self._whole // self._settings.step)

    def describe(self) -> str:
        step, rows = self._settings.step, self._rows
        return f"warm_start: {self._grows} grows by {step} a step, on all {rows} rows"

    def _prepare(self) -> None:
        self._model.set_params(warm_start=True)

    def _train(self, steps: int) -> None:
        amount = self._settings.step * (self.steps + steps if self._counts else steps)
        self._model.set_params(**{self._grows: amount})
        with warnings.catch_warnings():  # it is not meant to converge within a pull
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._call(self._model.fit, self._X, self._fold.y, **self._params)
        self.steps += steps
        self.finished = self._made() < amount  # it has converged

    def _made(self) -> float:
        """Return the trees or iterations that came of the latest call."""
        names = ("n_estimators_", "n_iter_") if self._counts else ("n_iter_",)
        found = (getattr(self._model, name) for name in names if hasattr(self._model, name))
        return float(np.max(next(found, inf)))


class OneStepModel(FoldModel):
    """Trains by one `fit`: one step, and then it has finished."""

    @property
    def full_steps(self) -> int:
        return 1

    def describe(self) -> str:
        return f"fit: trained in one step on all {self._rows} rows"

    def _train(self, steps: int) -> None:
        self._call(self._model.fit, self._X, self._fold.y, **self._params)
        self.steps, self.finished = 1, True


def grows_by(model: Any) -> str | None:
    """Return the setting that `warm_start` is given more of; None if there is none."""
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    return next((n for n in GROWING if n in params), None) if "warm_start" in params else None


# --- rows of a batch, and when an estimator would stop ---


class Batches:
    """Row numbers in batches; the order of each epoch is a function of its number.

    >>> batches = Batches(rows=5, size=2, seed=0)
    >>> sorted(int(row) for number in range(5) for row in batches.rows_of(number))  # two epochs
    [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    """

    def __init__(self, rows: int, size: int, seed: int) -> None:
        self.rows, self.size, self._seed = rows, size, seed
        self._orders: dict[int, RowNumbers] = {}  # of the epochs that the latest batch is from

    def rows_of(self, number: int) -> RowNumbers:
        """Return a batch by its number; it may hold the end of one epoch and the next one's start.

        A pure function of the number: a checkpoint needs no random state.
        """
        first, last = number * self.size, (number + 1) * self.size - 1
        epochs = range(first // self.rows, last // self.rows + 1)
        self._orders = {
            k: self._orders[k] if k in self._orders else self._order(k) for k in epochs
        }
        start = first - epochs[0] * self.rows
        return np.concatenate(list(self._orders.values()))[start : start + self.size]

    def _order(self, epoch: int) -> RowNumbers:
        return np.random.default_rng([self._seed, 2, epoch]).permutation(self.rows)


def batch_size(batch: int | None, rows: int, epochs: int | None) -> int:
    """Return the rows of a step: `batch` if given, else all rows if the estimator counts epochs.

    An estimator that does not is trained by one pass, and a step is a hundredth of it, but at
    least ten rows, so that most classes are in the first.

    >>> batch_size(64, 4000, None), batch_size(None, 4000, 200), batch_size(None, 4000, None)
    (64, 4000, 40)
    """
    if batch is not None:
        return min(batch, rows)
    return rows if epochs is not None else min(rows, max(FEWEST_ROWS, -(-rows // PULLS)))


# The losses of margins y f(x), and of residuals |y - f(x)|; e is the estimator's epsilon.
CLASSIFIERS: dict[str, Callable[[Any], Any]] = {
    "hinge": lambda m: np.maximum(0, 1 - m),
    "squared_hinge": lambda m: np.maximum(0, 1 - m) ** 2,
    "perceptron": lambda m: np.maximum(0, -m),
    "log_loss": lambda m: np.logaddexp(0, -m),
    "modified_huber": lambda m: np.where(m >= -1, np.maximum(0, 1 - m) ** 2, -4 * m),
}
REGRESSORS: dict[str, Callable[[Any, float], Any]] = {
    "squared_error": lambda r, e: r**2 / 2,
    "huber": lambda r, e: np.where(r <= e, r**2 / 2, e * r - e**2 / 2),
    "epsilon_insensitive": lambda r, e: np.maximum(0, r - e),
    "squared_epsilon_insensitive": lambda r, e: np.maximum(0, r - e) ** 2,
}


class Convergence:
    """The estimator's own rule to stop: no better by `tol` for `n_iter_no_change` epochs.

    `fit` applies it, `partial_fit` does not; so it is applied here, to the loss on the training
    rows after each epoch.
    """

    def __init__(self, model: Any) -> None:
        params = model.get_params(deep=False)
        tol, patience = params.get("tol"), params.get("n_iter_no_change")
        adaptive = params.get("learning_rate") == "adaptive"  # it slows down instead
        self._tol: float | None = None if patience is None or adaptive else tol
        # Nets stop after more than this many epochs, linear models after this many.
        self._patience = (patience or 0) + ("hidden_layer_sizes" in params)
        self.best, self.idle = inf, 0

    @property
    def reached(self) -> bool:
        """True if `fit` would have stopped."""
        return self._tol is not None and self.idle >= self._patience

    def note_epoch(self, model: Any, X: Any, y: Any) -> None:
        """Note the training loss at the end of an epoch."""
        if self._tol is None or (loss := training_loss(model, X, y)) is None:
            return
        self.idle = self.idle + 1 if loss > self.best - self._tol else 0
        self.best = min(self.best, loss)


def training_loss(model: Any, X: Any, y: Any) -> float | None:
    """Return the loss that an estimator trains on, without its penalty; None if not known."""
    own = getattr(model, "loss_", None)  # of nets: the mean over the latest epoch
    if own is not None:
        return float(own)
    name = getattr(model, "loss", None)
    if is_classifier(model) and name in CLASSIFIERS:
        margins = model.decision_function(X)
        signs = np.asarray(y)[:, None] == model.classes_[None, :]
        if margins.ndim == 1:
            margins, signs = margins[:, None], signs[:, 1:]
        return float(CLASSIFIERS[name](np.where(signs, margins, -margins)).mean())
    if name in REGRESSORS and np.ndim(y) == 1:
        residuals = np.abs(np.asarray(y) - model.predict(X))
        return float(REGRESSORS[name](residuals, getattr(model, "epsilon", 0.0)).mean())
    return None


# --- estimators and pipelines ---


def last_step(estimator: Any) -> Any:
    """Return the step of a pipeline that learns; any other estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def has_head(estimator: Any) -> bool:
    """Return whether an estimator is a pipeline with steps before the last."""
    return isinstance(estimator, Pipeline) and len(estimator.steps) > 1


def step_params(estimator: Any, params: Params) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the steps of a pipeline before the last get, and what the last gets.

    An estimator gets what it asks for in `fit`, also if it is trained by `partial_fit`.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.preprocessing import StandardScaler
    >>> pipeline = make_pipeline(StandardScaler(), SGDClassifier())
    >>> step_params(pipeline, {"standardscaler__sample_weight": 1, "sample_weight": 2})
    ({'standardscaler__sample_weight': 1}, {'sample_weight': 2})
    """
    if not isinstance(estimator, Pipeline) or not params:
        return {}, dict(params)
    last = estimator.steps[-1][0]
    if routing_enabled():
        head = set()
        if has_head(estimator):
            head = estimator[:-1].get_metadata_routing().consumes("fit_transform", params)
        routed = process_routing(estimator, "fit", **params)[last].fit
        return {name: params[name] for name in head}, dict(routed)
    own = {name.removeprefix(f"{last}__"): value for name, value in params.items()}
    return (
        {name: value for name, value in own.items() if "__" in name},
        {name: value for name, value in own.items() if "__" not in name},
    )


def seeded(estimator: Any, seed: int) -> Any:
    """Return a clone whose every `random_state=None` is a number: it can be trained again."""
    made = clone(estimator)
    rng = np.random.default_rng([seed, 1])
    params = made.get_params(deep=True)
    free = [k for k in sorted(params) if k.split("__")[-1] == "random_state" and params[k] is None]
    return made.set_params(**{key: int(rng.integers(2**31)) for key in free})


def _settings_known(known: bool) -> AbstractContextManager[Any]:
    return config_context(skip_parameter_validation=True) if known else nullcontext()
