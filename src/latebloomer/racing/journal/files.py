"""Opening a journal's file: a new one, one to go on with, or one to look at."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from time import time
from typing import NamedTuple

from latebloomer._util.text import one_line
from latebloomer.errors import JournalError, JournalInUse, JournalMismatch
from latebloomer.racing.journal.journal import (
    DAMAGE,
    FileJournal,
    Journal,
    MemoryJournal,
    near,
    resume_call,
    transaction,
)
from latebloomer.racing.journal.schema import APPLICATION, TABLES, VERSION, Entry
from latebloomer.session.events import Began, Created, Decided, Event, ScoreReported

PAGE_BYTES = 1024  # a pull writes the whole page that it is on: 15.5 -> 11.5 µs of SQLite's 4096
LOOKS = 0.2  # seconds to wait for those who only look whether somebody holds a lock
CANNOT_WRITE = "choose a folder that can, with journal=..., or journal=None to race without one"


def create(path: str | os.PathLike[str] | None, created: Created) -> Journal:
    """A new journal that begins with `created`; an existing file is never overwritten."""
    journal: Journal
    if path is None:
        journal = MemoryJournal()
        journal.append(created)
        return journal
    file = Path(path).absolute()
    _need_folder(file)
    lock = take_lock(file)
    try:
        _make_way(file)
    except BaseException:
        lock.close()
        raise
    return _begin(file, created, lock)


def create_unless_taken(path: str | os.PathLike[str], created: Created) -> Journal | None:
    """The same; None where the name is taken, also by a process that makes its file just now."""
    file = Path(path).absolute()
    _need_folder(file)
    if os.path.lexists(file):
        return None
    try:
        lock = take_lock(file)
    except JournalInUse:
        return None
    if os.path.lexists(file):  # made, and let go of, in between
        lock.close()
        return None
    return _begin(file, created, lock)


def _begin(file: Path, created: Created, lock: sqlite3.Connection) -> Journal:
    try:
        return _new_journal(file, [Entry(1, time(), 0.0, created)], lock)
    except BaseException as error:
        lock.close()
        if isinstance(error, sqlite3.Error):
            raise JournalError(
                f"the journal {file} cannot be written ({error}): {CANNOT_WRITE}"
            ) from error
        raise


def _new_journal(file: Path, entries: list[Entry], lock: sqlite3.Connection) -> FileJournal:
    """A journal that begins with these entries, or none at all."""
    created = entries[0].event
    durability = durability_of(created) if isinstance(created, Created) else "normal"
    db = _connect(file, durability)
    with transaction(db):
        _make_tables(db)
        FileJournal(db, file).write(entries)
    return FileJournal(db, file, lock)


def durability_of(created: Created) -> str:
    """How a race asked its journal to be written."""
    return str(created.settings.get("durability", "normal"))


def rescue(journal: Journal, events: Iterable[Event]) -> FileJournal:
    """A new journal beside one that was deleted or replaced, with all that is known."""
    old = journal.path
    if old is None:
        raise JournalError("a journal in memory cannot be lost")
    known = list(events)
    for count in range(1, 1000):
        path = old.with_name(f"{old.stem}.rescued{'' if count == 1 else f'-{count}'}{old.suffix}")
        if not path.exists() and isinstance(known[0], Created):
            made = create(path, known[0])
            for event in known[1:]:
                made.append(event)
            return made  # type: ignore[return-value]
    raise JournalError(f"the journal {near(old)} is gone, and no name beside it is free")


class Repaired(NamedTuple):
    """What came of a repair."""

    pulls: int  # that are sound
    wrong: str  # what is damaged; empty where nothing is, and nothing was written then


def repair(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> Repaired:
    """Keep the sound beginning of a damaged journal in a new file, all of it or nothing.

    The damaged file stays as it is; a file that is there is never overwritten.
    """
    sound, wrong = _sound_entries(path)
    pulls = sum(isinstance(entry.event, ScoreReported) for entry in sound)
    if wrong and not pulls:
        raise JournalError(f"{path} is {wrong}: nothing of it can be kept, start a new race")
    if wrong:
        _copy(sound, Path(out).absolute())
    return Repaired(pulls, wrong)


def _sound_entries(path: str | os.PathLike[str]) -> tuple[list[Entry], str]:
    """The entries before the first damage, and what that is."""
    sound: list[Entry] = []
    journal, wrong = _read_what_can_be(path)
    with closing(journal):
        try:
            for entry in journal.read():
                sound.append(entry)
        except JournalError as error:
            wrong = one_line(str(error.__cause__ or error))
            return sound, f"damaged after event {len(sound)} ({wrong})"
    if not sound:
        wrong = wrong or "its first event is missing"
    return sound, f"damaged, though none of its {len(sound)} events ({wrong})" if wrong else ""


def _read_what_can_be(path: str | os.PathLike[str]) -> tuple[Journal, str]:
    """A journal that may be damaged, and why SQLite refuses it as it is."""
    try:
        return read(path), ""
    except JournalError as error:
        if not isinstance(error.__cause__, DAMAGE):
            raise  # it is another program's, or of a newer version, or there is none
        return read(path, damaged=True), one_line(str(error.__cause__))


def _copy(entries: list[Entry], file: Path) -> None:
    """A new journal with these entries as they are, times included."""
    if not isinstance(entries[0].event, Created):
        raise JournalError(f"{near(file)} cannot be made: the journal does not begin with a race")
    _need_folder(file)
    if file.exists():
        raise JournalError(
            f"{near(file)} is there already, and nothing is overwritten: give another file"
        )
    lock = take_lock(file)
    try:
        _new_journal(file, entries, lock).close()
    except BaseException as error:
        lock.close()
        _remove(file, ".lock")
        if isinstance(error, sqlite3.Error):
            raise JournalError(
                f"{near(file)} cannot be written ({error}): make room, or give another file"
            ) from error
        raise


def _make_tables(db: sqlite3.Connection) -> None:
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")
    for statement in TABLES.split(";\n"):
        if statement.strip():
            db.execute(statement)


def reopen(path: str | os.PathLike[str]) -> FileJournal:
    """A journal to go on with; no other process may have it."""
    file = Path(path).absolute()
    looked = read(file)  # says what is wrong with the file before anything is touched
    with closing(looked):
        first = next(looked.read(), None)
    if first is None or not isinstance(first.event, Created):
        raise JournalError(f"{near(file)} does not begin with a race: nothing can be resumed")
    lock = take_lock(file)
    try:
        return FileJournal(_connect(file, durability_of(first.event)), file, lock)
    except BaseException:
        lock.close()
        raise


def read(path: str | os.PathLike[str], damaged: bool = False, brief: bool = False) -> Journal:
    """A journal to look at, also while another process races on it. Nothing is written.

    One that is known to be damaged is read as far as it goes. A brief look, during which no race
    begins on a journal at rest, leaves no files of SQLite's beside it either.
    """
    file = Path(path).absolute()
    if not file.is_file():
        raise JournalError(
            f"there is no journal {near(file)}: check the path, or start with race(...)"
        )
    db = _connect_to_read(file, at_rest=brief and _is_at_rest(file))
    _version(db, file, damaged)
    return FileJournal(db, file)


def glance(path: Path) -> tuple[sqlite3.Connection, int]:
    """A connection for a few questions, and the version of the tables.

    Unlike a longer look it leaves no files of SQLite's own beside a journal that nobody writes.
    """
    file = path.absolute()
    db = _connect_to_read(file, at_rest=_is_at_rest(file))
    return db, _version(db, file)


def _is_at_rest(file: Path) -> bool:
    return not Path(f"{file}-wal").exists()


def _version(db: sqlite3.Connection, file: Path, damaged: bool = False) -> int:
    """Of the tables; where they are none of ours, the connection is closed and the error says."""
    try:
        if damaged:  # else SQLite refuses a file that was cut off
            db.execute("PRAGMA writable_schema = ON")
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        _need_ours(file, application, version, tables)
    except DAMAGE as error:
        db.close()
        text = one_line(str(error))
        if not damaged and has_our_mark(file):
            raise JournalError(
                f"the journal {near(file)} is damaged ({text}): `latebloomer repair {near(file)}` "
                "keeps what is sound in a new file"
            ) from error
        raise JournalError(f"{near(file)} is not a journal of a race ({text})") from error
    except JournalError:
        db.close()
        raise
    return int(version)


def has_our_mark(file: Path) -> bool:
    """Whether it begins as our files do, without asking SQLite."""
    with file.open("rb") as stream:
        head = stream.read(72)
    return head.startswith(b"SQLite format 3\0") and head[68:] == APPLICATION.to_bytes(4, "big")


def is_ours(file: Path) -> bool:
    """Whether a file that cannot be read is a journal all the same: it is damaged, or newer."""
    try:
        return has_our_mark(file)
    except OSError:
        return False


def is_held(file: Path) -> bool:
    """Whether a process races on a journal just now. Nothing is written."""
    lock = Path(f"{file}.lock").absolute()
    if not lock.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{lock.as_uri()}?mode=ro", uri=True, timeout=0)) as db:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        return "locked" in str(error)
    return False


class Blank(JournalError):
    """A file without a race: a process was stopped while it made it."""


def _need_ours(file: Path, application: int, version: int, tables: int) -> None:
    if not tables:
        raise Blank(f"{near(file)} is empty, no race has begun in it: start with race(...)")
    if application != APPLICATION:
        raise JournalError(
            f"{near(file)} is not a journal of a race: it is an SQLite file of another program"
        )
    if version < VERSION:
        raise JournalError(
            f"Journal {near(file)} was written by an earlier latebloomer (format {version}), and this "
            f"one reads format {VERSION}: start a new race in another file."
        )
    if version > VERSION:
        raise JournalError(
            f"{near(file)} has tables of version {version}, but this latebloomer reads up to "
            f"{VERSION}: pip install --upgrade latebloomer"
        )


def _connect(file: Path, durability: str) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(file, isolation_level=None, timeout=5)
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # of a new file; others keep theirs
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'FULL' if durability == 'full' else 'NORMAL'}")
    except sqlite3.Error as error:
        raise JournalError(
            f"the journal {file} cannot be written ({error}): {CANNOT_WRITE}"
        ) from error
    return db


def _connect_to_read(file: Path, at_rest: bool = False) -> sqlite3.Connection:
    """Read-only; in a read-only folder SQLite must be told that nothing will change."""
    uri = file.as_uri()
    if at_rest:
        return sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True, isolation_level=None)
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
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        pass  # `read` asks again and says what is wrong
    return db


def take_lock(file: Path) -> sqlite3.Connection:
    """Hold an exclusive lock on a file beside the journal until the process ends or closes it.

    SQLite's own locks work on every system and end with the process. On the journal itself such a
    lock would keep `latebloomer show` from reading it during the race.
    """
    for again in (True, False):
        lock = None
        try:
            lock = sqlite3.connect(f"{file}.lock", isolation_level=None, timeout=LOOKS)
            lock.execute("BEGIN EXCLUSIVE")
            return lock
        except sqlite3.DatabaseError as error:
            if lock is not None:
                lock.close()
            if "locked" in str(error):
                raise JournalInUse(
                    f"{_holder(file)} races on the journal {near(file)}: wait for it or stop it; "
                    "a race of its own needs a file of its own, journal=..."
                ) from None
            if isinstance(error, sqlite3.OperationalError) or not again:
                raise JournalError(
                    f"the journal {file} cannot be written ({error}): {CANNOT_WRITE}"
                ) from error
            Path(f"{file}.lock").unlink()  # junk: nobody can hold a lock on it
    raise JournalError(f"the journal {file} cannot be locked")


def _holder(file: Path) -> str:
    """Which process raced last."""
    holder = "another process"
    with suppress(JournalError):
        journal = read(file)
        with closing(journal):
            for entry in journal.read():
                if isinstance(entry.event, Began):
                    holder = entry.event.process
    return holder


def _need_folder(file: Path) -> None:
    if not file.parent.is_dir():
        raise JournalError(f"journal={str(file)!r}, but there is no folder {file.parent}: make it")
    if file.is_dir():
        raise JournalError(
            f"journal={str(file)!r} is a folder, but it must be a file; with a slash at its end, "
            "each race gets a new file in it"
        )


def _remove(file: Path, *more: str) -> None:
    """Remove a journal and what lies beside it."""
    for end in ("", "-wal", "-shm", *more):
        Path(f"{file}{end}").unlink(missing_ok=True)


def _make_way(file: Path) -> None:
    """Remove a journal without a pull; of any other file, say what is in it."""
    if not file.exists():
        return
    spent, over = 0, False
    try:
        journal = read(file)
        for entry in journal.read():
            spent += isinstance(entry.event, ScoreReported)
            over = over or isinstance(entry.event, Decided)
        journal.close()
    except Blank:
        pass
    if spent == 0:  # it never got going: nothing would be lost
        _remove(file)
        return
    state = "a finished race" if over else "an unfinished race"
    then = "gets its verdict" if over else "goes on with it"
    raise JournalMismatch(
        f"the journal {near(file)} holds {state} of {spent} pulls, and nothing is overwritten: "
        f'{resume_call(file)} or if_exists="resume" {then}, if_exists="new" makes a new file '
        "beside it, and journal=... gives another name"
    )
