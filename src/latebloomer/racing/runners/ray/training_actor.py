"""One learner in a Ray actor: several pulls per call, and when its state is due to be saved."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.schedule import CheckpointSchedule
from latebloomer.racing.checkpoints.storage import Storage, Stored
from latebloomer.racing.learner import can_save
from latebloomer.racing.runners.learner_host import LearnerHost, Ready, failure_of
from latebloomer.racing.runners.own_state import OwnStates
from latebloomer.racing.runners.transfer import PackedLearners, unpack
from latebloomer.session.events import LearnerLeft, PullFailed, Saved, ScoreReported

HELLO = "hello"
SLICE = 0.25  # seconds of pulls in one call: some 200 times what a call costs the driver


class Batch(NamedTuple):
    """Pulls that were made in one call."""

    reports: list[ScoreReported]
    end: LearnerLeft | PullFailed | None  # why there are no more
    due: bool = False  # whether the state after the last one should be saved
    only_scores: bool = False  # whether the learner is a generator without a model


class TrainingActor:
    """Holds a learner and trains it when called."""

    def __init__(
        self,
        packed: PackedLearners,
        arm: int,
        storage: Storage,
        every: int | None,  # pulls between two checkpoints
        timeout: float | None,
        pickles: bool,  # whether a learner without save and load is pickled to be saved
    ) -> None:
        self._packed: PackedLearners | None = packed
        self._arm, self._storage, self._timeout, self._pickles = arm, storage, timeout, pickles
        self._schedule = CheckpointSchedule(every, arm + 1)
        self._host: LearnerHost | None = None

    def hello(self) -> str:
        """Answer that the process is running."""
        return HELLO

    def prepare(
        self, done: int, saved: Saved | None, recorded: Sequence[float]
    ) -> Ready | PullFailed:
        """Build the learner and bring it to `done` pulls."""
        arm, packed, self._packed = self._arm, self._packed, None  # not needed again
        try:
            if packed is None:
                raise LearnerError("a process builds its learner once")
            self._host = LearnerHost(arm, unpack(packed)[arm], OwnStates(), apart=True)
        except BaseException as error:  # in the learner's modules
            return failure_of(arm, done + 1, error, "restore")
        return self._host.prepare(done, saved, recorded, self._storage)

    def train(self, start: int, count: int, ends_phase: bool) -> Batch:
        """Make up to `count` pulls within about `SLICE` seconds, after `start` earlier ones.

        The state is due to be saved by the rules of the schedule, and when the last pull of a
        phase is made.
        """
        arm, host, schedule = self._arm, self._host, self._schedule
        if host is None or host.done != start:
            had = "no" if host is None else host.done
            text = f"it has had {had} pulls and should have had {start}"
            return Batch([], PullFailed(arm, start + 1, "lost", text))
        reports: list[ScoreReported] = []
        end, until = None, perf_counter() + SLICE
        while len(reports) < count and end is None:
            report = self._pull(host)
            if not isinstance(report, ScoreReported):
                end = report
                break
            reports.append(report)
            schedule.on_event(report)
            if schedule.is_due(arm, host.done) or perf_counter() >= until:
                break
        complete = ends_phase and len(reports) == count and schedule.is_worth_it(arm)
        due = bool(reports) and (complete or schedule.is_due(arm, host.done))
        only_scores = bool(reports) and host.yields_only_scores()
        can = self._pickles or can_save(host.learner)
        return Batch(reports, end, due and can, only_scores)

    def _pull(self, host: LearnerHost) -> ScoreReported | LearnerLeft | PullFailed:
        report, timeout = host.pull(), self._timeout
        if isinstance(report, ScoreReported) and timeout is not None and report.seconds > timeout:
            text = f"a pull took longer than timeout={timeout:g} s"
            return PullFailed(host.arm, host.done, "timeout", text, seconds=report.seconds)
        return report

    def save(self) -> Stored | str | None:
        """Save the state; return why that failed, or None if there is no save and load."""
        if self._host is None:
            return "it is not built yet"
        stored = self._host.save(self._storage, self._pickles)
        self._schedule.note_saved(self._arm, stored.seconds if isinstance(stored, Stored) else 0.0)
        return stored

    def fetch(self) -> bytes | str:
        """Return the trained learner, pickled; or why it cannot be pickled."""
        return "it is not built yet" if self._host is None else self._host.fetch()
