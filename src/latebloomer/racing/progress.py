"""What is shown while a race runs: a live table, plain lines, or nothing."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from latebloomer._util.text import printable, short_name, span_of_time
from latebloomer.errors import require
from latebloomer.racing.long_pulls import LongPulls
from latebloomer.racing.notebook_display import NotebookDisplay, in_notebook
from latebloomer.racing.verdict.sentences import why_it_stands_there
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
from latebloomer.session.reasons import Standing
from latebloomer.session.session import Session

if TYPE_CHECKING:
    from latebloomer.racing.time_budget import TimeBudget
    from latebloomer.racing.verdict.verdict import Verdict

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 24  # cells of a sparkline
WHILE_RUNNING = "running"  # `progress`: show the race, and leave the verdict to the caller
EVERY = 30.0  # seconds between two plain lines
REFRESH = 4  # times a second


class Trace:
    """A curve in at most 2 * WIDTH numbers, however long it grows."""

    def __init__(self) -> None:
        self._points: list[float] = []
        self._step = self._wait = 1

    def add(self, value: float) -> None:
        """Every `step`-th value is kept; when there are too many, every other one is dropped."""
        self._wait -= 1
        if self._wait:
            return
        self._points.append(value)
        if len(self._points) == 2 * WIDTH:
            self._points, self._step = self._points[1::2], 2 * self._step
        self._wait = self._step

    def line(self, low: float, high: float, width: int = WIDTH) -> str:
        """The curve as blocks, at most `width` of them.

        >>> trace = Trace()
        >>> for value in (0.0, 0.5, 1.0):
        ...     trace.add(value)
        >>> trace.line(0.0, 1.0)
        '▁▅█'
        """
        span = (high - low) or 1.0
        top = len(BLOCKS) - 1
        every = -(-len(self._points) // width) or 1
        shown = self._points[::-every][::-1]  # the newest point is always among them
        cells = [max(0, min(top, round((p - low) / span * top))) for p in shown]
        return "".join(BLOCKS[cell] for cell in cells)

    @property
    def points(self) -> list[float]:
        return self._points


class Progress:
    """Keeps what is shown; `mode` is live, notebook, lines or silent."""

    def __init__(self, names: Sequence[str], show: bool | str) -> None:
        require(show in (True, False, WHILE_RUNNING), "progress", show, "True, False or 'running'",
                "'running' leaves the verdict to you")  # fmt: skip
        self.mode = display_mode() if show else "silent"
        self._tells_verdict = show != WHILE_RUNNING
        self._notebook = NotebookDisplay()
        self.traces = [Trace() for _ in names]
        self.seconds = [0.0] * len(names)  # of training
        self.rows: list[Standing] = []
        self.phase = (1, 1)
        self.winner: Standing | None = None  # while it is trained on
        self.waiting = ""  # for whom, when a pull is long
        self._waited_for: tuple[int, ...] = ()
        self._running: PullStarted | None = None  # read by another thread
        self._long: PullStarted | None = None  # the newest that was said to take long
        self._next = 0.0
        self._racing = len(names)
        self._said = self._began = time.monotonic()
        self._start = 0
        self._live: Any = None
        self._session: Session | None = None
        self._clock: TimeBudget | None = None

    # --- what the driver reports ---

    @contextmanager
    def shown(self, session: Session, clock: TimeBudget | None) -> Iterator[None]:
        """Show the race while it runs."""
        self._session, self._clock, self._start = session, clock, session.spent
        self._began = time.monotonic()
        self._racing = session.racing_count
        if self.mode == "silent":
            yield
            return
        with self._drawn(session), LongPulls(lambda: self._running, self._long_pull):
            yield

    @contextmanager
    def _drawn(self, session: Session) -> Iterator[None]:
        """The table, as long as the race runs."""
        if self.mode != "live":
            yield
            if self.mode == "notebook":
                self._look(session)
            return
        from rich.console import Console
        from rich.live import Live

        from latebloomer.racing.live_table import table

        console = Console(stderr=True)
        with Live(
            console=console,
            get_renderable=lambda: table(self, console.size),
            refresh_per_second=REFRESH,
        ) as self._live:
            self._look(session)
            yield
            self._look(session)
        self._live = None

    def on_event(self, event: Event | PullStarted | Waiting, session: Session) -> None:
        """Something has happened."""
        if self.mode == "silent":
            return
        if isinstance(event, PullStarted):
            self._running = event
            return
        if isinstance(event, Waiting):
            if event.arms:
                self._wait_for(session, [(arm, session.pulls_of(arm) + 1) for arm in event.arms])
            return
        self._running = None
        if type(event) is ScoreReported:
            self._pulled(session, event)
        else:
            text = _sentence(event, session)
            if text and (self.mode == "lines" or not _is_in_the_table(event)):
                self.say(text)

    def _pulled(self, session: Session, told: ScoreReported) -> None:
        self.traces[told.arm].add(told.score)
        self.seconds[told.arm] += told.seconds
        if told.arm in self._waited_for:
            self.waiting, self._waited_for = "", ()
        now = time.monotonic()
        if self.mode == "lines":
            self._lines(session, now)
        elif now >= self._next:
            self._look(session)

    def _look(self, session: Session) -> None:
        """Take what the table shows; it is drawn by another thread, which must not read ahead."""
        self._next = time.monotonic() + 1 / REFRESH
        self.rows, self.phase = session.standings(), session.phase
        self.winner = next((row for row in self.rows if row.arm == session.winner), None)
        if self.mode == "notebook":
            self._notebook.show(self)

    def _long_pull(self, pull: PullStarted) -> None:
        """A pull takes long; lines are for those that are longer than the learner's others."""
        now, pace = time.monotonic(), self.seconds[pull.arm] / max(1, pull.n - 1)
        early = now - self._said < EVERY or now - pull.at < 2 * pace
        if self._session is None or pull is self._long or (self.mode == "lines" and early):
            return
        self._long, self._said = pull, now
        self._wait_for(self._session, [(pull.arm, pull.n)])

    def _wait_for(self, session: Session, pulls: Sequence[tuple[int, int]]) -> None:
        names = [f"{short_name(session.names[arm])} (its pull {n})" for arm, n in pulls]
        self.waiting = f"waiting for {', '.join(names)}"
        self._waited_for = tuple(arm for arm, _ in pulls)
        if self.mode == "lines":
            self.say(self.waiting)
        elif self.mode == "notebook":
            self._notebook.show(self)

    def end(self, verdict: Verdict) -> None:
        """The verdict; a live table has shown the learners, and a notebook draws it itself."""
        if not self._tells_verdict:
            return
        if self.mode == "notebook":
            self.say(verdict.sentence)
        elif self.mode == "live":  # below its table
            self.say(brief(verdict, table=False))
        else:
            self.say(f"\n{brief(verdict)}")

    def say(self, text: str) -> None:
        """One line, whatever else is shown."""
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

    def _lines(self, session: Session, now: float) -> None:
        racing = session.racing_count
        if racing < self._racing:
            self._racing = racing
            gone = [row for row in session.standings() if row.left_at == session.spent]
            for row in gone:
                why = why_it_stands_there(session, row.arm, brief=True)
                self.say(f"{short_name(row.name)}: {why}")
        elif now - self._said >= EVERY:
            self.say(
                f"pull {session.spent} of {session.budget}: {self._newest(session)}; "
                f"{self.time_left()}"
            )
        else:
            return
        self._said = now

    def _newest(self, session: Session) -> str:
        best = session.recommend()
        if session.winner is None:
            return f"{short_name(best.name)} leads with {best.estimates[best.arm]:.6g}"
        now = session.scores(best.arm)[-1]
        return f"{short_name(best.name)}, named the best, is trained on; it scores {now:.6g}"

    def time_left(self) -> str:
        """How long the rest will take, by the pulls so far."""
        session = self._session
        if session is None or session.spent == self._start:
            return "time left unknown"
        if self._clock is not None:
            return f"{span_of_time(max(0.0, self._clock.left()))} left"
        pace = (time.monotonic() - self._began) / (session.spent - self._start)
        return f"about {span_of_time(pace * (session.budget - session.spent))} left"

    @property
    def session(self) -> Session | None:
        return self._session


def _is_in_the_table(event: Event) -> bool:
    """Whether the live table shows it."""
    ended = isinstance(event, LearnerLeft) and event.how == FINISHED
    return ended or isinstance(event, BudgetReplanned | WinnerSelected)


def display_mode() -> str:
    """How a race is shown here: a table that changes needs a terminal that can move its cursor."""
    if in_notebook():
        return "notebook"
    capable = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return "live" if capable else "lines"


def _sentence(event: Event, session: Session) -> str:
    """An event in one line; nothing for those that are not worth one."""
    if isinstance(event, BudgetReplanned):
        return f"the time left is good for {session.budget - session.spent} more pulls"
    arm = getattr(event, "arm", None)
    name = short_name(session.names[arm]) if arm is not None else ""
    match event:
        case WinnerSelected():
            naming, left = session.naming, session.budget - session.spent
            return (
                f"{name}: named the best at pull {naming.at} by "
                f"{naming.estimates[naming.arm]:.6g}; trained on with the {left} pulls left"
            )
        case WarningNoted():
            return f"{name}: {event.text}" if name else event.text
        case PullFailed() if session.departure(event.arm) is None:
            return f"{name}: pull {event.n} failed, tried again ({event.reason})"
        case LearnerLeft():
            own = event.arm == session.winner
            if event.how == FINISHED:
                others = "" if own else "; the budget goes to the others"
                return f"{name}: finished after {session.pulls_of(event.arm)} pulls{others}"
            return f"{name}: {'no more' if own else 'out'}, {event.why}"
    return ""
