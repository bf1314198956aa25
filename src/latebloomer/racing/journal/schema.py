"""The tables of a journal, and the conversion of events to rows.

A row has the kind of an event, the columns that queries need, and JSON for the other fields
(`value_codec.py`); views show the rows in forms that are easy to query (`docs/journal.md`). Each
field has the type that its event declares; this is checked when it is written and when it is read.
Each row has a CRC-32 of itself and of the previous row, so that damage is noticed: a flipped bit,
a lost row, or two rows in the wrong order.
"""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import fields
from math import isnan
from operator import index
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple
from zlib import crc32

from latebloomer._util.text import brief
from latebloomer.racing.journal import value_codec
from latebloomer.racing.journal.value_codec import WORD, NotPlain
from latebloomer.session.events import KINDS, Event, ScoreReported

APPLICATION = 0x4C425243  # "LBRC": SQLite's application_id of a journal
VERSION = 4  # format of the tables below, stored as SQLite's user_version
COLUMNS = (
    "id", "kind", "arm", "score", "seconds", "steps", "data", "at", "elapsed", "checksum",
)  # fmt: skip
OWN = COLUMNS[2:6]  # fields of events that have their own column; the others are in `data`

# Numbers with a fraction have no declared type: in a REAL column SQLite would store -0.0 as 0.
TABLES = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY, -- 1, 2, 3, ... without a gap
    kind TEXT NOT NULL, -- the name of the event's class in latebloomer.session.events
    arm INTEGER, -- the learner it concerns, from 0
    score, -- the score that the learner returned
    seconds, -- duration
    steps INTEGER, -- steps of the learner's own training in this pull
    data TEXT, -- the event's other fields, as JSON
    at NOT NULL, -- when, in seconds since 1970
    elapsed NOT NULL, -- seconds of the race so far, by a clock that is never set
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
    printf('%04d/%d', arm, json_extract(data, '$.n')) AS folder,
    json_extract(data, '$.digest') AS digest, json_extract(data, '$.size') AS bytes, seconds, at,
    max(id) AS id FROM events WHERE kind = 'Saved' GROUP BY arm;
CREATE VIEW processes AS SELECT id, json_extract(data, '$.process') AS process,
    json_extract(data, '$.versions') AS versions, at AS began,
    CASE next WHEN 'ProcessClosed' THEN until END AS ended
    FROM (SELECT *, lead(kind) OVER (ORDER BY id) AS next, lead(at) OVER (ORDER BY id) AS until
        FROM events WHERE kind IN ('ProcessStarted', 'ProcessClosed'))
    WHERE kind = 'ProcessStarted';
CREATE VIEW verdict AS SELECT key, value FROM json_each((SELECT json_extract(data, '$.summary')
    FROM events WHERE kind = 'RaceFinished' ORDER BY id DESC LIMIT 1));
"""

SCORE = ScoreReported.__name__
FIELDS: dict[type[Any], dict[str, Any]] = {  # fields of each kind of event, with their types
    kind: kind.__annotations__
    if kind is ScoreReported
    else {field.name: field.type for field in fields(kind)}
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

# Errors that can be raised when a damaged file is read.
DAMAGE = (
    sqlite3.DatabaseError, ValueError, TypeError, KeyError, OverflowError, StructError,
    RecursionError,
)  # fmt: skip


class Entry(NamedTuple):
    """An event with its number and times in a journal."""

    number: int  # 1, 2, 3, ...
    at: float  # seconds since 1970
    elapsed: float  # seconds of the race so far
    event: Event


def score_checksum(
    before: int,
    number: int,
    arm: int,
    score: float,
    seconds: float,
    steps: int | None,
    at: float,
    elapsed: float,
) -> int:
    """Return the checksum of the row of a counted pull, by far the most frequent kind of row."""
    mark = crc32(_SCORE_ROW.pack(number, arm, score, seconds, at, elapsed), before)
    return mark if steps is None else crc32(_STEPS.pack(steps), mark)


def checksum(before: int, row: tuple[Any, ...]) -> int:
    """Return the checksum of any row in the order of `COLUMNS`; its last cell is ignored."""
    number, kind, arm, score, seconds, steps, data, at, elapsed, _ = row
    if kind == SCORE and data is None:
        return score_checksum(before, number, arm, score, seconds, steps, at, elapsed)
    return crc32(repr(row[:-1]).encode("utf-8", "backslashreplace"), before)


def row_of(entry: Entry) -> tuple[Any, ...]:
    """Return an entry as a row in the order of `COLUMNS`, with the checksum 0.

    Raises
    ------
    NotPlain
        A field of the event has a value that a journal cannot store.
    """
    event, kind = entry.event, type(entry.event).__name__
    values = {
        name: checked(f"{kind}.{name}", getattr(event, name), declared)
        for name, declared in FIELDS[type(event)].items()
    }
    own = [values.pop(name, None) for name in OWN]
    if kind == SCORE and values["details"] is None:
        values = {}
    data = value_codec.to_json(values, kind) if values else None
    return (entry.number, kind, *own, data, entry.at, entry.elapsed, 0)


def entry_of(row: tuple[Any, ...]) -> Entry:
    """Return the entry of a row in the order of `COLUMNS`."""
    number, kind, *own, data, at, elapsed, _ = row
    if kind == SCORE and data is None:  # most rows are
        return Entry(number, at, elapsed, ScoreReported(*own))
    event_type = KINDS[kind]
    declared = FIELDS[event_type]
    values = {name: cell for name, cell in zip(OWN, own, strict=True) if name in declared}
    if data is not None:
        values |= value_codec.from_json(data)
    typed = {name: checked(f"{kind}.{name}", values[name], declared[name]) for name in values}
    return Entry(number, at, elapsed, event_type(**typed))


# --- the fields of events ---


def checked(name: str, value: Any, declared: Any) -> Any:
    """Return a field's value with exactly the declared type, or raise `NotPlain`.

    >>> checked("Saved.n", True, int)
    Traceback (most recent call last):
    latebloomer.racing.journal.value_codec.NotPlain: Saved.n=True, but it must be a whole number
    """
    check, needed = CHECKS[declared]
    try:
        return check(value)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, NotPlain):
            raise
        raise NotPlain(f"{name}={brief(value)}, but it must be {needed}") from None


def _whole(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return index(value)


def _word(value: Any) -> int:
    number = _whole(value)
    if not -WORD <= number < WORD:
        raise ValueError
    return number


def _number(value: Any) -> float:
    number = float(value_codec.scalar(value))
    if isnan(number):
        raise ValueError
    return number


def _truth(value: Any) -> bool:
    if not isinstance(value_codec.scalar(value), bool):
        raise TypeError
    return bool(value)


def _text(value: Any) -> str:
    return str.__str__(value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError
    return dict(value)


def _texts(value: Any) -> dict[str, str]:
    return {key: _text(each) for key, each in _mapping(value).items()}


def _all(check: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def all_of(values: Any) -> tuple[Any, ...]:
        if not isinstance(values, tuple):
            raise TypeError
        return tuple(map(check, values))

    return all_of


def _or_none(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


# The check for fields of each type, and its description for errors.
CHECKS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    int: (_word, "a whole number"),
    int | None: (_or_none(_word), "a whole number, or None"),
    float: (_number, "a number"),
    float | None: (_or_none(_number), "a number, or None"),
    bool: (_truth, "True or False"),
    str: (_text, "text"),
    str | None: (_or_none(_text), "text, or None"),
    tuple[int, ...]: (_all(_word), "a tuple of whole numbers"),
    tuple[str, ...]: (_all(_text), "a tuple of texts"),
    tuple[float, ...]: (_all(_number), "a tuple of numbers"),
    Mapping[str, str]: (_texts, "a dict of texts"),
    Mapping[str, Any]: (_mapping, "a dict whose keys are text"),
    Mapping[str, Any] | None: (_or_none(_mapping), "a dict whose keys are text, or None"),
}
