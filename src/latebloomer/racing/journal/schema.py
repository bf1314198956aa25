"""The tables of a journal, and how an event becomes a row and a row an event again.

A row is the kind of an event, the columns that queries need, and JSON for the rest; views show the
rows as people ask for them (`docs/journal.md`). Each row carries a CRC-32 of itself and of the row
before, so that damage is noticed: a flipped bit, a lost row, two rows that changed places.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from struct import Struct
from typing import Any, NamedTuple, get_args
from zlib import crc32

from latebloomer.session.events import Event, ScoreReported

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
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}
FIELDS: dict[type[Any], tuple[str, ...]] = {
    kind: kind._fields if kind is ScoreReported else tuple(field.name for field in fields(kind))
    for kind in KINDS.values()
}
_SCORE_ROW, _STEPS = Struct("<qqdddd"), Struct("<q")


class Entry(NamedTuple):
    """An event as a journal has it."""

    number: int  # 1, 2, 3, ...
    at: float  # seconds since 1970
    elapsed: float  # seconds of the race so far
    event: Event


class PullEntries(NamedTuple):
    """Entries of counted pulls that follow each other, as columns."""

    first: int  # the number of the first one
    arms: list[int]
    scores: list[float]
    seconds: list[float]
    steps: list[int | None]
    at: list[float]
    elapsed: list[float]

    def entries(self) -> Iterator[Entry]:
        """Return each as a separate entry."""
        columns = zip(*self[1:], strict=True)
        for number, (arm, score, seconds, steps, at, elapsed) in enumerate(columns, self.first):
            yield Entry(number, at, elapsed, ScoreReported(arm, score, seconds, steps))


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
