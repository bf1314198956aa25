"""Opening a journal: a new one, one to go on with, or one to look at."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from latebloomer.errors import JournalError, JournalInUse, OtherRace
from latebloomer.racing.journal.journal import Journal, near, resume_call
from latebloomer.racing.journal.schema import APPLICATION, TABLES, VERSION
from latebloomer.racing.settings import Settings

MEMORY = ":memory:"


def create(path: str | os.PathLike[str] | None, settings: Settings, names: list[str]) -> Journal:
    """A new journal; an existing file is never overwritten."""
    if path is None:
        journal = Journal(_connect(MEMORY, settings.durability), None)
    else:
        file = Path(path).absolute()
        _need_folder(file)
        lock = _lock(file)
        try:
            _make_way(file)
        except JournalError:
            lock.close()
            raise
        journal = _opened(file, settings.durability, lock)
    marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
    journal.found(settings.as_dict(), names, marks + TABLES)
    journal.begin_leg()
    return journal


def reopen(path: str | os.PathLike[str]) -> Journal:
    """A journal to go on with; no other process may have it."""
    file = Path(path).absolute()
    looked = read(file)  # says what is wrong with the file before anything is touched
    durability = looked.values["durability"]
    looked.close()
    lock = _lock(file)
    journal = _opened(file, durability, lock)
    journal.begin_leg()
    return journal


def _opened(file: Path, durability: str, lock: sqlite3.Connection) -> Journal:
    try:
        return Journal(_connect(str(file), durability), file, lock)
    except JournalError:
        lock.close()
        raise


def read(path: str | os.PathLike[str]) -> Journal:
    """A journal to look at, also while another process races on it."""
    file = Path(path).absolute()
    if not file.is_file():
        raise JournalError(
            f"there is no journal {near(file)}: check the path, or start with race(...)"
        )
    db = _connect_to_read(file)
    try:
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        _need_ours(file, application, version, tables)
    except sqlite3.DatabaseError as error:
        db.close()
        raise JournalError(f"{near(file)} is not a journal of a race ({error})") from error
    except JournalError:
        db.close()
        raise
    return Journal(db, file)


class Blank(JournalError):
    """A file without tables: a process was stopped while it made it."""


def _need_ours(file: Path, application: int, version: int, tables: int) -> None:
    if not tables:
        raise Blank(f"{near(file)} is empty, no race has begun in it: start with race(...)")
    if application != APPLICATION:
        raise JournalError(
            f"{near(file)} is not a journal of a race: it is an SQLite file of another program"
        )
    if version > VERSION:
        raise JournalError(
            f"{near(file)} has tables of version {version}, but this latebloomer reads up to "
            f"{VERSION}: pip install --upgrade latebloomer"
        )


def _connect(path: str, durability: str) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(path, isolation_level=None, timeout=5)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'FULL' if durability == 'full' else 'NORMAL'}")
    except sqlite3.Error as error:
        raise JournalError(
            f"the journal {path} cannot be written ({error}): choose a folder that can, with "
            "journal=..., or journal=None to race without one"
        ) from error
    return db


def _connect_to_read(file: Path) -> sqlite3.Connection:
    """Read-only; in a read-only folder SQLite must be told that nothing will change."""
    uri = file.as_uri()
    db = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None, timeout=5)
    try:
        db.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as error:
        db.close()
        if Path(f"{file}-wal").exists():  # pulls are in it that SQLite cannot show from here
            raise JournalError(
                f"{near(file)} cannot be read here ({error}): copy it with {file.name}-wal into a "
                "folder that can be written"
            ) from error
        db = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True, isolation_level=None)
    except sqlite3.DatabaseError:
        pass  # `read` asks again and says what is wrong
    return db


def _lock(file: Path) -> sqlite3.Connection:
    """Hold an exclusive lock on a file beside the journal until the process ends or closes it.

    SQLite's own locks work on every system and end with the process. On the journal itself such a
    lock would keep `latebloomer show` from reading it during the race.
    """
    try:
        lock = sqlite3.connect(f"{file}.lock", isolation_level=None, timeout=0)
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise JournalError(
                f"the journal {file} cannot be written ({error}): choose a folder that can, with "
                "journal=..., or journal=None to race without one"
            ) from error
        raise JournalInUse(
            f"{_holder(file)} races on the journal {near(file)}: wait for it or stop it; a race "
            "of its own needs a file of its own, journal=..."
        ) from None
    return lock


def _holder(file: Path) -> str:
    try:
        journal = read(file)
    except JournalError:
        return "another process"
    holder = journal.process()
    journal.close()
    return holder or "another process"


def _need_folder(file: Path) -> None:
    if not file.parent.is_dir():
        raise JournalError(f"journal={str(file)!r}, but there is no folder {file.parent}: make it")
    if file.is_dir():
        raise JournalError(f"journal={str(file)!r} is a folder, but it must be a file")


def _make_way(file: Path) -> None:
    """Remove a journal without a pull; of any other file, say what is in it."""
    if not file.exists():
        return
    try:
        journal = read(file)
        spent, over = journal.spent, bool(journal.verdict)
        journal.close()
    except Blank:
        spent = 0
    if spent == 0:  # it never got going: nothing would be lost
        for end in ("", "-wal", "-shm"):
            Path(f"{file}{end}").unlink(missing_ok=True)
        return
    state = "a finished race" if over else "an unfinished race"
    then = "to get its verdict" if over else "to go on with it"
    raise OtherRace(
        f"the journal {near(file)} holds {state} of {spent} pulls, and nothing is overwritten: "
        f"{resume_call(file)} {then}, or give this race its own file with journal=..."
    )
