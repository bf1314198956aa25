"""The loop of a race: it asks the session, orders pulls from the runner, and records events.

The events of each report are recorded, and then all listeners receive them: the checkpoint
schedule, the display and users' callbacks. After each report, `settle` makes everything happen
that is due: learners that left are released, a time budget is replanned, the race ends, or the
winner is selected.
"""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from latebloomer._util.console import print_aside
from latebloomer._util.own_process import in_own_process
from latebloomer._util.text import reason_of, score_text, span_of_time
from latebloomer.errors import Interrupted, LearnerError
from latebloomer.racing.callbacks import Callback, RaceView
from latebloomer.racing.checkpoints import checkpoint_schedule, restored_learners, saved_states
from latebloomer.racing.displays.display import Display
from latebloomer.racing.early_stop import EarlyStop
from latebloomer.racing.journal.event_log import EventLog, resume_call
from latebloomer.racing.learners.entries import Entry
from latebloomer.racing.priced_plan import costs_in_words, prices_known
from latebloomer.racing.race_clock import grace_of
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.recorded_race import RecordedRace
from latebloomer.racing.runners.runner import Order, Orders, Report, Runner, RunnerContext
from latebloomer.racing.runners.runner_names import runner_to_name
from latebloomer.racing.settings import Settings
from latebloomer.session import events
from latebloomer.session.checked_inputs import set_aside
from latebloomer.session.events import Event, PullFailed, Restored, ScoreReported, WarningNoted
from latebloomer.session.session_state import Stage

MOST_LOSSES = 5  # maximum losses of a learner's process in the same pull


@contextmanager
def first_ctrl_c() -> Iterator[list[int]]:
    """Yield a list to which the first Ctrl-C adds, so that pulls end; the second stops at once."""
    # Only the main thread can set handlers; a program's own handler is not replaced.
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


def after_failure(failed: PullFailed, tries: int, retries: int) -> list[events.LearnerLeft]:
    """Return the events after a pull that failed `tries` times: none, or its learner leaves.

    >>> failed = PullFailed(arm=0, n=3, kind="exception", reason="out of memory")
    >>> after_failure(failed, tries=1, retries=1)  # it is tried again
    []
    >>> after_failure(failed, tries=2, retries=1)[0].why
    'pull 3 failed twice: out of memory'
    """
    allowed = max(retries, MOST_LOSSES) if failed.kind == events.LOST else retries
    again = tries <= allowed and not failed.final
    if failed.kind == events.INTERRUPTED:
        again = failed.n > 1
    if again:
        return []
    times = {1: "once", 2: "twice"}.get(tries, f"{tries} times")
    why = f"pull {failed.n} failed {times}: {failed.reason}"
    return [events.LearnerLeft(failed.arm, events.FAILED, why)]


class Driver:
    """Run one race to its end, or to the next interruption."""

    def __init__(
        self,
        race: RaceState,
        journal: EventLog,
        entries: list[Entry],
        runner: Runner,
        display: Display,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.recorded = RecordedRace(race, journal)
        self.race, self.session, self.clock = race, race.session, self.recorded.clock
        self.entries, self.runner, self.display = entries, runner, display
        display.clock = self.clock
        self.states = saved_states.SavedStates(race, journal.path, journal.durability == "full")
        timed = journal.path is not None or runner.can_lose_learners
        every = runner.checkpoint_every
        self.schedule = checkpoint_schedule.CheckpointSchedule(every, len(entries), timed)
        self.view = RaceView(race, self.recorded.events)
        self.callbacks = callbacks
        self._broken: set[int] = set()  # places of callbacks that have failed
        self.early_stop = EarlyStop(race.session)
        self._unreleased = set(range(len(entries)))
        self._late: set[int] = set()  # arms whose pulls ended after the time of the race
        self._costs_told = False
        self._needed = self._needed_now()

    @property
    def journal(self) -> EventLog:
        """The journal to which events are written; it changes if its file is lost."""
        return self.recorded.journal

    @property
    def settings(self) -> Settings:
        """Settings of the race, which an extension may have changed."""
        return self.race.settings

    # --- the race ---

    def start(self) -> None:
        """Give the learners to the runner, and start the race's clock."""
        if self.race.resumed:
            self.states.sweep()
        grace = grace_of(self.settings.seconds)
        self.runner.start(
            RunnerContext(
                self.entries,
                self.states,
                self.session.scores,
                self.schedule,
                self.clock.seconds_for_calls,
                grace,
                self.display.awaits_pulls,
            )
        )
        self.clock.start(self.runner.parallel_pulls)
        self._repeat_latest()

    def run(self) -> None:
        """Run the race until the session is over."""
        # An extension may have changed the times of checks.
        self.early_stop = EarlyStop(self.session)
        with first_ctrl_c() as pressed, self.display.shown():
            self.settle()
            while not self.session.over and (not self.runner.held or self.runner.busy):
                for report in self.runner.work(self._orders()):
                    if self.take(report):
                        self.settle()
                    if pressed:
                        self.runner.hold()
                    if type(report) is not ScoreReported and self.session.over:
                        break  # further pulls would not count
            if not self.session.over:
                self._leave()
        self.race.need_one_learner()
        self._score_rows(sorted(self._unreleased))

    def _repeat_latest(self) -> None:
        """Call callbacks again with the latest score and the events that followed from it.

        A kill may have happened before the callbacks received them.
        """
        # In a time-based race, a callback may reserve time.
        timed = self.settings.seconds is not None
        finished = self.race.verdict is not None and not timed
        if not self.callbacks or not self.race.resumed or finished:
            return
        for event in list(self.race.latest):
            if not isinstance(
                event, events.Created | events.ProcessStarted | events.ProcessClosed
            ):
                self.record(*self._call_back(event))

    def _orders(self) -> Orders:
        """Return the pulls that may be made now."""
        session = self.session
        if not self.runner.in_phases:
            arm = session.ask()
            return {arm: Order(session.pulls_of(arm), 1)}
        if self.runner.held:
            return {}
        issued = session.next_batch(self.runner.batch_size)
        if issued is not None:
            self.record(issued)
        # A policy that decides after every sweep has phases of one pull: too short for a save
        # after each.
        phased = not session.decides_every_pull and not session.policy.decides_after_sweeps()
        wanted = session.ask_phase()
        orders = self.clock.pulls_until_review(wanted)
        return {
            arm: Order(session.pulls_of(arm), n, phased and n == wanted[arm])
            for arm, n in orders.items()
        }

    # --- events ---

    def record(self, *happened: Event) -> None:
        """Record events, announce them to all listeners, and record failures of callbacks."""
        while happened:
            news = (*happened, *self.recorded.record(*happened))
            for event in happened:
                self.schedule.on_event(event)
            # Listeners receive events after all of them were recorded, as in a replay.
            happened = tuple(note for event in news for note in self._announce(event))

    def _announce(self, event: Event) -> list[WarningNoted]:
        """Pass an event to the display and the callbacks; return warnings for the verdict."""
        self.display.on_event(event)
        return self._call_back(event) if self.callbacks else []

    def _call_back(self, event: Event) -> list[WarningNoted]:
        """Call the callbacks with an event; return a warning for each new failure."""
        failed: dict[int, str] = {}
        with self.runner.aside():  # callbacks use the program's own random numbers
            for place, callback in enumerate(self.callbacks):
                try:
                    with in_own_process():
                        callback(event, self.view)
                except Exception as error:  # the user's code may raise anything
                    name = getattr(callback, "__name__", type(callback).__name__)
                    failed[place] = f"{name} failed on {type(event).__name__} ({reason_of(error)})"
        self.clock.reserved = self.view.reserved
        new, self._broken = failed.keys() - self._broken, self._broken | failed.keys()
        texts = (f"the callback {failed[place]}; the race continued" for place in sorted(new))
        return [WarningNoted(None, text) for text in texts]

    def take(self, report: Report) -> bool:
        """Record the events of a report; return False if it was only for the display."""
        if isinstance(report, events.PullStarted | events.Waiting):
            self.display.on_event(report)
            return False
        self._note_overrun(report)
        if type(report) is ScoreReported:
            if self.session.accepts(report.arm):
                self.record(report)
            else:  # the race was re-planned: the pull does not count, and the learner is ahead
                self.runner.discard(report.arm)
        elif isinstance(report, PullFailed):
            self._pull_failed(report)
        elif not isinstance(report, events.LearnerLeft) or self.session.accepts(report.arm):
            if isinstance(report, Restored) and report.arm in self.race.resumed:
                together = min(self.runner.parallel_pulls, len(self.race.resumed))
                # This time does not count as time of the race.
                self.clock.exclude(report.seconds / together)
            self.record(report)
            if isinstance(report, events.Saved):
                self.states.drop_older(report)
        return True

    def _note_overrun(self, report: Report) -> None:
        """Record a warning for a call that ended after the time budget and its grace period."""
        over = -self.clock.seconds_for_calls()
        if over <= 0 or not isinstance(report, ScoreReported | PullFailed | Restored):
            return
        arm, built = report.arm, isinstance(report, Restored)
        if arm not in self._late and not (built and arm in self.race.resumed):
            self._late.add(arm)
            late = over + grace_of(self.settings.seconds)
            advice = "" if self.runner.interrupts else '. runner="isolated" interrupts such calls'
            what = "building it" if built else "a pull"
            text = f"{what} ended {late:.3g} s after the race's time{advice}"
            self.record(WarningNoted(arm, text))

    # --- events that are due ---

    def settle(self) -> None:
        """Record the events that are due, one after the other, until none is left."""
        self._release()
        while (event := self._event_due()) is not None:
            self.record(event)
            self._release()
        if not self._costs_told:
            self._tell_costs()

    def _tell_costs(self) -> None:
        """Show the cost of learners after each of them has had its second pull."""
        session = self.session
        self._costs_told = session.over or session.decides_every_pull
        if not self._costs_told and session.spent and prices_known(self.race):
            self._costs_told = True
            text = costs_in_words(self.race)
            if text:
                self.display.say(text)

    def _event_due(self) -> Event | None:
        """Return the event that is due now: the end, a new budget or the winner; else None."""
        session, settings = self.session, self.settings
        if self.view.stop_reason is not None and session.spent and not session.over:
            return events.Stopped(str(self.view.stop_reason), final=True)
        why = self.early_stop.reason(settings, self.race.elapsed)
        if why is not None:
            return events.Stopped(why, final=not settings.winner_share)
        due = self.clock.event_due()
        if due is None and session.stage is Stage.SELECTING:
            return self._selection()
        return due

    def _selection(self) -> events.WinnerSelected:
        """Return the selection of the best learner, which gets the reserved budget or time."""
        session, settings, naming = self.session, self.settings, self.session.selection
        budget = self.clock.budget_with_winner(naming.arm)
        if budget is None:
            budget = session.budget
        # The winner gets the reserved pulls, however early it is selected.
        if settings.budget is not None:
            aside = set_aside(settings.budget, settings.winner_share)
            budget = max(budget, session.spent + aside)
        estimate = naming.estimates[naming.arm]
        why = f"selected with estimate {score_text(estimate)}, trained further"
        return events.WinnerSelected(naming.arm, budget, why)

    def _needed_now(self) -> tuple[int, ...]:
        """Return the arms whose learners the race needs now."""
        winner = self.session.winner
        return self.session.racing if winner is None else (winner,)

    def _release(self) -> None:
        """Release learners that have left, after saving those that a larger budget may revive."""
        needed = self._needed_now()
        if needed is self._needed or needed == self._needed:
            return
        self._needed = needed
        released = sorted(self._unreleased.difference(needed))
        self._unreleased.intersection_update(needed)
        self._score_rows(released)
        self._save_for_later(released)
        for arm in released:
            self.runner.release(arm)
        self.follow_journal()

    def follow_journal(self) -> None:
        """Continue in a new file next to the journal if the journal was deleted or replaced."""
        warning = self.recorded.move_if_lost()
        if warning is not None and self.journal.path is not None:
            self.states.follow(self.journal.path)
            self.record(warning)

    def _score_rows(self, arms: Sequence[int]) -> None:
        """Record the row scores of learners in their current state, if they report row scores."""
        known, pulls = self.race.row_sums, self.session.pulls
        due = [
            arm
            for arm in arms
            if pulls[arm]
            and not self._has_failed(arm)
            and (arm not in known or known[arm].n != pulls[arm])
        ]
        for report in self.runner.score_rows(due):
            if not isinstance(report, events.RowsScored) or report.n == pulls[report.arm]:
                self.take(report)

    def _has_failed(self, arm: int) -> bool:
        departure = self.race.departures.get(arm)
        return departure is not None and departure.how == events.FAILED

    def _save_for_later(self, arms: Sequence[int]) -> None:
        """Save learners that are not needed now, if this is cheap compared with their training."""
        if self.journal.path is not None:
            self.save(
                [
                    arm
                    for arm in arms
                    if self.schedule.is_worth_keeping(arm) and not self._has_failed(arm)
                ]
            )

    # --- failures ---

    def _pull_failed(self, failed: PullFailed) -> None:
        arm, n = failed.arm, failed.n
        # Ignore the failure of a pull that is no longer requested.
        if not self.session.accepts(arm):
            self.runner.discard(arm)
            return
        if failed.kind == "restore" and arm in self.race.resumed:
            self._cannot_restore(arm, failed.reason, failed.details)
        tries = self.race.tries[arm, n, failed.kind == events.LOST] + 1
        self.record(failed, *after_failure(failed, tries, self.runner.retries))
        self.runner.discard(arm)

    def _cannot_restore(self, arm: int, reason: str, details: str) -> NoReturn:
        """Raise an error: a learner with earlier pulls cannot be restored in this process."""
        error = LearnerError(
            f"Could not restore learner {self.race.names[arm]!r} to its "
            f"{self.session.pulls_of(arm)} pulls ({reason}). The journal is unchanged. Fix the "
            f"cause, then call {resume_call(self.journal.path)}."
        )
        error.add_note(details)
        raise error

    # --- saving ---

    def cost_of_restoring(self) -> str:
        """Return the cost of restoring the learners that the race needs, as text."""
        session, states, race = self.session, self.states, self.race
        over, pulls, time, away = session.over, 0, 0.0, 0
        for arm in [session.best_arm] if over else session.trainable:
            n = session.pulls_of(arm)
            saved = states.available(arm, n)
            away += not saved and states.newest(arm, n) is not None
            kept = saved or (states.model(arm, n) if over else None)
            missing = n - (kept.n if kept else 0)
            pulls, time = pulls + missing, time + missing * race.seconds[arm] / max(1, n)
        if not pulls:
            return "Every learner is restored from its checkpoint."
        text = f"Retraining {pulls} pulls that no checkpoint covers (about {span_of_time(time)})."
        if away:
            text += f" The checkpoints of {away} learners are not in {states.storage}: if they are"
            text += " elsewhere, stop and give the runner that storage."
        return text

    def save(self, arms: Sequence[int]) -> None:
        """Save learners trained since their last checkpoint, if they are live and can save."""
        behind = {arm: self.session.pulls_of(arm) for arm in arms if self.schedule.is_behind(arm)}
        for report in self.runner.save(behind):
            self.take(report)

    def _leave(self) -> None:
        self.save(self.session.racing)
        text = f"Stopped after pull {self.session.spent} of {self.session.budget}"
        if self.journal.path is None:
            raise Interrupted(text, None, "; the race had no journal, so it cannot be resumed")
        named = runner_to_name(self.settings.runner, self.journal.path)
        call = resume_call(self.journal.path, named)
        raise Interrupted(text, str(self.journal.path), f"; continue with {call}")

    def winner(self) -> Any:
        """Return the recommended learner, restored if it is not live; save it if possible.

        Return None, with a warning, if it is lost and no journal exists to restore it from later.
        """
        arm = self.session.best_arm
        pulls = self.session.pulls_of(arm)
        kept = self.states.model(arm, pulls) if arm in self.race.resumed else None
        # The model that the winner, a generator, yielded in an earlier process.
        if kept is not None:
            learner, wrong = restored_learners.fetch_model(self.states.storage, kept)
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
            self.take(report)
        if self.journal.path is not None:
            self.save([arm])
            model = restored_learners.keep_model(self.states.storage, arm, pulls, learner)
            if model is not None:
                self.record(model)
                self.states.drop_older(model)
            self._save_for_later([other for other in self.session.racing if other != arm])
        return learner
