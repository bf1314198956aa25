"""The table of a running race: drawn with rich in a terminal, as HTML in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from latebloomer._util.tables import html_table
from latebloomer._util.text import NAME, one_line, short_name, short_seconds, shortened
from latebloomer.session.learner_view import WINNER

if TYPE_CHECKING:
    from rich.console import ConsoleDimensions

    from latebloomer.racing.progress import Progress
    from latebloomer.session.learner_view import LearnerView

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 24  # cells of a sparkline
MOST = 40  # rows; longer races show the best
AROUND = 4  # lines of the terminal that are not rows: title, head, what is cut, the cursor
NUMBERS = 76  # characters of all columns except the name and the curve
NARROW = 100  # characters of a terminal below which seconds are left out
LINES = 8  # latest lines below a notebook's table
STYLE = {"dropped": "dim", "not selected": "dim", "failed": "red", "finished": "cyan",
         "winner": "bold"}  # fmt: skip


class Trace:
    """A curve in at most 2 * WIDTH numbers, however long it grows."""

    def __init__(self) -> None:
        self.points: list[float] = []
        self._step = self._wait = 1

    def add(self, value: float) -> None:
        """Keep every `step`-th value; if there are too many, drop every other one."""
        self._wait -= 1
        if self._wait:
            return
        self.points.append(value)
        if len(self.points) == 2 * WIDTH:
            self.points, self._step = self.points[1::2], 2 * self._step
        self._wait = self._step

    def line(self, low: float, high: float, width: int = WIDTH) -> str:
        """Return the curve as blocks, at most `width` of them.

        >>> trace = Trace()
        >>> for value in (0.0, 0.5, 1.0):
        ...     trace.add(value)
        >>> trace.line(0.0, 1.0)
        '▁▅█'
        """
        span = (high - low) or 1.0
        top = len(BLOCKS) - 1
        every = -(-len(self.points) // width) or 1
        shown = self.points[::-every][::-1]  # the latest point is always among them
        cells = [max(0, min(top, round((p - low) / span * top))) for p in shown]
        return "".join(BLOCKS[cell] for cell in cells)


# --- the table, for both ---


def _head(progress: Progress, seconds: bool) -> list[str]:
    rule = progress.race.session.policy.name
    time = ["time"] if seconds else []
    return ["learner", "curve", "pulls", *time, "score", "forecast", f"estimate ({rule})", "state"]


def _cells(progress: Progress, one: LearnerView, curve: str, seconds: bool) -> list[str]:
    time = [f"{short_seconds(one.seconds)} s"] if seconds else []
    trained_further = one.arm == progress.race.session.winner and not progress.race.session.over
    state = "trained further" if trained_further else one.outcome
    state = "winner, kept" if one.state == WINNER and progress.race.session.over else state
    return [one_line(one.name), curve, f"{one.pulls:,}", *time, _number(one.score),
            _number(one.forecast_score), _number(one.estimate), state]  # fmt: skip


def _number(value: float) -> str:
    return "" if value != value else f"{value:.4g}"


def _curves(progress: Progress, rows: Iterable[LearnerView], width: int) -> list[str]:
    points = [p for trace in progress.traces.values() for p in trace.points] or [0.0, 1.0]
    low, high = min(points), max(points)
    return [progress.traces[one.arm].line(low, high, width) for one in rows]


def _title(progress: Progress) -> str:
    session, (phase, phases) = progress.race.session, progress.phase
    what = f"phase {phase} of {phases}"
    if session.winner is not None:
        what = f"training {short_name(session.names[session.winner])} further"
    trusts = [one.forecast.trust for one in progress.rows if one.forecast and not one.left]
    trust = f"forecasts trusted {100 * trusts[0]:.0f} %" if trusts else ""
    parts = [f"pull {session.spent:,} of {session.budget:,}", "" if session.over else what, trust,
             progress.time_left(), progress.waiting]  # fmt: skip
    return " · ".join(filter(None, parts))


# --- in a terminal ---


def table(progress: Progress, size: ConsoleDimensions) -> Any:
    """Return one line per learner, as many as fit the terminal: the best ones."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows, most = progress.rows, max(3, min(MOST, size.height - AROUND))
    seconds = size.width >= NARROW
    head = _head(progress, seconds)
    room = size.width - NUMBERS + (0 if seconds else 8 + len(head[-2]) - len("estimate"))
    if not seconds:
        head[-2] = "estimate"
    longest = max((len(one_line(one.name)) for one in rows), default=0)
    name = min(longest, NAME, max(12, room - 8))
    curves = _curves(progress, rows[:most], max(6, min(WIDTH, room - name)))
    shown = Table(box=None, pad_edge=False)
    for text in head:
        left = text in ("learner", "curve", "state")
        shown.add_column(text, justify="left" if left else "right", no_wrap=True)
    for one, curve in zip(rows[:most], curves, strict=True):
        cells = _cells(progress, one, curve, seconds)
        cells[0] = shortened(cells[0], name)
        shown.add_row(*map(Text, cells), style=STYLE.get(one.state, ""))  # no markup, no emoji
    more = [Text(f"... {len(rows) - most} more", style="dim")] if len(rows) > most else []
    return Group(Text(shortened(one_line(_title(progress)), size.width), style="italic"), shown,
                 *more)  # fmt: skip


# --- in a notebook ---


def in_notebook() -> bool:
    """Return whether this is a notebook's process, which draws HTML and shows stderr in red."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return hasattr(shell, "kernel")


def print_aside(text: str) -> None:
    """Print a line that is not a result: on stderr, but not in a notebook, which makes it red."""
    print(text, file=sys.stdout if in_notebook() else sys.stderr, flush=True)


class NotebookDisplay:
    """One output, changed in place: the standings and the latest lines."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._lines: list[str] = []

    def say(self, text: str) -> None:
        """Add lines below the table; the oldest go."""
        self._lines = [*self._lines, *text.strip().splitlines()][-LINES:]

    def show(self, progress: Progress) -> None:
        """Draw the output, or change it where it is."""
        from IPython.display import HTML, display

        drawn = HTML(self._html(progress))
        if self._handle is None:
            self._handle = display(drawn, display_id=True)
        else:
            self._handle.update(drawn)

    def _html(self, progress: Progress) -> str:
        shown = progress.rows[: MOST // 2]
        if not shown:
            return html_table("latebloomer", [], [], self._lines)
        rows = [
            _cells(progress, one, curve, seconds=True)
            for one, curve in zip(shown, _curves(progress, shown, WIDTH), strict=True)
        ]
        return html_table(_title(progress), _head(progress, seconds=True), rows, self._lines)
