"""The loop of a race: the runner reports, then the journal takes it, then the session is told.

A pull is in the journal before the session hears of it, so no decision rests on a pull that could
be lost, and a pull that was not written is not counted.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, NoReturn

from latebloomer.race.checkpoints import Checkpoints
from latebloomer.race.clock import NEWEST, Clock
from latebloomer.race.errors import Interrupted, JournalError, LearnerError
from latebloomer.race.field import FAILED, FINISHED, Field
from latebloomer.race.interrupt import Interrupt
from latebloomer.race.journal import Change, Failure, Journal, resume_call
from latebloomer.race.learner import Entry
from latebloomer.race.progress import Progress
from latebloomer.race.replay import apply, replay
from latebloomer.race.runner import (
    Ended,
    Note,
    Pulled,
    Report,
    Runner,
    Stage,
    Trouble,
    trouble_of,
)
from latebloomer.race.settings import Settings
from latebloomer.race.story import need_one

LOSS = (
    20.0  # seconds of training of one arm that a kill may cost, unless checkpoint_every is given
)
WORTH = 20.0  # and at least so many times what saving takes


class Driver:
    """Runs one race to its end, or to the next interruption."""

    def __init__(
        self,
        journal: Journal,
        settings: Settings,
        entries: list[Entry],
        runner: Runner,
        progress: Progress,
    ) -> None:
        self.journal, self.settings, self.runner, self.progress = (
            journal, settings, runner, progress,
        )  # fmt: skip
        self.entries = entries
        self.session: Field = replay(journal, settings)
        self.checkpoints = Checkpoints(journal, settings.durability == "full")
        before = journal.seconds()
        self.clock = self._clock(sum(before.values()))
        self._unsaved = [0.0] * len(entries)  # seconds of training since the newest checkpoint
        self._saving = [0.0] * len(entries)  # what saving took last
        self._restored = {i for i, n in enumerate(self.session.pulls) if n}
        self._batches = len(self.session._batches)
        self._unsavable: set[int] = set()  # noted once

    def _clock(self, before: float) -> Clock | None:
        if self.settings.seconds is None:
            return None
        clock = Clock(self.settings.seconds, len(self.entries), before)
        for arm in self.session.movers:
            if self.session.had(arm):
                pace = self.journal.pace(arm, NEWEST)
                clock.recall(arm, pace, self.session.had(arm))
        return clock

    # --- the race ---

    def run(self) -> None:
        """Race until the session is over."""
        stage = Stage(self.entries, self.checkpoints, self.journal.rewards, self.settings.timeout)
        self.runner.start(stage)
        with Interrupt() as interrupt, self.progress.shown(self.session, self.clock):
            self._keep_time()
            while not self.session.over:
                self._work(interrupt)
        need_one(self.session, self.journal)

    def _work(self, interrupt: Interrupt) -> None:
        asked = perf_counter()
        for report in self.runner.work(self.session):
            self._take(report, perf_counter() - asked)
            if interrupt.wanted and not self.session.over:
                self._leave()
            asked = perf_counter()

    def _take(self, report: Report, took: float) -> None:
        if len(self.session._batches) != self._batches:
            self._write_batch()
        if isinstance(report, Pulled):
            self._count(report, took)
        elif isinstance(report, Trouble):
            self._failed(report)
        elif isinstance(report, Ended):
            self._ended(report.arm)
        elif isinstance(report, Note):
            self._note(report)
        self._keep_time()

    def _count(self, report: Pulled, took: float) -> None:
        arm, score, seconds = report
        session = self.session
        self.journal.pull(session.spent + 1, arm, session.had(arm) + 1, score, seconds)
        racing = session.racing_count
        session.tell(arm, self.settings.sign * score)
        if self.clock is not None:
            if arm in self._restored:  # restoring it is not the race's time
                self.clock.pause(took - seconds)
            self.clock.note(arm, seconds)
        self._restored.discard(arm)
        self._unsaved[arm] += seconds
        if self._worth_saving(arm):
            self.save(arm)
        if session.racing_count != racing:
            self._let_go()
        self.progress.pulled(session, arm, score)

    def _let_go(self) -> None:
        """Learners that were built here and are out need no more memory."""
        racing = set(self.session.racing)
        for arm, entry in enumerate(self.entries):
            if arm not in racing and entry.rebuilds:
                self.runner.again(arm)

    def _write_batch(self) -> None:
        """A batch that was handed out is part of what the session knows, before its results."""
        for t, size in self.session._batches[self._batches :]:
            self.journal.change(t, "batch", "arms pulled at once", value=size)
        self._batches = len(self.session._batches)

    def _note(self, report: Note) -> None:
        name = self.session.names[report.arm]
        self.journal.change(self.session.spent, "note", report.text, report.arm)
        self.progress.say(f"{name}: {report.text}")

    # --- the clock ---

    def _keep_time(self) -> None:
        """By the clock: a new budget where one is due, or the end."""
        if self.clock is None or self.session.spent == 0:
            return
        budget = self.clock.budget(self.session)
        if budget is not None and budget > self.session.spent:
            why = f"{self.clock.left():.3g} s left of {self.clock.seconds:g}"
            self._change("plan", why, value=budget)
            self.progress.planned(self.session)
        elif not self.session.over and self.clock.out_of_time(self.session):
            self._change("stop", f"{self.clock.elapsed:.3g} s of {self.clock.seconds:g} are over")

    def _change(
        self, kind: str, why: str, arm: int | None = None, value: int | None = None
    ) -> None:
        """First the journal, then the session."""
        t = self.session.spent
        self.journal.change(t, kind, why, arm, value)
        apply(self.session, Change(t, kind, arm, value, why))

    # --- failures and ends ---

    def _failed(self, trouble: Trouble) -> None:
        session, arm = self.session, trouble.arm
        n, name = session.had(arm) + 1, session.names[arm]
        if trouble.kind == "restore" and arm in self._restored:
            self._cannot_resume(name, n - 1, trouble)
        failure = Failure(session.spent, arm, n, *trouble[1:4])
        tries = self.journal.tries(arm, n) + 1
        if tries <= self.settings.retries and not trouble.hopeless:
            self.journal.failure(failure)
            self.progress.say(f"{name}: pull {n} failed, tried again ({trouble.reason})")
            self.runner.again(arm)
            return
        why = f"pull {n} failed {_times(tries)}: {trouble.reason}"
        self.journal.failure(failure, why)
        session.retire(arm, FAILED)
        self.runner.again(arm)
        self.progress.say(f"{name}: out, {why}")

    def _cannot_resume(self, name: str, n: int, trouble: Trouble) -> NoReturn:
        """One that trained before and cannot be brought back is the new process's trouble."""
        error = LearnerError(
            f"learner {name!r} could not be brought back to its {n} pulls ({trouble.reason}): the "
            f"journal is as it was; mend that, then {resume_call(self.journal.path)}"
        )
        error.add_note(trouble.details)
        raise error

    def _ended(self, arm: int) -> None:
        session, name = self.session, self.session.names[arm]
        n = session.had(arm)
        if n == 0:
            self._failed(Trouble(arm, "score", "it ended before its first score", hopeless=True))
            return
        self._change(FINISHED, f"ended by itself after {n} pulls", arm)
        self.progress.say(f"{name}: finished after {n} pulls; the budget goes to the others")

    # --- saving ---

    def _worth_saving(self, arm: int) -> bool:
        every = self.settings.checkpoint_every
        if every is not None:
            return self.session.had(arm) % every == 0
        enough = max(LOSS, WORTH * self._saving[arm])
        return self.journal.path is not None and self._unsaved[arm] >= enough

    def save(self, arm: int) -> bool:
        """Checkpoint a live learner that can be saved; an error in its `save` is only noted."""
        if not self.runner.saves(arm):
            return False
        began = perf_counter()
        try:
            self.checkpoints.store(
                arm, self.session.had(arm), lambda folder: self.runner.save(arm, folder)
            )
        except JournalError:
            raise
        except Exception as error:  # the learner's own, or the disk's
            self._cannot_save(arm, error)
        self._saving[arm], self._unsaved[arm] = perf_counter() - began, 0.0
        return True

    def _cannot_save(self, arm: int, error: Exception) -> None:
        if arm not in self._unsavable:
            text = f"could not be saved ({type(error).__name__}: {error}); the race goes on"
            self._note(Note(arm, text))
        self._unsavable.add(arm)

    def save_all(self) -> None:
        """Checkpoint every racing learner that has trained since its last one."""
        for arm in self.session.racing:
            if self._unsaved[arm] > 0:
                self.save(arm)

    def _leave(self) -> None:
        self.save_all()
        session = self.session
        text = f"stopped after pull {session.spent} of {session.budget}; "
        if self.journal.path is None:
            raise Interrupted(text + "it had no journal, so it cannot be resumed", None)
        call = resume_call(self.journal.path)
        raise Interrupted(f"{text}go on with {call}", str(self.journal.path))

    def trained(self) -> Any:
        """The recommended learner, restored where it is not live, and saved where it can be."""
        arm = self.session.recommend().arm
        pulls = self.session.had(arm)
        try:
            learner = self.runner.learner(arm, pulls)
        except Exception as error:  # the learner's own code
            self._cannot_resume(self.session.names[arm], pulls, trouble_of(arm, error))
        while self.runner.notes:
            self._note(self.runner.notes.pop(0))
        if self.journal.path is not None and self._unsaved[arm] > 0:
            self.save(arm)
        return learner


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
