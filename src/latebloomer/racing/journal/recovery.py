"""Recovery of races: from the intact part of a damaged file, or after a file was deleted."""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from latebloomer._util.atomic_files import make_folder
from latebloomer._util.text import near
from latebloomer.errors import JournalError
from latebloomer.racing.journal import connections, event_log
from latebloomer.racing.journal.event_log import EventLog, SqliteLog
from latebloomer.racing.journal.files import (
    intact_entries,
    locked,
    new_file,
    pulls_in,
    take_lock,
    write_new,
)
from latebloomer.racing.journal.journal_file import Place, resolved
from latebloomer.racing.journal.new_names import numbered
from latebloomer.racing.journal.schema import Entry


class Repaired(NamedTuple):
    """The result of a repair."""

    pulls: int  # number of intact pulls
    events: int  # intact events, including pulls
    cause: str  # the damage after them; empty if nothing is damaged (then nothing was written)


def repair(journal: Place, out: Place) -> Repaired:
    """Copy the intact beginning of a damaged journal to a new file, completely or not at all.

    The damaged file stays unchanged; an existing file is never overwritten.
    """
    file, new = resolved(journal), new_file(out, "out")
    entries, cause = intact_entries(file)
    pulls = pulls_in(entries)
    if cause and not pulls:
        raise event_log.damage_error(file, 0, 0, cause)
    if cause:
        _copy(entries, new)
    return Repaired(pulls, len(entries), cause)


def _copy(entries: list[Entry], file: Path) -> None:
    """Write a journal with these entries unchanged, as a draft that is then renamed."""
    draft = file.with_name(f"{file.name}.draft")
    with closing(take_lock(file)):
        if os.path.lexists(file):
            raise JournalError(f"{near(file)} exists and is not overwritten. Give another file.")
        try:
            connections.remove(draft)  # the draft of a repair that was killed
            write_new(draft, entries, "normal").close()
            os.rename(draft, file)
        except (sqlite3.Error, OSError) as error:
            connections.remove(draft)
            Path(f"{file}.lock").unlink(missing_ok=True)
            problem = f"{near(file)} cannot be written ({error}). Make room, or give another file."
            raise JournalError(problem) from error


def rescue(lost: EventLog, entries: Iterable[Entry]) -> SqliteLog:
    """Create a new journal with all entries, next to one that was deleted or replaced.

    The folder is made again if it was removed, too.
    """
    if lost.path is None:
        raise JournalError("A journal in memory cannot be lost.")
    old = make_folder(lost.path.parent) / lost.path.name
    stem = old.stem.removesuffix(".rescued")  # for a journal that is lost for the second time
    names = numbered(old.with_name(f"{stem}.rescued{old.suffix}"))
    path = next(name for name in names if not os.path.lexists(name))
    with locked(path) as lock:
        return write_new(path, entries, lost.durability, lock)
