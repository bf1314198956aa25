"""A scikit-learn estimator as a learner."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import unique_labels

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, SettingError, need_whole, require, unknown
from latebloomer.integrations.sklearn.checkpoint_formats import (
    CheckpointFormat,
    LearnerState,
    checkpoint_format_for,
)
from latebloomer.integrations.sklearn.data_splits import (
    Fold,
    fold_with,
    folds_of,
    indexable_data,
    row_count,
    split_rows,
)
from latebloomer.integrations.sklearn.fit_params import need_one_per_row, takes_weights
from latebloomer.integrations.sklearn.training import (
    FoldModel,
    Scorer,
    TrainingSettings,
    last_step,
    training_mode,
)


class SklearnLearner:
    """An estimator that is trained a little more by each pull and scored on rows held out.

    A step is one `partial_fit` batch of `batch` rows (epochs wrap around, each in a new order);
    with `batch=None` one epoch, or a hundredth of the rows for an estimator without `max_iter`.
    For one without `partial_fit` it is `step` more trees or iterations with `warm_start`; `how`
    tells which. `full_steps` is how many steps the estimator itself declares: `max_iter` epochs,
    `n_estimators` trees, or one pass over the rows. One that meets its own rule to stop (`tol`,
    `n_iter_no_change`) has finished. `validation` is the share of rows held out, `(X_val, y_val)`,
    or a splitter: with k folds each pull trains k models and the score is their mean.
    `sample_weight` has a weight for each row, to train by and to score by. The estimator itself
    stays as it is; `model` is the trained clone. Checkpoints are pickles;
    `checkpoint_format="skops"` writes them without, and loads only types that skops or `trusted`
    lists.

    Parameters
    ----------
    estimator : Any
        A scikit-learn estimator or pipeline.
    X : Any
        Rows.
    y : Any
        Targets.
    batch : int | None
        Rows of a step, for estimators with `partial_fit`; None for an epoch.
    scoring : Any
        As in scikit-learn; the estimator's own score if None.
    validation : Any
        A share, `(X_val, y_val)`, a number of folds, or a splitter.
    random_state : int | None
        Of the split, the orders and the estimator.
    step : int
        Trees or iterations of a step.
    checkpoint_format : str
        "pickle" or "skops".
    trusted : Iterable[str | type] | None
        Types that skops may load.
    sample_weight : Any
        A weight for each row, to train by and to score by.

    Raises
    ------
    LearnerError
        The estimator has no way to be trained step by step.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = SklearnLearner(GaussianNB(), X, y, batch=10, random_state=0)
    >>> learner.how
    'partial_fit: 10 of 120 rows a step, reshuffled every epoch'
    >>> learner.full_steps, [learner.pull() > 0.3 for _ in range(3)], learner.pull(steps=9) > 0.8
    (12, [True, True, True], True)
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        batch: int | None = 64,
        scoring: Any = None,
        validation: Any = 0.2,
        random_state: int | None = None,
        step: int = 1,
        checkpoint_format: str = "pickle",
        trusted: Iterable[str | type] | None = None,
        sample_weight: Any = None,
    ) -> None:
        training_mode(estimator)  # says what cannot be trained, before anything is split
        checkpoints = checkpoint_format_for(checkpoint_format, trusted)
        seed = seed_from(random_state)
        batch, step = batch_rows(batch), need_positive("step", step)
        scorer = scorer_for(last_step(estimator), scoring)
        X, y = indexable_data(X, y)
        weights: dict[str, Any] = {}
        if sample_weight is not None:
            need_one_per_row("sample_weight", sample_weight, X)
            weights = {"sample_weight": sample_weight}
        if isinstance(validation, tuple):
            folds = [fold_with(X, y, validation, weights)]
        else:
            splits = split_rows(X, y, validation, is_classifier(estimator), seed, "validation")
            folds = folds_of(X, y, splits, weights, weights if takes_weights(scorer) else {})
        settings = TrainingSettings(classes_of(estimator, y), batch, step, seed)
        self._begin(estimator, folds, scorer, settings, checkpoints)

    @classmethod
    def on_folds(
        cls,
        estimator: Any,
        folds: list[Fold],
        scorer: Scorer,
        settings: TrainingSettings,
        checkpoints: CheckpointFormat,
    ) -> SklearnLearner:
        """A learner on rows that have been split already; they may lack rows to score on."""
        self = cls.__new__(cls)
        self._begin(estimator, folds, scorer, settings, checkpoints)
        return self

    def _begin(
        self,
        estimator: Any,
        folds: list[Fold],
        scorer: Scorer,
        settings: TrainingSettings,
        checkpoints: CheckpointFormat,
    ) -> None:
        self.estimator, self._scorer, self._checkpoints = estimator, scorer, checkpoints
        self._rows = [row_count(fold.X) for fold in folds]
        self._models = [FoldModel(estimator, fold, settings) for fold in folds]

    def pull(self, steps: int = 1) -> float:
        """Train so many steps more and return the score on the rows held out.

        An estimator that is trained by its own rule raises `StopIteration`.
        """
        if self.finished:
            raise StopIteration
        self.train(steps)
        return float(np.mean(self.fold_scores()))

    def fold_scores(self) -> list[Any]:
        """The score on each fold's rows held out; with several metrics a dict for each."""
        return [model.score(self._scorer) for model in self._models]

    def train(self, steps: int = 1) -> None:
        """Train so many steps more, without a score."""
        for model in self._models:
            model.train(steps)

    @property
    def finished(self) -> bool:
        """Whether it is trained, by its own rule."""
        return all(model.finished for model in self._models)

    @property
    def full_steps(self) -> int:
        """Steps of a full training, by what the estimator declares."""
        return self._models[0].full_steps

    @property
    def model(self) -> Any:
        """The estimator as trained so far (with several folds, on the first); None before."""
        return self._models[0].model

    @property
    def steps(self) -> int:
        """Steps so far."""
        return self._models[0].steps

    @property
    def how(self) -> str:
        """What a step is, in words."""
        folds = len(self._models)
        return self._models[0].describe() + (f"; {folds} folds" if folds > 1 else "")

    # --- outliving the process ---

    def save(self, folder: Path) -> None:
        """Write what training has changed; the data are not saved."""
        states = [model.state() for model in self._models]
        self._checkpoints.write(
            LearnerState(repr(self.estimator), self._rows, states), Path(folder)
        )

    def load(self, folder: Path) -> None:
        """Become what was saved. A pickle can run any code: load only those that you trust."""
        self._checkpoints.need_own(Path(folder))
        estimator, rows, states = self._checkpoints.read(Path(folder))
        if (estimator, rows) != (repr(self.estimator), self._rows):
            raise LearnerError(
                f"the checkpoint is of {estimator} on {rows} training rows, but this learner is "
                f"{self.estimator!r} on {self._rows}: give the same estimator, data and validation"
            )
        for model, state in zip(self._models, states, strict=True):
            model.restore(state)


def scorer_for(estimator: Any, scoring: Any) -> Scorer:
    """What scores an estimator: its own `score`, a metric by name, or a function."""
    if scoring is not None:
        need_scoring(scoring)
    return check_scoring(estimator, scoring=scoring)


def need_scoring(scoring: Any) -> None:
    """Raise where something is no metric's name and no function."""
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        raise unknown("scoring", scoring, get_scorer_names())
    if not isinstance(scoring, str) and not callable(scoring):
        raise SettingError(
            f"scoring={brief(scoring)}, but scoring must be one metric's name, a function of "
            "(estimator, X, y), or None: a race has one winner"
        )


SHARES = ("accuracy", "precision", "recall", "f1", "jaccard", "roc_auc")  # metrics from 0 to 1


def score_range_of(estimator: Any, scoring: Any) -> tuple[float | None, float | None] | None:
    """What a score cannot leave, where that is known; None for an open end.

    >>> from sklearn.linear_model import SGDClassifier, SGDRegressor
    >>> score_range_of(SGDClassifier(), None), score_range_of(SGDRegressor(), "r2")
    ((0, 1), (None, 1))
    """
    if scoring is None:
        own = getattr(type(last_step(estimator)), "score", None)
        if own is ClassifierMixin.score:
            return 0, 1
        return (None, 1) if own is RegressorMixin.score else None
    if not isinstance(scoring, str):
        return None
    if scoring.startswith("neg_"):
        return None, 0
    if any(name in scoring for name in SHARES):
        return 0, 1
    return (None, 1) if scoring in ("r2", "explained_variance") else None


def classes_of(estimator: Any, y: Any) -> Any:
    """All classes, for the first `partial_fit`; None for a regressor."""
    if not is_classifier(estimator):
        return None
    if isinstance(last_step(estimator), MultiOutputClassifier):
        return [np.unique(column) for column in np.asarray(y).T]
    classes = unique_labels(y)
    if len(classes) < 2:
        raise SettingError(
            f"y has a single class, {classes[0]!r}, but a classifier needs at least 2 classes: "
            "with one there is nothing to learn"
        )
    return classes


def need_positive(name: str, value: Any) -> int:
    """A whole number from 1 on."""
    number = need_whole(name, value)
    require(number >= 1, name, value, "at least 1", "each pull must train on something")
    return number


def batch_rows(batch: Any) -> int | None:
    """Rows of a batch, or None: by epochs."""
    return None if batch is None else need_positive("batch", batch)


def seed_from(random_state: Any) -> int:
    """A number drawn from a seed, a generator or nothing."""
    return int(check_random_state(random_state).randint(2**31 - 1))
