"""The display in a terminal: a table that is redrawn in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from latebloomer._util.console import line_width
from latebloomer._util.fitted_table import fitted
from latebloomer._util.text import one_line, printable, wrapped
from latebloomer.racing.displays.display import Display
from latebloomer.racing.displays.standings_table import MOST, StandingsTable, is_in_the_table
from latebloomer.racing.race_state import RaceState
from latebloomer.session import events

if TYPE_CHECKING:
    from rich.console import ConsoleDimensions

REFRESH = 4  # redraws per second
AROUND = 4  # lines of the terminal that are not rows: title, head, count of hidden rows, cursor
STYLE = {
    "dropped": "dim",
    "not selected": "dim",
    "failed": "red",
    "finished": "cyan",
    "winner": "bold",
}


class LiveTable(Display):
    """Show the standings in a table that changes in place, with lines of text above it."""

    def __init__(self, race: RaceState) -> None:
        super().__init__(race)
        self.standings = StandingsTable(race)
        self._live: Any = None  # set while the race runs
        self._next = 0.0  # time of the next update

    @contextmanager
    def _opened(self) -> Iterator[None]:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True)
        drawn = Live(
            console=console,
            get_renderable=lambda: self.table(console.size),
            refresh_per_second=REFRESH,
        )
        with drawn as self._live:
            self.standings.look()
            yield
            self.standings.look()
            # Remove the table, because the verdict has one; after an error it stays.
            drawn.transient = True
        self._live = None

    def say(self, text: str) -> None:
        """Print a line above the table."""
        shown = printable(text)
        if self._live is None:
            print(wrapped(shown, line_width(sys.stderr)), file=sys.stderr, flush=True)
            return
        console = self._live.console
        plain: dict[str, Any] = {"markup": False, "highlight": False, "emoji": False}
        console.print(wrapped(shown, console.width), soft_wrap=True, **plain)

    def _on_score(self, score: events.ScoreReported) -> None:
        self.standings.add(score)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 1 / REFRESH
            self.standings.look()

    def _is_told_already(self, event: events.Event) -> bool:
        return is_in_the_table(event)

    def _show_waiting(self) -> None:
        """Do nothing: the title shows it at the next redraw."""

    def table(self, size: ConsoleDimensions) -> Any:
        """Return a table with the best learners, as many as fit the terminal, one per line."""
        from rich.console import Group
        from rich.text import Text

        title = wrapped(
            one_line(self.standings.title(self.clock.elapsed, self.waiting)), size.width
        )
        rows, around = self.standings.rows, AROUND + title.count("\n")
        shown = rows[: max(3, min(MOST, size.height - around))]
        head, *lines = fitted(self.standings.columns(shown), size.width)
        styles = [STYLE.get(row.state, "") for row in shown]
        styled = [Text(line, style) for line, style in zip(lines, styles, strict=True)]
        hidden = len(rows) - len(shown)
        more = [Text(f"... {hidden} more", "dim")] if hidden else []
        return Group(Text(title, "italic"), Text(head, "bold"), *styled, *more)
