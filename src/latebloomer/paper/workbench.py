"""What a figure is given: how many runs, in which mode, and a folder that remembers parts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from latebloomer.paper.experiments import AS_PUBLISHED, AS_WRITTEN
from latebloomer.paper.table_rows import Row, read_rows, write_rows
from latebloomer.simulation.progress_bar import Progress

Key = TypeVar("Key", bound=Hashable)
PARTS = "parts"  # the folder, in the output folder, of what need not be played again
PUBLISHED_RUNS = 100  # of the paper's figures


@dataclass(frozen=True)
class Bench:
    """The circumstances of a reproduction."""

    folder: Path
    runs: int = PUBLISHED_RUNS
    mode: str = AS_WRITTEN
    jobs: int = 1
    shown: bool = True  # a progress bar, where someone watches

    def say(self, text: str) -> None:
        """A line on the error stream."""
        if self.shown:
            print(text, file=sys.stderr, flush=True)

    def parts(
        self,
        name: str,
        keys: Sequence[Key],
        key_of: Callable[[Row], Key],
        play: Callable[[Key], list[Row]],
    ) -> list[Row]:
        """The rows of all keys, in this order; those in the folder are not played again.

        `name` says all that the rows depend on. A part is kept as soon as it is played.
        """
        path = self.folder / PARTS / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        found: dict[Key, list[Row]] = {}
        for row in read_rows(path) if path.is_file() else []:
            found.setdefault(key_of(row), []).append(row)
        missing = [key for key in keys if key not in found]
        workers = self.jobs if AS_PUBLISHED in name else 1  # `simulate` has threads of its own
        with Progress(len(missing), f"parts of {name}", shown=self.shown) as bar:
            for key, rows in _played(play, missing, workers):
                found[key] = rows
                write_rows(path, [row for part in found.values() for row in part])
                bar.advance(1)
        return [row for key in keys for row in found[key]]


def _played(
    play: Callable[[Key], list[Row]], keys: Iterable[Key], workers: int
) -> Iterator[tuple[Key, list[Row]]]:
    """Each key with its rows, as they are ready; on Ctrl-C nothing new is begun."""
    if workers == 1:
        yield from ((key, play(key)) for key in keys)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        waiting = {pool.submit(play, key): key for key in keys}
        for done in as_completed(waiting):
            yield waiting[done], done.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
