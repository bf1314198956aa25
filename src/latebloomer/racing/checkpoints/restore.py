"""Bringing a learner to where it was: its newest checkpoint, then the pulls that are not in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.storage import Storage
from latebloomer.racing.journal.journal import Kept
from latebloomer.racing.learner import Entry, Learner, as_score, keeps

Call = Callable[[Callable[[], Any]], Any]  # how a pull is made


class Order(NamedTuple):
    """A learner that is wanted as it was after `done` pulls."""

    entry: Entry
    done: int
    kept: Sequence[Kept]  # states that may be loaded, the newest first
    recorded: Sequence[float]  # the scores of its counted pulls
    storage: Storage | None  # None where nothing is kept


class Brought(NamedTuple):
    """The learner, and what the verdict should mention."""

    learner: Learner
    notes: list[str]


def bring(order: Order, call: Call, had: Callable[[Learner], int]) -> Brought:
    """Build, load and repeat. `had` says how many pulls a learner without a checkpoint has had."""
    notes: list[str] = []
    learner = order.entry.build()
    start = _loaded(order, learner, notes)
    if start is None:
        start = had(learner)
    for n in range(start, order.done):
        score = _pulled_again(learner, call, n, order.done)
        if score != order.recorded[n] and not any("deterministic" in note for note in notes):
            notes.append(_difference(n + 1, score, order.recorded[n]))
    return Brought(learner, notes)


def _loaded(order: Order, learner: Any, notes: list[str]) -> int | None:
    """Load the newest state whose files are as they were saved; its pulls."""
    if order.storage is None or not (order.done and keeps(learner)):
        return None
    for kept in order.kept:
        with order.storage.fetched(kept.folder, kept.digest) as folder:
            if folder is not None:
                learner.load(folder)
                return kept.n
        notes.append(
            f"its checkpoint of pull {kept.n} was not loaded: the files are missing or not those "
            "that were saved (their digest differs from the journal's)"
        )
    return None


def _pulled_again(learner: Learner, call: Call, n: int, done: int) -> float:
    try:
        return as_score(call(learner.pull))
    except StopIteration:
        raise LearnerError(
            f"it ended after {n} pulls when it was trained again; it had {done} before"
        ) from None


def _difference(n: int, score: float, recorded: float) -> str:
    return (
        f"trained again, pull {n} scored {score:.6g}, but {recorded:.6g} is recorded: the "
        "learner is not deterministic; the recorded scores count"
    )
