"""Where pulls are made. A runner trains learners and reports; the driver alone decides and writes.

A runner asks the session what to pull, makes the pulls in its own way (one by one here, a whole
phase at once on a cluster: `session.ask_phase(batch)`) and yields what happened, as it happens.
The driver enters each report in the journal and tells the session before it asks for the next.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from latebloomer.errors import SettingError
from latebloomer.race.checkpoints import Checkpoints
from latebloomer.race.field import Field
from latebloomer.race.learner import Entry


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
    kind: str  # exception, score, timeout or restore
    reason: str
    details: str = ""
    hopeless: bool = False  # no use to try again


class Note(NamedTuple):
    """Something that the verdict should mention."""

    arm: int
    text: str


Report: TypeAlias = Pulled | Ended | Trouble | Note


class Stage(NamedTuple):
    """All that a runner is given: who races, what is saved, and what was recorded."""

    entries: Sequence[Entry]
    checkpoints: Checkpoints
    recorded: Callable[[int], list[float]]  # an arm's counted scores so far
    timeout: float | None


class Runner(ABC):
    """Trains the learners of one race."""

    def __init__(self) -> None:
        self.notes: list[Note] = []  # to be yielded, or fetched after `learner`

    @abstractmethod
    def start(self, stage: Stage) -> None:
        """Take the learners; say at once what cannot work."""

    @abstractmethod
    def work(self, session: Field) -> Iterator[Report]:
        """Make the pulls that the session asks for and report each, until it is over.

        The session has been told of a report when the next one is asked for. It may be replanned
        or arms may be retired in between: ask it again rather than remember.
        """

    @abstractmethod
    def again(self, arm: int) -> None:
        """Give up the live state of an arm; its next pull starts from the newest checkpoint."""

    @abstractmethod
    def save(self, arm: int, folder: Path) -> None:
        """Save the live state of an arm."""

    @abstractmethod
    def saves(self, arm: int) -> bool:
        """Whether an arm is live and can be saved."""

    @abstractmethod
    def learner(self, arm: int, pulls: int) -> Any:
        """The trained learner, restored to `pulls` pulls where it is not live."""

    def stop(self) -> None:  # noqa: B027
        """Let go of everything."""


def trouble_of(arm: int, error: BaseException, kind: str = "exception") -> Trouble:
    """What an exception in a learner's code becomes."""
    text = "".join(traceback.format_exception(error))
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Trouble(arm, kind, reason, text)


def make_runner(runner: str | Runner) -> Runner:
    """The runner that a name means; a runner itself is returned as it is."""
    if isinstance(runner, Runner):
        return runner
    if runner == "local":
        from latebloomer.race.local import LocalRunner

        return LocalRunner()
    raise SettingError(f"runner={runner!r}, but runner must be 'local' or a Runner")
