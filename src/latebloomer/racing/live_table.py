"""The live table and the standings, drawn with rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from latebloomer.core.text import one_line

if TYPE_CHECKING:
    from latebloomer.racing.progress import Progress
    from latebloomer.session.session import Session

MOST = 40  # rows; longer races show the best
STYLE = {"racing": "", "out": "dim", "failed": "red", "finished": "cyan"}


def table(progress: Progress) -> Any:
    """One line per learner: name, curve, pulls, seconds of training, estimate, state."""
    session = progress.session
    if session is None:
        return ""
    rows = progress.rows
    points = [p for trace in progress.traces for p in trace.points]
    low, high = (min(points), max(points)) if points else (0.0, 1.0)
    shown = Table(
        title=_as_is(_title(progress, session)), title_justify="left", box=None, pad_edge=False
    )
    for column, justify in (("learner", "left"), ("curve", "left"), ("pulls", "right"),
                            ("seconds", "right"), ("estimate", "right"),
                            ("state", "left")):  # fmt: skip
        shown.add_column(column, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in rows[:MOST]:
        named = progress.winner is not None and row.arm == progress.winner.arm
        state = session.departure(row.arm) or ("trained on" if named else row.state)
        curve = progress.traces[row.arm].line(low, high)
        estimate = "" if row.estimate != row.estimate else f"{row.estimate:.5g}"
        when = f" at pull {row.out_at}" if row.out_at else ""
        shown.add_row(
            _as_is(row.name),
            curve,
            str(row.pulls),
            f"{progress.seconds[row.arm]:.3g}",
            estimate,
            state + when,
            style=STYLE.get(state, ""),
        )
    if len(rows) > MOST:
        shown.add_row(f"... {len(rows) - MOST} more", "", "", "", "", "", style="dim")
    return shown


def _as_is(text: str) -> Text:
    """Text that rich shows as it is: no markup, no emoji names, no control characters."""
    return Text(one_line(text))


def _title(progress: Progress, session: Session) -> str:
    phase, phases = progress.phase
    what = f"phase {phase} of {phases}"
    if progress.winner is not None:
        what = f"training {progress.winner.name} on"
    return f"pull {session.spent} of {session.budget} · {what} · {progress.time_left()}"
