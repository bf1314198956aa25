"""The log of a race's events: events are appended in order and can be read again.

On disk, the events are in one SQLite file in WAL mode, which only the driver writes. It uses the
standard library's `sqlite3` and not SQLAlchemy, because there is one table, the base install stays
small, and a pull costs one prepared INSERT (12 to 20 µs; SQLAlchemy Core adds several times that).
With `synchronous=NORMAL` a committed event survives whatever happens to the process;
`durability="full"` also waits for the disk, against power loss.
"""

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from os import fstat
from pathlib import Path
from time import time
from typing import Any

from latebloomer._util.text import near, one_line
from latebloomer.errors import JournalError
from latebloomer.racing.journal import connections
from latebloomer.racing.journal.journal_file import REWRITTEN
from latebloomer.racing.journal.locks import FilesInPlace, RaceLock
from latebloomer.racing.journal.schema import (
    DAMAGE,
    INSERT,
    INSERT_SCORE,
    INSERT_TAIL,
    SCORE,
    SELECT,
    Entry,
    checksum,
    entry_of,
    row_of,
    score_checksum,
)
from latebloomer.racing.journal.value_codec import NotPlain
from latebloomer.session.events import Event, ScoreReported

PAGE = 512  # bytes: smallest size of an SQLite file


class EventLog(ABC):
    """The events of a race, in order; events are only appended."""

    path: Path | None = None  # path of the file, if there is one
    durability = "normal"

    @abstractmethod
    def append(self, *events: Event, elapsed: float = 0.0) -> None:
        """Append events, all or none; after the call they count, whatever happens next."""

    @abstractmethod
    def read(self, after: int = 0) -> Iterator[Entry]:
        """Return the entries after number `after`, in order."""

    @abstractmethod
    def is_in_place(self) -> bool:
        """Return whether the file at its path is still the file to which this log writes."""

    def take_note(self) -> str:
        """Return what happened to the file since the last call, as text; empty if nothing."""
        return ""

    @abstractmethod
    def close(self) -> None:
        """Release the file and the lock."""


class MemoryLog(EventLog):
    """Events in memory, which are lost when the process ends."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, float, Event]] = []  # entries without their numbers

    def append(self, *events: Event, elapsed: float = 0.0) -> None:
        now = time()
        for event in events:
            self._entries.append((now, elapsed, event))

    def read(self, after: int = 0) -> Iterator[Entry]:
        entries = enumerate(self._entries[after:], start=after + 1)
        return (Entry(number, *entry) for number, entry in entries)

    def is_in_place(self) -> bool:
        return True

    def close(self) -> None:
        pass


class SqliteLog(EventLog):
    """Events in an SQLite file, the journal; the module `files` opens journals.

    The process that runs the race holds the lock, and only this process appends.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        path: Path,
        durability: str = "normal",
        lock: RaceLock | None = None,
    ) -> None:
        self.path: Path = path
        self.durability = durability
        self._db, self._lock = db, lock
        self._last = self._checksum = 0  # number and checksum of the latest row
        self._note = ""
        self._files: FilesInPlace | None = None
        self._wal = self._shm = -1  # handles of SQLite's own files, while this process races
        self._wal_bytes = 0  # size of the -wal before the latest event
        self._watch_files()
        if lock is not None:
            latest = self.query("SELECT id, checksum FROM events ORDER BY id DESC LIMIT 1")
            self._last, self._checksum = latest or (0, 0)

    def _watch_files(self) -> None:
        """Store which files these are; the process that runs the race keeps them in place."""
        status = os.stat(self.path)
        self._inode = status.st_dev, status.st_ino
        if self._lock is not None:
            self.query("SELECT count(*) FROM sqlite_master")  # so that the -wal exists
            self._files = FilesInPlace(self.path)
            self._wal, self._shm, self._wal_bytes = self._files.wal, self._files.shm, 0

    def query(self, question: str, *values: object) -> Any:
        """Return the first row of a query's result; None if it is empty."""
        return self._db.execute(question, values).fetchone()

    def rows(self, question: str, *values: object) -> list[Any]:
        """Return all rows of a query's result."""
        return self._db.execute(question, values).fetchall()

    # --- writing ---

    def append(self, *events: Event, elapsed: float = 0.0) -> None:
        now = time()
        try:
            if self._wal >= 0:
                self._see_files()
            if len(events) == 1 and type(events[0]) is ScoreReported:
                self._append_score(events[0], now, elapsed)
            else:
                numbered = enumerate(events, self._last + 1)
                self.write([Entry(number, now, elapsed, event) for number, event in numbered])
        except NotPlain as error:
            raise JournalError(
                f"The journal {self.path} does not take an event: {error}"
            ) from None
        except (sqlite3.Error, OSError) as error:
            what = "A pull" if type(events[0]) is ScoreReported else type(events[0]).__name__
            raise JournalError(
                f"{what} could not be written to journal {self.path} ({error}). The race has "
                "stopped, and everything written before is safe. Make room or restore the folder, "
                f"then call {resume_call(self.path)}."
            ) from error

    def _append_score(self, event: ScoreReported, now: float, elapsed: float) -> None:
        number = self._last + 1
        arm, score, seconds, steps, details = event
        if (
            details is not None
            or score != score  # nan, which SQLite stores as NULL
            or not (type(score) is type(seconds) is float and type(arm) is int)
        ):
            self.write([Entry(number, now, elapsed, event)])
            return
        row = (number, arm, score, seconds, steps, now, elapsed)
        mark = score_checksum(self._checksum, *row)
        self._db.execute(INSERT_SCORE, (*row, mark))
        self._last, self._checksum = number, mark

    def write(self, entries: Iterable[Entry], *statements: str) -> None:
        """Insert entries unchanged, after `statements`, all in one transaction."""
        number, mark, rows = self._last, self._checksum, []
        for entry in entries:
            row = row_of(entry)
            number, mark = entry.number, checksum(mark, row)
            rows.append((*row[:-1], mark))
        with self._db:  # commits everything or nothing
            self._db.execute("BEGIN IMMEDIATE")
            for statement in statements:
                self._db.execute(statement)
            self._db.executemany(INSERT, rows)
            self._db.execute(INSERT_TAIL, (number, mark, self.durability))
        self._last, self._checksum = number, mark

    def _see_files(self) -> None:
        """Save all known events if another program has removed or cut SQLite's files (1.4 µs)."""
        wal, before = fstat(self._wal), self._wal_bytes
        self._wal_bytes = wal.st_size
        if not wal.st_nlink:
            self._write_again("removed")
        elif self._shm >= 0 and not fstat(self._shm).st_nlink:
            self._open_again()
        elif wal.st_size < before and not self._is_read_by_others():
            self._write_again("cut")

    def _is_read_by_others(self) -> bool:
        """Return whether a new connection finds the latest event.

        A program that empties the -wal by SQLite has copied it to the journal before.
        """
        query = "SELECT id, checksum FROM events ORDER BY id DESC LIMIT 1"
        try:
            with closing(connections.connect_to_read(self.path, at_rest=False)) as other:
                return bool(other.execute(query).fetchone() == (self._last, self._checksum))
        except (sqlite3.Error, JournalError):
            return False

    def _open_again(self) -> None:
        """Open the file again: the -shm, with which processes agree on the -wal, was removed.

        Another process may have created a new -shm by now, and may have moved the -wal into the
        journal. This process would not notice it, and would write where no other process reads.
        """
        if not self._is_own():
            self._shm = -1  # `is_in_place` reports it
            return
        self._close_files(keep=True)
        self._db = connections.connect(self.path, self.durability)
        self._watch_files()

    def _write_again(self, lost: str) -> None:
        """Write all events to a new file at the same path, because the -wal was removed or cut.

        This process can still read the events of the removed file, and it remembers those of the
        file that was cut, but no other process could. If the journal itself was removed, too,
        `is_in_place` reports it: another file may be at its path now.
        """
        if not self._is_own():
            self._wal = -1
            return
        draft = Path(f"{self.path}{REWRITTEN}")  # `files` finishes this if the process is killed
        connections.remove(draft)
        with closing(sqlite3.connect(draft)) as copy:
            self._db.backup(copy)
            for _ in SqliteLog(copy, draft).read():
                pass  # raises an error if some events are lost
        self._close_files()
        connections.remove_beside(self.path)
        os.replace(draft, self.path)
        self._db = connections.connect(self.path, self.durability)
        self._watch_files()
        name = connections.wal_of(self.path).name
        self._note = f"{name} was {lost} during the race: the journal was written again"

    def take_note(self) -> str:
        note, self._note = self._note, ""
        return note

    # --- reading ---

    def read(self, after: int = 0) -> Iterator[Entry]:
        """Return a snapshot, even while another process writes, because it is one statement."""
        number, pulls = after, 0
        try:
            # Read this before the events: if the race continues meanwhile, there are more, never
            # fewer.
            (last,) = self.query("SELECT coalesce(max(id), 0) FROM tail")
            (mark,) = self.query("SELECT checksum FROM events WHERE id = ?", after) or (0,)
            for row in self._db.execute(SELECT, (after,)):
                mark = checksum(mark, row)
                if row[0] != number + 1 or row[-1] != mark:
                    raise ValueError("its checksum differs")
                entry = entry_of(row)
                number, pulls = number + 1, pulls + (row[1] == SCORE)
                yield entry
            if number < last:
                raise ValueError(f"events up to {last} are missing")
        except DAMAGE as error:
            # A reader that continues after an event has already checked the events before it.
            cause = one_line(str(error))
            raise damage_error(self.path, number, pulls or after, cause) from error

    def is_in_place(self) -> bool:
        return self._is_own() and (self._files is None or self._files.wal_is_in_place())

    def _is_own(self) -> bool:
        """Return whether the journal's path leads to the open file."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._inode and status.st_size >= PAGE

    def close(self) -> None:
        if self._lock is not None:
            with suppress(sqlite3.Error):  # with another reader, SQLite would not do this later
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._close_files()
        if self._lock is not None:
            self._lock.close()

    def _close_files(self, keep: bool = False) -> None:
        """Close the files: SQLite's connection first, because it would lose its locks otherwise.

        If it is to `keep` its files, it neither copies from the -wal nor removes it.
        """
        files, self._files, self._wal, self._shm = self._files, None, -1, -1
        if files is not None and not keep:
            files.release()
        self._db.close()
        if files is not None:
            files.close()


def damage_error(path: Path, last: int, pulls: int, cause: str) -> JournalError:
    """Return the error for a journal that is intact up to event `last`, with `pulls` pulls."""
    if not pulls:
        return JournalError(
            f"Journal {near(path)} is damaged ({cause}), and nothing can be recovered: no pull is "
            "intact. Start a new race in another file."
        )
    return JournalError(
        f"Journal {near(path)} is damaged after event {last} ({cause}). Run `latebloomer repair "
        f"{near(path)}` to copy the intact part to a new file."
    )


def resume_call(path: Path | None, runner: str = "") -> str:
    """Return the Python call that continues a race, with `runner=` if it must be passed again."""
    named = f", runner={runner}" if runner else ""
    return "race(...) again" if path is None else f"resume({near(path)!r}, learners{named})"
