"""SQLite connections to the file of a journal: one to write it, and others to read it."""

import sqlite3
from pathlib import Path

from latebloomer._util.text import near
from latebloomer.errors import JournalError
from latebloomer.racing.journal import schema

PAGE_BYTES = 1024  # each pull writes a whole page: 11.5 µs, instead of 15.5 µs with SQLite's 4096
ENDS = ("-wal", "-shm", "-journal")  # endings of SQLite's own files next to a journal


def wal_of(file: Path) -> Path:
    """Return the path of SQLite's -wal file, with the changes that are not in the journal yet."""
    return file.with_name(f"{file.name}-wal")


def remove(file: Path) -> None:
    """Remove a journal and SQLite's files next to it."""
    file.unlink(missing_ok=True)
    remove_beside(file)


def remove_beside(file: Path) -> None:
    """Remove SQLite's files next to a journal, because another file replaces the journal."""
    for end in ENDS:
        Path(f"{file}{end}").unlink(missing_ok=True)


def connect(file: Path, durability: str) -> sqlite3.Connection:
    """Open a file for writing. A new file is marked as a journal from its first page on."""
    db = sqlite3.connect(file, isolation_level=None, timeout=5)
    if not file.stat().st_size:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        db.execute("BEGIN")
        db.execute(f"PRAGMA application_id = {schema.APPLICATION}")
        db.execute(f"PRAGMA user_version = {schema.VERSION}")
        db.execute("COMMIT")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {'FULL' if durability == 'full' else 'NORMAL'}")
    return db


def connect_to_read(file: Path, at_rest: bool) -> sqlite3.Connection:
    """Open a file read-only; `at_rest`, or in a read-only folder, SQLite expects no changes."""
    uri = file.absolute().as_uri()
    if at_rest:
        return sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True, isolation_level=None)
    db = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None, timeout=5)
    try:
        db.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as error:
        db.close()
        if wal_of(file).exists():  # the -wal has pulls that SQLite cannot read from here
            raise JournalError(
                f"Journal {near(file)} cannot be read here ({error}). Copy it with "
                f"{wal_of(file).name} into a folder that can be written."
            ) from None
        return connect_to_read(file, at_rest=True)
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        pass  # the next statement fails, too, and reports the error
    return db
