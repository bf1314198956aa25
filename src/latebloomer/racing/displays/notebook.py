"""The display in a notebook: the standings and the latest lines, updated in place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from latebloomer._util.text import html_table, printable
from latebloomer.racing.displays.display import Display
from latebloomer.racing.displays.standings_table import MOST, StandingsTable, is_in_the_table
from latebloomer.racing.race_state import RaceState
from latebloomer.session import events

REFRESH = 4  # updates per second
LINES = 8  # number of lines below the table


class NotebookOutput(Display):
    """Show the standings in one output of the cell, with the latest lines below."""

    def __init__(self, race: RaceState) -> None:
        super().__init__(race)
        self.standings = StandingsTable(race)
        self._output: Any = None
        self._lines: list[str] = []
        self._next = 0.0  # time of the next update

    @contextmanager
    def _opened(self) -> Iterator[None]:
        yield
        self._look()

    def say(self, text: str) -> None:
        """Show a line below the table."""
        self._lines = [*self._lines, *printable(text).strip().splitlines()][-LINES:]
        self._draw()

    def _on_score(self, score: events.ScoreReported) -> None:
        self.standings.add(score)
        if time.monotonic() >= self._next:
            self._look()

    def _look(self) -> None:
        self._next = time.monotonic() + 1 / REFRESH
        self.standings.look()
        self._draw()

    def _draw(self) -> None:
        from IPython.display import HTML, display

        columns = self.standings.columns(self.standings.rows[: MOST // 2])
        rows = list(zip(*(column.cells for column in columns), strict=True))
        title = self.standings.title(self.clock.elapsed, self.waiting)
        drawn = HTML(html_table(title, [column.head for column in columns], rows, self._lines))
        if self._output is None:
            self._output = display(drawn, display_id=True)
        else:
            self._output.update(drawn)

    def _is_told_already(self, event: events.Event) -> bool:
        return is_in_the_table(event)

    def _show_waiting(self) -> None:
        self._draw()
