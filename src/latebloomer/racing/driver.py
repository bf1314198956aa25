"""The loop of a race: ask the session, order pulls from the runner, write and announce events.

Whatever happens is an event. It is in the journal before the session receives it, so no decision
rests on a pull that could be lost, and a pull that was not written is not counted. Then all
listeners receive it: the time budget, the checkpoint schedule, the display, users' callbacks.
"""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from typing import Any, NoReturn

from latebloomer._util.text import reason_of, span_of_time
from latebloomer.errors import Interrupted, JournalError, LearnerError
from latebloomer.racing.checkpoints import saved_states
from latebloomer.racing.journal import files
from latebloomer.racing.journal.journal import EventLog, near, resume_call
from latebloomer.racing.learner import Entry
from latebloomer.racing.progress import Progress, print_aside
from latebloomer.racing.race_state import Callback, RaceState, RaceView
from latebloomer.racing.runners.contract import Order, Orders, Report, Runner, RunnerContext
from latebloomer.racing.settings import Settings
from latebloomer.racing.stopping import Stopwatch, StopWhenSure, TimeBudget, grace_of
from latebloomer.session import events
from latebloomer.session.checked_inputs import set_aside, whole_budget
from latebloomer.session.events import Event, PullFailed, Restored, ScoreReported, WarningNoted

MOST_LOSSES = 5  # times that a learner's process may be lost in the same pull


@contextmanager
def first_ctrl_c() -> Iterator[list[int]]:
    """Yield a list that the first Ctrl-C only adds to, so that pulls end; the second one stops."""
    # Only the main thread may set handlers; a program's own handler is left alone.
    main = threading.current_thread() is threading.main_thread()
    ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    pressed: list[int] = []

    def note(number: int, _: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pressed.append(number)
        print_aside("\nStopping after the running pull. Ctrl-C again stops now and loses it.")

    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class Driver:
    """Runs one race to its end, or to the next interruption."""

    def __init__(
        self,
        race: RaceState,
        journal: EventLog,
        entries: list[Entry],
        runner: Runner,
        progress: Progress,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.race, self.session = race, race.session
        self.journal, self.entries, self.runner = journal, entries, runner
        self.progress = progress
        self.states = saved_states.SavedStates(race, journal.path, journal.durability == "full")
        timed = journal.path is not None or runner.fragile
        every = runner.checkpoint_every
        self.schedule = saved_states.CheckpointSchedule(every, len(entries), timed)
        self.view = RaceView(race, lambda: (entry.event for entry in self.journal.read()))
        self.callbacks = callbacks
        self._broken: set[int] = set()  # callbacks that have failed
        self.watch = Stopwatch(race.elapsed)
        self.clock: TimeBudget | None = None
        self.stopping: StopWhenSure | None = None
        # Arms that trained in an earlier process and have not been pulled in this one.
        self._resumed = {i for i, n in enumerate(self.session.pulls) if n}
        self._unreleased = set(range(len(entries)))
        self._late: set[int] = set()  # arms that ran beyond the time of the race
        self._rescued = False  # whether the journal was lost once
        self._racers = len(self.session.racing)  # after the latest event

    @property
    def settings(self) -> Settings:
        """Settings of the race; an extension may have changed them."""
        return self.race.settings

    # --- the race ---

    def start(self) -> None:
        """Let the runner take the learners; the race's time runs from here."""
        if self._resumed:
            self.states.sweep()
        grace = grace_of(self.settings.seconds)
        self.runner.start(
            RunnerContext(
                self.entries, self.states, self.session.scores, self.schedule,
                self._seconds_left, grace, self.progress.mode != "silent",
            )
        )  # fmt: skip
        self.watch = self.progress.watch = Stopwatch(self.race.elapsed)
        self.set_limits()
        self._repeat_latest()

    def set_limits(self) -> None:
        """Set what ends the race before its plan, by the settings in force."""
        session, settings = self.session, self.settings
        self.stopping = StopWhenSure(session, settings) if settings.stop else None
        if settings.seconds is None:
            return
        share = 1.0 if session.winner is not None else 1.0 - settings.winner_share
        lanes = self.runner.lanes
        self.clock = TimeBudget(share * settings.seconds, len(self.entries), self.watch, lanes)
        for arm in session.trainable:
            if session.pulls_of(arm):
                self.clock.recall(arm, self.race.pace(arm), session.pulls_of(arm))

    def _seconds_left(self) -> float:
        """Return the seconds until calls that still run are interrupted."""
        if self.settings.seconds is None or self.session.over:
            return inf
        return self.settings.seconds + grace_of(self.settings.seconds) - self.watch.elapsed

    def run(self) -> None:
        """Race until the session is over."""
        with first_ctrl_c() as pressed, self.progress.shown():
            self._plan_ahead()
            while not self.session.over and (not self.runner.held or self.runner.busy):
                for report in self.runner.work(self._orders()):
                    self._take(report)
                    if pressed:
                        self.runner.hold()
                    if type(report) is not ScoreReported and self.session.over:
                        break  # a pull made now would not count
            if not self.session.over:
                self._leave()
        self.race.need_one_learner()

    def _repeat_latest(self) -> None:
        """Give callbacks the latest score again: a kill may have come between it and them."""
        finished = self.session.over and self.clock is None  # else a callback may reserve the rest
        if not self.callbacks or not self._resumed or finished:
            return
        latest: list[Event] = []
        for event in self.view.events():
            latest = [event] if type(event) is ScoreReported else [*latest, event]
        for event in latest:
            if not isinstance(event, events.Created | events.Began | events.Ended):
                self._call_back(event)

    def _orders(self) -> Orders:
        """Return what may be pulled now."""
        session = self.session
        if not self.runner.in_phases:
            arm = session.ask()
            return {arm: Order(session.pulls_of(arm), 1)}
        if self.runner.held:
            return {}
        issued = session.next_batch(self.runner.batch_size)
        if issued is not None:
            self.record(issued)
        # A rule that reviews every sweep has phases of one pull: too short to save after each.
        phased = not session.decides_every_pull and not session.policy.decides_after_sweeps()
        wanted = session.ask_phase()
        return {arm: Order(session.pulls_of(arm), n, phased) for arm, n in wanted.items()}

    def record(self, *happened: Event) -> None:
        """Let events happen: first in the journal, then in the race, then for all listeners."""
        elapsed = self.watch.elapsed
        self.journal.append(*happened, elapsed=elapsed)
        self.race.elapsed = elapsed
        for event in happened:
            self.race.apply(event)
            self.schedule.on_event(event)
            if self.clock is not None:
                self.clock.on_event(event)
        for event in happened:  # when all have happened, as in a replay
            self.progress.on_event(event)
            if self.callbacks:
                self._call_back(event)
        racers = len(self.session.racing)
        if racers != self._racers:
            self._racers = racers
            self._release_dropped()
            self.check_journal()

    def check_journal(self) -> None:
        """Continue in a new file next to the journal if that was deleted or replaced."""
        if self._rescued or self.journal.is_in_place():
            return
        self._rescued, lost = True, self.journal
        known: list[Event] = [self.race.created, *self.session.events]
        with suppress(JournalError):  # else the lost file is still open, and has all of them
            known = [entry.event for entry in lost.read()]
        made = self.journal = files.rescue(lost, known)
        lost.close()
        self.states.follow(made.path)
        old, new = near(lost.path or made.path), near(made.path)
        said = f"the journal {old} was deleted or replaced during the race: all of it is in {new}"
        self.record(WarningNoted(None, said))

    def _call_back(self, event: Event) -> None:
        """Hand on an event; an exception in a function is a warning, once, not the race's end."""
        failed: dict[int, str] = {}
        for place, callback in enumerate(self.callbacks):
            try:
                callback(event, self.view)
            except Exception as error:  # a user's own code
                name = getattr(callback, "__name__", type(callback).__name__)
                failed[place] = f"{name} failed on {type(event).__name__} ({reason_of(error)})"
        new, self._broken = failed.keys() - self._broken, self._broken | failed.keys()
        for place in sorted(new):
            self.record(WarningNoted(None, f"the callback {failed[place]}; the race went on"))
        if self.clock is not None:
            self.clock.reserved = self.view.reserved
        wanted = self.view.stop_reason is not None and self.session.spent > 0
        if wanted and not self.session.over:
            self.record(events.Stopped(str(self.view.stop_reason), final=True))

    def _take(self, report: Report) -> None:
        """Process a report of the runner; most are scores."""
        if self.clock is not None and not self.session.over:
            self._note_overrun(report)
        if type(report) is ScoreReported:
            if self.session.accepts(report.arm):
                self._resumed.discard(report.arm)
                self.record(report)
            else:  # the race was planned again: it does not count, and the learner is ahead
                self.runner.discard(report.arm)
        elif isinstance(report, events.PullStarted | events.Waiting):
            self.progress.on_event(report)
            return
        elif isinstance(report, PullFailed):
            self._pull_failed(report)
        elif not isinstance(report, events.LearnerLeft) or self.session.accepts(report.arm):
            if isinstance(report, Restored) and report.arm in self._resumed:
                together = min(self.runner.lanes, len(self._resumed))
                self.watch.pause(report.seconds / together)  # it is not the race's time
            self.record(report)
            if isinstance(report, events.Saved):
                self.states.drop_older(report)
        self._plan_ahead()

    def _note_overrun(self, report: Report) -> None:
        """Note the call that was still running when the time and its grace period were over."""
        over = -self._seconds_left()
        if over <= 0 or not isinstance(report, ScoreReported | PullFailed | Restored):
            return
        arm, built = report.arm, isinstance(report, Restored)
        if arm not in self._late and not (built and arm in self._resumed):
            self._late.add(arm)
            late = over + grace_of(self.settings.seconds)
            advice = "" if self.runner.interrupts else '. runner="isolated" interrupts such calls'
            what = "building it" if built else "a pull"
            text = f"{what} ended {late:.3g} s after the race's time{advice}"
            self.record(WarningNoted(arm, text))

    def _release_dropped(self) -> None:
        """Release learners that have left; a larger budget may revive them."""
        winner = self.session.winner
        needed = set(self.session.racing) if winner is None else {winner}
        released, self._unreleased = self._unreleased - needed, self._unreleased & needed
        self._save_for_later(sorted(released))
        for arm in sorted(released):
            self.runner.release(arm)

    def _save_for_later(self, arms: Sequence[int]) -> None:
        """Save learners that are not needed now, if that is cheap compared with their training."""
        if self.journal.path is not None:
            left = self.race.departures
            self.save([arm for arm in arms if self.schedule.is_worth_keeping(arm)
                       and (arm not in left or left[arm].how != events.FAILED)])  # fmt: skip

    # --- the time, and the winner ---

    def _plan_ahead(self) -> None:
        """Set a new time-based budget, end the race, or select the winner, if one is due."""
        why = None if self.stopping is None else self.stopping.reason(self.race.elapsed)
        if why is not None:
            self.record(events.Stopped(why, final=not self.settings.winner_share))
        if self.clock is not None and self.session.spent:
            self._keep_time(self.clock)
        if self.settings.winner_share and self.session.selection_pending:
            self._select_winner()

    def _keep_time(self, clock: TimeBudget) -> None:
        session, pulls = self.session, clock.budget(self.session)
        if pulls is not None and pulls > session.spent:
            why = f"{clock.left():.3g} s left of {clock.seconds:g}"
            whole, deciding = pulls, session.deciding_budget
            if session.winner is None:
                whole, deciding = whole_budget(pulls, self.settings.winner_share), pulls
            self.record(events.BudgetReplanned(whole, deciding, why))
        elif not session.over and clock.out_of_time(session):
            why = f"{self.watch.elapsed:.3g} s of {clock.seconds:g} are over"
            self.record(events.Stopped(why))

    def _select_winner(self) -> None:
        """Select the best: what was reserved of the budget or of the time is its own."""
        session, naming = self.session, self.session.selection
        budget = session.budget
        if self.settings.budget is not None:  # what was reserved is its own, however early
            aside = set_aside(self.settings.budget, self.settings.winner_share)
            budget = max(budget, session.spent + aside)
        if self.clock is not None and self.settings.seconds is not None:
            self.clock.until(self.settings.seconds)
            budget = self.clock.forecast(session, [naming.arm])
        estimate = naming.estimates[naming.arm]
        why = f"selected with estimate {estimate:.6g}, trained further"
        self.record(events.WinnerSelected(naming.arm, budget, why))
        self._release_dropped()

    # --- failures ---

    def _pull_failed(self, failed: PullFailed) -> None:
        session, arm, n = self.session, failed.arm, failed.n
        if not session.accepts(arm):  # a pull that is not requested any more has not failed
            self.runner.discard(arm)
            return
        if failed.kind == "restore" and arm in self._resumed:
            self._cannot_restore(arm, failed.reason, failed.details)
        lost = failed.kind == "lost"
        tries = self.race.tries[arm, n, lost] + 1
        allowed = max(self.runner.retries, MOST_LOSSES) if lost else self.runner.retries
        again = tries <= allowed and not failed.final
        if failed.kind == events.INTERRUPTED:
            again = n > 1
        if again:
            self.record(failed)
        else:
            times = "once" if tries == 1 else "twice" if tries == 2 else f"{tries} times"
            why = f"pull {n} failed {times}: {failed.reason}"
            self.record(failed, events.LearnerLeft(arm, events.FAILED, why))
        self.runner.discard(arm)

    def _cannot_restore(self, arm: int, reason: str, details: str) -> NoReturn:
        """Raise an error: a learner that trained before cannot be restored in this process."""
        error = LearnerError(
            f"Could not restore learner {self.race.names[arm]!r} to its "
            f"{self.session.pulls_of(arm)} pulls ({reason}). The journal is unchanged. Fix the "
            f"cause, then call {resume_call(self.journal.path)}."
        )
        error.add_note(details)
        raise error

    # --- saving ---

    def cost_of_restoring(self) -> str:
        """Return what it costs to restore the learners that the race needs."""
        session, states, race = self.session, self.states, self.race
        over, pulls, time, away = session.over, 0, 0.0, 0
        for arm in [session.best_arm] if over else session.trainable:
            n = session.pulls_of(arm)
            saved = states.available(arm, n)
            away += not saved and states.newest(arm, n) is not None
            saved = saved or (states.model(arm, n) if over else None)
            missing = n - (saved.n if saved else 0)
            pulls, time = pulls + missing, time + missing * race.seconds[arm] / max(1, n)
        if not pulls:
            return "Every learner is restored from its checkpoint."
        text = f"Retraining {pulls} pulls that no checkpoint covers (about {span_of_time(time)})."
        if away:
            text += f" The checkpoints of {away} learners are not in {states.storage}: if they are"
            text += " elsewhere, stop and give the runner that storage."
        return text

    def save(self, arms: Sequence[int]) -> None:
        """Save learners that have trained since their last checkpoint, if live and savable."""
        behind = {arm: self.session.pulls_of(arm) for arm in arms if self.schedule.is_behind(arm)}
        for report in self.runner.save(behind):
            self._take(report)

    def _leave(self) -> None:
        self.save(self.session.racing)
        text = f"Stopped after pull {self.session.spent} of {self.session.budget}"
        if self.journal.path is None:
            raise Interrupted(text, None, "; the race had no journal, so it cannot be resumed")
        call = resume_call(self.journal.path)
        raise Interrupted(text, str(self.journal.path), f"; continue with {call}")

    def winner(self) -> Any:
        """Return the recommended learner, restored if it is not live, and save it if possible.

        None, with a warning, if it is lost and there is no journal to restore it from later.
        """
        arm = self.session.best_arm
        pulls = self.session.pulls_of(arm)
        kept = self.states.model(arm, pulls) if arm in self._resumed else None
        if kept is not None:  # what the winner, a generator, yielded in an earlier process
            learner, wrong = saved_states.fetch_model(self.states.storage, kept)
            if not wrong:
                return learner
            self.record(WarningNoted(arm, wrong))
        try:
            learner, reports = self.runner.learner(arm, pulls)
        except LearnerError as error:
            if self.journal.path is not None:
                self._cannot_restore(arm, str(error), "\n".join(getattr(error, "__notes__", [])))
            self.record(WarningNoted(arm, f"it could not be restored for the verdict ({error})"))
            return None
        for report in reports:
            self._take(report)
        if self.journal.path is not None:
            self.save([arm])
            model = saved_states.keep_model(self.states.storage, arm, pulls, learner)
            if model is not None:
                self.record(model)
                self.states.drop_older(model)
            self._save_for_later([other for other in self.session.racing if other != arm])
        return learner
