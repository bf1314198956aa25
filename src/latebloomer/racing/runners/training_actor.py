"""One learner in a process of its own: what the actor does there.

It answers calls with plain values and never decides anything. An exception of the learner is an
answer too: only the loss of the process itself is seen from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.kept_models import is_bare
from latebloomer.racing.checkpoints.restore import Target, restore
from latebloomer.racing.checkpoints.schedule import CheckpointSchedule
from latebloomer.racing.checkpoints.storage import Storage, Stored, place_of
from latebloomer.racing.learner import can_save, trained
from latebloomer.racing.runners.contract import (
    LearnerFinished,
    PullFailure,
    TooLong,
    directly,
    one_pull,
    save_learner,
    trouble_of,
)
from latebloomer.racing.runners.local import Bounded
from latebloomer.racing.runners.packing import PackedLearners, dumps, unpack
from latebloomer.session.events import Saved, ScoreReported

HELLO = "hello"
SLICE = 0.25  # seconds of pulls in one call: some 200 times what a call costs the driver


class ActorSettings(NamedTuple):
    """What an actor is made with."""

    arm: int
    storage: Storage
    every: int | None  # pulls between two checkpoints
    timeout: float | None
    pickles: bool = False  # whether a learner without save and load is pickled to be saved


class Ready(NamedTuple):
    """The learner is where it was."""

    seconds: float
    notes: list[str]


class Batch(NamedTuple):
    """Pulls that were made in one call."""

    pulls: list[tuple[float, float, int | None]]  # score, seconds, steps
    end: LearnerFinished | PullFailure | None  # why there are no more
    due: bool = False  # whether the state after the last one should be saved
    bare: bool = False  # whether it is a generator that yields scores alone


class TrainingActor:
    """Holds a learner and trains it when called."""

    def __init__(self, settings: ActorSettings, packed: PackedLearners) -> None:
        self._settings = settings
        self._packed: PackedLearners | None = packed
        self._schedule = CheckpointSchedule(settings.every, 1)
        self._learner: Any = None
        self._done = -1

    def hello(self) -> str:
        """Answer: the process is up."""
        return HELLO

    def prepare(
        self, done: int, saved: Saved | None, recorded: Sequence[float]
    ) -> Ready | PullFailure:
        """Build the learner and bring it to `done` pulls."""
        began = perf_counter()
        try:
            if self._packed is None:
                raise LearnerError("a process builds its learner once")
            entry = unpack(self._packed)[self._settings.arm]
            target = Target(entry, done, saved, recorded, self._settings.storage)
            timeout = self._settings.timeout
            call = directly if timeout is None else Bounded(timeout)
            self._learner, notes = restore(target, call, lambda learner: 0)
        except BaseException as error:  # SystemExit too: it is the learner's, not ours
            return trouble_of(self._settings.arm, error, "restore")
        self._done, self._packed = done, None  # built once: the recipe is not needed again
        return Ready(perf_counter() - began, notes)

    def train(self, start: int, count: int, ends_phase: bool) -> Batch:
        """Up to `count` pulls within about `SLICE` seconds, after `start` that were made before.

        The state is due to be saved by the rules of the schedule, and when the last pull of a
        phase is made.
        """
        if start != self._done:
            text = f"it has had {self._done} pulls and should have had {start}"
            return Batch([], PullFailure(self._settings.arm, "lost", text))
        pulls: list[tuple[float, float, int | None]] = []
        end, until = None, perf_counter() + SLICE
        while len(pulls) < count and end is None:
            report = self._pull()
            if not isinstance(report, ScoreReported):
                end = report
                break
            pulls.append((report.score, report.seconds, report.steps))
            if self._schedule.is_due(0, self._done) or perf_counter() >= until:
                break
        complete = ends_phase and len(pulls) == count and self._schedule.is_worth_it(0)
        due = bool(pulls) and (complete or self._schedule.is_due(0, self._done))
        bare = bool(pulls) and is_bare(trained(self._learner))
        return Batch(pulls, end, due and self._can_be_saved(), bare)

    def _pull(self) -> ScoreReported | LearnerFinished | PullFailure:
        arm, timeout = self._settings.arm, self._settings.timeout
        try:
            report = one_pull(arm, self._learner, directly)
        except BaseException as error:  # SystemExit, KeyboardInterrupt: it is the learner's
            return trouble_of(arm, error)
        if isinstance(report, ScoreReported):
            if timeout is not None and report.seconds > timeout:
                took = report.seconds
                return PullFailure(arm, "timeout", str(TooLong(timeout)), seconds=took)
            self._done += 1
            self._schedule.on_event(ScoreReported(0, report.score, report.seconds))
        return report

    def save(self) -> Stored | str | None:
        """Save the state as it is; None where the learner cannot be saved."""
        if not self._can_be_saved():
            return None
        place = place_of(self._settings.arm, self._done)
        stored = save_learner(self._learner, self._settings.storage, place)
        self._schedule.note_saved(0, stored.seconds if isinstance(stored, Stored) else 0.0)
        return stored

    def _can_be_saved(self) -> bool:
        return self._settings.pickles or can_save(self._learner)

    def fetch(self) -> bytes | str:
        """The trained learner, pickled; or why it cannot be."""
        try:
            return dumps(trained(self._learner))
        except Exception as error:  # of the learner's own pickling
            return reason_of(error)
