"""The events of a race, one after the other: appended, and read again.

On disk they are in one SQLite file in WAL mode, written by the driver alone. By the standard
library's `sqlite3`, not SQLAlchemy: there is one table, the base install stays small, and a pull
costs one prepared INSERT (12 to 20 µs here; SQLAlchemy Core adds several times that). With
`synchronous=NORMAL` a committed event survives whatever happens to the process;
`durability="full"` also waits for the disk, against power loss.

A row is the kind of an event, the columns that queries need, and JSON for the rest; views show the
rows as people ask for them (`docs/journal.md`). Each row carries a CRC-32 of itself and of the row
before, so that damage is noticed: a flipped bit, a lost row, two rows that changed places.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from struct import Struct
from struct import error as StructError
from time import time
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

from latebloomer._util.text import one_line
from latebloomer.errors import JournalError
from latebloomer.session.events import KINDS, Event, ScoreReported

APPLICATION = 0x4C425243  # "LBRC": SQLite's application_id of a journal
VERSION = 3  # format of the tables below, SQLite's user_version
COLUMNS = (
    "id", "kind", "arm", "score", "seconds", "steps", "data", "at", "elapsed", "checksum",
)  # fmt: skip
OWN = COLUMNS[2:6]  # fields of events that have a column; the others are in `data`

TABLES = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY, -- 1, 2, 3, ... without a gap
    kind TEXT NOT NULL, -- the name of the event's class in latebloomer.session.events
    arm INTEGER, -- the learner it concerns, from 0
    score REAL, -- the score that the learner returned
    seconds REAL, -- duration
    steps INTEGER, -- steps of the learner's own training in this pull
    data TEXT, -- the event's other fields, as JSON
    at REAL NOT NULL, -- when, in seconds since 1970
    elapsed REAL NOT NULL, -- seconds of the race so far, by a clock that is never set
    checksum INTEGER NOT NULL -- CRC-32 of this row and of the checksum before
);
CREATE TABLE tail ( -- one row: the latest event that is not a score, so that a lost end is noticed
    only INTEGER PRIMARY KEY CHECK (only = 1), id INTEGER NOT NULL, checksum INTEGER NOT NULL,
    durability TEXT NOT NULL -- how the file is written: normal or full
);
CREATE VIEW pulls AS SELECT row_number() OVER (ORDER BY id) AS t, arm,
    row_number() OVER (PARTITION BY arm ORDER BY id) AS n, score, seconds, steps, at
    FROM events WHERE kind = 'ScoreReported' ORDER BY id;
CREATE VIEW settings AS SELECT key, value
    FROM json_each((SELECT json_extract(data, '$.settings') FROM events WHERE id = 1));
CREATE VIEW arms AS SELECT key AS arm, value AS name
    FROM json_each((SELECT json_extract(data, '$.names') FROM events WHERE id = 1))
    UNION ALL SELECT arm, json_extract(data, '$.name') FROM events WHERE kind = 'Joined';
CREATE VIEW counted AS SELECT *, sum(kind = 'ScoreReported') OVER (ORDER BY id) AS t FROM events;
CREATE VIEW changes AS SELECT id, t, kind, arm, coalesce(json_extract(data, '$.deciding'),
    json_extract(data, '$.budget'), json_extract(data, '$.size')) AS value,
    coalesce(json_extract(data, '$.why'), json_extract(data, '$.text')) AS why, data, at
    FROM counted WHERE kind IN ('LearnerLeft', 'BudgetReplanned', 'Stopped', 'BatchIssued',
        'WinnerSelected', 'Joined', 'Extended', 'WarningNoted');
CREATE VIEW failures AS SELECT id, t, arm, json_extract(data, '$.n') AS n,
    json_extract(data, '$.kind') AS kind, json_extract(data, '$.reason') AS reason,
    json_extract(data, '$.details') AS details, at FROM counted WHERE kind = 'PullFailed';
CREATE VIEW checkpoints AS SELECT arm, json_extract(data, '$.n') AS n,
    json_extract(data, '$.folder') AS folder, json_extract(data, '$.digest') AS digest,
    json_extract(data, '$.size') AS bytes, seconds, at, max(id) AS id
    FROM events WHERE kind = 'Saved' GROUP BY arm;
CREATE VIEW processes AS SELECT id, json_extract(data, '$.process') AS process,
    json_extract(data, '$.versions') AS versions, at AS began,
    CASE next WHEN 'Ended' THEN until END AS ended
    FROM (SELECT *, lead(kind) OVER (ORDER BY id) AS next, lead(at) OVER (ORDER BY id) AS until
        FROM events WHERE kind IN ('Began', 'Ended')) WHERE kind = 'Began';
CREATE VIEW verdict AS SELECT key, value FROM json_each((SELECT json_extract(data, '$.summary')
    FROM events WHERE kind = 'Decided' ORDER BY id DESC LIMIT 1));
"""

SCORE = ScoreReported.__name__
FIELDS: dict[type[Any], tuple[str, ...]] = {
    kind: kind._fields if kind is ScoreReported else tuple(field.name for field in fields(kind))
    for kind in KINDS.values()
}
_SCORE_ROW, _STEPS = Struct("<qqdddd"), Struct("<q")
INSERT_SCORE = (
    "INSERT INTO events (id, kind, arm, score, seconds, steps, at, elapsed, checksum) "
    f"VALUES (?, '{SCORE}', ?, ?, ?, ?, ?, ?, ?)"
)
INSERT = f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES ({', '.join('?' for _ in COLUMNS)})"
INSERT_TAIL = "INSERT OR REPLACE INTO tail (only, id, checksum, durability) VALUES (1, ?, ?, ?)"
SELECT = f"SELECT {', '.join(COLUMNS)} FROM events WHERE id > ? ORDER BY id"

# What reading a file of garbage can raise.
DAMAGE = (sqlite3.DatabaseError, ValueError, TypeError, KeyError, OverflowError, StructError)
PAGE = 512  # bytes: no SQLite file is shorter


class Entry(NamedTuple):
    """An event as a journal has it."""

    number: int  # 1, 2, 3, ...
    at: float  # seconds since 1970
    elapsed: float  # seconds of the race so far
    event: Event


def score_checksum(
    before: int, number: int, arm: int, score: float, seconds: float, steps: int | None,
    at: float, elapsed: float,
) -> int:  # fmt: skip
    """Return the checksum of a counted pull's row, which is the most frequent by far."""
    mark = crc32(_SCORE_ROW.pack(number, arm, score, seconds, at, elapsed), before)
    return mark if steps is None else crc32(_STEPS.pack(steps), mark)


def checksum(before: int, row: tuple[Any, ...]) -> int:
    """Return the checksum of any row in the order of `COLUMNS`; its last cell is ignored."""
    number, kind, arm, score, seconds, steps, _, at, elapsed, _ = row
    if kind == SCORE:
        return score_checksum(before, number, arm, score, seconds, steps, at, elapsed)
    return crc32(repr(row[:-1]).encode("utf-8", "backslashreplace"), before)


def row_of(entry: Entry) -> tuple[Any, ...]:
    """Return an entry as a row in the order of `COLUMNS`, with the checksum 0."""
    event = entry.event
    values = {name: getattr(event, name) for name in FIELDS[type(event)]}
    own = [values.pop(name, None) for name in OWN]
    data = json.dumps(values, default=_plain) if values else None
    return (entry.number, type(event).__name__, *own, data, entry.at, entry.elapsed, 0)


def entry_of(row: tuple[Any, ...]) -> Entry:
    """Return the entry of a row in the order of `COLUMNS`."""
    number, kind, *own, data, at, elapsed, _ = row
    if kind == SCORE:  # most are
        return Entry(number, at, elapsed, ScoreReported(*own))
    made = KINDS[kind]
    values = {name: cell for name, cell in zip(OWN, own, strict=True) if name in FIELDS[made]}
    for name, value in json.loads(data or "{}").items():
        values[name] = tuple(value) if isinstance(value, list) else value
    return Entry(number, at, elapsed, made(**values))


def _plain(value: Any) -> Any:
    """Return what JSON can hold: plain numbers, dicts, anything else as its `repr`."""
    import numpy as np  # here, because listing races needs none

    if isinstance(value, np.generic):
        return value.item()
    return dict(value) if isinstance(value, Mapping) else repr(value)


class MemoryLog:
    """Events that are lost with the process; it can what `SqliteLog` can."""

    path = None
    durability = "normal"

    def __init__(self) -> None:
        self._entries: list[tuple[float, float, Event]] = []  # each without its number

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


class SqliteLog:
    """Events in an SQLite file, the journal; `files` opens one."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, durability: str = "normal", lock: Any = None
    ) -> None:
        self.path: Path = path
        self.durability = durability
        self._db, self._lock = db, lock
        self._last = self._checksum = 0  # of the latest row
        found = os.stat(path)
        self._inode = found.st_dev, found.st_ino
        if lock is not None:
            latest = self.query("SELECT id, checksum FROM events ORDER BY id DESC LIMIT 1")
            self._last, self._checksum = latest or (0, 0)

    def query(self, question: str, *values: object) -> Any:
        """Return the first row of an answer, None if it has none."""
        return self._db.execute(question, values).fetchone()

    # --- writing ---

    def append(self, *events: Event, elapsed: float = 0.0) -> None:
        """Enter events, all or none. When this returns they count, whatever happens next."""
        now = time()
        try:
            if len(events) == 1 and type(events[0]) is ScoreReported:
                self._append_score(events[0], now, elapsed)
            else:
                numbered = enumerate(events, self._last + 1)
                self.write([Entry(number, now, elapsed, event) for number, event in numbered])
        except sqlite3.Error as error:
            what = "A pull" if type(events[0]) is ScoreReported else type(events[0]).__name__
            raise JournalError(
                f"{what} could not be written to journal {self.path} ({error}). The race has "
                "stopped, and everything written before is safe. Make room or restore the folder, "
                f"then call {resume_call(self.path)}."
            ) from error

    def _append_score(self, event: ScoreReported, now: float, elapsed: float) -> None:
        number = self._last + 1
        row = (number, event.arm, event.score, event.seconds, event.steps, now, elapsed)
        mark = score_checksum(self._checksum, *row)
        self._db.execute(INSERT_SCORE, (*row, mark))
        self._last, self._checksum = number, mark

    def write(self, entries: Iterable[Entry], *statements: str) -> None:
        """Insert entries unchanged, after other statements, all in one transaction."""
        number, mark, rows = self._last, self._checksum, []
        for entry in entries:
            row = row_of(entry)
            number, mark = entry.number, checksum(mark, row)
            rows.append((*row[:-1], mark))
        with self._db:  # commits all of it, or nothing
            self._db.execute("BEGIN IMMEDIATE")
            for statement in statements:
                self._db.execute(statement)
            self._db.executemany(INSERT, rows)
            self._db.execute(INSERT_TAIL, (number, mark, self.durability))
        self._last, self._checksum = number, mark

    # --- reading ---

    def read(self, after: int = 0) -> Iterator[Entry]:
        """Return the entries beyond number `after`, in order.

        It is a snapshot, because it is one statement, also while another process writes.
        """
        number, pulls = after, 0
        try:
            # Before the events: a race that continues meanwhile has more of them, never fewer.
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
            # A reader that continues after an event has already read the intact part before it.
            cause = one_line(str(error))
            raise damage_error(self.path, number, pulls or after, cause) from error

    def is_in_place(self) -> bool:
        """Return whether the file under its name is still the one that is written."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._inode and found.st_size >= PAGE

    def close(self) -> None:
        """Release the file and the lock."""
        if self._lock is not None:
            with suppress(sqlite3.Error):  # another reader keeps SQLite from doing it later
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()
        if self._lock is not None:
            self._lock.close()


EventLog: TypeAlias = MemoryLog | SqliteLog


def damage_error(path: Path, last: int, pulls: int, cause: str) -> JournalError:
    """Return the error for a journal that is intact up to event `last`, with that many pulls."""
    if not pulls:
        return JournalError(
            f"Journal {near(path)} is damaged ({cause}), and nothing can be recovered: no pull is "
            "intact. Start a new race in another file."
        )
    return JournalError(
        f"Journal {near(path)} is damaged after event {last} ({cause}). Run `latebloomer repair "
        f"{near(path)}` to copy the intact part to a new file."
    )


def resume_call(path: Path | None) -> str:
    """Return the call that continues a race."""
    return "race(...) again" if path is None else f"resume({near(path)!r}, learners)"


def near(path: Path) -> str:
    """Return a path as seen from the current folder, if it is below that."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
