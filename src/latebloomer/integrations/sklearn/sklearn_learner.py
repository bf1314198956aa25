"""`SklearnLearner`: a scikit-learn estimator as a learner, and how its checkpoints are written."""

import json
import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import is_classifier

from latebloomer._util.text import plain_repr, reason_of
from latebloomer.errors import LearnerError, extra, require
from latebloomer.integrations.sklearn import splits, training
from latebloomer.integrations.sklearn.scoring import Metrics, Notes, Range, need_scoring
from latebloomer.racing.settings import differences


class SklearnLearner:
    """Wrap an estimator as a learner: each pull trains it further and scores it on held-out rows.

    A step is one `partial_fit` batch of `batch` rows (epochs wrap around, each in a new order);
    with `batch=None` one epoch, or a hundredth of the rows for an estimator without `max_iter`.
    For an estimator without `partial_fit` a step is `step` more trees or iterations with
    `warm_start`, or a booster's rounds; any other estimator is trained in one step. `how` tells
    which. `full_steps` is the number of steps that the estimator itself declares: `max_iter`
    epochs, `n_estimators` trees, or one pass over the rows. An estimator that meets its own rule
    to stop (`tol`, `n_iter_no_change`) has finished.

    The given estimator is not changed; `model` is the trained clone.

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
        Metric's name, or function of (estimator, X, y). Default: the estimator's own score.
    validation : Any
        Held-out rows: a share, `(X_val, y_val)`, a number of folds, or a splitter. With k folds
        each pull trains k models, and the score is their mean.
    random_state : int | None
        Seed for the split, the order of rows and the estimator.
    step : int
        Trees or iterations of a step, for estimators without `partial_fit`.
    checkpoint_format : str
        "pickle", or "skops" for checkpoints that are loaded without running any code.
    trusted : Iterable[str | type] | None
        Types that skops may load, in addition to those that it trusts itself.
    sample_weight : Any
        A weight for each row, for training and for the score.

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
    ) -> None:
        training.model_class(estimator)  # raises an error before anything is split
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
        settings = training.settings_for(estimator, y, batch, step, seed)
        self._set_up((estimator, folds, settings, metrics, checkpoints, Notes()))
        self.score_range: Range | None = metrics.range_of(estimator)

    @classmethod
    def made_of(cls, parts: "Parts") -> "SklearnLearner":
        """Return a learner on rows that have been split already."""
        self = cls.__new__(cls)
        self._set_up(parts)
        return self

    def _set_up(self, parts: "Parts") -> None:
        self.estimator, folds, settings, self._metrics, self._format, self._notes = parts
        self._scorer = self._metrics.scorer(self.estimator)
        self._rows = [splits.row_count(fold.X) for fold in folds]
        kind = training.model_class(self.estimator)
        self._models = [kind(self.estimator, fold, settings) for fold in folds]
        self.full_steps = self._models[0].full_steps  # by what the estimator declares
        self.in_one_step = kind is training.OneStepModel
        head = ", after steps fitted once" if training.has_head(self.estimator) else ""
        self.how = f"{self._models[0].how}{head}{f'; {len(folds)} folds' * (len(folds) > 1)}"

    def pull(self, steps: int = 1) -> float:
        """Train up to `steps` more steps and return the score on the held-out rows.

        An estimator that its own rule has stopped raises `StopIteration`.
        """
        if self.finished:
            raise StopIteration
        self.train(steps)
        scores = self._notes.scores = self._metrics.scores(self._scorer, self._models)
        return float(np.mean(scores[f"test_{self._metrics.leading}"]))

    def train(self, steps: int = 1) -> None:
        """Train up to `steps` more steps, without a score."""
        for model in self._models:
            model.train(steps)

    @property
    def finished(self) -> bool:
        """True if the estimator's own rule has stopped its training."""
        return all(model.finished for model in self._models)

    @property
    def model(self) -> Any:
        """The estimator as trained so far (with several folds, on the first); None before."""
        return self._models[0].model

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self._models[0].steps

    def save(self, folder: Path) -> None:
        """Write what training has changed; the data are not saved."""
        states = [model.state() for model in self._models]
        for number, (model, _) in enumerate(states):
            self._format.write(model, Path(folder), number)
        label = [self._label(), [progress for _, progress in states]]
        (Path(folder) / LABEL).write_text(json.dumps(label), encoding="utf-8")

    def _label(self) -> dict[str, Any]:
        """Return what a checkpoint must have in common with the learner that loads it."""
        settings = training.settings_of(self.estimator).items()
        return {name: plain_repr(value) for name, value in settings} | {"rows": self._rows}

    def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`.

        A pickle can run any code: load only those that you trust.
        """
        self._format.need_own(Path(folder))
        text = (Path(folder) / LABEL).read_text(encoding="utf-8")
        label, progress = json.loads(text)
        if other := differences(label, self._label()):
            cure = "Give the same estimator, data and validation."
            raise LearnerError(f"The checkpoint is of another learner: {'; '.join(other)}. {cure}")
        for number, model in enumerate(self._models):
            model.restore(self._format.read(Path(folder), number), progress[number])


# --- checkpoints ---

LABEL = "sklearn.json"
FORMATS = ("pickle", "skops")
# In addition to what skops trusts of scikit-learn: the optimizers of its nets are numbers and
# arrays. Trees are not listed: scikit-learn follows the indices in them without a check of bounds.
OPTIMIZERS = "sklearn.neural_network._stochastic_optimizers"
TRUSTED = (f"{OPTIMIZERS}.AdamOptimizer", f"{OPTIMIZERS}.SGDOptimizer")


class ModelFormat(NamedTuple):
    """How the models of a checkpoint are written: as pickles, or by skops.

    A pickle can run any code when it is loaded. skops writes what a model consists of, and loads
    only types that are trusted.
    """

    name: str = "pickle"
    trusted: tuple[str, ...] = ()  # full names of types, in addition to `TRUSTED`

    def need_own(self, folder: Path) -> None:
        """Raise a `LearnerError` if a checkpoint is of another format: it is not opened."""
        saved = [name for name in FORMATS if (folder / f"model-0.{name}").is_file()]
        if self.name not in saved:
            found = f"was saved with checkpoint_format={saved[0]!r}" if saved else "has no such"
            raise LearnerError(
                f"checkpoint_format={self.name!r} reads model-0.{self.name}, but the checkpoint "
                f"{found}: continue with the format that the race was started with"
            )

    def write(self, model: Any, folder: Path, number: int) -> None:
        """Write the model of a fold."""
        if self.name == "pickle":
            data = pickle.dumps(model)
        else:
            with _failing(f"save {type(model).__name__}", "checkpoint_format='pickle' may"):
                data = bytes(_skops().dumps(model))
                self._need_trusted(data)  # now, rather than when the race is to be resumed
        (folder / f"model-{number}.{self.name}").write_bytes(data)

    def read(self, folder: Path, number: int) -> Any:
        """Return the model of a fold."""
        data = (folder / f"model-{number}.{self.name}").read_bytes()
        if self.name == "pickle":
            return pickle.loads(data)
        with _failing("load the model", "without its checkpoint the learner is trained again"):
            self._need_trusted(data)
            return _skops().loads(data, trusted=[*TRUSTED, *self.trusted])

    def _need_trusted(self, data: bytes) -> None:
        found = set(_skops().get_untrusted_types(data=data)) - {*TRUSTED, *self.trusted}
        if found:
            listed = sorted({*self.trusted, *found})
            said = f"the model holds {', '.join(sorted(found))}, which skops does not trust"
            cure = f"if only you can write checkpoints, set trusted={listed!r}"
            raise LearnerError(f"{said}: {cure}")


@contextmanager
def _failing(doing: str, advice: str) -> Iterator[None]:
    """Raise what skops cannot do as a `LearnerError`: a lambda, for example, has no name."""
    try:
        yield
    except LearnerError:
        raise
    except Exception as error:  # also what an object's own code raises
        raise LearnerError(f"skops cannot {doing} ({reason_of(error)}): {advice}") from error


def _skops() -> Any:
    return extra("skops.io", "checkpoints without pickle", "skops")


def model_format(name: Any, trusted: Any) -> ModelFormat:
    """Return the format that the settings `checkpoint_format` and `trusted` ask for.

    >>> model_format("skops", ["sklearn.tree._tree.Tree"])
    ModelFormat(name='skops', trusted=('sklearn.tree._tree.Tree',))
    """
    require(name in FORMATS, "checkpoint_format", name, "'pickle' or 'skops'",
            "it is how checkpoints are written")  # fmt: skip
    if name == "skops":
        _skops()  # raises an error before anything is trained
    require(name == "skops" or trusted is None, "trusted", trusted,
            "omitted without checkpoint_format='skops'", "a pickle may hold any type")  # fmt: skip
    types = list(trusted or ())
    require(not isinstance(trusted, str) and all(isinstance(one, str | type) for one in types),
            "trusted", trusted, "a list of types or of their full names",
            "such as 'sklearn.tree._tree.Tree'")  # fmt: skip
    names = (one if isinstance(one, str) else f"{one.__module__}.{one.__name__}" for one in types)
    return ModelFormat(name, tuple(names))


Parts: TypeAlias = tuple[
    Any, list[splits.Fold], training.TrainingSettings, Metrics, ModelFormat, Notes
]  # of a learner
