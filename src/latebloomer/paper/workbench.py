"""Rows of measurements, figures, and the workbench that makes and stores the runs behind them.

Simulated runs are stored as `Results`, in one file for each problem, budget, number of runs and
set of policies; `simulate` writes a file while its results grow, and checks it when it reads it.
Trials of the published algorithms are counted like the authors did it, so only their rows are
stored.
"""

import csv
import hashlib
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_type_hints

from latebloomer._util.atomic_files import make_folder, write_csv
from latebloomer._util.text import printable
from latebloomer.paper import AS_WRITTEN, PUBLISHED_RUNS
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import label_of
from latebloomer.problems import Problem
from latebloomer.simulation.local_runs import progress_bar
from latebloomer.simulation.results.results import Results
from latebloomer.simulation.simulate import simulate
from latebloomer.version import __version__

Key = TypeVar("Key", bound=Hashable)
# Subfolder of the output folder with stored runs, which are not simulated again. Another version
# of this library does not use them, because its policies may differ.
PARTS = f"parts-{__version__}"
SEED = 0  # seed of all simulated runs


class Row(NamedTuple):
    """One algorithm at one budget, over runs: the columns of every figure with runs."""

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
    best: int  # the arm that is best at T
    recommended: int  # the arm recommended most often
    factor: float = 1.0  # factor of R-UCBE's exploration parameter a
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
    """Return the rows with these values, as in `select(rows, algorithm="RR", T=100)`."""
    return [row for row in rows if all(getattr(row, name) == wanted[name] for name in wanted)]


def by_budget(row: Row) -> int:
    """Return the budget of a row, which is the key of most trials."""
    return row.T


@dataclass(frozen=True)
class Workbench:
    """The settings of figures: number of runs, mode, threads, and the folder for stored runs."""

    folder: Path
    runs: int = PUBLISHED_RUNS
    mode: str = AS_WRITTEN
    jobs: int = 1
    shown: bool = True  # whether to show progress if the error stream is a terminal

    def say(self, text: str) -> None:
        """Print a line on the error stream."""
        if self.shown:
            print(printable(text), file=sys.stderr, flush=True)

    def file_of(self, name: str) -> Path:
        """Return the path of a file in the folder of stored runs; create the folder."""
        return make_folder(self.folder / PARTS) / name

    def simulate(
        self, problem: Problem, policies: Sequence[Policy], budget: int, runs: int
    ) -> Results:
        """Return the runs of policies at one budget; simulate only runs that are not stored."""
        origin = vars(Results.empty(problem, SEED).origin)
        setup = (sorted(origin.items()), budget, runs, sorted(map(label_of, policies)))
        digest = hashlib.sha256(repr(setup).encode()).hexdigest()[:16]
        out = self.file_of(f"{digest}.json")
        return simulate(
            problem, policies, budget, runs, SEED, threads=self.jobs, progress=False, out=out
        )

    def rows_of(self, what: str, keys: Sequence[Key], rows: Play[Key]) -> list[Row]:
        """Return the rows of all keys, in this order, and show progress."""
        collected: list[Row] = []
        with progress_bar(len(keys), what, self.shown) as advance:
            for key in keys:
                collected += rows(key)
                advance(1)
        return collected

    def trials_of(
        self,
        what: str,
        runs: int,
        keys: Sequence[Key],
        key_of: Callable[[Row], Key],
        play: Play[Key],
    ) -> list[Row]:
        """Return the rows of all keys, in this order; run only keys that are not in the folder.

        The rows of a key are stored as soon as they are ready, so an interrupted call loses little
        work.
        """
        path = self.file_of(f"{what}.{runs}.csv")
        by_key: dict[Key, list[Row]] = {}
        for row in read_rows(path):
            by_key.setdefault(key_of(row), []).append(row)
        missing = [key for key in keys if key not in by_key]
        with progress_bar(len(missing), what, self.shown) as advance:
            for key, rows in _played(play, missing, self.jobs):
                by_key[key] = rows
                write_rows(path, [row for part in by_key.values() for row in part])
                advance(1)
        return [row for key in keys for row in by_key[key]]


def _played(play: Play[Key], keys: Iterable[Key], workers: int) -> Iterator[tuple[Key, list[Row]]]:
    """Yield each key with its rows when they are ready; start no new key after Ctrl-C."""
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
    """A figure or table, of the paper or our own; `partial(Figure, ...)` decorates its `show`."""

    name: str
    title: str
    rows: Callable[[Workbench], Sequence[Any]]  # returns named tuples of one kind: the CSV file
    # Called with matplotlib.pyplot, these rows and the mode.
    show: Callable[[Any, Any, str], Shown]
    in_all: bool = True  # whether `reproduce all` includes it
