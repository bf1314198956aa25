"""What is shown while a race runs: a live table, a notebook's output, plain lines, or nothing."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from latebloomer._util import text as words
from latebloomer.errors import require
from latebloomer.page.race_page import ThinnedCurve
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.stopping import Stopwatch
from latebloomer.racing.verdict.verdict import brief
from latebloomer.session import events
from latebloomer.session.learner_view import WINNER, LearnerView

if TYPE_CHECKING:
    from rich.console import ConsoleDimensions

    from latebloomer.racing.verdict.verdict import Verdict

WHILE_RUNNING = "running"  # `progress`: show the race, and leave the verdict to the caller
EVERY = 30.0  # seconds between two plain lines of the same kind
REFRESH = 4  # times a second
LONG = 10.0  # seconds after which a pull is reported as long
TICK = 0.5  # seconds between two checks for a long pull
BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 24  # cells of a sparkline
MOST = 40  # rows; longer races show the best
AROUND = 4  # lines of the terminal that are not rows: title, head, what is cut, the cursor
HEAD = ["learner", "curve", "pulls", "time", "score", "forecast", "estimate", "state"]
NUMBERS = 69  # characters of all columns except the name and the curve
NARROW = 100  # characters of a terminal below which seconds are left out
LINES = 8  # latest lines below a notebook's table
STYLE = {"dropped": "dim", "not selected": "dim", "failed": "red", "finished": "cyan",
         "winner": "bold"}  # fmt: skip


def in_notebook() -> bool:
    """Return whether this is a notebook's process, which draws HTML and shows stderr in red."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return hasattr(shell, "kernel")


def print_aside(text: str) -> None:
    """Print a line that is not a result: on stderr, but not in a notebook, which makes it red."""
    print(text, file=sys.stdout if in_notebook() else sys.stderr, flush=True)


def display_mode() -> str:
    """Return how a race is shown here: a live table needs a terminal that can move its cursor."""
    if in_notebook():
        return "notebook"
    capable = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return "live" if capable else "lines"


class Progress:
    """Show a race while it runs; `mode` is live, notebook, lines or silent."""

    def __init__(self, race: RaceState, show: bool | str) -> None:
        require(show in (True, False, WHILE_RUNNING), "progress", show, "True, False or 'running'",
                "'running' leaves the verdict to you")  # fmt: skip
        self.race, self.mode = race, display_mode() if show else "silent"
        self._prints_verdict = show != WHILE_RUNNING
        self.curves = defaultdict[int, ThinnedCurve](lambda: ThinnedCurve(WIDTH))  # by arm
        self.rows = race.learners() if show else []
        self.phase = race.session.phase
        self.waiting = ""  # for which learners, if a pull is long
        self._waited_for: tuple[int, ...] = ()
        self._running: events.PullStarted | None = None  # read by another thread
        self._long: events.PullStarted | None = None  # the latest that was reported as long
        self._next = 0.0  # when to draw again
        self._racing = 0  # learners in the race when it was last looked at
        self._printed = time.monotonic()
        self._replan_printed = -EVERY
        self._live: Any = None  # the table in a terminal
        self._handle: Any = None  # the output in a notebook, and the lines below its table
        self._lines: list[str] = []
        self.watch = Stopwatch()  # the driver's own, once it has started

    # --- what the driver reports ---

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the race while it runs."""
        self._racing = len(self.race.session.racing)
        if self.mode == "silent":
            yield
            return
        over = threading.Event()
        thread = threading.Thread(target=self._report_long_pulls, args=(over,), daemon=True)
        with ExitStack() as stack:
            if self.mode == "live":
                from rich.console import Console
                from rich.live import Live

                console = Console(stderr=True)
                live = Live(console=console, get_renderable=lambda: table(self, console.size),
                            refresh_per_second=REFRESH)  # fmt: skip
                self._live = stack.enter_context(live)
                self._draw()
            thread.start()
            stack.callback(thread.join)
            stack.callback(over.set)
            yield
            if self.mode != "lines":
                self._draw()
        self._live = None

    def _report_long_pulls(self, over: threading.Event) -> None:
        """Report long pulls from a separate thread, because the race's own is in the pull."""
        while not over.wait(TICK):
            pull = self._running
            if pull is not None and time.monotonic() - pull.at >= LONG:
                self._long_pull(pull)

    def on_event(self, event: events.Event | events.PullStarted | events.Waiting) -> None:
        """Update the display for one event."""
        if self.mode == "silent":
            return
        if isinstance(event, events.PullStarted):
            self._running = event
            return
        if isinstance(event, events.Waiting):  # which learners keep the others waiting
            if event.arms:
                self._wait_for([(arm, self.race.session.pulls_of(arm) + 1) for arm in event.arms])
            return
        self._running = None
        if type(event) is events.ScoreReported:
            self.curves[event.arm].add(event.score)
            if event.arm in self._waited_for:
                self.waiting, self._waited_for = "", ()
            if self.mode == "lines":
                self._print_lines(time.monotonic())
            elif time.monotonic() >= self._next:
                self._draw()
        else:
            text, finished = self._sentence(event), getattr(event, "how", "") == events.FINISHED
            tabled = isinstance(event, events.BudgetReplanned | events.WinnerSelected) or finished
            if text and (self.mode == "lines" or not tabled):
                self.say(text)

    def _draw(self) -> None:
        """Take what the table shows: another thread draws it, and must not read the race."""
        self._next = time.monotonic() + 1 / REFRESH
        self.rows, self.phase = self.race.learners(), self.race.session.phase
        self._show_html()

    def _show_html(self) -> None:
        """Draw a notebook's output, or change it in place: the standings and the latest lines."""
        if self.mode != "notebook":
            return
        from IPython.display import HTML, display

        rows = list(_rows(self, self.rows[: MOST // 2], WIDTH, seconds=True))
        drawn = HTML(words.html_table(_title(self), HEAD, rows, self._lines))
        if self._handle is None:
            self._handle = display(drawn, display_id=True)
        else:
            self._handle.update(drawn)

    def _long_pull(self, pull: events.PullStarted) -> None:
        """Report a long pull; as a line only if it is longer than the learner's other pulls."""
        now = time.monotonic()
        pace = self.race.seconds[pull.arm] / max(1, pull.n - 1)
        early = now - self._printed < EVERY or now - pull.at < 2 * pace
        if pull is not self._long and (self.mode != "lines" or not early):
            self._long, self._printed = pull, now
            self._wait_for([(pull.arm, pull.n)])

    def _wait_for(self, pulls: Sequence[tuple[int, int]]) -> None:
        names = [f"{words.short_name(self.race.names[arm])} (its pull {n})" for arm, n in pulls]
        self.waiting = f"waiting for {', '.join(names)}"
        self._waited_for = tuple(arm for arm, _ in pulls)
        if self.mode == "lines":
            self.say(self.waiting)
        else:
            self._show_html()

    def end(self, verdict: Verdict) -> None:
        """Print the verdict; not the table again below a live one, nor in a notebook."""
        if self._prints_verdict and self.mode == "notebook":
            self.say(verdict.sentence)
        elif self._prints_verdict:
            live = self.mode == "live"
            self.say(brief(verdict, table=False) if live else f"\n{brief(verdict)}")

    def say(self, text: str) -> None:
        """Print a line, whatever else is shown."""
        if self.mode == "silent":
            return
        shown = words.printable(text)
        if self.mode == "notebook":
            self._lines = [*self._lines, *shown.strip().splitlines()][-LINES:]
            self._show_html()
        elif self._live is not None:
            self._live.console.print(shown, markup=False, highlight=False, emoji=False)
        else:
            print(shown, file=sys.stderr, flush=True)

    # --- plain lines ---

    def _print_lines(self, now: float) -> None:
        session = self.race.session
        racing = len(session.racing)
        if racing < self._racing:
            self._racing = racing
            for one in self.race.learners():
                if one.left_at == session.spent:
                    self.say(f"{words.short_name(one.name)}: {one.why}")
        elif now - self._printed >= EVERY:
            best = self.race.learners()[0]
            verb = "leads" if session.winner is None else "is selected and trained further,"
            at = f"pull {session.spent:,} of {session.budget:,}"
            score = f"score {best.score:.4g}"
            if best.forecast_score == best.forecast_score:
                score += f", forecast {best.forecast_score:.4g}"
            name = words.short_name(best.name)
            left = self.race.time_left(self.watch.elapsed)
            self.say(f"{at}: {name} {verb} with {score}; {left}")
        else:
            return
        self._printed = now

    def _sentence(self, event: events.Event) -> str:
        """Return an event in one line; empty for events that need none."""
        session, now = self.race.session, time.monotonic()
        left = session.budget - session.spent
        pulls = f"{left:,} pull{'s' * (left != 1)}"
        said = events.in_words(event, lambda arm: words.short_name(session.names[arm]))
        match event:
            case events.BudgetReplanned():  # a time-based race replans many times a second
                if now - self._replan_printed >= EVERY:
                    self._replan_printed = now
                    return f"time left: about {pulls}"
            case events.WinnerSelected():
                return f"{said} with the remaining {pulls}"
            case events.PullFailed() if session.departure(event.arm) is None:
                return f"{said}, tried again"
            case events.WarningNoted() | events.LearnerLeft():
                return said
        return ""


# --- the table, in a terminal and in a notebook ---


def sparkline(points: Sequence[float], low: float, high: float, width: int = WIDTH) -> str:
    """Return a curve as blocks, at most `width` of them.

    >>> sparkline([0.0, 0.5, 1.0], 0.0, 1.0)
    '▁▅█'
    """
    scale = (len(BLOCKS) - 1) / ((high - low) or 1.0)
    every = -(-len(points) // width) or 1
    shown = points[::-every][::-1]  # the latest point is always among them
    return "".join(BLOCKS[round((point - low) * scale)] for point in shown)


def _rows(
    progress: Progress, shown: Sequence[LearnerView], width: int, seconds: bool
) -> Iterator[list[str]]:
    """Yield the cells of each learner; curves have at most `width` characters."""
    session = progress.race.session
    curves = list(progress.curves.items())  # another thread may add to them
    points = {arm: [point.score for point in curve.raw()] for arm, curve in curves}
    known = [score for scores in points.values() for score in scores] or [0.0]
    low, high = min(known), max(known)
    for one in shown:
        state = one.outcome
        if session.over:
            state = "winner, kept" if one.state == WINNER else state
        elif one.arm == session.winner:
            state = "trained further"
        curve = sparkline(points.get(one.arm, []), low, high, width)
        took = [f"{words.short_seconds(one.seconds)} s"] if seconds else []
        values = ("" if value != value else f"{value:.4g}"
                  for value in (one.score, one.forecast_score, one.estimate))  # fmt: skip
        yield [words.one_line(one.name), curve, f"{one.pulls:,}", *took, *values, state]


def _title(progress: Progress) -> str:
    session, (phase, phases) = progress.race.session, progress.phase
    what = f"phase {phase} of {phases}"
    if session.winner is not None:
        what = f"training {words.short_name(session.names[session.winner])} further"
    trusts = [one.forecast.trust for one in progress.rows if one.forecast and not one.left]
    trust = f"forecasts trusted {100 * trusts[0]:.0f} %" if trusts else ""
    parts = [f"pull {session.spent:,} of {session.budget:,}", "" if session.over else what, trust,
             progress.race.time_left(progress.watch.elapsed), progress.waiting]  # fmt: skip
    return " · ".join(filter(None, parts))


def table(progress: Progress, size: ConsoleDimensions) -> Any:
    """Return one line per learner, as many as fit the terminal: the best ones."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows, most = progress.rows, max(3, min(MOST, size.height - AROUND))
    seconds = size.width >= NARROW
    head = HEAD if seconds else [text for text in HEAD if text != "time"]
    room = size.width - NUMBERS + 8 * (not seconds)
    longest = max((len(words.one_line(one.name)) for one in rows), default=0)
    name = min(longest, words.NAME, max(12, room - 8))
    shown = Table(box=None, pad_edge=False)
    for text in head:  # rich narrows the state first: cut numbers would say something else
        left = text in ("learner", "curve", "state")
        shown.add_column(text, justify="left" if left else "right", no_wrap=text != "state")
    lines = _rows(progress, rows[:most], max(6, min(WIDTH, room - name)), seconds)
    for one, (first, *others) in zip(rows[:most], lines, strict=True):
        texts = (Text(cell, no_wrap=True) for cell in (words.shortened(first, name), *others))
        shown.add_row(*texts, style=STYLE.get(one.state, ""))  # no markup, no emoji
    more = [Text(f"... {len(rows) - most} more", style="dim")] if len(rows) > most else []
    title = words.shortened(words.one_line(_title(progress)), size.width)
    return Group(Text(title, style="italic"), shown, *more)
