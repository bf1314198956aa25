"""A clone of an estimator that is trained on one fold's rows and scored on held-out rows."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from latebloomer.errors import need_flag
from latebloomer.integrations.library_learner import at_least_1
from latebloomer.integrations.sklearn.metadata_routing import routing_enabled
from latebloomer.integrations.sklearn.shared_heads import SharedHeads
from latebloomer.integrations.sklearn.splits import Fold, row_count
from latebloomer.integrations.sklearn.training.early_stopping import Patience
from latebloomer.integrations.sklearn.training.estimators import (
    classes_of,
    has_head,
    last_step,
    step_params,
)
from latebloomer.integrations.sklearn.training.known_predictions import KnownPredictions

Scorer: TypeAlias = Callable[..., Any]  # function of (estimator, X, y)
WHY = "each pull must train on something"


class TrainingSettings(NamedTuple):
    """The settings that a model's training needs in addition to its rows."""

    classes: Any  # all classes, for the first `partial_fit`; None for a regressor
    batch: int | None  # rows in a batch, for `partial_fit`; None: one epoch
    step: int  # trees or iterations in a step, for all other estimators
    seed: int
    best_iteration: bool | None = None  # None: if it has early stopping


def settings_for(
    estimator: Any, y: Any, batch: Any, step: Any, seed: int, best_iteration: bool | None = None
) -> TrainingSettings:
    """Return the settings of a learner's models, or raise a `SettingError`."""
    rows = None if batch is None else at_least_1("batch", batch, WHY)
    added = at_least_1("step", step, WHY)
    if best_iteration is not None:
        needed = "True, False or None: if the estimator asks to stop early"
        best_iteration = need_flag("best_iteration", best_iteration, needed)
    return TrainingSettings(classes_of(estimator, y), rows, added, seed, best_iteration)


class Accuracy:
    """The accuracy as computed by scikit-learn, for rows with one label each.

    On a few hundred rows, scikit-learn's checks take three times as long as the prediction. The
    held-out rows do not change, so only the first score checks them.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def __call__(self, model: Any, X: Any, y: Any, **params: Any) -> float:
        """Return the accuracy with all of scikit-learn's checks."""
        return float(self._scorer(model, X, y, **params))

    def of_checked_rows(self, model: Any, X: Any, y: Any) -> float:
        """Return the accuracy for rows that have already been checked."""
        return float(np.mean(one_per_row(model.predict(X)) == y))


def one_per_row(predictions: Any) -> Any:
    """Return predictions without a second axis of length 1, which CatBoost's class labels have.

    >>> one_per_row(np.array([["a"], ["b"]])), one_per_row(np.eye(2)).shape
    (array(['a', 'b'], dtype='<U1'), (2, 2))
    """
    predictions = np.asarray(predictions)
    single = predictions.ndim == 2 and predictions.shape[1] == 1
    return predictions[:, 0] if single else predictions


class FoldModel(ABC):
    """A clone of an estimator that is trained on one fold's rows and scored on held-out rows."""

    full_steps = 1  # number of steps in the full training that the estimator declares
    how: str  # text that says what a step is
    # Attributes that training changes, in addition to the model.
    kept: tuple[str, ...] = ("steps", "finished")

    def __init__(self, estimator: Any, fold: Fold, settings: TrainingSettings) -> None:
        self._estimator, self._fold = estimator, fold  # shared by the models of all folds
        self._settings, self._rows = settings, row_count(fold.X)
        self._head_params, self._params = step_params(self._estimator, fold.fit_params)
        self._scores_by_weight = True  # False as soon as the scorer rejects weights
        self._model: Any = None
        self._head: Any = None  # the fitted steps before the last one of a pipeline
        # Functions already called once, which have checked the settings.
        self._checked: set[str] = set()
        # Finished: True if the estimator's own rule stopped it.
        self.steps, self.finished = 0, False
        # Settings that the model is trained with and keeps afterwards.
        self._own: dict[str, Any] = {}
        self._lent: dict[str, Any] = {}  # settings that apply only during training
        self.patience: Patience | None = None  # set if the estimator has early stopping
        self.best_copy: Any = None  # copy of the best model, if it cannot be cut from the model
        model = last_step(self._estimator)
        self._describe(model, model.get_params(deep=False))
        keeps = self._settings.best_iteration
        self.keeps_best = self.full_steps > 1 and (
            self.patience is not None if keeps is None else keeps
        )
        if not self.keeps_best:
            self.patience = None
        if self.patience is not None:
            self.how += f", until {self.patience.steps} steps have no better score"

    @property
    def estimator(self) -> Any:
        """The estimator whose clone is trained."""
        return self._estimator

    @property
    def fold(self) -> Fold:
        """The training rows and the held-out rows."""
        return self._fold

    @abstractmethod
    def _describe(self, model: Any, params: dict[str, Any]) -> None:
        """Set `how` and `full_steps` from an untrained estimator and its settings."""

    @abstractmethod
    def _train(self, steps: int) -> None:
        """Train the model further and count the steps."""

    def train(self, steps: int = 1) -> None:
        """Train up to `steps` more steps; fewer if the estimator's own rule stops it."""
        if self._model is None:
            self._start(self._untrained())
        if not self.finished:
            with self._lent_settings():
                self._train(steps)

    def fit(self) -> None:
        """Train an untrained model completely by the estimator's own `fit`."""
        self._start(self._untrained())
        # The estimator's settings define this training, converged or not.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._fit()
        self.steps = max(1, self._fitted_steps())
        self.finished = self.steps < self.full_steps

    def _fitted_steps(self) -> int:
        """Return the number of steps that the estimator's own `fit` has done."""
        return self.full_steps

    def _untrained(self) -> Any:
        return clone(last_step(self._estimator)).set_params(**self._own)

    @contextmanager
    def _lent_settings(self) -> Iterator[None]:
        """Change the model's settings during its training, and restore them afterwards."""
        model, users = self._model, {}
        for name, value in self._lent.items():
            users[name] = getattr(model, name)
            setattr(model, name, value)
        try:
            yield
        finally:
            for name, value in users.items():
                setattr(model, name, value)

    def _call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function that trains or scores; only its first call checks the settings.

        The settings do not change, and on small data their check takes a tenth of a step. Rows are
        checked at each call.
        """
        name = getattr(function, "__name__", "score")
        with config_context(skip_parameter_validation=name in self._checked or None):
            result = function(*arguments, **named)
        self._checked.add(name)
        return result

    def _fit(self) -> None:
        self._call(self._model.fit, self._X, self._fold.y, **self._params)

    def score(self, scorer: Scorer, on_training_rows: bool = False, whole: bool = False) -> Any:
        """Return the score on the held-out rows; a dict if there are several metrics.

        For a pipeline, its last step is scored on rows that were transformed once; with `whole`,
        the whole pipeline is scored.
        """
        fold, X, X_val = self._fold, self._X, self._X_val
        model = self._model if on_training_rows or whole else self._scored()
        if whole:
            model, X, X_val = self.model, fold.X, fold.X_val
        rows, params = (X_val, fold.y_val), fold.score_params
        if on_training_rows:
            rows, params = (X, fold.y), fold.train_score_params
        params = params if self._scores_by_weight else {}
        checked = "score" in self._checked or isinstance(model, KnownPredictions)
        if isinstance(scorer, Accuracy) and checked and not params:
            return scorer.of_checked_rows(model, *rows)
        try:
            return self._call(scorer, model, *rows, **params)
        except TypeError:
            if not params or routing_enabled():
                raise
            self._scores_by_weight = False  # the scorer accepts no weights
            return self._call(scorer, model, *rows)

    def predictions(self, classes: Any) -> Any:
        """Return the predictions for the held-out rows; a classifier predicts probabilities.

        The result is None if a classifier has no probabilities, or not for all `classes`.
        """
        if classes is not None and not np.array_equal(self.classes, classes):
            return None
        predicted = self.predicted("predict" if classes is None else "predict_proba")
        return None if predicted is None else np.asarray(predicted, dtype=np.float64)

    def predicted(self, method: str) -> Any:
        """Return a method's predictions for the held-out rows; None without that method."""
        function = getattr(self._scored(), method, None)
        return None if function is None else one_per_row(self._call(function, self._X_val))

    @property
    def classes(self) -> Any:
        """The classes that the trained model knows; None if it is not a classifier."""
        known = getattr(self._model, "classes_", None) if is_classifier(self.estimator) else None
        return None if known is None else np.asarray(known)

    def _scored(self) -> Any:
        """Return the object to score: the model, or its known predictions of held-out rows."""
        return self._model

    @property
    def model(self) -> Any:
        """The trained estimator; it is a pipeline if the user passed a pipeline."""
        return self._whole(self._model)

    def _whole(self, model: Any) -> Any:
        if self._head is None:
            return model
        whole = clone(self._estimator)
        whole.steps = [*self._head.steps, (self._estimator.steps[-1][0], model)]
        return whole

    # --- the best iteration ---

    def iterations(self, steps: int) -> int:
        """Return the number of the estimator's own iterations in `steps` steps."""
        return steps * self._settings.step

    def keep(self) -> None:
        """Store the model as it is now, because it has the best score so far."""
        self.best_copy = deepcopy(self._model)

    def model_of(self, steps: int) -> Any:
        """Return the trained estimator as it was stored after `steps` steps."""
        return self._whole(self._cut_to(steps))

    def _cut_to(self, steps: int) -> Any:
        """Return the model as it was stored after `steps` steps."""
        return self.best_copy

    def end_at(self, steps: int) -> None:
        """End the training with the model that was stored after `steps` steps."""
        self._model, self.best_copy, self.finished = self._cut_to(steps), None, True

    def state(self) -> tuple[Any, dict[str, Any]]:
        """Return the state that training changes; without the steps before the last one."""
        return self._model, {name: getattr(self, name) for name in self.kept}

    def restore(self, model: Any, progress: Mapping[str, Any]) -> None:
        """Restore the state that `state` returned; steps before the last one are fitted again."""
        for name in self.kept:
            setattr(self, name, progress[name])
        if model is not None:
            self._start(model)

    def _start(self, model: Any) -> None:
        """Fit the steps before the last one on all training rows; store the transformed rows."""
        self._X, self._X_val = self._fold.X, self._fold.X_val
        if has_head(self._estimator):
            heads = self._fold.heads or SharedHeads()
            self._head, self._X, self._X_val = heads.fitted(
                self._estimator[:-1], self._X, self._fold.y, self._X_val, self._head_params
            )
        self._model = model
