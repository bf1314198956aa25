"""A bar with rate and time left, on the error stream and only where someone watches."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class Progress:
    """Counts work done; silent when not `shown` or when stderr is not a terminal."""

    def __init__(self, total: int, unit: str, shown: bool = True) -> None:
        self.total, self.unit = total, unit
        self._bar: Any = None
        self._shown = shown
        self._watched = shown and sys.stderr.isatty()

    def __enter__(self) -> Progress:
        if self._watched:
            self._bar = _rich_bar()
            self._task = self._bar.add_task(self.unit, total=self.total)
            self._bar.start()
        return self

    def advance(self, done: int) -> None:
        if self._bar is not None:
            self._bar.advance(self._task, done)

    def interrupted(self) -> None:
        """Say that what is done is kept."""
        if self._shown:
            print("stopped; the runs played so far are kept", file=sys.stderr)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _rich_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    return RichProgress(
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed:.3g} of {task.total:.3g} {task.description},"),
        TextColumn("{task.speed:.3g}/s,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
    )
