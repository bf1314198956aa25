"""What is left of a journal: a damaged one is repaired, one that is lost during a race rescued."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from time import time
from typing import NamedTuple

from latebloomer.errors import JournalError
from latebloomer.racing.journal import Place
from latebloomer.racing.journal.files import (
    intact_entries,
    locked,
    new_file,
    pulls_in,
    remove,
    take_lock,
    write_new,
)
from latebloomer.racing.journal.journal import EventLog, SqliteLog, damage_error, near
from latebloomer.racing.journal.schema import Entry
from latebloomer.session.events import Event


class Repaired(NamedTuple):
    """What came of a repair."""

    pulls: int  # that are intact
    events: int  # that are intact, pulls included
    cause: str  # what was found after them; empty if nothing is damaged and nothing was written


def repair(journal: Place, out: Place) -> Repaired:
    """Copy the intact beginning of a damaged journal to a new file, all of it or nothing.

    The damaged file stays unchanged; an existing file is never overwritten.
    """
    file, new = Path(journal).absolute(), new_file(out, "out")
    entries, cause = intact_entries(file)
    pulls = pulls_in(entries)
    if cause and not pulls:
        raise damage_error(file, 0, 0, cause)
    if cause:
        _copy(entries, new)
    return Repaired(pulls, len(entries), cause)


def _copy(entries: list[Entry], file: Path) -> None:
    """Write a journal with these entries unchanged: a draft, which is then renamed."""
    draft = file.with_name(f"{file.name}.draft")
    with closing(take_lock(file)):
        if os.path.lexists(file):
            raise JournalError(f"{near(file)} exists and is not overwritten. Give another file.")
        try:
            remove(draft)  # of a repair that was killed
            write_new(draft, entries, "normal").close()
            os.rename(draft, file)
        except (sqlite3.Error, OSError) as error:
            remove(draft)
            Path(f"{file}.lock").unlink(missing_ok=True)
            raise JournalError(
                f"{near(file)} cannot be written ({error}). Make room, or give another file."
            ) from error


def rescue(lost: EventLog, events: Iterable[Event]) -> SqliteLog:
    """Make a new journal, with all that is known, next to one that was deleted or replaced."""
    old, now = lost.path, time()
    if old is None:
        raise JournalError("A journal in memory cannot be lost.")
    entries = [Entry(number, now, 0.0, event) for number, event in enumerate(events, 1)]
    for count in range(1, 1000):
        path = old.with_name(f"{old.stem}.rescued{'' if count == 1 else f'-{count}'}{old.suffix}")
        if not os.path.lexists(path):
            with locked(path) as lock:
                return write_new(path, entries, lost.durability, lock)
    raise JournalError(f"Journal {near(old)} is gone, and no name next to it is free.")
