"""What can race: an object with `pull`, a function that makes one, or a generator of scores.

The shortest learner is a generator function::

    def net(seed):
        model = make_model(seed)
        while True:
            train_one_epoch(model)
            yield accuracy(model), model     # or only the score; or with row scores, too

A `pull` trains one more step and returns the score now. It raises `StopIteration`, as a generator
does at its end, when there is nothing left to train: the arm keeps its last score. A learner may
offer `pull(steps=1)`: if a pull of the race is many of its steps, all of them are requested
together, and it is scored once.
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
    """An arm that really trains. `save(folder)` and `load(folder)` are optional."""

    def pull(self) -> float:
        """Train one more unit and return the score now."""


@runtime_checkable
class CanSave(Protocol):
    """A learner whose state outlives the process."""

    def save(self, folder: Path) -> None:
        """Write the state into an empty folder."""

    def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`."""


Given: TypeAlias = Learner | Callable[..., Any]


class ScoreStream:
    """A generator of scores, of (score, model) or (score, model, row scores), as a learner."""

    def __init__(
        self, scores: Iterator[Any], details: Callable[[], Mapping[str, Any]] | None = None
    ) -> None:
        self.scores, self._details = scores, details
        self.model: Any = None  # what came with the newest score
        self.row_scores: Any = None

    @property
    def score_details(self) -> Mapping[str, Any] | None:
        """What else is reported with a score; None if nothing is."""
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
    """Return whether a value is a fraction, or an array of one number, and so not a model."""
    fraction = isinstance(value, Real) and not isinstance(value, Integral)
    return fraction or getattr(value, "shape", None) == ()


class Share(NamedTuple):
    """What part of its full training a learner's pull is.

    >>> Share(250, 100).steps_after(1), Share(250, 100).steps_of(2)
    (3, 2)
    """

    full_steps: int  # steps of this learner's full training
    pulls: int  # pulls of a full training, the same for all learners

    def steps_after(self, n: int) -> int:
        """Return the steps after n pulls: round(n * full / pulls), but the first pull trains."""
        return max(min(n, 1), (2 * n * self.full_steps + self.pulls) // (2 * self.pulls))

    def steps_of(self, n: int) -> int:
        """Return the steps of the n-th pull; 0 if it adds none."""
        return self.steps_after(n) - self.steps_after(n - 1)

    @property
    def repeats_scores(self) -> bool:
        """True if some pulls add no step and repeat the last score."""
        return self.full_steps < self.pulls and not self.in_one_step

    @property
    def in_one_step(self) -> bool:
        """True if the first pull is the full training: then the learner has finished."""
        return self.full_steps == 1


class ShareLearner:
    """A learner whose pull is a share of its full training."""

    def __init__(self, learner: Any, share: Share) -> None:
        self.learner, self.share = learner, share
        self.steps = 0  # of the newest pull
        self.pulls = 0
        self.score: Any = None  # the latest
        self._ended = False
        self._at_once = takes(learner.pull, "steps")
        for name in ("save", "load"):
            if hasattr(learner, name):
                setattr(self, name, getattr(learner, name))

    def pull(self) -> Any:
        """Train the steps of the next pull; one that adds none repeats the last score."""
        steps = self.share.steps_of(self.pulls + 1)
        if (steps and self._ended) or (self.pulls and self.share.in_one_step):
            raise StopIteration
        self.steps = self._train(steps) if steps else 0
        self.pulls += 1
        return self.score

    def _train(self, steps: int) -> int:
        """Train the steps, or those that are left, and return their number."""
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
    """Return a pull's result as a finite number; raise a `LearnerError` if it is none."""
    if type(value) is float and -LARGEST <= value <= LARGEST:  # most are
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
    except (TypeError, ValueError):  # there is none, or the user's own method takes arguments
        return None
    try:
        value = evaluate()  # type: ignore[misc]
    except LearnerError:  # it has no score without training, such as the loss on training rows
        return None
    return as_score(value) if isinstance(value, Real) else None


def wrong_evaluation(learner: Any, score: float) -> float | None:
    """Return the evaluation of a restored learner if it is not its recorded score, else None.

    An evaluation that differs only by rounding, as it can on another machine, is not wrong. One
    that gives another value each time it is made proves nothing, so it is not wrong either.
    """
    value = evaluation(learner)
    if value is None or isclose(value, score, rel_tol=1e-4, abs_tol=1e-6):
        return None
    return value if evaluation(learner) == value else None


def can_save(learner: Any) -> TypeGuard[CanSave]:
    """Return whether a learner can save and load."""
    return callable(getattr(learner, "save", None)) and callable(getattr(learner, "load", None))


def trained(learner: Any) -> Any:
    """Return what the user gets: the object, or a generator's model if it yields one."""
    learner = bare(learner)
    if isinstance(learner, ScoreStream):
        return learner.scores if learner.model is None else learner.model
    return learner


def bare(learner: Any) -> Any:
    """Return the learner that was built, without what makes its pulls shares."""
    return learner.learner if isinstance(learner, ShareLearner) else learner


def steps_of(learner: Any) -> int | None:
    """Return the steps of the latest pull, if a pull is a share of a full training."""
    return learner.steps if isinstance(learner, ShareLearner) else None


def stand_at(learner: Any, pulls: int, recorded: Sequence[float]) -> None:
    """Tell a learner that counts its pulls how many it has had."""
    if isinstance(learner, ShareLearner):
        learner.pulls = pulls
        learner.score = recorded[pulls - 1] if pulls else None


def count_again(learner: Any, pulls: int) -> None:
    """Tell a learner that counts its pulls that only these count: the latest has failed."""
    if isinstance(learner, ShareLearner):
        learner.pulls = pulls


def details_of(learner: Any) -> Mapping[str, Any] | None:
    """Return what a learner reports with its latest score, in its attribute `score_details`."""
    details = getattr(bare(learner), "score_details", None)
    return details if isinstance(details, Mapping) else None


def row_scores_of(learner: Any) -> list[RowScores] | None:
    """Return the parts of a learner's latest score, for each fold; None if it gives none.

    They are its attribute `row_scores`, or what a generator yields after score and model: what
    `latebloomer.row_scores` returns, a list of these for folds, or one number for each row.
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
    """Return whether a function has a parameter of that name."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False
