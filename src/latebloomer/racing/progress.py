"""What is shown while a race runs: a live table, plain lines, or nothing."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from latebloomer._util.text import printable, short_name, span_of_time
from latebloomer.errors import require
from latebloomer.racing.live_display import NotebookDisplay, Trace, in_notebook
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.verdict.verdict_text import brief
from latebloomer.session.events import (
    FINISHED,
    BudgetReplanned,
    Event,
    LearnerLeft,
    PullFailed,
    PullStarted,
    ScoreReported,
    Waiting,
    WarningNoted,
    WinnerSelected,
)
from latebloomer.session.learner_view import LearnerView

if TYPE_CHECKING:
    from latebloomer.racing.time_budget import TimeBudget
    from latebloomer.racing.verdict.verdict import Verdict

WHILE_RUNNING = "running"  # `progress`: show the race, and leave the verdict to the caller
EVERY = 30.0  # seconds between two plain lines of the same kind
REFRESH = 4  # times a second
LONG = 10.0  # seconds after which a pull is reported as long
TICK = 0.5  # seconds between two checks for a long pull


class Progress:
    """Show a race while it runs; `mode` is live, notebook, lines or silent."""

    def __init__(self, race: RaceState, show: bool | str) -> None:
        require(show in (True, False, WHILE_RUNNING), "progress", show, "True, False or 'running'",
                "'running' leaves the verdict to you")  # fmt: skip
        self.race, self.mode = race, display_mode() if show else "silent"
        self._prints_verdict = show != WHILE_RUNNING
        self._notebook = NotebookDisplay()
        self.traces: defaultdict[int, Trace] = defaultdict(Trace)  # by arm
        self.rows: list[LearnerView] = []
        self.phase = (1, 1)
        self.waiting = ""  # for which learners, if a pull is long
        self._waited_for: tuple[int, ...] = ()
        self._running: PullStarted | None = None  # read by another thread
        self._long: PullStarted | None = None  # the latest that was reported as long
        self._next = 0.0  # when to draw again
        self._racing = len(race.session.racing)
        self._printed = self._began = time.monotonic()
        self._replan_printed = -EVERY
        self._start = race.session.spent
        self._live: Any = None
        self._clock: TimeBudget | None = None

    # --- what the driver reports ---

    @contextmanager
    def shown(self, clock: TimeBudget | None) -> Iterator[None]:
        """Show the race while it runs."""
        self._clock, self._start = clock, self.race.session.spent
        self._began = time.monotonic()
        self._racing = len(self.race.session.racing)
        if self.mode == "silent":
            yield
            return
        with self._drawn(), long_pulls(lambda: self._running, self._long_pull):
            yield

    @contextmanager
    def _drawn(self) -> Iterator[None]:
        """Draw the table as long as the race runs."""
        if self.mode != "live":
            yield
            if self.mode == "notebook":
                self._draw()
            return
        from rich.console import Console
        from rich.live import Live

        from latebloomer.racing.live_display import table

        console = Console(stderr=True)
        with Live(
            console=console,
            get_renderable=lambda: table(self, console.size),
            refresh_per_second=REFRESH,
        ) as self._live:
            self._draw()
            yield
            self._draw()
        self._live = None

    def on_event(self, event: Event | PullStarted | Waiting) -> None:
        """Update the display for one event."""
        if self.mode == "silent":
            return
        if isinstance(event, PullStarted):
            self._running = event
            return
        if isinstance(event, Waiting):  # which learners keep the others waiting
            if event.arms:
                self._wait_for([(arm, self.race.session.pulls_of(arm) + 1) for arm in event.arms])
            return
        self._running = None
        if type(event) is ScoreReported:
            self._pulled(event)
        else:
            text = self._sentence(event)
            if text and (self.mode == "lines" or not _is_in_the_table(event)):
                self.say(text)

    def _pulled(self, told: ScoreReported) -> None:
        self.traces[told.arm].add(told.score)
        if told.arm in self._waited_for:
            self.waiting, self._waited_for = "", ()
        now = time.monotonic()
        if self.mode == "lines":
            self._print_lines(now)
        elif now >= self._next:
            self._draw()

    def _draw(self) -> None:
        """Take what the table shows: another thread draws it, and must not read the race."""
        self._next = time.monotonic() + 1 / REFRESH
        self.rows, self.phase = self.race.learners(), self.race.session.phase
        if self.mode == "notebook":
            self._notebook.show(self)

    def _long_pull(self, pull: PullStarted) -> None:
        """Report a long pull; as a line only if it is longer than the learner's other pulls."""
        now = time.monotonic()
        pace = self.race.seconds[pull.arm] / max(1, pull.n - 1)
        early = now - self._printed < EVERY or now - pull.at < 2 * pace
        if pull is self._long or (self.mode == "lines" and early):
            return
        self._long, self._printed = pull, now
        self._wait_for([(pull.arm, pull.n)])

    def _wait_for(self, pulls: Sequence[tuple[int, int]]) -> None:
        names = [f"{short_name(self.race.names[arm])} (its pull {n})" for arm, n in pulls]
        self.waiting = f"waiting for {', '.join(names)}"
        self._waited_for = tuple(arm for arm, _ in pulls)
        if self.mode == "lines":
            self.say(self.waiting)
        elif self.mode == "notebook":
            self._notebook.show(self)

    def end(self, verdict: Verdict) -> None:
        """Print the verdict; not the table again below a live one, nor in a notebook."""
        if not self._prints_verdict:
            return
        if self.mode == "notebook":
            self.say(verdict.sentence)
        elif self.mode == "live":
            self.say(brief(verdict, table=False))
        else:
            self.say(f"\n{brief(verdict)}")

    def say(self, text: str) -> None:
        """Print a line, whatever else is shown."""
        if self.mode == "silent":
            return
        if self.mode == "notebook":
            self._notebook.say(printable(text))
            self._notebook.show(self)
        elif self._live is not None:
            shown = printable(text)
            self._live.console.print(shown, markup=False, highlight=False, emoji=False)
        else:
            print(printable(text), file=sys.stderr, flush=True)

    # --- plain lines ---

    def _print_lines(self, now: float) -> None:
        session = self.race.session
        racing = len(session.racing)
        if racing < self._racing:
            self._racing = racing
            for one in self.race.learners():
                if one.left_at == session.spent:
                    self.say(f"{short_name(one.name)}: {one.why}")
        elif now - self._printed >= EVERY:
            best = self.race.learners()[0]
            lead = _lead(best, session.winner)
            at = f"pull {session.spent:,} of {session.budget:,}"
            self.say(f"{at}: {lead}; {self.time_left()}")
        else:
            return
        self._printed = now

    def time_left(self) -> str:
        """Return how long the rest will take, by the pulls so far; empty at the end."""
        session = self.race.session
        if session.over:
            return ""
        if session.spent == self._start:
            return "time left unknown"
        if self._clock is not None:
            return f"{span_of_time(max(0.0, self._clock.left()))} left"
        pace = (time.monotonic() - self._began) / (session.spent - self._start)
        return f"about {span_of_time(pace * (session.budget - session.spent))} left"

    def _sentence(self, event: Event) -> str:
        """Return an event in one line; empty for events that need none."""
        session = self.race.session
        left = session.budget - session.spent
        if isinstance(event, BudgetReplanned):  # a time-based race replans many times a second
            now = time.monotonic()
            if now - self._replan_printed < EVERY:
                return ""
            self._replan_printed = now
            return f"time left: about {left:,} more pull{'s' * (left != 1)}"
        arm = getattr(event, "arm", None)
        name = short_name(session.names[arm]) if arm is not None else ""
        match event:
            case WinnerSelected():
                naming = session.selection
                return (
                    f"{name}: selected at pull {naming.at:,} with estimate "
                    f"{naming.estimates[naming.arm]:.6g}; training it further with the remaining "
                    f"{left:,} pull{'s' * (left != 1)}"
                )
            case WarningNoted():
                return f"{name}: {event.text}" if name else event.text
            case PullFailed() if session.departure(event.arm) is None:
                return f"{name}: pull {event.n} failed, tried again ({event.reason})"
            case LearnerLeft():
                own = event.arm == session.winner
                if event.how == FINISHED:
                    others = "" if own else "; the budget goes to the others"
                    pulls = session.pulls_of(event.arm)
                    return f"{name}: finished after {pulls} pull{'s' * (pulls != 1)}{others}"
                return f"{name}: {'trained no further' if own else 'failed'} ({event.why})"
        return ""


def _lead(best: LearnerView, winner: int | None) -> str:
    verb = "leads" if winner is None else "is selected and trained further,"
    told = [f"score {best.score:.4g}"]
    if best.forecast is not None and best.forecast.trust:
        told.append(f"forecast {best.forecast.score:.4g}")
    return f"{short_name(best.name)} {verb} with {', '.join(told)}"


def _is_in_the_table(event: Event) -> bool:
    """Return whether the live table shows the event."""
    ended = isinstance(event, LearnerLeft) and event.how == FINISHED
    return ended or isinstance(event, BudgetReplanned | WinnerSelected)


def display_mode() -> str:
    """Return how a race is shown here: a live table needs a terminal that can move its cursor."""
    if in_notebook():
        return "notebook"
    capable = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return "live" if capable else "lines"


@contextmanager
def long_pulls(
    running: Callable[[], PullStarted | None], report: Callable[[PullStarted], None]
) -> Iterator[None]:
    """Report a long pull from a separate thread, because the race's own is in the pull."""
    over = threading.Event()

    def check() -> None:
        while not over.wait(TICK):
            pull = running()
            if pull is not None and time.monotonic() - pull.at >= LONG:
                report(pull)

    thread = threading.Thread(target=check, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
