"""The live table of a race, drawn with rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import ConsoleDimensions, Group
from rich.table import Table
from rich.text import Text

from latebloomer._util.text import NAME, one_line, short_name, short_seconds, shortened
from latebloomer.racing.progress import WIDTH

if TYPE_CHECKING:
    from latebloomer.racing.progress import Progress
    from latebloomer.session.reasons import Standing
    from latebloomer.session.session import Session

MOST = 40  # rows; longer races show the best
AROUND = 4  # lines of the terminal that are not rows: title, head, what is cut, the cursor
NUMBERS = 52  # characters of all columns but the name and the curve
STYLE = {"racing": "", "dropped": "dim", "failed": "red", "finished": "cyan"}
COLUMNS = (("learner", "left"), ("curve", "left"), ("pulls", "right"), ("seconds", "right"),
           ("estimate", "right"), ("state", "left"))  # fmt: skip


def table(progress: Progress, size: ConsoleDimensions) -> Any:
    """One line per learner: name, curve, pulls, seconds of training, estimate, state.

    It fits the terminal: names are cut, curves are shorter, and of many learners the best are
    shown.
    """
    session = progress.session
    if session is None:
        return ""
    rows, most = progress.rows, max(3, min(MOST, size.height - AROUND))
    points = [p for trace in progress.traces for p in trace.points]
    scale = (min(points), max(points)) if points else (0.0, 1.0)
    room = size.width - NUMBERS
    longest = max((len(one_line(row.name)) for row in rows), default=0)
    name = min(longest, NAME, max(12, room - 8))
    widths = name, max(6, min(WIDTH, room - name))
    shown = Table(box=None, pad_edge=False)
    for column, justify in COLUMNS:
        shown.add_column(column, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in rows[:most]:
        _add(shown, progress, session, row, scale, widths)
    more = f"... {len(rows) - most} more" if len(rows) > most else ""
    title = shortened(one_line(_title(progress, session)), size.width)
    return Group(Text(title, style="italic"), shown, *([Text(more, style="dim")] if more else []))


def _add(
    shown: Table, progress: Progress, session: Session, row: Standing,
    scale: tuple[float, float], widths: tuple[int, int],
) -> None:  # fmt: skip
    """A learner's line."""
    named = progress.winner is not None and row.arm == progress.winner.arm
    state = session.departure(row.arm) or ("trained on" if named else row.state)
    shown.add_row(
        Text(shortened(one_line(row.name), widths[0])),  # no markup, no emoji names
        progress.traces[row.arm].line(*scale, widths[1]),
        str(row.pulls),
        short_seconds(progress.seconds[row.arm]),
        "" if row.estimate != row.estimate else f"{row.estimate:.5g}",
        f"{state} at pull {row.left_at}" if row.left_at else state,
        style=STYLE.get(state, ""),
    )


def _title(progress: Progress, session: Session) -> str:
    phase, phases = progress.phase
    what = f"phase {phase} of {phases}"
    if progress.winner is not None:
        what = f"training {short_name(progress.winner.name)} on"
    said = f"pull {session.spent} of {session.budget} · {what} · {progress.time_left()}"
    return f"{said} · {progress.waiting}" if progress.waiting else said
