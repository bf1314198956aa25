"""The progress of a race in a notebook: one output that is changed in place."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from latebloomer._util.html_table import html_table
from latebloomer._util.text import one_line

if TYPE_CHECKING:
    from latebloomer.racing.progress import Progress

LINES = 8  # that were said last
MOST = 20  # learners; longer races show the best


def in_notebook() -> bool:
    """Whether this is a notebook's process, which draws HTML and shows stderr in red."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return hasattr(shell, "kernel")


def print_aside(text: str) -> None:
    """A line that is no result: on the error stream, which a notebook would show in red."""
    print(text, file=sys.stdout if in_notebook() else sys.stderr, flush=True)


class NotebookDisplay:
    """The standings and what was said last."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._lines: list[str] = []

    def say(self, text: str) -> None:
        """One more line; the oldest is forgotten."""
        self._lines = [*self._lines, *text.strip().splitlines()][-LINES:]

    def show(self, progress: Progress) -> None:
        """Draw it, or draw it anew where it is."""
        from IPython.display import HTML, display

        drawn = HTML(self._html(progress))
        if self._handle is None:
            self._handle = display(drawn, display_id=True)
        else:
            self._handle.update(drawn)

    def _html(self, progress: Progress) -> str:
        session = progress.session
        if session is None or not progress.rows:
            return html_table("latebloomer", [], [], self._lines)
        points = [p for trace in progress.traces for p in trace.points] or [0.0, 1.0]
        low, high = min(points), max(points)
        rows = [
            [one_line(row.name), progress.traces[row.arm].line(low, high), f"{row.pulls:,}",
             "" if row.estimate != row.estimate else f"{row.estimate:.5g}",
             session.departure(row.arm) or row.state]
            for row in progress.rows[:MOST]
        ]  # fmt: skip
        title = f"pull {session.spent:,} of {session.budget:,} · {progress.time_left()}"
        title += f" · {progress.waiting}" if progress.waiting else ""
        head = ["learner", "curve", "pulls", "estimate", "state"]
        return html_table(title, head, rows, self._lines)
