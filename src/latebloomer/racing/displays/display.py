"""The base class of displays, which show events and the learners that the race waits for."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeAlias

from latebloomer._util.text import as_sentence, quoted, short_name, short_seconds, span_of_time
from latebloomer.racing.race_clock import RaceClock
from latebloomer.racing.race_state import RaceState
from latebloomer.session import events
from latebloomer.session.events import Dropped, PullStarted, ScoreReported, Waiting

if TYPE_CHECKING:
    from latebloomer.racing.verdict.verdict import Verdict

Shown: TypeAlias = events.Event | PullStarted | Waiting
EVERY = 30.0  # seconds between two lines of the same kind
LONG = 10.0  # seconds after which a pull is reported as long
TICK = 0.5  # seconds between two checks for a long pull


class Display(ABC):
    """Show one race while it runs."""

    awaits_pulls = True  # whether the display gets an event when a pull starts

    def __init__(self, race: RaceState, now: Callable[[], float] = time.monotonic) -> None:
        self.race, self.now = race, now
        self.clock = RaceClock(race)  # replaced by the driver's clock
        self.waiting = ""  # text about the learners that the race waits for
        self._waited_for: tuple[int, ...] = ()
        self._running: PullStarted | None = None  # another thread reads it, too
        self._long: PullStarted | None = None  # the last pull that was reported as long
        self._replan_said = -EVERY
        # By arm: texts about pulls that failed and are tried again.
        self._failures: dict[int, str] = {}

    @abstractmethod
    def say(self, text: str) -> None:
        """Show a line of text."""

    @abstractmethod
    def _on_score(self, score: ScoreReported) -> None:
        """Update the display for a score that counts."""

    def _on_drop(self, drop: Dropped) -> None:  # noqa: B027
        """Show that a learner was dropped. Default: nothing, as tables of standings show it."""

    @abstractmethod
    def _show_waiting(self) -> None:
        """Show which learners the race waits for."""

    def _opened(self) -> AbstractContextManager[None]:
        """Return a context in which the display is open."""
        return nullcontext()

    def _is_told_already(self, event: events.Event) -> bool:
        """Return whether the display shows an event anyway, so that it needs no line."""
        return False

    def _is_worth_saying(self, pull: PullStarted, now: float) -> bool:
        """Return whether to report that a pull is long."""
        return True

    # --- reports of the driver ---

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the race while it runs."""
        over = threading.Event()
        thread = threading.Thread(target=self._report_long_pulls, args=(over,), daemon=True)
        with self._opened(), ExitStack() as stack:
            thread.start()
            stack.callback(thread.join)
            stack.callback(over.set)
            yield

    def on_event(self, event: Shown) -> None:
        """Update the display for one event."""
        if isinstance(event, PullStarted):
            self._running = event
            return
        if isinstance(event, Waiting):  # the learners that the race waits for
            if event.arms:
                self._wait_for([(arm, self.race.session.pulls_of(arm) + 1) for arm in event.arms])
            return
        self._running = None
        if type(event) is ScoreReported:
            if event.arm in self._waited_for:
                self.waiting, self._waited_for = "", ()
            self._on_score(event)
            if event.arm in self._failures:
                self.say(self._failures.pop(event.arm))
        elif isinstance(event, Dropped):
            self._on_drop(event)
        else:
            text = self._sentence(event)
            if text and not self._is_told_already(event):
                self.say(text)

    def end(self, verdict: Verdict) -> None:
        """Show how the race ended; the verdict is not printed, because the caller prints it."""
        pulls = f"{verdict.spent:,} pull{'s' * (verdict.spent != 1)}"
        brief, count = verdict.seconds < 60, len(verdict.warnings)
        took = f"{short_seconds(verdict.seconds)} s" if brief else span_of_time(verdict.seconds)
        warns = f", with {count} warning{'s' * (count != 1)}" if count else ""
        kept = f"{quoted(short_name(verdict.name))} is kept. The verdict says why{warns}."
        self.say(f"The race has finished after {pulls} and {took}: {kept}")

    # --- long pulls ---

    def _report_long_pulls(self, over: threading.Event) -> None:
        """Report long pulls from a separate thread, because the race's thread is in the pull."""
        while not over.wait(TICK):
            self.look_for_long_pull()

    def look_for_long_pull(self) -> None:
        """Report the running pull, once, if it is long."""
        pull, now = self._running, self.now()
        if pull is None or pull is self._long or now - pull.at < LONG:
            return
        if self._is_worth_saying(pull, now):
            self._long = pull
            self._wait_for([(pull.arm, pull.n)])

    def _wait_for(self, pulls: Sequence[tuple[int, int]]) -> None:
        names = [f"{quoted(short_name(self.race.names[arm]))} (its pull {n})" for arm, n in pulls]
        self.waiting = f"waiting for {', '.join(names)}"
        self._waited_for = tuple(arm for arm, _ in pulls)
        self._show_waiting()

    # --- events as text ---

    def _sentence(self, event: events.Event) -> str:
        """Return an event as one line; empty for events that need no line.

        The learners that an extension revives are listed in one line before the race.
        """
        session, now = self.race.session, self.now()
        remaining = session.budget - session.spent
        pulls = f"{remaining:,} pull{'s' * (remaining != 1)}"
        text = events.in_words(event, lambda arm: quoted(short_name(session.names[arm])))
        match event:
            case events.BudgetReplanned():  # a time-based race replans many times per second
                if now - self._replan_said >= EVERY:
                    self._replan_said = now
                    return f"about {pulls} fit into the time that is left"
            case events.WinnerSelected():
                return f"{text} with the remaining {pulls}"
            # Shown in one line when it is tried again, or when the learner leaves.
            case events.PullFailed():
                self._failures[event.arm] = f"{text} and was repeated"
            case events.LearnerLeft():
                self._failures.pop(event.arm, None)
                return text
            case events.WarningNoted():
                return text if event.arm is not None else as_sentence(text)
        return ""


class NoDisplay(Display):
    """Show nothing."""

    awaits_pulls = False

    @contextmanager
    def shown(self) -> Iterator[None]:
        yield

    def on_event(self, event: Shown) -> None: ...

    def say(self, text: str) -> None: ...

    def _on_score(self, score: ScoreReported) -> None: ...

    def _show_waiting(self) -> None: ...
