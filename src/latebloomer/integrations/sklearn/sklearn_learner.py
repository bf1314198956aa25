"""`SklearnLearner`: a scikit-learn estimator as a learner."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import is_classifier

from latebloomer._util.text import plain_repr
from latebloomer.errors import LearnerError, require
from latebloomer.integrations.sklearn import splits
from latebloomer.integrations.sklearn.metrics import FoldScores, Metrics, Range, need_scoring
from latebloomer.integrations.sklearn.model_files import ModelFormat, model_format
from latebloomer.integrations.sklearn.row_parts import parts_of_score
from latebloomer.integrations.sklearn.training.early_stopping import Patience
from latebloomer.integrations.sklearn.training.estimators import has_head, seeded, settings_of
from latebloomer.integrations.sklearn.training.fold_model import TrainingSettings, settings_for
from latebloomer.integrations.sklearn.training.model_kinds import model_class
from latebloomer.integrations.sklearn.training.warm_start_model import OneStepModel
from latebloomer.racing.same_race import differences
from latebloomer.theory.row_scores import RowScores

LABEL = "sklearn.json"


@dataclass(frozen=True)
class LearnerParts:
    """The parts of a learner, with rows that are already split."""

    estimator: Any
    folds: list[splits.Fold]
    settings: TrainingSettings
    metrics: Metrics
    checkpoints: ModelFormat


class BestIteration(NamedTuple):
    """The best score so far, and the number of steps at that time."""

    score: float
    steps: int
    scores: FoldScores  # scores by metric and fold


class SklearnLearner:
    """Wrap an estimator as a learner: each pull trains it further and scores it on held-out rows.

    For an estimator with `partial_fit`, a step is one batch of `batch` rows; each epoch has a new
    order of rows. With `batch=None`, a step is one epoch, or a hundredth of the rows if the
    estimator has no `max_iter`. For an estimator with `warm_start` or a booster, a step is `step`
    more trees, iterations or rounds. Any other estimator is trained in one step. `how` says which
    of these applies. `full_steps` is the number of steps in the training that the estimator
    declares: `max_iter` epochs, `n_estimators` trees, or one pass over the rows. An estimator
    whose own rule to stop applies (`tol`, `n_iter_no_change`) has finished.

    `estimator` itself is not changed; `model` is the trained clone.

    Parameters
    ----------
    estimator : Any
        A scikit-learn estimator or pipeline.
    X : Any
        Rows.
    y : Any
        Targets.
    batch : int | None
        Number of rows in a step, for estimators with `partial_fit`; None: one epoch.
    scoring : Any
        Name of a metric, or a function of (estimator, X, y). Default: the `score` method of the
        estimator.
    validation : Any
        Held-out rows: a share of the rows, `(X_val, y_val)`, a number of folds, or a splitter.
        With k folds, each pull trains k models, and the score is their mean score.
    random_state : int | None
        Seed for the split, the order of rows and the estimator.
    step : int
        Number of trees or iterations in a step, for estimators without `partial_fit`.
    checkpoint_format : str
        "pickle", or "skops" for checkpoints that cannot run code when they are loaded.
    trusted : Iterable[str | type] | None
        Types that skops may load, in addition to those that it trusts by default.
    sample_weight : Any
        Weight of each row, for training and for the score. Default: equal weights.
    best_iteration : bool | None
        Whether `model` is the model with the best score so far, instead of the latest one.
        Default: True if the estimator has a setting for early stopping (`early_stopping_rounds`,
        `early_stopping=True`). If True, the learner has finished when the score has not improved
        for the number of iterations that the estimator sets.

    Raises
    ------
    LearnerError
        The estimator is a class, has no `fit`, or stops its training itself.

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
        best_iteration: bool | None = None,
    ) -> None:
        model_class(estimator)  # raises an error before rows are split
        checkpoints = model_format(checkpoint_format, trusted)
        seed, metrics = splits.seed_from(random_state), Metrics(need_scoring(scoring))
        X, y = splits.indexable_data(X, y)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        for name, values in weights.items():
            splits.need_one_per_row(name, values, X)
        if isinstance(validation, tuple):
            has_rows = len(validation) == 2 and splits.row_count(validation[1]) > 0
            needed = "(X_val, y_val) with rows, a share of the rows or a splitter"
            require(has_rows, "validation", validation, needed, "a score needs held-out rows")
            held = splits.indexable_data(validation[0], validation[1], "y_val")
            folds = [splits.Fold(X, y, *held, weights)]
        else:
            classifier = is_classifier(estimator)
            pairs = splits.split_rows(X, y, validation, classifier, seed, "validation", {})
            folds = splits.folds_of(X, y, pairs, weights, weights)
        settings = settings_for(estimator, y, batch, step, seed, best_iteration)
        self._set_up(LearnerParts(estimator, folds, settings, metrics, checkpoints))
        self.score_range: Range | None = metrics.range_of(estimator)

    @classmethod
    def from_parts(cls, parts: LearnerParts) -> Self:
        """Return a learner with rows that are already split."""
        learner = cls.__new__(cls)
        learner._set_up(parts)
        return learner

    def _set_up(self, parts: LearnerParts) -> None:
        self.estimator, folds, self._metrics = parts.estimator, parts.folds, parts.metrics
        self._checkpoints = parts.checkpoints
        self._scores: FoldScores = {}  # latest scores by metric
        self._scorer = self._metrics.quick_scorer(self.estimator, folds[0].y_val)
        self.score: float | None = None  # the latest
        self._rows = [splits.row_count(fold.X) for fold in folds]
        kind = model_class(self.estimator)
        own = seeded(self.estimator, parts.settings.seed)
        self._models = [kind(own, fold, parts.settings) for fold in folds]
        self.full_steps = self._models[0].full_steps  # as the estimator declares
        self.in_one_step = kind is OneStepModel
        self.keeps_best = self._models[0].keeps_best
        self._best: BestIteration | None = None
        head = ", after steps fitted once" if has_head(self.estimator) else ""
        self.how = f"{self._models[0].how}{head}{f'; {len(folds)} folds' * (len(folds) > 1)}"

    def pull(self, steps: int = 1) -> float:
        """Train up to `steps` more steps and return the score on the held-out rows.

        If the estimator's own rule has stopped it, `StopIteration` is raised.
        """
        if self.finished:
            raise StopIteration
        self.train(steps)
        self._scores = self._metrics.scores(self._scorer, self._models)
        self.score = float(np.mean(self._scores[f"test_{self._metrics.leading}"]))
        if self.keeps_best:
            self._judge(self.score)
        return self.score

    def _judge(self, score: float) -> None:
        """Store the best iteration; finish with it after the patience or the full training."""
        patience, best = self.patience, self._best
        if best is None or score > best.score + (patience.least_gain if patience else 0.0):
            self._best = BestIteration(score, self.steps, self._scores)
            for model in self._models:
                model.keep()
            return
        out_of_patience = patience is not None and patience.is_over(self.steps - best.steps)
        if out_of_patience or self.finished or self.steps >= self.full_steps:
            for model in self._models:
                model.end_at(best.steps)
            self.score, self._scores = best.score, best.scores

    @property
    def patience(self) -> Patience | None:
        """How long training continues without a better score; None: until the training ends."""
        return self._models[0].patience

    def iterations(self, steps: int) -> int:
        """Return the number of epochs, trees or rounds in `steps` steps."""
        return self._models[0].iterations(steps)

    @property
    def best_steps(self) -> int:
        """Number of steps of the best iteration if that is kept; else of all steps so far."""
        return self.steps if self._best is None else self._best.steps

    @property
    def score_details(self) -> FoldScores | None:
        """The latest scores of each metric by fold; None if there is only one score."""
        return self._scores if len(self._scores) > 1 or len(self._models) > 1 else None

    def train(self, steps: int = 1) -> None:
        """Train up to `steps` more steps without scoring."""
        for model in self._models:
            model.train(steps)

    def fit(self) -> None:
        """Train an untrained learner completely by the estimator's own `fit`."""
        for model in self._models:
            model.fit()

    @property
    def finished(self) -> bool:
        """True if the estimator's own rule has stopped its training."""
        return all(model.finished for model in self._models)

    @property
    def model(self) -> Any:
        """The trained estimator, of the first fold if there are several; None before a pull.

        If the best iteration is kept, it is the estimator of that iteration.
        """
        ahead = not self.finished and self.best_steps < self.steps
        first = self._models[0]
        return first.model_of(self.best_steps) if ahead else first.model

    @property
    def models(self) -> list[Any]:
        """The trained estimator of each fold."""
        return [model.model for model in self._models]

    def predictions(self, classes: Any) -> list[Any] | None:
        """Return the predictions for the held-out rows of each fold; None if any are missing.

        For a classifier, the predictions are class probabilities.
        """
        outputs = [model.predictions(classes) for model in self._models]
        return None if any(output is None for output in outputs) else outputs

    @property
    def row_scores(self) -> list[RowScores] | None:
        """The parts of each fold's score, one per held-out row; None if there are none."""
        if self.model is None:
            return None
        scored = [parts_of_score(self._metrics, model) for model in self._models]
        known = [parts for parts in scored if parts is not None]
        return known if len(known) == len(scored) else None

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self._models[0].steps

    def save(self, folder: Path) -> None:
        """Write the state that training changes; the data are not saved."""
        states = [model.state() for model in self._models]
        for number, (model, _) in enumerate(states):
            self._checkpoints.write(model, Path(folder), number)
        copies = {n: model.best_copy for n, model in enumerate(self._models, len(states))}
        kept = [number for number, model in copies.items() if model is not None]
        for number in kept:
            self._checkpoints.write(copies[number], Path(folder), number)
        label = [self._label(), [progress for _, progress in states], self._best, kept]
        (Path(folder) / LABEL).write_text(json.dumps(label), encoding="utf-8")

    def _label(self) -> dict[str, Any]:
        """Return the values that a checkpoint and the learner that loads it must share."""
        settings = settings_of(self.estimator).items()
        return {name: plain_repr(value) for name, value in settings} | {"rows": self._rows}

    def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`.

        A pickle can run any code when it is loaded: load only checkpoints that you trust.
        """
        self._checkpoints.need_own(Path(folder))
        text = (Path(folder) / LABEL).read_text(encoding="utf-8")
        label, progress, best, kept = json.loads(text)
        if other := differences(label, self._label()):
            cure = "Give the same estimator, data and validation."
            raise LearnerError(f"The checkpoint is of another learner: {'; '.join(other)}. {cure}")
        for number, model in enumerate(self._models):
            model.restore(self._checkpoints.read(Path(folder), number), progress[number])
        for number in kept:
            model = self._models[number - len(self._models)]
            model.best_copy = self._checkpoints.read(Path(folder), number)
        self._best = None if best is None else BestIteration(*best)
