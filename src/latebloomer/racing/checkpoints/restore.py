"""Bringing a learner back to where it was: its newest checkpoint, then the pulls not in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.pickled import is_pickled, unpickled
from latebloomer.racing.checkpoints.storage import Storage
from latebloomer.racing.learner import (
    Entry,
    Learner,
    as_score,
    can_save,
    evaluation,
    same_evaluation,
    stand_at,
)
from latebloomer.session.events import Saved


class Target(NamedTuple):
    """A learner that is wanted as it was after `done` pulls."""

    entry: Entry
    done: int
    saved: Saved | None  # a state that may be loaded
    recorded: Sequence[float]  # the scores of its counted pulls
    storage: Storage | None  # None where nothing is kept


class BroughtBack(NamedTuple):
    """The learner, and what the verdict should mention."""

    learner: Learner
    notes: list[str]
    repeated: int  # pulls that were trained again


def restore(
    target: Target, pull: Callable[[Learner], Any], pulls_had: Callable[[Learner], int]
) -> BroughtBack:
    """Build a learner, load its state and repeat the pulls that are not in it.

    `pull` makes one; `pulls_had` returns how many a learner without a checkpoint has had.
    """
    notes: list[str] = []
    learner, start = _from_checkpoint(target, notes)
    if start is None:
        start = pulls_had(learner)
    stand_at(learner, start, target.recorded)
    for n in range(start, target.done):
        score = _pull_again(learner, pull, n, target.done)
        if score != target.recorded[n] and not any("deterministic" in note for note in notes):
            notes.append(_difference(n + 1, score, target.recorded[n]))
    return BroughtBack(learner, notes, target.done - start)


def _from_checkpoint(target: Target, notes: list[str]) -> tuple[Any, int | None]:
    """The learner with its state, if the files are as they were saved, and its pulls; or fresh."""
    saved = target.saved
    if saved is None or target.storage is None or not target.done:
        return target.entry.build(), None
    with target.storage.fetched(saved.folder, saved.digest) as folder:
        if folder is not None and is_pickled(folder):
            try:  # and build nothing beside it: memory may be short
                return unpickled(folder), saved.n
            except Exception as error:  # its class has moved, or is not in this program
                notes.append(_not_unpickled(saved.n, error))
                return target.entry.build(), None
        learner: Any = target.entry.build()
        if folder is not None and can_save(learner):
            learner.load(folder)
            _need_same_evaluation(learner, saved.n, target.recorded[saved.n - 1])
            return learner, saved.n
    if folder is None:
        notes.append(
            f"its checkpoint of pull {saved.n} was not loaded: the files are missing or not those "
            "that were saved (their digest differs from the journal's)"
        )
    return learner, None


def _need_same_evaluation(learner: Any, n: int, recorded: float) -> None:
    """Raise a `LearnerError` if a restored learner is not the one that was scored."""
    value = evaluation(learner)
    if value is None or same_evaluation(value, recorded) or evaluation(learner) != value:
        return  # the last: the evaluation is not deterministic
    raise LearnerError(
        f"its checkpoint of pull {n} evaluates to {value:.6g}, but {recorded:.6g} is recorded: "
        "load() does not restore what save() wrote. check_learner(...) shows the difference"
    )


def _not_unpickled(n: int, error: Exception) -> str:
    return (
        f"its checkpoint of pull {n} could not be unpickled ({reason_of(error)}), so it was "
        "trained again"
    )


def _pull_again(learner: Learner, pull: Callable[[Learner], Any], n: int, done: int) -> float:
    try:
        return as_score(pull(learner))
    except StopIteration:
        raise LearnerError(
            f"it ended after {n} pulls when it was trained again; it had {done} before"
        ) from None


def _difference(n: int, score: float, recorded: float) -> str:
    return (
        f"trained again, pull {n} scored {score:.6g}, but {recorded:.6g} is recorded: the "
        "learner is not deterministic; the recorded scores count"
    )
