"""Journals of version 1: read as they are, and made journals of version 2 where a race goes on.

Version 1 had a table for each kind of thing. What happened after pull t was in order within its
table alone; between tables the order does not matter to a replay, except that a session's changes
come where they stand.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

from latebloomer.errors import JournalError
from latebloomer.racing.journal.journal import DAMAGE, FileJournal, Journal, damaged, transaction
from latebloomer.racing.journal.schema import Entry
from latebloomer.session.delivery import whole_budget
from latebloomer.session.events import (
    Began,
    Created,
    Decided,
    Ended,
    Event,
    HandedOut,
    Left,
    Named,
    Noted,
    Planned,
    PullFailed,
    Saved,
    Stopped,
    Told,
)

OLD_TABLES = ("settings", "arms", "pulls", "changes", "checkpoints", "failures", "legs", "verdict")
Stamped = tuple[float, Event]  # seconds since 1970, and what happened then


class VersionOneReader(Journal):
    """Shows a journal of version 1 as the events that it is."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path: Path = path
        self._db = connection

    def append(self, *events: Event, elapsed: float = 0.0) -> None:
        raise JournalError(f"{self.path} is of version 1, which is only read: resume migrates it")

    def read(self, after: int = 0) -> Iterator[Entry]:
        """All tables in one transaction, so that it is a snapshot."""
        number = pulls = 0
        try:
            with transaction_to_read(self._db):
                for number, (at, elapsed, event) in enumerate(_timed(events_in(self._db)), 1):
                    pulls += isinstance(event, Told)
                    if number > after:
                        yield Entry(number, at, elapsed, event)
        except DAMAGE as error:
            raise damaged(self.path, number, pulls, error) from error

    def close(self) -> None:
        self._db.close()


class transaction_to_read:
    """One state of the file for all statements within."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN")

    def __exit__(self, *_: object) -> None:
        with suppress(sqlite3.ProgrammingError):  # closed meanwhile, and the transaction with it
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")


def migrate(
    db: sqlite3.Connection, file: Path, make_tables: Callable[[sqlite3.Connection], None]
) -> None:
    """Make the file one of version 2, in one transaction; the old one stays beside it."""
    _keep_copy(db, Path(f"{file}.v1"))
    entries = list(VersionOneReader(db, file).read())
    with transaction(db):
        for table in OLD_TABLES:
            db.execute(f"DROP TABLE {table}")
        make_tables(db)
        FileJournal(db, file).write(entries)


def _keep_copy(db: sqlite3.Connection, copy: Path) -> None:
    """A copy that is complete or not there; one from before a kill is as good."""
    if copy.exists():
        return
    draft = copy.with_name(f"{copy.name}.draft")
    draft.unlink(missing_ok=True)
    target = sqlite3.connect(draft)
    try:
        db.backup(target)
    finally:
        target.close()
    draft.rename(copy)


# --- the old tables as events ---


def events_in(db: sqlite3.Connection) -> Iterator[Stamped]:
    """What happened, in order, with the time of day."""
    settings = {k: json.loads(v) for k, v in db.execute("SELECT key, value FROM settings")}
    race = str(settings.pop("id", "race"))
    names = tuple(name for (name,) in db.execute("SELECT name FROM arms ORDER BY arm"))
    legs = db.execute("SELECT process, versions, began, ended FROM legs ORDER BY id").fetchall()
    settings.setdefault("deliver", 0.0)  # written before there was such a thing
    settings.setdefault("auto", False)
    if not all(isinstance(text, str) for text in (*settings, *names)):
        raise ValueError("a name that is no text")
    yield legs[0][2] if legs else 0.0, Created(race, settings, names)
    share = float(settings["deliver"])
    rest = [*_legs(legs), *_failures(db), *_saved(db)]
    rest.sort(key=lambda stamped: stamped[0])
    yield from _merged(_pulls_and_changes(db, share), rest)
    summary = {k: json.loads(v) for k, v in db.execute("SELECT key, value FROM verdict")}
    if summary:
        yield (legs[-1][3] or legs[-1][2]) if legs else 0.0, Decided(summary)


def _merged(main: Iterator[Stamped], rest: list[Stamped]) -> Iterator[Stamped]:
    """What a session replays in its own order, the rest where its time says."""
    waiting = iter(rest)
    other = next(waiting, None)
    for stamped in main:
        while other is not None and other[0] <= stamped[0]:
            yield other
            other = next(waiting, None)
        yield stamped
    while other is not None:
        yield other
        other = next(waiting, None)


def _pulls_and_changes(db: sqlite3.Connection, share: float) -> Iterator[Stamped]:
    """A change stands after the pull that it names."""
    query = "SELECT t, kind, arm, value, why, at FROM changes ORDER BY id"
    changes = db.execute(query).fetchall()
    place, names_winner = 0, False
    for t, arm, score, seconds, at in _rows(db):
        while place < len(changes) and changes[place][0] < t:
            names_winner = names_winner or changes[place][1] == "deliver"
            yield _change(changes[place], share, names_winner)
            place += 1
        yield at, Told(arm, score, seconds)
    for change in changes[place:]:
        names_winner = names_winner or change[1] == "deliver"
        yield _change(change, share, names_winner)


def _rows(db: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    return db.execute("SELECT t, arm, reward, seconds, at FROM pulls ORDER BY t")


def _change(row: tuple[Any, ...], share: float, named: bool) -> Stamped:
    _, kind, arm, value, why, at = row
    match kind:
        case "failed" | "finished":
            return at, Left(arm, kind, why)
        case "plan":
            return at, Planned(value if named else whole_budget(value, share), value, why)
        case "batch" | "more":
            return at, HandedOut(value, kind == "more")
        case "stop":
            return at, Stopped(why)
        case "deliver":
            return at, Named(arm, value, why)
        case "note":
            return at, Noted(arm, why)
    raise ValueError(f"a change of the unknown kind {kind!r}")


def _legs(legs: list[tuple[Any, ...]]) -> Iterator[Stamped]:
    for process, versions, began, ended in legs:
        yield began, Began(process, json.loads(versions))
        if ended is not None:
            yield ended, Ended()


def _failures(db: sqlite3.Connection) -> Iterator[Stamped]:
    query = "SELECT at, arm, n, kind, reason, details FROM failures ORDER BY id"
    for at, *fields in db.execute(query):
        yield at, PullFailed(*fields)


def _saved(db: sqlite3.Connection) -> Iterator[Stamped]:
    query = "SELECT at, arm, n, folder, digest, bytes, seconds FROM checkpoints ORDER BY at"
    for at, *fields in db.execute(query):
        yield at, Saved(*fields)


def _timed(events: Iterator[Stamped]) -> Iterator[tuple[float, float, Event]]:
    """With the seconds in which at least one pull was being made until then."""
    elapsed, reached = 0.0, -inf
    for at, event in events:
        if isinstance(event, Told):
            elapsed += max(0.0, at - max(at - event.seconds, reached))
            reached = max(reached, at)
        yield at, elapsed, event
