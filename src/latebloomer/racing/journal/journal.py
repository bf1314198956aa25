"""The events of a race, one after the other: appended, and read again.

On disk they are in one SQLite file in WAL mode, written by the driver alone. By the standard
library's `sqlite3`, not SQLAlchemy: there is one table, the base install stays small, and a pull
costs one prepared INSERT (12 to 20 µs here; SQLAlchemy Core adds several times that). With
`synchronous=NORMAL` a committed event survives whatever happens to the process;
`durability="full"` also waits for the disk, against power loss.
"""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from struct import error as StructError
from time import time
from typing import Any

from latebloomer._util.text import one_line
from latebloomer.errors import JournalError
from latebloomer.racing.journal.schema import (
    COLUMNS,
    TOLD,
    Entry,
    PullEntries,
    checksum,
    event_of,
    row_of,
    told_checksum,
)
from latebloomer.session.events import Event, ScoreReported

INSERT_TOLD = (
    "INSERT INTO events (id, kind, arm, score, seconds, steps, at, elapsed, checksum) "
    f"VALUES (?, '{TOLD}', ?, ?, ?, ?, ?, ?, ?)"
)
INSERT = f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES ({', '.join('?' for _ in COLUMNS)})"
INSERT_TAIL = "INSERT OR REPLACE INTO tail (only, id, checksum) VALUES (1, ?, ?)"
SELECT_ONE = f"SELECT {', '.join(COLUMNS)} FROM events WHERE id = ?"
# What pulls need, and most events are pulls: each column costs 0.06 µs a row.
SELECT = (
    f"SELECT id, arm, score, seconds, steps, at, elapsed, kind = '{TOLD}', checksum "
    "FROM events WHERE id > ? ORDER BY id"
)
CELLS, IS_TOLD = 7, 7  # of a row in this order, those of a pull; and whether it is one
BATCH = 256  # pulls that are read together, at most: few enough to stay in the cache


# What reading a file of garbage can raise.
DAMAGE = (sqlite3.DatabaseError, ValueError, TypeError, KeyError, OverflowError, StructError)
Row = tuple[Any, ...]
PAGE = 512  # bytes: no SQLite file is shorter


class Journal(ABC):
    """Appends events and reads them back; it knows nothing else of races."""

    path: Path | None = None

    @abstractmethod
    def append(self, *events: Event, elapsed: float = 0.0) -> None:
        """Enter events, all or none. When this returns they count, whatever happens next."""

    @abstractmethod
    def read(self, after: int = 0) -> Iterator[Entry]:
        """The entries beyond number `after`, in order."""

    def read_in_batches(self, after: int = 0) -> Iterator[Entry | PullEntries]:
        """The same, with pulls that follow each other together where that is faster."""
        return self.read(after)

    def is_in_place(self) -> bool:
        """Whether what was written can still be found where it was put."""
        return True

    def close(self) -> None:  # noqa: B027
        """Let go of the file and of the lock."""


class MemoryJournal(Journal):
    """A journal that ends with the process."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, float, Event]] = []  # of each all but its number

    def append(self, *events: Event, elapsed: float = 0.0) -> None:
        now = time()
        for event in events:
            self._entries.append((now, elapsed, event))

    def read(self, after: int = 0) -> Iterator[Entry]:
        entries = enumerate(self._entries[after:], start=after + 1)
        return (Entry(number, *entry) for number, entry in entries)


class FileJournal(Journal):
    """A journal in an SQLite file; `files` gives one."""

    def __init__(self, connection: sqlite3.Connection, path: Path, lock: Any = None) -> None:
        self.path: Path = path
        self._db, self._lock = connection, lock
        self._last = self._checksum = 0  # of the newest row
        found = os.stat(path)
        self._inode = found.st_dev, found.st_ino
        if lock is not None:
            self._find_end()

    def _find_end(self) -> None:
        query = "SELECT id, checksum FROM events ORDER BY id DESC LIMIT 1"
        try:
            newest = self._db.execute(query).fetchone()
        except sqlite3.DatabaseError as error:
            raise JournalError(
                f"the journal {near(self.path)} is damaged at its end ({error}): `latebloomer "
                f"repair {near(self.path)}` keeps what is sound in a new file"
            ) from error
        if newest is not None:
            self._last, self._checksum = newest

    # --- writing ---

    def append(self, *events: Event, elapsed: float = 0.0) -> None:
        now = time()
        try:
            if len(events) == 1 and type(events[0]) is ScoreReported:
                self._append_told(events[0], now, elapsed)
            else:
                self._append_several(events, now, elapsed)
        except sqlite3.Error as error:
            raise self._cannot_write(events[0], error) from error

    def _append_told(self, event: ScoreReported, now: float, elapsed: float) -> None:
        number = self._last + 1
        row = (number, event.arm, event.score, event.seconds, event.steps, now, elapsed)
        mark = told_checksum(self._checksum, *row)
        self._db.execute(INSERT_TOLD, (*row, mark))
        self._last, self._checksum = number, mark

    def _append_several(self, events: tuple[Event, ...], now: float, elapsed: float) -> None:
        numbered = enumerate(events, self._last + 1)
        with transaction(self._db):
            written = self.write(Entry(k, now, elapsed, event) for k, event in numbered)
        self._last, self._checksum = written

    def write(self, entries: Iterable[Entry]) -> tuple[int, int]:
        """Insert entries as they are, within a transaction; the last number and checksum."""
        number, mark, rows = self._last, self._checksum, []
        for number, at, elapsed, event in entries:
            columns = row_of(event) | {"id": number, "at": at, "elapsed": elapsed}
            row = tuple(columns.get(name) for name in COLUMNS[:-1])
            mark = checksum(mark, (*row, 0))
            rows.append((*row, mark))
        self._db.executemany(INSERT, rows)
        self._db.execute(INSERT_TAIL, (number, mark))
        return number, mark

    def _cannot_write(self, event: Event, error: sqlite3.Error) -> JournalError:
        what = (
            f"pull {self._pulls() + 1}"
            if isinstance(event, ScoreReported)
            else type(event).__name__
        )
        return JournalError(
            f"{what} could not be written to the journal {self.path} ({error}): the race has "
            "stopped; all that was written before is safe. Make room or restore the folder, then "
            f"{resume_call(self.path)}"
        )

    def _pulls(self) -> int:
        try:
            query = f"SELECT count(*) FROM events WHERE kind = '{TOLD}'"
            return int(self._db.execute(query).fetchone()[0])
        except sqlite3.Error:  # the file is gone altogether
            return 0

    # --- reading ---

    def read(self, after: int = 0) -> Iterator[Entry]:
        for entry in self.read_in_batches(after):
            if isinstance(entry, PullEntries):
                yield from entry.entries()
            else:
                yield entry

    def read_in_batches(self, after: int = 0) -> Iterator[Entry | PullEntries]:
        """One statement, so that it is a snapshot, also while another process writes."""
        checked = CheckedRows(self._db, after)
        try:
            # Before the events: a race that goes on meanwhile has more of them, never fewer.
            (last,) = self._db.execute("SELECT coalesce(max(id), 0) FROM tail").fetchone()
            checked.mark = self._checksum_at(after)
            yield from self._batches(after, checked)
            if checked.number < last:
                raise ValueError(f"those up to {last} are missing")
        except DAMAGE as error:
            raise damaged(self.path, checked.number, checked.pulls, error) from error

    def _batches(self, after: int, checked: CheckedRows) -> Iterator[Entry | PullEntries]:
        rows: list[Row] = []
        try:
            for row in self._db.execute(SELECT, (after,)):
                rows.append(row)
                if len(rows) == BATCH or not row[IS_TOLD]:
                    batch, rows = rows, []
                    yield from checked.entries(batch)
        except DAMAGE:  # what was read before may be sound
            yield from checked.entries(rows)
            raise
        yield from checked.entries(rows)

    def _checksum_at(self, number: int) -> int:
        query = "SELECT checksum FROM events WHERE id = ?"
        rows = self._db.execute(query, (number,)).fetchall()
        return int(rows[0][0]) if rows else 0

    def is_in_place(self) -> bool:
        """Whether the file under its name is still the one that is written."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._inode and found.st_size >= PAGE

    def close(self) -> None:
        if self._lock is not None:
            with suppress(sqlite3.Error):  # whoever reads now keeps SQLite from doing it later
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()
        if self._lock is not None:
            self._lock.close()


class transaction:
    """All statements within, or none."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._db.execute("COMMIT")
        elif self._db.in_transaction:
            self._db.execute("ROLLBACK")


class CheckedRows:
    """Makes entries of rows, after a look at the checksum of each."""

    def __init__(self, db: sqlite3.Connection, after: int) -> None:
        self._db, self.number = db, after
        self.mark = self.pulls = 0

    def entries(self, rows: list[Row]) -> Iterator[Entry | PullEntries]:
        """Of pulls, after which one event of another kind may come."""
        told = rows if not rows or rows[-1][IS_TOLD] else rows[:-1]
        sound = self._count_sound(told)
        if sound:
            columns = map(list, zip(*told[:sound], strict=True))
            yield PullEntries(told[0][0], *islice(columns, 1, CELLS))
        if sound < len(told):
            raise ValueError("its checksum differs")
        if len(told) < len(rows):
            yield self._other(*rows[-1])

    def _count_sound(self, told: list[Row]) -> int:
        """How many of them, from the first on, are what was written."""
        number, mark = self.number, self.mark
        with suppress(StructError, TypeError):  # values that a pull cannot have
            for row in told:
                expected = told_checksum(mark, *row[:CELLS])
                if row[0] != number + 1 or row[-1] != expected:
                    break
                number, mark = number + 1, expected
        sound = number - self.number
        self.number, self.mark, self.pulls = number, mark, self.pulls + sound
        return sound

    def _other(self, number: int, *cells: Any) -> Entry:
        row = self._db.execute(SELECT_ONE, (number,)).fetchone()
        mark = checksum(self.mark, row)
        if number != self.number + 1 or cells[-1] != mark:
            raise ValueError("its checksum differs")
        entry = Entry(number, row[14], row[15], event_of(row))
        self.number, self.mark = number, mark
        return entry


def damaged(path: Path, last: int, pulls: int, error: Exception) -> JournalError:
    """The error for a journal whose events are sound only up to number `last`."""
    return JournalError(
        f"the journal {near(path)} is damaged after event {last}, before its pull {pulls + 1} is "
        f"complete ({one_line(str(error))}): what comes before that is sound, and `latebloomer "
        f"repair {near(path)}` keeps it in a new file"
    )


def resume_call(path: Path | None) -> str:
    """The line that goes on with a race."""
    return "race(...) again" if path is None else f"resume({near(path)!r}, learners)"


def near(path: Path) -> str:
    """A path as seen from the current folder, where it is below that."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
