"""The loop of a race: the runner reports, then the journal takes it, then the session is told.

A pull is in the journal before the session hears of it, so no decision rests on a pull that could
be lost, and a pull that was not written is not counted.
"""

from __future__ import annotations

from typing import Any, NoReturn

from latebloomer.errors import Interrupted, LearnerError
from latebloomer.racing.checkpoints.checkpoints import Checkpoints
from latebloomer.racing.checkpoints.schedule import Saving
from latebloomer.racing.clock import NEWEST, Clock
from latebloomer.racing.interrupt import Interrupt
from latebloomer.racing.journal.journal import Change, Failure, Journal, resume_call
from latebloomer.racing.learner import Entry
from latebloomer.racing.progress import Progress
from latebloomer.racing.replay import apply, replay
from latebloomer.racing.runners.contract import (
    Ended,
    Note,
    Pulled,
    Report,
    Restored,
    Runner,
    Saved,
    Stage,
    Trouble,
    Unsaved,
    Waiting,
    trouble_of,
)
from latebloomer.racing.settings import Settings
from latebloomer.racing.verdict.sentences import need_one
from latebloomer.session.field import FAILED, FINISHED, Field

LOSSES = 5  # times that a learner's process may be lost in one and the same pull


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
        self.clock: Clock | None = None
        timed = journal.path is not None or runner.fragile
        self.saving = Saving(settings.checkpoint_every, len(entries), timed)
        self._restored = {i for i, n in enumerate(self.session.pulls) if n}
        self._handed = len(self.session._handed)
        self._unsavable: set[int] = set()  # noted once

    def _clock(self, lanes: int) -> Clock | None:
        """It starts when the runner is ready."""
        if self.settings.seconds is None:
            return None
        before = self.journal.elapsed()
        named = self.session.winner is not None
        share = 1.0 if named else 1.0 - self.settings.deliver  # of the time, until the next end
        seconds = share * self.settings.seconds
        clock = Clock(seconds, len(self.entries), before, lanes)
        for arm in self.session.movers:
            if self.session.had(arm):
                pace = self.journal.pace(arm, NEWEST)
                clock.recall(arm, pace, self.session.had(arm))
        return clock

    # --- the race ---

    def start(self) -> None:
        """Let the runner take the learners."""
        timeout, recorded = self.settings.timeout, self.journal.rewards
        self.runner.start(Stage(self.entries, self.checkpoints, recorded, timeout, self.saving))
        self.clock = self._clock(self.runner.lanes)

    def run(self) -> None:
        """Race until the session is over."""
        with Interrupt() as interrupt, self.progress.shown(self.session, self.clock):
            self._keep_time()
            self._deliver()
            while not (self.session.over or self.runner.held):
                self._work(interrupt)
            if not self.session.over:
                self._leave()
        need_one(self.session, self.journal)

    def _work(self, interrupt: Interrupt) -> None:
        for report in self.runner.work(self.session):
            self._take(report)
            if interrupt.wanted:
                self.runner.hold()

    def _take(self, report: Report) -> None:
        if len(self.session._handed) != self._handed:
            self._write_batch()
        if isinstance(report, Pulled):
            self._count(report)
        elif isinstance(report, Trouble):
            self._failed(report)
        elif isinstance(report, Ended):
            self._ended(report.arm)
        else:
            self._hear(report)
        self._keep_time()
        self._deliver()

    def _hear(self, report: Note | Restored | Saved | Unsaved | Waiting) -> None:
        """What is not about a pull."""
        if isinstance(report, Saved):
            self.checkpoints.enter(*report)
            self.saving.saved(report.arm, report.stored.seconds)
        elif isinstance(report, Unsaved):
            self._cannot_save(report)
        elif isinstance(report, Restored):
            if self.clock is not None and report.arm in self._restored:
                at_once = min(self.runner.lanes, len(self._restored))
                self.clock.pause(report.seconds / at_once)  # restoring is not the race's time
        elif isinstance(report, Waiting):
            self.progress.waits(self.session, report.arms)
        else:
            self._note(report)

    def _count(self, report: Pulled) -> None:
        arm, score, seconds = report
        session = self.session
        self.journal.pull(session.spent + 1, arm, session.had(arm) + 1, score, seconds)
        racing = session.racing_count
        session.tell(arm, self.settings.sign * score)
        if self.clock is not None:
            self.clock.note(arm, seconds)
        self._restored.discard(arm)
        self.saving.trained(arm, seconds)
        if session.racing_count != racing:
            self._let_go()
        self.progress.pulled(session, arm, score)

    def _let_go(self) -> None:
        """Learners that are out need no more memory."""
        session = self.session
        needed = set(session.racing) if session.winner is None else {session.winner}
        for arm in range(len(self.entries)):
            if arm not in needed:
                self.runner.release(arm)

    def _write_batch(self) -> None:
        """A batch that was handed out is part of what the session knows, before its results."""
        for t, size, more in self.session._handed[self._handed :]:
            why = "arms pulled at once, others being out" if more else "arms pulled at once"
            self.journal.change(t, "more" if more else "batch", why, value=size)
        self._handed = len(self.session._handed)

    def _note(self, report: Note) -> None:
        name = self.session.names[report.arm]
        self.journal.change(self.session.spent, "note", report.text, report.arm)
        self.progress.say(f"{name}: {report.text}")

    def _deliver(self) -> None:
        """Once the best is named, what was kept of the budget or of the time is its own."""
        session = self.session
        if not session.owes:
            return
        arm, budget = session.naming.arm, session.whole
        if self.clock is not None and self.settings.seconds is not None:
            self.clock.until(self.settings.seconds)
            budget = self.clock.forecast(session, [arm])
        estimate = self.settings.sign * session.naming.estimates[arm]
        self._change("deliver", f"named the best by {estimate:.6g}, trained on", arm, budget)
        self._let_go()
        self.progress.named(session)

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
        lost = trouble.kind == "lost"
        tries = self.journal.tries(arm, n, lost) + 1
        allowed = max(self.settings.retries, LOSSES) if lost else self.settings.retries
        if tries <= allowed and not trouble.hopeless:
            self.journal.failure(failure)
            self.progress.say(f"{name}: pull {n} failed, tried again ({trouble.reason})")
            self.runner.again(arm)
            return
        why = f"pull {n} failed {_times(tries)}: {trouble.reason}"
        self.journal.failure(failure, why)
        session.retire(arm, FAILED)
        self.runner.again(arm)
        self._let_go()  # others may be out with it, where a phase ends
        self.progress.say(f"{name}: {'no more' if arm == session.winner else 'out'}, {why}")

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
        self._let_go()
        others = "" if arm == session.winner else "; the budget goes to the others"
        self.progress.say(f"{name}: finished after {n} pulls{others}")

    # --- saving ---

    def _cannot_save(self, report: Unsaved) -> None:
        if report.arm not in self._unsavable:
            text = f"could not be saved ({report.reason}); the race goes on"
            self._note(Note(report.arm, text))
        self._unsavable.add(report.arm)
        self.saving.saved(report.arm, 0.0)  # not tried again before it has trained as long again

    def save(self, arms: list[int]) -> None:
        """Checkpoint what has trained since its last one, where it is live and can be saved."""
        behind = {arm: self.session.had(arm) for arm in arms if self.saving.behind(arm)}
        for report in self.runner.save(behind):
            self._hear(report)  # type: ignore[arg-type]

    def _leave(self) -> None:
        self.save(self.session.racing)
        session = self.session
        text = f"stopped after pull {session.spent} of {session.whole}; "
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
            self._hear(self.runner.notes.pop(0))
        if self.journal.path is not None:
            self.save([arm])
        return learner


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
