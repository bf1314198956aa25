"""The table of a journal, and how an event becomes a row of it and a row an event again.

One table holds all events, in order; views show them as people ask for them (`docs/journal.md`).
Each row carries a CRC-32 of itself and of the row before, so that damage is noticed: a flipped
bit, a lost row, two rows that changed places.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, NamedTuple
from zlib import crc32

from latebloomer.session.events import (
    Assigned,
    BatchIssued,
    Began,
    BudgetReplanned,
    Created,
    Decided,
    Ended,
    Event,
    Extended,
    Joined,
    LearnerLeft,
    PullFailed,
    Restored,
    Saved,
    SaveFailed,
    ScoreReported,
    Stopped,
    WarningNoted,
    WinnerSelected,
)

APPLICATION = 0x4C425243  # "LBRC": SQLite's application_id of our files
VERSION = 3  # of the table below, SQLite's user_version

COLUMNS = (
    "id", "kind", "arm", "n", "score", "seconds", "steps", "budget", "deciding", "horizon", "size",
    "word", "text", "data", "at", "elapsed", "checksum",
)  # fmt: skip

# A value of `json_each` as JSON again; json_quote would cut a number to 15 digits.
VALUE = (
    "CASE type WHEN 'object' THEN value WHEN 'array' THEN value WHEN 'true' THEN type "
    "WHEN 'false' THEN type WHEN 'null' THEN type WHEN 'real' THEN printf('%!.17g', value) "
    "ELSE json_quote(value) END"
)
TABLES = f"""
CREATE TABLE events (
    id INTEGER PRIMARY KEY, -- 1, 2, 3, ... without a gap
    kind TEXT NOT NULL, -- created, began, told, handed out, pull failed, left, planned, stopped,
                        -- named, joined, extended, noted, saved, save failed, restored, assigned,
                        -- decided, ended
    arm INTEGER, -- the learner it concerns, from 0
    n INTEGER, -- pull failed: in this pull of the arm; saved, restored: the arm's pulls
    score REAL, -- told: what the learner returned
    seconds REAL, -- how long it took: told, pull failed, saved, restored
    steps INTEGER, -- told: steps of its own that the learner made; joined: of its full training
    budget INTEGER, -- planned, named, extended: pulls in all
    deciding INTEGER, -- planned, extended: those of them that name the best
    horizon INTEGER, -- extended: the number of pulls at which learners are compared
    size INTEGER, -- handed out: arms at once; saved: bytes
    word TEXT, -- left: failed or finished; pull failed: what kind; handed out: more
               -- stopped: final; saved: SHA-256 of the files; extended: survivors
    text TEXT, -- why, in words; saved: the folder in <journal>.checkpoints; joined: the name,
               -- assigned: the trial
    data TEXT, -- all the rest, as JSON
    at REAL NOT NULL, -- when, in seconds since 1970
    elapsed REAL NOT NULL, -- seconds of the race so far, by a clock that is never set
    checksum INTEGER NOT NULL -- CRC-32 of this row and of the checksum before
);
CREATE TABLE tail ( -- one row: the newest event but for pulls, so that a lost end is noticed
    only INTEGER PRIMARY KEY CHECK (only = 1), id INTEGER NOT NULL, checksum INTEGER NOT NULL
);
CREATE VIEW pulls AS SELECT
    row_number() OVER (ORDER BY id) AS t, arm,
    row_number() OVER (PARTITION BY arm ORDER BY id) AS n,
    score, seconds, steps, at FROM events WHERE kind = 'told' ORDER BY id;
CREATE VIEW settings AS SELECT key, {VALUE} AS value
    FROM json_each((SELECT json_extract(data, '$.settings') FROM events WHERE kind = 'created'));
CREATE VIEW arms AS SELECT key AS arm, value AS name
    FROM json_each((SELECT json_extract(data, '$.names') FROM events WHERE kind = 'created'))
    UNION ALL SELECT arm, text FROM events WHERE kind = 'joined';
CREATE VIEW counted AS SELECT *, sum(kind = 'told') OVER (ORDER BY id) AS t FROM events;
CREATE VIEW changes AS SELECT id, t, kind, arm, coalesce(deciding, budget, size) AS value,
    coalesce(word, '') AS word, coalesce(text, '') AS why, at FROM counted
    WHERE kind IN ('left', 'planned', 'stopped', 'handed out', 'named', 'joined', 'extended',
        'noted');
CREATE VIEW failures AS SELECT id, t, arm, n, word AS kind, text AS reason, data AS details, at
    FROM counted WHERE kind = 'pull failed';
CREATE VIEW checkpoints AS SELECT arm, n, text AS folder, word AS digest, size AS bytes, seconds,
    at, max(id) AS id FROM events WHERE kind = 'saved' GROUP BY arm;
CREATE VIEW legs AS SELECT id, text AS process, data AS versions, at AS began,
    (SELECT max(at) FROM events AS later WHERE later.kind = 'ended' AND later.id > events.id AND
        later.id < coalesce((SELECT min(id) FROM events AS next
            WHERE next.kind = 'began' AND next.id > events.id), 9e18)) AS ended
    FROM events WHERE kind = 'began';
CREATE VIEW verdict AS SELECT key, {VALUE} AS value FROM json_each(
    (SELECT data FROM events WHERE kind = 'decided' ORDER BY id DESC LIMIT 1));
"""

TOLD = "told"
_TOLD_ROW, _STEPS = Struct("<qqdddd"), Struct("<q")


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
        """Each as an entry of its own."""
        columns = zip(*self[1:], strict=True)
        for number, (arm, score, seconds, steps, at, elapsed) in enumerate(columns, self.first):
            yield Entry(number, at, elapsed, ScoreReported(arm, score, seconds, steps))


def told_checksum(
    before: int, number: int, arm: int, score: float, seconds: float, steps: int | None,
    at: float, elapsed: float,
) -> int:  # fmt: skip
    """Of the row of a counted pull, which is the most frequent by far."""
    mark = crc32(_TOLD_ROW.pack(number, arm, score, seconds, at, elapsed), before)
    return mark if steps is None else crc32(_STEPS.pack(steps), mark)


def checksum(before: int, row: tuple[Any, ...]) -> int:
    """Of any row in the order of `COLUMNS`, whose last cell is not looked at."""
    if row[1] == TOLD:
        return told_checksum(before, row[0], row[2], *row[4:7], *row[14:16])
    return crc32(repr(row[:-1]).encode("utf-8", "backslashreplace"), before)


# --- events as columns ---


def row_of(event: Event) -> dict[str, Any]:
    """The columns of an event, `kind` among them; those that are not named are NULL."""
    kind, columns = WRITERS[type(event)]
    return {"kind": kind, **columns(event)}


def _json(value: Any) -> str:
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    """For JSON: NumPy's numbers as Python's, mappings as dicts, anything else by its name."""
    import numpy as np  # here, for whoever lists races needs none

    if isinstance(value, np.generic):
        return value.item()
    return dict(value) if hasattr(value, "keys") else repr(value)


Columns = Callable[[Any], dict[str, Any]]
WRITERS: dict[type, tuple[str, Columns]] = {
    ScoreReported: (
        TOLD,
        lambda e: {"arm": e.arm, "score": e.score, "seconds": e.seconds, "steps": e.steps},
    ),
    BatchIssued: ("handed out", lambda e: {"size": e.size, "word": "more" if e.more else None}),
    LearnerLeft: ("left", lambda e: {"arm": e.arm, "word": e.how, "text": e.why}),
    BudgetReplanned: (
        "planned", lambda e: {"budget": e.budget, "deciding": e.deciding, "text": e.why},
    ),
    Stopped: ("stopped", lambda e: {"word": "final" if e.final else None, "text": e.why}),
    WinnerSelected: ("named", lambda e: {"arm": e.arm, "budget": e.budget, "text": e.why}),
    Joined: (
        "joined",
        lambda e: {"arm": e.arm, "text": e.name, "steps": e.full_steps,
                   "word": "repeats_scores" if e.repeats_scores else None},
    ),
    Extended: (
        "extended",
        lambda e: {"budget": e.budget, "deciding": e.deciding, "horizon": e.horizon,
                   "word": None if e.revive else "survivors", "text": e.why},
    ),
    Created: (
        "created",
        lambda e: {
            "text": e.race,
            "data": _json({"settings": dict(e.settings), "names": list(e.names)}),
        },
    ),
    Began: ("began", lambda e: {"text": e.process, "data": _json(dict(e.versions))}),
    PullFailed: (
        "pull failed",
        lambda e: {"arm": e.arm, "n": e.n, "word": e.kind, "text": e.reason,
                   "data": e.details, "seconds": e.seconds},
    ),
    WarningNoted: ("noted", lambda e: {"arm": e.arm, "text": e.text}),
    Saved: (
        "saved",
        lambda e: {"arm": e.arm, "n": e.n, "text": e.folder, "word": e.digest, "size": e.size,
                   "seconds": e.seconds},
    ),
    SaveFailed: ("save failed", lambda e: {"arm": e.arm, "n": e.n, "text": e.reason}),
    Restored: ("restored", lambda e: {"arm": e.arm, "n": e.n, "seconds": e.seconds}),
    Assigned: (
        "assigned", lambda e: {"arm": e.arm, "text": e.trial, "data": _json(dict(e.config))},
    ),
    Decided: ("decided", lambda e: {"data": _json(dict(e.summary))}),
    Ended: ("ended", lambda e: {}),
}  # fmt: skip


# --- and back ---


def event_of(row: tuple[Any, ...]) -> Event:
    """The event of a row in the order of `COLUMNS`."""
    if row[1] == TOLD:
        return ScoreReported(row[2], row[4], row[5], row[6])
    (_, kind, arm, n, _, seconds, steps, budget, deciding, horizon, size, word, text, data,
     *_) = row  # fmt: skip
    match kind:
        case "handed out":
            return BatchIssued(size, word == "more")
        case "left":
            return LearnerLeft(arm, word, text)
        case "planned":
            return BudgetReplanned(budget, deciding, text)
        case "stopped":
            return Stopped(text, word == "final")
        case "named":
            return WinnerSelected(arm, budget, text)
        case "joined":
            return Joined(arm, text, steps, word == "repeats_scores")
        case "extended":
            return Extended(budget, deciding, horizon, word != "survivors", text)
        case "pull failed":
            return PullFailed(arm, n, word, text, data, seconds)
        case "noted":
            return WarningNoted(arm, text)
        case "saved":
            return Saved(arm, n, text, word, size, seconds)
        case "save failed":
            return SaveFailed(arm, n, text)
        case "restored":
            return Restored(arm, n, seconds)
        case "assigned":
            return Assigned(arm, text, json.loads(data))
    return _once_per_race(kind, text, data)


def _once_per_race(kind: str, text: str, data: str) -> Event:
    match kind:
        case "created":
            found = json.loads(data)
            return Created(text, found["settings"], tuple(found["names"]))
        case "began":
            return Began(text, json.loads(data))
        case "decided":
            return Decided(json.loads(data))
        case "ended":
            return Ended()
    raise ValueError(f"an event of the unknown kind {kind!r}")
