"""Training by boosting rounds: XGBoost's, LightGBM's and CatBoost's scikit-learn classes."""

import base64
import inspect
import shutil
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from importlib import import_module
from math import nan
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.class_weight import compute_sample_weight

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError
from latebloomer.integrations import boosters, catboost, lightgbm, xgboost
from latebloomer.integrations.library_learner import own_folder
from latebloomer.integrations.sklearn.splits import take_rows
from latebloomer.integrations.sklearn.training.early_stopping import (
    boosters_patience,
    without_early_stopping,
)
from latebloomer.integrations.sklearn.training.estimators import last_step
from latebloomer.integrations.sklearn.training.fold_model import FoldModel
from latebloomer.integrations.sklearn.training.known_predictions import (
    KnownPredictions,
    of_probabilities,
)

FEW_ROWS = 20  # rows for a first estimator of one round, which shows classes and objective
# The only settings that change bins.
XGBOOST_BINS = "max_bin", "tree_method", "grow_policy", "device"
# Objectives that predict probabilities.
XGBOOST_PROBABILITIES = "binary:logistic", "multi:softprob"
LINEAR = "gblinear"  # XGBoost's booster without trees
LIGHTGBM_COLUMNS = "feature_name", "categorical_feature"
# Settings that do not change bins, by their names in LightGBM and its estimators.
LIGHTGBM_TREES = frozenset((
    "learning_rate", "num_leaves", "max_depth", "n_estimators", "objective", "num_class", "metric",
    "boosting_type", "min_child_samples", "min_data_in_leaf", "min_child_weight",
    "min_sum_hessian_in_leaf", "min_split_gain", "min_gain_to_split", "reg_alpha", "lambda_l1",
    "reg_lambda", "lambda_l2", "subsample", "bagging_fraction", "subsample_freq", "bagging_freq",
    "colsample_bytree", "feature_fraction", "feature_fraction_bynode", "extra_trees",
    "path_smooth", "max_delta_step", "scale_pos_weight", "is_unbalance", "drop_rate", "max_drop",
    "skip_drop", "cat_smooth", "cat_l2", "max_cat_to_onehot", "importance_type", "class_weight",
    "n_jobs", "num_threads", "verbose", "verbosity", "num_iterations",
))  # fmt: skip
ALMOST_1 = 1 - 1e-9  # above it, too few digits are left to compute the margin
SEEDS = "random_state", "seed"
SAMPLED = "subsample_for_bin"  # maximum rows from which LightGBM chooses bins


class BoosterModel(FoldModel):
    """Train by boosting rounds on all rows."""

    usual = 100  # rounds of a full training, if none are declared
    fewest = 1  # rounds in a step, if a full training then has at least 20 steps

    def _describe(self, model: Any, params: dict[str, Any]) -> None:
        self._known = {name: value for name, value in params.items() if value is not None}
        declared = (self._known[name] for name in boosters.ROUNDS if name in self._known)
        rounds = next(declared, self.usual)
        self._step = max(self._settings.step, min(self.fewest, rounds // 20))
        self.full_steps = max(1, rounds // self._step)
        self.how = f"boosting: {self._step} more rounds a step, on all {self._rows} rows"
        self.patience = boosters_patience(type(model).__name__, params, self._step)
        self._own = without_early_stopping(params)

    def iterations(self, steps: int) -> int:
        return self._step * steps

    def keep(self) -> None:
        """Do nothing: the model can be cut back to any earlier round."""

    def _rows_as(self, kind: Any) -> Any:
        """Return all rows in the library's type, with the settings that concern rows."""
        return kind(self._X, self._target(), **self._of_settings(kind))

    def _target(self) -> Any:
        """Return the target in the form that the library's training needs."""
        return self._fold.y

    def _of_settings(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return the settings of the estimator and its `fit` that `function` accepts."""
        known = self._known | self._params | {"weight": self._params.get("sample_weight")}
        takes = inspect.signature(function).parameters
        return {name: value for name, value in known.items() if name in takes}


class LiveModel(BoosterModel):
    """Train by the live booster of `XGBoostLearner` or `LightGBMLearner`.

    First, the estimator's own `fit` of one round on a few rows sets the classes and the objective.
    Without sampling of rows or columns, all rounds equal the rounds of one long `fit`, bit for
    bit; with sampling, they equal the rounds of the library learner. A refit is one long `fit`.
    Rows are binned once for all candidates with equal settings for bins. To predict held-out rows,
    only new trees are evaluated.
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
            # Both classes predict by this booster. `fit` could continue it, but would read all
            # rows again: 100 pulls would take 9 times (XGBoost) or 16 times (LightGBM) as long as
            # one `fit`.
            self._model.n_estimators, self._model._Booster = rounds + more, self._live.model
        self.steps += steps

    @abstractmethod
    def _learner(self, first: Any) -> Any:
        """Fit an estimator of one round; return a learner with its settings and rows."""

    def _fit_first(self, first: Any, **more: Any) -> None:
        """Fit an estimator of one round; if possible, on only a few rows of each class."""
        X, y, params = self._X, self._fold.y, self._params
        # The objective is a function, which needs all rows.
        own = callable(self._known.get("objective"))
        if np.ndim(y) == 1 and not own and set(params) <= {"sample_weight"}:
            rows = np.arange(min(FEW_ROWS, self._rows))
            if is_classifier(first):
                rows = np.union1d(rows, np.unique(np.asarray(y), return_index=True)[1])
            X, y, params = take_rows(X, rows), take_rows(y, rows), {}
        self._call(first.fit, X, y, **params, **more)

    def _live_learner(self, kind: Any, settings: Mapping[str, Any], *rows: Any) -> Any:
        """Return a learner that only trains; the search scores its model."""
        unused = {*boosters.ROUNDS, *boosters.METRIC, *boosters.STOPPING}
        own = {k: v for k, v in settings.items() if v is not None and k not in unused}
        objective = self._known.get("objective")
        if callable(objective):
            own["objective"] = as_booster_objective(objective)
        return kind(own, *rows, metric=lambda *_: nan)

    def _shared(self, name: str, settings: Any, make: Callable[[], Any]) -> Any:
        """Return rows that are binned once for all candidates with equal settings for bins."""
        # The binned rows include weights, so they cannot be shared.
        if self._fold.bins is None or self._params:
            return make()
        return self._fold.bins.get(self._X, (name, settings), make)

    def _predicts_by_trees(self) -> bool:
        """Return whether held-out rows can be predicted by adding only the new trees."""
        objective = self._known.get("objective")
        return (
            self._fold.X_val is not None and not callable(objective) and np.ndim(self._fold.y) == 1
        )

    def _scored(self) -> Any:
        if self._live is None or not self._predicts_by_trees():
            return self._model
        return KnownPredictions(self._model, self._X_val, self._known_of(self._live.predictions()))

    def end_at(self, steps: int) -> None:
        super().end_at(steps)
        self._live = None  # from now on, the whole model predicts the held-out rows

    def _known_of(self, prediction: Any) -> dict[str, Any]:
        """Return the model's predictions, computed from its booster's predictions."""
        return (
            of_probabilities(self._model, prediction)
            if is_classifier(self._model)
            else {"predict": prediction}
        )


class XGBoostModel(LiveModel):
    """Train `XGBClassifier` and `XGBRegressor`."""

    def keep(self) -> None:
        """Store a copy of a linear model, which cannot be cut back to earlier rounds."""
        if self._known.get("booster") == LINEAR:
            FoldModel.keep(self)

    def _cut_to(self, steps: int) -> Any:
        if self.best_copy is not None:
            return self.best_copy
        model = copy(self._model)
        model._Booster = self._model.get_booster().copy()
        # XGBoost's early stopping sets this attribute: the model predicts by the rounds up to it.
        model._Booster.set_attr(best_iteration=str(self._step * steps - 1))
        return model

    def _target(self) -> Any:
        encode = getattr(last_step(self._estimator), "label_codes", None)  # for text labels
        return self._fold.y if encode is None else encode(self._fold.y)

    def _learner(self, first: Any) -> Any:
        self._fit_first(first)
        classes = getattr(first, "n_classes_", 0)
        settings = first.get_xgb_params() | {"num_class": classes if classes > 2 else None}
        kind = import_module("xgboost").DMatrix
        bins = {name: settings.get(name) for name in XGBOOST_BINS} | self._of_settings(kind)
        rows = [self._shared("xgboost", bins, lambda: self._rows_as(kind))]
        self._objective = str(settings.get("objective"))
        if self._predicts_by_trees():
            own = self._of_settings(kind)
            own.pop("weight", None)
            rows.append(self._shared("held out", bins, lambda: kind(self._X_val, **own)))
        return self._live_learner(xgboost.XGBoostLearner, settings, *rows)

    def _predicts_by_trees(self) -> bool:
        own = "base_margin" not in self._params
        plain = not is_classifier(self._model) or self._objective in XGBOOST_PROBABILITIES
        return own and plain and super()._predicts_by_trees()


class LightGBMModel(LiveModel):
    """Train `LGBMClassifier` and `LGBMRegressor`."""

    def _describe(self, model: Any, params: dict[str, Any]) -> None:
        super()._describe(model, params)
        if not {"verbose", "verbosity"} & set(self._known):
            self._own["verbosity"] = -1  # else it would print the same lines at each pull

    def _cut_to(self, steps: int) -> Any:
        model, rounds = copy(self._model), self._step * steps
        text = self._model.booster_.model_to_string(num_iteration=rounds)
        model._Booster = import_module("lightgbm").Booster(model_str=text)
        return model.set_params(n_estimators=rounds)

    def _learner(self, first: Any) -> Any:
        settings: dict[str, Any] = {}
        self._fit_first(first, callbacks=[lambda info: settings.update(info.params)])
        kind = import_module("lightgbm").Dataset
        own = self._of_settings(kind) | {"free_raw_data": False}
        own |= {"label": self._labels(first), "weight": self._weights()}
        # Else LightGBM would omit features that no leaf can split, by a setting that may differ
        # between candidates.
        bins = bins_of_lightgbm(settings, self._rows) | {"feature_pre_filter": False}
        kept = {name: self._known.get(name) for name in ("class_weight", *LIGHTGBM_COLUMNS)}

        def binned() -> Any:
            return kind(self._X, params=bins, **own).construct()

        def held_out() -> Any:
            return train.create_valid(self._X_val, params=bins).construct()

        train = self._shared("lightgbm", (bins, kept), binned)
        rows = [train]
        if self._predicts_by_trees():
            rows.append(self._shared("held out", (bins, kept), held_out))
        shared = [lightgbm.BinnedRows(part) for part in rows]
        return self._live_learner(lightgbm.LightGBMLearner, settings, *shared)

    def _known_of(self, prediction: Any) -> dict[str, Any]:
        known = super()._known_of(prediction)
        two = is_classifier(self._model) and prediction.ndim == 1
        if two and hasattr(self._model, "decision_function") and prediction.max() < ALMOST_1:
            with np.errstate(divide="ignore"):
                margins = np.log(prediction) - np.log1p(-prediction)
            known["decision_function"] = margins / self._known.get("sigmoid", 1.0)
        return known

    def _labels(self, first: Any) -> Any:
        """Return the target for LightGBM: the index of each label among the sorted labels."""
        if not is_classifier(first):
            return self._fold.y
        return np.unique(np.asarray(self._fold.y), return_inverse=True)[1]

    def _weights(self) -> Any:
        """Return the weights of rows times the weights of their classes; None without either."""
        own, classes = self._params.get("sample_weight"), self._known.get("class_weight")
        if classes is None:
            return own
        by_class = compute_sample_weight(classes, self._fold.y)
        return by_class if own is None else np.multiply(own, by_class)


class CatBoostModel(BoosterModel):
    """Train `CatBoostClassifier` and `CatBoostRegressor` from their own snapshots.

    Snapshots include all random states, so pulls always equal one long training. Each pull calls
    `fit`, because CatBoost creates a model that can be scored only at the end of `fit`. This costs
    about as much as three rounds, so a step has up to ten rounds. Rows are quantized once.
    """

    usual, fewest, kept = catboost.MOST, 10, (*BoosterModel.kept, "snapshot")
    _pool: Any = None  # the rows

    def _describe(self, model: Any, params: dict[str, Any]) -> None:
        super()._describe(model, params)
        self._folder = own_folder(self)
        self._file = self._folder / catboost.SNAPSHOT
        # The folder is removed when the learner is deleted.
        self._own |= {"train_dir": str(self._folder), "allow_writing_files": True}
        if not catboost.talks(self._known):
            self._own["logging_level"] = "Silent"

    def _train(self, steps: int) -> None:
        if self._pool is None:
            self._pool = self._rows_as(import_module("catboost").Pool)
            if not {"text_features", "embedding_features"} & {*self._known, *self._params}:
                self._pool.quantize(**self._of_settings(self._pool.quantize))
        last = self._step * (self.steps + steps)
        stop = SimpleNamespace(after_iteration=lambda info: info.iteration < last)
        self._call(
            self._model.fit,
            self._pool,
            callbacks=[stop],
            save_snapshot=True,
            snapshot_file=str(self._file),
            snapshot_interval=catboost.NEVER,
        )
        self.steps += steps
        self.finished = bool(self._model.tree_count_ < last)

    def _cut_to(self, steps: int) -> Any:
        model = self._model.copy()
        model.shrink(ntree_end=self._step * steps)
        return model

    @property
    def snapshot(self) -> str | None:
        """CatBoost's snapshot file as text, for a checkpoint."""
        return base64.b64encode(self._file.read_bytes()).decode() if self._file.exists() else None

    @snapshot.setter
    def snapshot(self, text: str | None) -> None:
        self._file.unlink(missing_ok=True)
        if text is not None:
            self._file.write_bytes(base64.b64decode(text))

    def _start(self, model: Any) -> None:
        super()._start(model)
        # The folder of the process that saved the model.
        place = model.get_params().get("train_dir")
        if self.steps and place not in (None, str(self._folder)):
            weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)


MODELS: dict[str, type[BoosterModel]] = {
    "xgboost.XGBModel": XGBoostModel,
    "lightgbm.LGBMModel": LightGBMModel,
    "catboost.CatBoost": CatBoostModel,
}


def bins_of_lightgbm(settings: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """Return the settings that may change how LightGBM bins `rows` rows.

    They include seeds if bins are chosen from a sample of the rows.

    >>> bins_of_lightgbm({"num_leaves": 4, "max_bin": 63, "seed": 3, "subsample_for_bin": 9}, 5)
    {'max_bin': 63, 'subsample_for_bin': 9}
    """
    sampled = rows > settings.get(SAMPLED, 0)
    unused = LIGHTGBM_TREES if sampled else LIGHTGBM_TREES | set(SEEDS)
    return {name: settings[name] for name in sorted(settings) if name not in unused}


def as_booster_objective(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return a booster's objective for one of (labels, predictions[, weights])."""
    takes = len(inspect.signature(function).parameters)

    def objective(predictions: Any, rows: Any) -> Any:
        weights = rows.get_weight()
        has_weights = weights is not None and len(weights) > 0
        arguments = rows.get_label(), predictions, weights if has_weights else None
        return function(*arguments[:takes])

    return objective


def booster_model(model: Any) -> type[FoldModel] | None:
    """Return the class that trains a booster's estimator by rounds; None for other estimators."""
    bases = type(model).__mro__
    names = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in bases}
    kind = next((kind for name, kind in MODELS.items() if name in names), None)
    if kind is None or any(name.startswith("xgboost.XGBRF") for name in names):
        return None  # all trees of a random forest are one round
    params = model.get_params()
    # Raises an error if the patience is not a number of rounds.
    boosters_patience(type(model).__name__, params, 1)
    if params.get("callbacks") is not None:
        cure = "give early_stopping_rounds=20 if they end the training, or leave them out"
        problem = f"{type(model).__name__} has callbacks={brief(params['callbacks'])}"
        raise LearnerError(f"{problem}, which a race does not call: {cure}")
    return None if params.get("boosting_type") == "rf" else kind
