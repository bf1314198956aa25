"""Where pulls are made. A runner trains learners and reports; the driver alone decides and writes.

A runner asks the session what to pull, makes the pulls in its own way (one by one here, a whole
phase at once on a cluster: `session.ask_phase(batch)`) and yields what happened, as it happens.
The driver enters each report in the journal and tells the session before it asks for the next.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, TypeAlias

from latebloomer.errors import LearnerError, SettingError
from latebloomer.racing.checkpoints.checkpoints import Checkpoints
from latebloomer.racing.checkpoints.schedule import Saving
from latebloomer.racing.checkpoints.storage import Storage, Stored
from latebloomer.racing.learner import Entry, Learner, as_score
from latebloomer.session.field import Field


class TooLong(Exception):
    """A pull took longer than `timeout`; a runner catches it and reports the pull as failed."""

    def __init__(self, timeout: float) -> None:
        super().__init__(f"a pull took longer than timeout={timeout:g} s")


class Pulled(NamedTuple):
    """A pull has ended with a score."""

    arm: int
    score: float  # as the learner returned it
    seconds: float


class Ended(NamedTuple):
    """The learner has nothing left to train; the pull is not counted."""

    arm: int


class Trouble(NamedTuple):
    """A pull has failed; it is not counted."""

    arm: int
    kind: str  # exception, score, timeout, restore or lost
    reason: str
    details: str = ""
    hopeless: bool = False  # no use to try again


class Note(NamedTuple):
    """Something that the verdict should mention."""

    arm: int
    text: str


class Restored(NamedTuple):
    """A learner that had trained before is back where it was."""

    arm: int
    seconds: float  # what that took


class Saved(NamedTuple):
    """A learner's state after n pulls is in the storage, complete."""

    arm: int
    n: int
    stored: Stored


class Unsaved(NamedTuple):
    """A learner's state could not be saved; the race goes on without."""

    arm: int
    reason: str


class Waiting(NamedTuple):
    """Nothing has happened for a while; these arms are waited for (none: not worth a word)."""

    arms: tuple[int, ...]


Report: TypeAlias = Pulled | Ended | Trouble | Note | Restored | Saved | Unsaved | Waiting


class Stage(NamedTuple):
    """All that a runner is given: who races, what is saved, and what was recorded."""

    entries: Sequence[Entry]
    checkpoints: Checkpoints
    recorded: Callable[[int], list[float]]  # an arm's counted scores so far
    timeout: float | None
    saving: Saving


class Runner(ABC):
    """Trains the learners of one race."""

    fragile: ClassVar[bool] = False  # whether learners may be lost while the race goes on
    lanes: int = 1  # pulls that can be made at once

    def __init__(self) -> None:
        self.notes: list[Note | Saved] = []  # to be yielded, or fetched after `learner`
        self.held = False

    @abstractmethod
    def start(self, stage: Stage) -> None:
        """Take the learners; say at once what cannot work."""

    @abstractmethod
    def work(self, session: Field) -> Iterator[Report]:
        """Make the pulls that the session asks for and report each, until it is over or held.

        The session has been told of a report when the next one is asked for. It may be replanned
        or arms may be retired in between: ask it again rather than remember.
        """

    def hold(self) -> None:
        """Begin no more pulls: `work` reports those that are being made and ends."""
        self.held = True

    @abstractmethod
    def again(self, arm: int) -> None:
        """Give up the live state of an arm; its next pull starts from the newest checkpoint."""

    @abstractmethod
    def release(self, arm: int) -> None:
        """Let go of an arm that is out of the race."""

    @abstractmethod
    def save(self, pulls: Mapping[int, int]) -> Iterator[Report]:
        """Save live arms that can be saved, by the pulls that they have had."""

    @abstractmethod
    def learner(self, arm: int, pulls: int) -> Any:
        """The trained learner, restored to `pulls` pulls where it is not live."""

    def stop(self) -> None:  # noqa: B027
        """Let go of everything."""


def one_pull(
    arm: int, learner: Learner, call: Callable[[Callable[[], Any]], Any]
) -> Pulled | Ended | Trouble:
    """Pull, and what came of it; only `TooLong` and what is no `Exception` are raised."""
    began = perf_counter()
    try:
        value = call(learner.pull)
    except StopIteration:
        return Ended(arm)
    except TooLong:
        raise
    except Exception as error:
        return trouble_of(arm, error)
    seconds = perf_counter() - began
    try:
        return Pulled(arm, as_score(value), seconds)
    except LearnerError as error:
        return Trouble(arm, "score", str(error))


def kept(learner: Any, storage: Storage, place: str) -> Stored | str:
    """Save a learner; where that fails, why. The error is the learner's own, or the disk's."""
    try:
        return storage.keep(place, learner.save)
    except Exception as error:
        return reason_of(error)


def trouble_of(arm: int, error: BaseException, kind: str = "exception") -> Trouble:
    """What an exception in a learner's code becomes."""
    return Trouble(arm, kind, reason_of(error), "".join(traceback.format_exception(error)))


def reason_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def directly(pull: Callable[[], Any]) -> Any:
    """Make a pull with nothing around it."""
    return pull()


def make_runner(runner: str | Runner) -> Runner:
    """The runner that a name means; a runner itself is returned as it is."""
    if isinstance(runner, Runner):
        return runner
    if runner == "local":
        from latebloomer.racing.runners.local import LocalRunner

        return LocalRunner()
    if runner == "ray":
        from latebloomer.racing.runners.ray.ray_runner import RayRunner

        return RayRunner()
    raise SettingError(f"runner={runner!r}, but runner must be 'local', 'ray' or a Runner")
