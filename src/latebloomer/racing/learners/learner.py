"""Learners: an object with `pull`, a function that builds one, or a generator of scores.

The shortest learner is a generator function::

    def net(seed):
        model = make_model(seed)
        while True:
            train_one_epoch(model)
            yield accuracy(model), model     # or only the score; or with row scores, too

`pull` trains one more step and returns the score afterwards. When nothing is left to train, it
raises `StopIteration`, as a generator does at its end; the learner then keeps its last score. A
learner may have `pull(steps=1)`: if a pull of the race is many of its steps, the race requests all
of them in one call, and the learner is scored once.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isclose
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard, runtime_checkable

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, RewardError
from latebloomer.session import checked_inputs as inputs
from latebloomer.session.checked_inputs import LARGEST
from latebloomer.theory.row_scores import RowScores, mean_of_rows


@runtime_checkable
class Learner(Protocol):
    """An object that is trained step by step; `save(folder)` and `load(folder)` are optional."""

    def pull(self) -> float:
        """Train one more step and return the score afterwards."""


@runtime_checkable
class CanSave(Protocol):
    """A learner whose state can be saved and loaded."""

    def save(self, folder: Path) -> None:
        """Write the state into an empty folder."""

    def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`."""


Given: TypeAlias = Learner | Callable[..., Any]


class ScoreStream:
    """A learner made of a generator of scores, (score, model) or (score, model, row scores)."""

    def __init__(
        self, scores: Iterator[Any], details: Callable[[], Mapping[str, Any]] | None = None
    ) -> None:
        self.scores, self._details = scores, details
        self.model: Any = None  # the model that was yielded with the latest score
        self.row_scores: Any = None

    @property
    def score_details(self) -> Mapping[str, Any] | None:
        """Details reported with a score; None if there are none."""
        return None if self._details is None else self._details()

    def pull(self) -> float:
        item = next(self.scores)
        if isinstance(item, tuple) and len(item) == 2:
            if _is_score(item[1]):
                raise LearnerError(
                    f"it yielded {brief(item)}, two numbers: yield the validation score alone, or "
                    "(score, model) to get the trained model"
                )
            item, self.model = item
        elif isinstance(item, tuple) and len(item) == 3:
            item, self.model, self.row_scores = item
        return item


def _is_score(value: Any) -> bool:
    """Return whether a value is a float or an array of one number, and so not a model."""
    fraction = isinstance(value, Real) and not isinstance(value, Integral)
    return fraction or getattr(value, "shape", None) == ()


class Share(NamedTuple):
    """The share of its full training that is one pull of a learner.

    >>> Share(250, 100).steps_after(1), Share(250, 100).steps_of(2)
    (3, 2)
    """

    full_steps: int  # number of steps in this learner's full training
    pulls: int  # number of pulls in a full training, equal for all learners

    def steps_after(self, n: int) -> int:
        """Return the steps after n pulls: round(n * full / pulls), and at least 1."""
        return max(min(n, 1), (2 * n * self.full_steps + self.pulls) // (2 * self.pulls))

    def steps_of(self, n: int) -> int:
        """Return the steps of the n-th pull; 0 if it adds none."""
        return self.steps_after(n) - self.steps_after(n - 1)

    @property
    def repeats_scores(self) -> bool:
        """True if some pulls add no step, so that they repeat the last score."""
        return self.full_steps < self.pulls and not self.in_one_step

    @property
    def in_one_step(self) -> bool:
        """True if the first pull is the full training: then the learner has finished."""
        return self.full_steps == 1


class ShareLearner:
    """A learner of which each pull is a share of its full training."""

    def __init__(self, learner: Any, share: Share) -> None:
        self.learner, self.share = learner, share
        self.steps = 0  # number of steps of the latest pull
        self.pulls = 0
        self.score: Any = None  # the latest
        self._ended = False
        self._at_once = takes(learner.pull, "steps")
        for name in ("save", "load"):
            if hasattr(learner, name):
                setattr(self, name, getattr(learner, name))

    def pull(self) -> Any:
        """Train the steps of the next pull; if it has no step, repeat the last score."""
        steps = self.share.steps_of(self.pulls + 1)
        if (steps and self._ended) or (self.pulls and self.share.in_one_step):
            raise StopIteration
        self.steps = self._train(steps) if steps else 0
        self.pulls += 1
        return self.score

    def _train(self, steps: int) -> int:
        """Train `steps` steps, or as many as are left, and return their number."""
        if self._at_once:
            self.score = self.learner.pull(steps=steps)
            return steps
        for done in range(steps):
            try:
                self.score = self.learner.pull()
            except StopIteration:
                if done == 0:
                    raise
                self._ended = True
                return done
        return steps


def as_score(value: Any) -> float:
    """Return the result of a pull as a float; raise a `LearnerError` if it is not finite."""
    if type(value) is float and -LARGEST <= value <= LARGEST:  # most values are floats
        return value
    try:
        return inputs.as_score(value)
    except RewardError:
        needed = f"a finite number of at most {LARGEST:g}: check the metric"
        raise LearnerError(f"the score is {brief(value)}, but it must be {needed}") from None


def evaluation(learner: Any) -> float | None:
    """Return the score of a learner's `evaluate()`, which is optional; None without one."""
    evaluate = getattr(bare(learner), "evaluate", None)
    try:
        inspect.signature(evaluate).bind()  # type: ignore[arg-type]
    except (TypeError, ValueError):  # there is no such method, or it needs arguments
        return None
    try:
        value = evaluate()  # type: ignore[misc]
    except LearnerError:  # it has no score without training; its score may be a training loss
        return None
    return as_score(value) if isinstance(value, Real) else None


def wrong_evaluation(learner: Any, score: float) -> float | None:
    """Return the evaluation of a restored learner if it differs from its recorded score.

    The result is None if they differ only by rounding, which can happen on another machine. It is
    also None if repeated evaluations give different values, because such an evaluation proves
    nothing.
    """
    value = evaluation(learner)
    if value is None or isclose(value, score, rel_tol=1e-4, abs_tol=1e-6):
        return None
    return value if evaluation(learner) == value else None


def can_save(learner: Any) -> TypeGuard[CanSave]:
    """Return whether a learner can save and load."""
    return callable(getattr(learner, "save", None)) and callable(getattr(learner, "load", None))


def trained(learner: Any) -> Any:
    """Return the object for the user: the learner, or a generator's model if it yields one."""
    learner = bare(learner)
    if isinstance(learner, ScoreStream):
        return learner.scores if learner.model is None else learner.model
    return learner


def bare(learner: Any) -> Any:
    """Return the learner itself, without the wrapper that makes its pulls shares."""
    return learner.learner if isinstance(learner, ShareLearner) else learner


def steps_of(learner: Any) -> int | None:
    """Return the steps of the latest pull, if a pull is a share of a full training."""
    return learner.steps if isinstance(learner, ShareLearner) else None


def stand_at(learner: Any, pulls: int, recorded: Sequence[float]) -> None:
    """Set the number of pulls of a learner that counts its pulls."""
    if isinstance(learner, ShareLearner):
        learner.pulls = pulls
        learner.score = recorded[pulls - 1] if pulls else None


def count_again(learner: Any, pulls: int) -> None:
    """Correct the number of pulls of a learner that counts them, because the latest failed."""
    if isinstance(learner, ShareLearner):
        learner.pulls = pulls


def details_of(learner: Any) -> Mapping[str, Any] | None:
    """Return the details of a learner's latest score, from its attribute `score_details`."""
    details = getattr(bare(learner), "score_details", None)
    return details if isinstance(details, Mapping) else None


def row_scores_of(learner: Any) -> list[RowScores] | None:
    """Return the row scores of a learner's latest score for each fold; None if it has none.

    They are its attribute `row_scores`, or the third value that a generator yields, after score
    and model. The value is the result of `latebloomer.row_scores`, a list of such results for
    folds, or one number per row.
    """
    scores = getattr(bare(learner), "row_scores", None)
    if scores is None:
        return None
    if isinstance(scores, RowScores):
        return [scores]
    if isinstance(scores, list | tuple) and scores and isinstance(scores[0], RowScores):
        return list(scores)
    return [mean_of_rows(scores)]


def takes(function: Any, name: str) -> bool:
    """Return whether a function has a parameter with this name."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False
