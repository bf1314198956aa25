"""Rows of measurements, the workbench that makes and stores them, and what a figure is."""

import csv
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_type_hints

from latebloomer._util.atomic_files import make_folder, write_csv
from latebloomer._util.text import printable
from latebloomer.paper import AS_PUBLISHED, AS_WRITTEN, PUBLISHED_RUNS
from latebloomer.simulation.local_runs import progress_bar

Key = TypeVar("Key", bound=Hashable)
PARTS = "parts"  # subfolder of the output folder with the rows that need not be played again


class Row(NamedTuple):
    """One algorithm at one budget, over runs: the columns of every figure that has runs."""

    algorithm: str
    T: int
    sigma: float
    error: float
    error_low: float
    error_high: float
    regret: float
    regret_low: float
    regret_high: float
    runs: int
    mode: str
    pulls_best: float  # mean pulls of the arm that is best at T
    best: int  # that arm
    recommended: int  # the arm recommended most often
    factor: float = 1.0  # of R-UCBE's exploration parameter a
    panel: str = ""  # panel of the figure, if it has several
    pulls_low: float = nan  # interval of `pulls_best`
    pulls_high: float = nan


Play: TypeAlias = Callable[[Key], list[Row]]


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    """Write named tuples of one kind as CSV; the file is complete or missing."""
    write_csv(path, [rows[0]._fields, *rows])


def read_rows(path: Path, kind: type[Any] = Row) -> list[Any]:
    """Return the rows that `write_rows` wrote; an empty list if there is no file."""
    if not path.is_file():
        return []
    types = get_type_hints(kind)
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.DictReader(file)
        return [kind(**{key: types[key](text) for key, text in row.items()}) for row in lines]


def select(rows: Sequence[Any], **wanted: Any) -> list[Any]:
    """Return the rows with these values: `select(rows, algorithm="RR", T=100)`."""
    return [row for row in rows if all(getattr(row, name) == wanted[name] for name in wanted)]


def by_budget(row: Row) -> int:
    """Return the budget of a row: the key of most parts."""
    return row.T


@dataclass(frozen=True)
class Workbench:
    """How figures are made: number of runs, mode, threads, and the folder that keeps parts."""

    folder: Path
    runs: int = PUBLISHED_RUNS
    mode: str = AS_WRITTEN
    jobs: int = 1
    shown: bool = True  # whether progress is shown, if the error stream is a terminal

    def say(self, text: str) -> None:
        """Print a line on the error stream."""
        if self.shown:
            print(printable(text), file=sys.stderr, flush=True)

    def parts(
        self, name: str, keys: Sequence[Key], key_of: Callable[[Row], Key], play: Play[Key]
    ) -> list[Row]:
        """Return the rows of all keys, in this order; keys found in the folder are not played.

        `name` says all that the rows depend on. The rows of a key are stored as soon as they are
        there, so an interrupted call loses little work.
        """
        path = make_folder(self.folder / PARTS) / f"{name}.csv"
        found: dict[Key, list[Row]] = {}
        for row in read_rows(path):
            found.setdefault(key_of(row), []).append(row)
        missing = [key for key in keys if key not in found]
        workers = self.jobs if AS_PUBLISHED in name else 1  # `simulate` has its own threads
        with progress_bar(len(missing), f"parts of {name}", self.shown) as advance:
            for key, rows in _played(play, missing, workers):
                found[key] = rows
                write_rows(path, [row for part in found.values() for row in part])
                advance(1)
        return [row for key in keys for row in found[key]]


def _played(play: Play[Key], keys: Iterable[Key], workers: int) -> Iterator[tuple[Key, list[Row]]]:
    """Yield each key with its rows as they become ready; start nothing new after Ctrl-C."""
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


Shown: TypeAlias = tuple[Any, list[str]]  # a matplotlib figure, and sentences about it


@dataclass(frozen=True)
class Figure:
    """A figure or table of the paper, or one of ours; `partial(Figure, ...)` marks its `show`."""

    name: str
    title: str
    rows: Callable[[Workbench], Sequence[Any]]  # returns named tuples of one kind: the CSV file
    show: Callable[[Any, Any, str], Shown]  # takes matplotlib.pyplot, these rows and the mode
    in_all: bool = True  # whether it is part of `reproduce all`
