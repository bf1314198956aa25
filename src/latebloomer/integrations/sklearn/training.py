"""How a scikit-learn estimator is trained a little more, by what it offers.

`partial_fit` is preferred; then `warm_start`, with more `n_estimators` or `max_iter` each time;
then a booster's own way; any other estimator is trained in one step, by `fit`. Of a pipeline the
last step decides: the steps before it are fitted once.
"""

import base64
import inspect
import shutil
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from math import inf, nan
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import unique_labels

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations import boosters, catboost, lightgbm, xgboost
from latebloomer.integrations.library_learner import at_least_1, own_folder
from latebloomer.integrations.sklearn import splits
from latebloomer.racing.training_share import PULLS

Scorer: TypeAlias = Callable[..., Any]  # of (estimator, X, y)

GROWING = ("n_estimators", "max_iter")  # the settings that warm_start is given more of
FEWEST_ROWS = 10  # of a step of an estimator that is trained by one pass
WHY = "each pull must train on something"


class TrainingSettings(NamedTuple):
    """What a model's training needs next to its rows."""

    classes: Any  # all of them, for the first `partial_fit`; None for a regressor
    batch: int | None  # rows of a batch, for `partial_fit`; None: by the estimator's epochs
    step: int  # trees or iterations that a step adds, for all others
    seed: int


def settings_for(estimator: Any, y: Any, batch: Any, step: Any, seed: int) -> TrainingSettings:
    """Return the settings of a learner's models, or raise a `SettingError`."""
    rows = None if batch is None else at_least_1("batch", batch, WHY)
    added = at_least_1("step", step, WHY)
    return TrainingSettings(classes_of(estimator, y), rows, added, seed)


class FoldModel(ABC):
    """A clone of an estimator that trains on one fold's rows and is scored on held-out rows."""

    full_steps = 1  # steps of a full training, by what the estimator declares
    how: str  # what a step is
    kept: tuple[str, ...] = ("steps", "finished")  # what training changes in addition to the model

    def __init__(self, estimator: Any, fold: splits.Fold, settings: TrainingSettings) -> None:
        self._estimator, self._fold = seeded(estimator, settings.seed), fold
        self._settings, self._rows = settings, splits.row_count(fold.X)
        self._head_params, self._params = step_params(self._estimator, fold.fit_params)
        self._scores_by_weight = True  # until the scorer refuses weights
        self._model: Any = None
        self._head: Any = None  # the fitted steps before the last one of a pipeline
        self._checked: set[str] = set()  # what was called here: then settings have been checked
        self.steps, self.finished = 0, False  # finished: by the estimator's own rule
        self._own: dict[str, Any] = {}  # settings of the model that training needs
        model = last_step(self._estimator)
        self._describe(model, model.get_params(deep=False))

    @abstractmethod
    def _describe(self, model: Any, given: dict[str, Any]) -> None:
        """Set `how` and `full_steps` by an estimator that is not trained, and its settings."""

    @abstractmethod
    def _train(self, steps: int) -> None:
        """Train the model further and count the steps."""

    def train(self, steps: int = 1) -> None:
        """Train up to `steps` more steps; fewer if the estimator's own rule stops it."""
        if self._model is None:
            self._start(clone(last_step(self._estimator)).set_params(**self._own))
        if not self.finished:
            self._train(steps)

    def _call(self, function: Callable[..., Any], *given: Any, **more: Any) -> Any:
        """Call what trains or scores; the estimator's settings are checked the first time only.

        Settings do not change, and on small data the check takes a tenth of a step. Rows are
        checked each time.
        """
        name = getattr(function, "__name__", "score")
        with config_context(skip_parameter_validation=name in self._checked or None):
            result = function(*given, **more)
        self._checked.add(name)
        return result

    def _fit(self, **more: Any) -> None:
        self._call(self._model.fit, self._X, self._fold.y, **self._params, **more)

    def score(self, scorer: Scorer, on_training_rows: bool = False, whole: bool = False) -> Any:
        """Return the score on the held-out rows; a dict if there are several metrics.

        The last step of a pipeline is scored on rows that were transformed once; with `whole` the
        pipeline itself is scored.
        """
        fold, model, X, X_val = self._fold, self._model, self._X, self._X_val
        if whole:
            model, X, X_val = self.model, fold.X, fold.X_val
        rows, params = (X_val, fold.y_val), fold.score_params
        if on_training_rows:
            rows, params = (X, fold.y), fold.train_score_params
        params = params if self._scores_by_weight else {}
        try:
            return self._call(scorer, model, *rows, **params)
        except TypeError:
            if not params or splits.routing_enabled():
                raise
            self._scores_by_weight = False  # the scorer takes no weights
            return self._call(scorer, model, *rows)

    @property
    def model(self) -> Any:
        """The trained estimator, in the form that the user gave: a pipeline if it was one."""
        if self._head is None:
            return self._model
        whole = clone(self._estimator)
        whole.steps = [*self._head.steps, (self._estimator.steps[-1][0], self._model)]
        return whole

    def state(self) -> tuple[Any, dict[str, Any]]:
        """Return what training has changed; the steps before the last are fitted again."""
        return self._model, {name: getattr(self, name) for name in self.kept}

    def restore(self, model: Any, progress: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        for name in self.kept:
            setattr(self, name, progress[name])
        if model is not None:
            self._start(model)

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
    """Trains by `partial_fit`, a batch of rows at a time; each epoch has a new order.

    `fit` stops if an epoch is no better by `tol` for `n_iter_no_change` epochs, `partial_fit` does
    not; so this rule is applied here, to the loss on the training rows after each epoch.
    """

    kept = (*FoldModel.kept, "best", "idle")

    def _describe(self, model: Any, given: dict[str, Any]) -> None:
        epochs = given.get("max_iter")
        self._size = batch_size(self._settings.batch, self._rows, epochs)
        self.full_steps = (epochs or 1) * -(-self._rows // self._size)
        self.how = f"partial_fit: {self._size} of {self._rows} rows a step, reshuffled every epoch"
        if given.get("class_weight") == "balanced":  # for `fit` alone
            classes = np.unique(self._fold.y)
            weights = compute_class_weight("balanced", classes=classes, y=self._fold.y)
            self._own = {"class_weight": dict(zip(classes, weights, strict=True))}
        takes_classes = "classes" in inspect.signature(model.partial_fit).parameters
        self._names_classes = takes_classes and self._settings.classes is not None
        patience, adaptive = given.get("n_iter_no_change"), given.get("learning_rate")
        stops = patience is not None and adaptive != "adaptive"  # which slows down instead
        self._tol: float | None = given.get("tol") if stops else None
        # Nets stop after more than this many epochs, linear models after this many.
        self._patience = (patience or 0) + ("hidden_layer_sizes" in given)
        self.best, self.idle = inf, 0  # the lowest loss, and epochs since then
        self._orders: dict[int, splits.RowNumbers] = {}  # of the latest batch's epochs

    def _train(self, steps: int) -> None:
        for _ in range(steps):
            rows = self._batch(self.steps)
            params = splits.take_params(self._params, rows, self._rows)
            if not self.steps and self._names_classes:
                params["classes"] = self._settings.classes
            X, y = splits.take_rows(self._X, rows), splits.take_rows(self._fold.y, rows)
            self._call(self._model.partial_fit, X, y, **params)
            self.steps += 1
            if self._size == self._rows and self._converged():
                self.finished = True
                return

    def _batch(self, number: int) -> splits.RowNumbers:
        """Return a batch's rows by its number; they may be of an epoch's end and the next's start.

        The order of each epoch is a pure function of its number: a checkpoint needs no random
        state.
        """
        first, last = number * self._size, (number + 1) * self._size - 1
        epochs = range(first // self._rows, last // self._rows + 1)
        self._orders = {
            epoch: self._orders[epoch] if epoch in self._orders
            else np.random.default_rng([self._settings.seed, 2, epoch]).permutation(self._rows)
            for epoch in epochs
        }  # fmt: skip
        start = first - epochs[0] * self._rows
        return np.concatenate(list(self._orders.values()))[start : start + self._size]

    def _converged(self) -> bool:
        if self._tol is None:
            return False
        loss = training_loss(self._model, self._X, self._fold.y)
        self.idle = self.idle + 1 if loss > self.best - self._tol else 0
        self.best = min(self.best, loss)
        return self.idle >= self._patience


class WarmStartModel(FoldModel):
    """Trains by `fit` with `warm_start`: more trees, stages or iterations on all rows."""

    def _describe(self, model: Any, given: dict[str, Any]) -> None:
        self._grows, step = str(grows_by(model)), self._settings.step
        # Ensembles count what they have; iterative solvers count what a call may add.
        self._counts = self._grows == "n_estimators" or "max_leaf_nodes" in given
        self.full_steps = max(1, given[self._grows] // step)
        self._own = {"warm_start": True}
        self.how = f"warm_start: {self._grows} grows by {step} a step, on all {self._rows} rows"

    def _train(self, steps: int) -> None:
        amount = self._settings.step * (self.steps + steps if self._counts else steps)
        self._model.set_params(**{self._grows: amount})
        with warnings.catch_warnings():  # it is not meant to converge within a pull
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._fit()
        self.steps += steps
        # The trees or iterations that came of this call: fewer if it has converged.
        made = getattr(self._model, "n_estimators_", getattr(self._model, "n_iter_", inf))
        self.finished = bool(np.max(made) < amount)


class OneStepModel(FoldModel):
    """Trains by one `fit`: one step, and then it has finished."""

    def _describe(self, model: Any, given: dict[str, Any]) -> None:
        self.how = f"fit: trained in one step on all {self._rows} rows"

    def _train(self, steps: int) -> None:
        self._fit()
        self.steps, self.finished = 1, True


# --- boosters: XGBoost's, LightGBM's and CatBoost's scikit-learn classes ---


class BoosterModel(FoldModel):
    """Trains by boosting rounds on all rows."""

    usual = 100  # rounds, if it is not said
    fewest = 1  # rounds of a step, if that leaves 20 steps

    def _describe(self, model: Any, given: dict[str, Any]) -> None:
        self._given = {name: value for name, value in given.items() if value is not None}
        said = (self._given[name] for name in boosters.ROUNDS if name in self._given)
        rounds = next(said, self.usual)
        self._step = max(self._settings.step, min(self.fewest, rounds // 20))
        self.full_steps = max(1, rounds // self._step)
        self.how = f"boosting: {self._step} more rounds a step, on all {self._rows} rows"

    def _rows_as(self, kind: Any) -> Any:
        """Return all rows in the library's own form, with what the settings say about them."""
        return kind(self._X, self._fold.y, **self._of_settings(kind))

    def _of_settings(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return the settings of the estimator and of its `fit` that a function takes."""
        known = self._given | self._params | {"weight": self._params.get("sample_weight")}
        takes = inspect.signature(function).parameters
        return {name: value for name, value in known.items() if name in takes}


class LiveModel(BoosterModel):
    """Trains by the live booster of `XGBoostLearner` or `LightGBMLearner`.

    The estimator's own `fit`, of one round, decides on classes, weights and objective. Without
    sampling of rows or columns all rounds are those of one long `fit`, bit for bit; with sampling
    they are those of the learner. A refit is one long `fit`.
    """

    _live: Any = None  # the learner

    def _train(self, steps: int) -> None:
        rounds, more = self._step * self.steps, self._step * steps
        if not rounds and self._fold.X_val is None:  # the refit
            self._model.set_params(n_estimators=more)
            self._fit()
        else:
            if self._live is None:
                first = clone(self._model).set_params(n_estimators=1)
                self._live = self._learner(first)
                if rounds:
                    self._live.continue_from(self._model._Booster, rounds)
                else:
                    self._model = first
            self._live.pull(more)
            # The booster by which both classes predict. `fit` could continue it, but reads all
            # rows again: 100 pulls then take 9 (XGBoost) or 16 times (LightGBM) as long as one.
            self._model.n_estimators, self._model._Booster = rounds + more, self._live.model
        self.steps += steps

    @abstractmethod
    def _learner(self, first: Any) -> Any:
        """Fit an estimator of one round, and return a learner with its settings and rows."""

    def _made(self, kind: Any, settings: Mapping[str, Any], rows: Any) -> Any:
        """Return a learner that only trains: the search scores its model."""
        unused = {*boosters.ROUNDS, *boosters.METRIC, *boosters.STOPPING}
        own = {k: v for k, v in settings.items() if v is not None and k not in unused}
        objective = self._given.get("objective")
        if callable(objective):
            own["objective"] = as_booster_objective(objective)
        return kind(own, rows, metric=lambda *_: nan)


class XGBoostModel(LiveModel):
    """Trains `XGBClassifier` and `XGBRegressor`."""

    def _learner(self, first: Any) -> Any:
        self._call(first.fit, self._X, self._fold.y, **self._params)
        classes = getattr(first, "n_classes_", 0)
        settings = first.get_xgb_params() | {"num_class": classes if classes > 2 else None}
        rows = self._rows_as(import_module("xgboost").DMatrix)
        return self._made(xgboost.XGBoostLearner, settings, rows)


class LightGBMModel(LiveModel):
    """Trains `LGBMClassifier` and `LGBMRegressor`."""

    def _describe(self, model: Any, given: dict[str, Any]) -> None:
        super()._describe(model, given)
        if not {"verbose", "verbosity"} & set(self._given):
            self._own = {"verbosity": -1}  # it would print the same at each pull

    def _learner(self, first: Any) -> Any:
        known: dict[str, Any] = {}

        def after_round(info: Any) -> None:
            known.update(settings=info.params, rows=info.model.train_set)

        self._call(first.fit, self._X, self._fold.y, **self._params, callbacks=[after_round])
        kind, rows = import_module("lightgbm").Dataset, known["rows"]
        own = {"label": rows.get_label(), "weight": rows.get_weight(), "free_raw_data": False}
        rows = kind(self._X, **self._of_settings(kind) | own)
        return self._made(lightgbm.LightGBMLearner, known["settings"], rows)


class CatBoostModel(BoosterModel):
    """Trains `CatBoostClassifier` and `CatBoostRegressor` from their own snapshots.

    These keep all random states: pulls are one long training always. Each pull is a `fit`, because
    only its end makes a model to score. It takes as long as some three rounds, so a step has up
    to ten; rows are quantized once.
    """

    usual, fewest, kept = catboost.MOST, 10, (*BoosterModel.kept, "snapshot")
    _pool: Any = None  # the rows

    def _describe(self, model: Any, given: dict[str, Any]) -> None:
        super()._describe(model, given)
        self._folder = own_folder(self)
        self._file = self._folder / catboost.SNAPSHOT
        # The folder is removed with the learner.
        self._own = {"train_dir": str(self._folder), "allow_writing_files": True}
        if not catboost.talks(self._given):
            self._own["logging_level"] = "Silent"

    def _train(self, steps: int) -> None:
        if self._pool is None:
            self._pool = self._rows_as(import_module("catboost").Pool)
            if not {"text_features", "embedding_features"} & {*self._given, *self._params}:
                self._pool.quantize(**self._of_settings(self._pool.quantize))
        last = self._step * (self.steps + steps)
        stop = SimpleNamespace(after_iteration=lambda info: info.iteration < last)
        self._call(
            self._model.fit, self._pool, callbacks=[stop], save_snapshot=True,
            snapshot_file=str(self._file), snapshot_interval=catboost.NEVER,
        )  # fmt: skip
        self.steps += steps
        self.finished = bool(self._model.tree_count_ < last)

    @property
    def snapshot(self) -> str | None:
        """CatBoost's file as text, for a checkpoint."""
        return base64.b64encode(self._file.read_bytes()).decode() if self._file.exists() else None

    @snapshot.setter
    def snapshot(self, text: str | None) -> None:
        self._file.unlink(missing_ok=True)
        if text is not None:
            self._file.write_bytes(base64.b64decode(text))

    def _start(self, model: Any) -> None:
        super()._start(model)
        place = model.get_params().get("train_dir")  # of the process that saved it
        if self.steps and place not in (None, str(self._folder)):
            weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)


MODELS: dict[str, type[BoosterModel]] = {
    "xgboost.XGBModel": XGBoostModel,
    "lightgbm.LGBMModel": LightGBMModel,
    "catboost.CatBoost": CatBoostModel,
}


def as_booster_objective(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return an objective of (labels, predictions), or also of weights, as boosters call it."""
    takes = len(inspect.signature(function).parameters)

    def objective(predictions: Any, rows: Any) -> Any:
        weights = rows.get_weight()
        has_weights = weights is not None and len(weights) > 0
        given = rows.get_label(), predictions, weights if has_weights else None
        return function(*given[:takes])

    return objective


def booster_model(model: Any) -> type[FoldModel] | None:
    """Return how a booster's scikit-learn class is trained by rounds; None for anything else."""
    names = {f"{one.__module__.partition('.')[0]}.{one.__name__}" for one in type(model).__mro__}
    found = next((kind for name, kind in MODELS.items() if name in names), None)
    if found is None or any(name.startswith("xgboost.XGBRF") for name in names):
        return None  # the trees of a forest are one round
    params = model.get_params()
    stopping = (*boosters.STOPPING, "callbacks")
    early = next((name for name in stopping if params.get(name) is not None), None)
    if early is not None and found is not CatBoostModel:  # which has it only with an eval_set
        why = "but in a race the race decides when a learner stops: leave it out"
        raise LearnerError(f"{type(model).__name__} has {early}={params[early]}, {why}")
    return None if params.get("boosting_type") == "rf" else found


# --- what an estimator and its settings say ---


def model_class(estimator: Any) -> type[FoldModel]:
    """Return how an estimator is trained; a `LearnerError` if it is not an estimator.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.svm import SVC
    >>> model_class(GaussianNB()).__name__, model_class(SVC()).__name__
    ('BatchModel', 'OneStepModel')
    """
    if inspect.isclass(estimator):
        name = estimator.__name__
        raise LearnerError(f"{name} is a class, but a learner needs an object: {name}()")
    model = last_step(estimator)
    if not hasattr(model, "get_params") or not hasattr(model, "fit"):
        why = "it has no methods fit and get_params, as an estimator of scikit-learn has"
        raise LearnerError(f"{brief(estimator)} cannot be trained: {why}")
    if hasattr(model, "partial_fit"):  # which does not stop early
        stops = model.get_params(deep=False).get("early_stopping") is True
        return OneStepModel if stops else BatchModel
    return WarmStartModel if grows_by(model) else booster_model(model) or OneStepModel


def grows_by(model: Any) -> str | None:
    """Return the setting that `warm_start` is given more of; None if there is none."""
    params = model.get_params(deep=False)
    return next((n for n in GROWING if n in params), None) if "warm_start" in params else None


def classes_of(estimator: Any, y: Any) -> Any:
    """Return all classes, for the first `partial_fit`; None for a regressor."""
    if not is_classifier(estimator):
        return None
    if isinstance(last_step(estimator), MultiOutputClassifier):
        return [np.unique(column) for column in np.asarray(y).T]
    classes = unique_labels(y)
    if len(classes) < 2:
        raise SettingError(f"y has a single class, {classes[0]!r}, but a classifier needs two")
    return classes


def batch_size(batch: int | None, rows: int, epochs: int | None) -> int:
    """Return the rows of a step: `batch` if given, else all rows if the estimator counts epochs.

    An estimator that does not is trained by one pass, and a step is a hundredth of it, but at
    least ten rows, so that most classes are in the first.

    >>> batch_size(64, 4000, None), batch_size(None, 4000, 200), batch_size(None, 4000, None)
    (64, 4000, 40)
    """
    if batch is None:
        batch = rows if epochs is not None else max(FEWEST_ROWS, -(-rows // PULLS))
    return min(batch, rows)


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


def training_loss(model: Any, X: Any, y: Any) -> float:
    """Return the loss that an estimator trains on, without its penalty; nan if not known."""
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
    return nan


# --- estimators and pipelines ---


def last_step(estimator: Any) -> Any:
    """Return the step of a pipeline that learns; any other estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def has_head(estimator: Any) -> bool:
    """Return whether an estimator is a pipeline with steps before the last."""
    return isinstance(estimator, Pipeline) and len(estimator.steps) > 1


def step_params(estimator: Any, params: splits.Params) -> tuple[dict[str, Any], dict[str, Any]]:
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
    if splits.routing_enabled():
        head = set()
        if has_head(estimator):
            head = estimator[:-1].get_metadata_routing().consumes("fit_transform", params)
        routed = process_routing(estimator, "fit", **params)[last].fit
        return {name: params[name] for name in head}, dict(routed)
    own = {name.removeprefix(f"{last}__"): value for name, value in params.items()}
    head = {name for name in own if "__" in name}
    return {k: own[k] for k in own if k in head}, {k: own[k] for k in own if k not in head}


def settings_of(estimator: Any) -> dict[str, Any]:
    """Return the settings that decide what a model becomes: without threads and what is printed.

    >>> from sklearn.ensemble import BaggingClassifier
    >>> {"n_jobs", "verbose"} & settings_of(BaggingClassifier()).keys()
    set()
    """
    return {
        key: type(value).__name__ if hasattr(value, "get_params") else value
        for key, value in ({"class": estimator} | estimator.get_params()).items()
        if key != "steps" and key.rpartition("__")[2] not in boosters.HARMLESS
    }  # the parts of a pipeline have their own names


def seeded(estimator: Any, seed: int) -> Any:
    """Return a clone whose every `random_state=None` is a number: it can be trained again."""
    made = clone(estimator)
    rng = np.random.default_rng([seed, 1])
    params = made.get_params(deep=True)
    free = [k for k in sorted(params) if k.split("__")[-1] == "random_state" and params[k] is None]
    return made.set_params(**{key: int(rng.integers(2**31)) for key in free})
