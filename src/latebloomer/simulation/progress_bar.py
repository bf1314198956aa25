"""A progress bar with rate and time left, on the error stream if that is a terminal."""

from __future__ import annotations

import sys
from typing import Any


class Progress:
    """Count work done; silent if not `shown` or if stderr is not a terminal."""

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
        """Print that complete runs are kept."""
        if self._shown:
            print("Stopped. The complete runs are kept.", file=sys.stderr)

    def __exit__(self, *_: object) -> None:
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
