"""The loop of a race: ask the session, give it to the runner, write what comes back, tell others.

Whatever happens is an event. It is in the journal before the session hears of it, so no decision
rests on a pull that could be lost, and a pull that was not written is not counted. Then all who
listen are told: the clock, the schedule of checkpoints, the progress display, users' callbacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, NoReturn

from latebloomer.errors import Interrupted, JournalError, LearnerError
from latebloomer.racing.callbacks import Callback, Callbacks, RaceView
from latebloomer.racing.checkpoints.kept_models import fetch_model, is_model, keep_model
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.checkpoints.schedule import CheckpointSchedule
from latebloomer.racing.interrupt import Interrupt
from latebloomer.racing.journal import files
from latebloomer.racing.journal.journal import Journal, near, resume_call
from latebloomer.racing.learner import Entry
from latebloomer.racing.progress import Progress
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners.contract import (
    LearnerFinished,
    Order,
    Orders,
    PullFailure,
    Report,
    Runner,
    RunnerContext,
    Unsaved,
    Waiting,
    trouble_of,
)
from latebloomer.racing.stopping import stopping_rule
from latebloomer.racing.time_budget import Stopwatch, TimeBudget
from latebloomer.session.events import (
    FAILED,
    FINISHED,
    BudgetReplanned,
    Event,
    LearnerLeft,
    PullFailed,
    Restored,
    Saved,
    ScoreReported,
    Stopped,
    WarningNoted,
    WinnerSelected,
)
from latebloomer.session.winner_training import set_aside, whole_budget

MOST_LOSSES = 5  # times that a learner's process may be lost in one and the same pull


class Driver:
    """Runs one race to its end, or to the next interruption."""

    def __init__(
        self,
        race: RaceState,
        journal: Journal,
        entries: Sequence[Entry],
        runner: Runner,
        progress: Progress,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.race, self.session, self.settings = race, race.session, race.settings
        self.journal, self.entries, self.runner = journal, entries, runner
        self.progress, self.states = progress, SavedStates(race, journal.path)
        timed = journal.path is not None or runner.fragile
        self.schedule = CheckpointSchedule(self.settings.checkpoint_every, len(entries), timed)
        self.view = RaceView(race, lambda: (entry.event for entry in journal.read()))
        self.callbacks = Callbacks(callbacks, self.view) if callbacks else None
        self.watch = Stopwatch(race.elapsed)
        self.clock: TimeBudget | None = None
        self.stopping = stopping_rule(self.session, self.settings)
        # Arms that trained in an earlier process and have not been pulled in this one.
        self._resumed = {i for i, n in enumerate(self.session.pulls) if n}
        self._unsavable: set[int] = set()  # noted once
        self._unreleased = set(range(len(entries)))
        self._rescued = False  # whether the journal was lost once
        self._racers = len(self.session.racing)  # after the newest event
        self._racers_changed = False  # by the events that are being recorded

    # --- the race ---

    def start(self) -> None:
        """Let the runner take the learners; the race's time runs from here."""
        if self._resumed:
            self.states.sweep()
        recorded, timeout = self.session.scores, self.settings.timeout
        self.runner.start(
            RunnerContext(self.entries, self.states, recorded, timeout, self.schedule)
        )
        self.watch = Stopwatch(self.race.elapsed)
        self.clock = self._make_clock()

    def _make_clock(self) -> TimeBudget | None:
        if self.settings.seconds is None:
            return None
        named = self.session.winner is not None
        share = (
            1.0 if named else 1.0 - self.settings.winner_share
        )  # of the time, until the next end
        clock = TimeBudget(
            share * self.settings.seconds, len(self.entries), self.watch, self.runner.lanes
        )
        for arm in self.session.trainable:
            if self.session.pulls_of(arm):
                clock.recall(arm, self.race.pace(arm), self.session.pulls_of(arm))
        return clock

    def run(self) -> None:
        """Race until the session is over."""
        with Interrupt() as interrupt, self._shown():
            self._plan_ahead()
            while not self.session.over and (not self.runner.held or self.runner.busy):
                for report in self.runner.work(self._orders()):
                    self._take(report)
                    if interrupt.wanted:
                        self.runner.hold()
            if not self.session.over:
                self._leave()
        self.race.need_one_learner()

    def _shown(self) -> AbstractContextManager[None]:
        return self.progress.shown(self.clock, lambda: self.runner.under_way)

    def _orders(self) -> Orders:
        """What may be pulled now."""
        session = self.session
        if not self.runner.in_phases:
            arm = session.ask()
            return {arm: Order(session.pulls_of(arm), 1)}
        if self.runner.held:
            return {}
        handed_out = session.next_batch(self.runner.batch)
        if handed_out is not None:
            self.record(handed_out)
        # A rule that reviews every sweep has phases of one pull: too short to save after each.
        phased = not session.decides_every_pull and not session.policy.decides_after_sweeps()
        wanted = session.ask_phase()
        return {arm: Order(session.pulls_of(arm), n, phased) for arm, n in wanted.items()}

    def record(self, *events: Event) -> None:
        """Let events happen: first in the journal, then in the race, then for all who listen."""
        elapsed = self.watch.elapsed
        self.journal.append(*events, elapsed=elapsed)
        self.race.elapsed = elapsed
        for event in events:
            self.race.apply(event)
            self.schedule.on_event(event)
            if self.clock is not None:
                self.clock.on_event(event)
            racers = len(self.session.racing)
            if racers != self._racers:
                self._racers, self._racers_changed = racers, True
        for event in events:  # when all have happened, as in a replay
            self.progress.on_event(event)
            if self.callbacks is not None:
                self._call_back(event, self.callbacks)
        if self._racers_changed:
            self._racers_changed = False
            self._release_dropped()
            self.check_journal()

    def check_journal(self) -> None:
        """Notice where the journal was deleted or replaced, and go on in a new file beside it."""
        if self._rescued or self.journal.is_in_place():
            return
        self._rescued, lost = True, self.journal
        made = files.rescue(lost, self._known_events())
        lost.close()
        self.journal = made
        self.states.follow(made.path)
        self.record(
            WarningNoted(None, f"the journal {near(lost.path or made.path)} was deleted or replaced "
                        f"during the race: all of it is in {near(made.path)}")
        )  # fmt: skip

    def _known_events(self) -> list[Event]:
        """All that happened: from the lost file where it is still open, else from memory."""
        with suppress(JournalError):
            return [entry.event for entry in self.journal.read()]
        return [self.race.created, *self.session.events]

    def _call_back(self, event: Event, callbacks: Callbacks) -> None:
        for note in callbacks.tell(event):
            self.record(note)
        wanted = self.view.stop_reason is not None and self.session.spent > 0
        if wanted and not self.session.over:
            self.record(Stopped(str(self.view.stop_reason), final=True))

    def _take(self, report: Report) -> None:
        """Make events of what a runner reports."""
        if type(report) is not ScoreReported:  # most are
            self._take_other(report)
        elif self.session.accepts(report.arm):
            self._resumed.discard(report.arm)
            self.record(report)
        else:  # the race was planned anew: it is not counted, and the learner has gone too far
            self.runner.discard(report.arm)
        self._plan_ahead()

    def _take_other(self, report: Report) -> None:
        match report:
            case PullFailure():
                self._pull_failed(report)
            case LearnerFinished():
                self._learner_ended(report.arm)
            case WarningNoted():
                self.record(report)
            case Saved():
                self._saved(report)
            case Unsaved():
                self._cannot_save(report)
            case Restored():
                self._restored(report)
            case Waiting():
                self.progress.waits(report.arms)

    def _restored(self, restored: Restored) -> None:
        if restored.arm in self._resumed:
            at_once = min(self.runner.lanes, len(self._resumed))
            self.watch.pause(restored.seconds / at_once)  # it is not the race's time
        self.record(restored)

    def _release_dropped(self) -> None:
        """Learners that are out need no more memory; a larger budget may bring them back."""
        winner = self.session.winner
        needed = set(self.session.racing) if winner is None else {winner}
        released, self._unreleased = self._unreleased - needed, self._unreleased & needed
        self._save_for_later(sorted(released))
        for arm in sorted(released):
            self.runner.release(arm)

    def _save_for_later(self, arms: Sequence[int]) -> None:
        """Save learners that are not needed now, where that is cheap beside their training."""
        if self.journal.path is not None:
            left = self.race.departures
            self.save([arm for arm in arms if self.schedule.is_worth_keeping(arm)
                       and (arm not in left or left[arm].how != FAILED)])  # fmt: skip

    # --- the clock, and the winner ---

    def _plan_ahead(self) -> None:
        """A new budget by the clock, its end, or the winner's turn, where one is due."""
        why = None if self.stopping is None else self.stopping.reason(self.race.elapsed)
        if why is not None:
            self.record(Stopped(why, final=not self.settings.winner_share))
        if self.clock is not None and self.session.spent:
            self._keep_time(self.clock)
        if self.settings.winner_share and self.session.selection_pending:
            self._name_winner()

    def _keep_time(self, clock: TimeBudget) -> None:
        session, pulls = self.session, clock.budget(self.session)
        if pulls is not None and pulls > session.spent:
            why = f"{clock.left():.3g} s left of {clock.seconds:g}"
            if session.winner is None:
                self.record(
                    BudgetReplanned(whole_budget(pulls, self.settings.winner_share), pulls, why)
                )
            else:
                self.record(BudgetReplanned(pulls, session.deciding_budget, why))
        elif not session.over and clock.out_of_time(session):
            elapsed = f"{self.watch.elapsed:.3g} s of {clock.seconds:g} are over"
            self.record(Stopped(elapsed))

    def _name_winner(self) -> None:
        """Once the best is named, what was set aside of the budget or of the time is its own."""
        session, naming = self.session, self.session.selection
        budget = session.budget
        if self.settings.budget is not None:  # what was set aside is its own, however early
            aside = set_aside(self.settings.budget, self.settings.winner_share)
            budget = max(budget, session.spent + aside)
        if self.clock is not None and self.settings.seconds is not None:
            self.clock.until(self.settings.seconds)
            budget = self.clock.forecast(session, [naming.arm])
        estimate = naming.estimates[naming.arm]
        self.record(
            WinnerSelected(naming.arm, budget, f"named the best by {estimate:.6g}, trained on")
        )
        self._release_dropped()

    # --- failures and ends ---

    def _pull_failed(self, trouble: PullFailure) -> None:
        session, arm = self.session, trouble.arm
        if not session.accepts(arm):  # what is not asked for any more has not failed
            self.runner.discard(arm)
            return
        n = session.pulls_of(arm) + 1
        if trouble.kind == "restore" and arm in self._resumed:
            self._cannot_resume(arm, n - 1, trouble)
        failed = PullFailed(arm, n, trouble.kind, trouble.reason, trouble.details, trouble.seconds)
        lost = trouble.kind == "lost"
        tries = self.race.tries(arm, n, lost) + 1
        allowed = max(self.settings.retries, MOST_LOSSES) if lost else self.settings.retries
        if tries <= allowed and not trouble.hopeless:
            self.record(failed)
        else:
            why = f"pull {n} failed {_times(tries)}: {trouble.reason}"
            self.record(failed, LearnerLeft(arm, FAILED, why))
            self._release_dropped()  # others may be out with it, where a phase ends
        self.runner.discard(arm)

    def _cannot_resume(self, arm: int, n: int, trouble: PullFailure) -> NoReturn:
        """One that trained before and cannot be brought back is the new process's trouble."""
        error = LearnerError(
            f"learner {self.race.names[arm]!r} could not be brought back to its {n} pulls "
            f"({trouble.reason}): the journal is as it was; mend that, then "
            f"{resume_call(self.journal.path)}"
        )
        error.add_note(trouble.details)
        raise error

    def _learner_ended(self, arm: int) -> None:
        n = self.session.pulls_of(arm)
        if not self.session.accepts(arm):
            return
        if n == 0:
            self._pull_failed(
                PullFailure(arm, "score", "it ended before its first score", hopeless=True)
            )
            return
        self.record(LearnerLeft(arm, FINISHED, f"ended by itself after {n} pull{'s' * (n != 1)}"))
        self._release_dropped()

    # --- saving ---

    def _saved(self, saved: Saved) -> None:
        self.record(saved)
        self.states.drop_older(saved)

    def _cannot_save(self, report: Unsaved) -> None:
        if report.arm not in self._unsavable:
            text = f"could not be saved ({report.reason}); the race goes on"
            self.record(WarningNoted(report.arm, text))
        self._unsavable.add(report.arm)
        self.schedule.note_saved(report.arm, 0.0)  # not tried again before it trained as long

    def save(self, arms: Sequence[int]) -> None:
        """Checkpoint what has trained since its last one, where it is live and can be saved."""
        behind = {arm: self.session.pulls_of(arm) for arm in arms if self.schedule.is_behind(arm)}
        for report in self.runner.save(behind):
            self._take(report)

    def _leave(self) -> None:
        self.save(self.session.racing)
        text = f"stopped after pull {self.session.spent} of {self.session.budget}; "
        if self.journal.path is None:
            raise Interrupted(text + "it had no journal, so it cannot be resumed", None)
        call = resume_call(self.journal.path)
        raise Interrupted(f"{text}go on with {call}", str(self.journal.path))

    def winner(self) -> Any:
        """The recommended learner, restored where it is not live, and saved where it can be."""
        arm = self.session.best_arm
        pulls = self.session.pulls_of(arm)
        learner = self._kept_model(arm, pulls) if arm in self._resumed else None
        if learner is not None:
            return learner
        try:
            learner = self.runner.learner(arm, pulls)
        except Exception as error:  # the learner's own code
            self._cannot_resume(arm, pulls, trouble_of(arm, error))
        while self.runner.pending:
            self._take(self.runner.pending.pop(0))
        if self.journal.path is not None:
            self.save([arm])
            self._keep_model(arm, pulls, learner)
            self._save_for_later([other for other in self.session.racing if other != arm])
        return learner

    def _kept_model(self, arm: int, pulls: int) -> Any:
        """What the winner, a generator, yielded in an earlier process; None where it is gone."""
        saved = self.states.model(arm, pulls)
        if saved is None:
            return None
        found = fetch_model(self.states.storage, saved)
        if found.wrong:
            self.record(WarningNoted(arm, found.wrong))
        return found.model

    def _keep_model(self, arm: int, pulls: int, learner: Any) -> None:
        if is_model(learner):
            saved = keep_model(self.states.storage, arm, pulls, learner)
            if saved is not None:
                self._saved(saved)

    def close(self) -> None:
        """Let go of all but the journal."""
        self.runner.stop()
        self.states.close()


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
