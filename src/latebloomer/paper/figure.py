"""What every figure or table is: its rows, its drawing, and the workbench it is made on."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from math import nan
from operator import attrgetter
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar, get_type_hints

from latebloomer._util.atomic_files import make_folder, write_csv
from latebloomer._util.text import printable
from latebloomer.paper.modes import AS_PUBLISHED, AS_WRITTEN, PUBLISHED_RUNS
from latebloomer.simulation.progress_bar import Progress

Key = TypeVar("Key", bound=Hashable)
EVERY = 1.0  # seconds of work that a kill may cost
PARTS = "parts"  # the folder, in the output folder, of what need not be played again


class Row(NamedTuple):
    """An algorithm at a budget, over runs: the same columns for every figure that has runs."""

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
    panel: str = ""  # where a figure has several
    pulls_low: float = nan  # the ends of the interval of `pulls_best`
    pulls_high: float = nan


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    """Write named tuples of one kind as CSV; the file is complete or not there."""
    write_csv(path, [rows[0]._fields, *rows])


def read_rows(path: Path, kind: type[Any] = Row) -> list[Any]:
    """Read what `write_rows` wrote."""
    types = get_type_hints(kind)
    with path.open(newline="", encoding="utf-8") as file:
        return [
            kind(**{name: types[name](text) for name, text in line.items()})
            for line in csv.DictReader(file)
        ]


def select(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """The rows with these values: `select(rows, algorithm="RR", T=100)`."""
    values = attrgetter(*wanted)
    same = values(SimpleNamespace(**wanted))
    return [row for row in rows if values(row) == same]


class Made(NamedTuple):
    """A figure that was made: its numbers, how to draw it, and what to know about it."""

    rows: Sequence[Any]  # named tuples of one kind: the CSV file
    draw: Callable[[Any], Any]  # given matplotlib.pyplot, returns a matplotlib figure
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Workbench:
    """What a figure is given: how many runs, in which mode, and a folder that remembers parts."""

    folder: Path
    runs: int = PUBLISHED_RUNS
    mode: str = AS_WRITTEN
    jobs: int = 1
    shown: bool = True  # a progress bar, where someone watches

    def say(self, text: str) -> None:
        """A line on the error stream."""
        if self.shown:
            print(printable(text), file=sys.stderr, flush=True)

    def parts(
        self,
        name: str,
        keys: Sequence[Key],
        key_of: Callable[[Row], Key],
        play: Callable[[Key], list[Row]],
    ) -> list[Row]:
        """The rows of all keys, in this order; those in the folder are not played again.

        `name` says all that the rows depend on. Played parts are kept whatever ends this; a kill
        costs those of a second.
        """
        path = make_folder(self.folder / PARTS) / f"{name}.csv"
        found: dict[Key, list[Row]] = {}
        for row in read_rows(path) if path.is_file() else []:
            found.setdefault(key_of(row), []).append(row)
        missing = [key for key in keys if key not in found]
        workers = self.jobs if AS_PUBLISHED in name else 1  # `simulate` has threads of its own
        with Progress(len(missing), f"parts of {name}", shown=self.shown) as bar:
            kept = monotonic()
            try:
                for key, rows in _played(play, missing, workers):
                    found[key] = rows
                    if monotonic() - kept > EVERY:
                        _write_parts(path, found)
                        kept = monotonic()
                    bar.advance(1)
            finally:
                if missing and found:
                    _write_parts(path, found)
        return [row for key in keys for row in found[key]]


def _write_parts(path: Path, found: Mapping[Any, list[Row]]) -> None:
    write_rows(path, [row for part in found.values() for row in part])


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


@dataclass(frozen=True)
class Figure:
    """A figure or table of the paper, or one of ours."""

    name: str
    title: str
    make: Callable[[Workbench], Made]
    in_all: bool = True  # part of `reproduce all`
