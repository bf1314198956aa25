"""Opening a journal's file: a new one, one to continue, one to read.

A file is checked before SQLite opens it, which would discard the `-wal` of an empty file.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from time import time
from typing import Any, NamedTuple

from latebloomer._util.text import one_line
from latebloomer.errors import JournalError, JournalInUse, JournalMismatch
from latebloomer.racing.journal import JournalFile, Place
from latebloomer.racing.journal import journal as schema
from latebloomer.racing.journal.journal import DAMAGE, Entry, EventLog, SqliteLog, near
from latebloomer.session.events import Created, Event, ScoreReported

PAGE_BYTES = 1024  # a pull writes the whole page that it is on: 15.5 -> 11.5 µs of SQLite's 4096
LOCK_SECONDS = 0.2  # to wait for other processes that only check whether a lock is held
CANNOT_WRITE = "Choose another folder with journal=, or keep no journal with journal=None."


class Blank(JournalError):
    """A file without a race: a process was stopped while it made the file."""


class NotAJournal(JournalError):
    """A file that is not a journal."""


# --- new files ---


def create(journal: Place | None, created: Created, fresh: bool = False) -> EventLog:
    """Make a new journal that begins with `created`; an existing race is never overwritten.

    `fresh` also keeps an existing file without a race.
    """
    if journal is None:
        memory = schema.MemoryLog()
        memory.append(created)
        return memory
    file = new_file(journal)
    with locked(file) as lock:
        if fresh and os.path.lexists(file):
            raise JournalMismatch(f"{near(file)} exists.")
        _make_way(file)
        durability = journal.durability if isinstance(journal, JournalFile) else "normal"
        return write_new(file, [Entry(1, time(), 0.0, created)], durability, lock)


def write_new(
    file: Path, entries: Iterable[Entry], durability: str, lock: sqlite3.Connection | None = None
) -> SqliteLog:
    """Make a journal with these entries, or none at all."""
    db = _connect(file, durability)
    try:
        SqliteLog(db, file, durability).write(entries, *schema.TABLES.split(";\n")[:-1])
        return SqliteLog(db, file, durability, lock)
    except BaseException:
        db.close()
        raise


def new_file(place: Place, name: str = "journal") -> Path:
    """Return the path of a file that can be made, or raise an error; `name` is the parameter."""
    file = Path(place).absolute()
    if not file.parent.is_dir():
        raise JournalError(f"{name}={str(file)!r}: there is no folder {file.parent}. Create it.")
    if file.is_dir():
        way = "Give a file, or end the name with a slash to get a new file in it for each race."
        raise JournalError(f"{name}={str(file)!r} is a folder. {way}")
    return file


def _make_way(file: Path) -> None:
    """Remove a journal without a pull; raise an error if a file holds anything else."""
    if not os.path.exists(file):
        return
    found = None
    with suppress(Blank):
        found = glance(file)
    if found is None or not found.pulls:  # nothing would be lost
        remove(file)
        return
    over = found.verdict is not None
    raise JournalMismatch(
        f"Journal {near(file)} already holds {'a finished' if over else 'an unfinished'} race of "
        f"{found.pulls} pulls and will not be overwritten. Use {schema.resume_call(file)} or "
        f'if_exists="resume" to {"get its verdict" if over else "continue it"}, if_exists="new" '
        "for a new file next to it, or another file with journal=."
    )


# --- files that are there ---


def reopen(journal: Place) -> SqliteLog:
    """Open a journal to continue its race; no other process may have it."""
    file = Path(journal).absolute()
    durability = glance(file).durability  # an error says what is wrong before anything changes
    if isinstance(journal, JournalFile):
        durability = journal.durability
    with locked(file) as lock:
        return SqliteLog(_connect(file, durability), file, durability, lock)


def read(journal: Place, brief: bool = False) -> SqliteLog:
    """Open a journal to read it, also while another process races on it.

    A brief look, during which no race begins on a journal at rest, leaves no files of SQLite's
    next to it.
    """
    file = Path(journal).absolute()
    try:
        return _open(file, brief=brief)
    except DAMAGE as error:
        raise _damage(file, error) from error


class Glance(NamedTuple):
    """What a journal says of its race before any row is checked."""

    created: Created
    learners: tuple[str, ...]  # with those that were added
    pulls: int
    verdict: Mapping[str, Any] | None  # of a finished race
    failed: bool  # whether every learner has failed
    process: str  # the latest that opened the race
    durability: str


def glance(journal: Place) -> Glance:
    """Look at the few rows that tell what is in a journal."""
    file = Path(journal).absolute()
    with closing(read(file, brief=True)) as log:
        try:
            return _glance(log)
        except (AttributeError, *DAMAGE) as error:
            raise _damage(file, error) from error


def _glance(log: SqliteLog) -> Glance:
    created = schema.entry_of(log.query("SELECT * FROM events WHERE id = 1")).event
    if not isinstance(created, Created):
        raise ValueError("it does not begin with a race")
    data = "FROM events WHERE kind = ? ORDER BY id DESC LIMIT 1"
    number, decided = log.query(f"SELECT id, data {data}", "Decided") or (0, None)
    scores = "SELECT count(*) FROM events WHERE kind = ? AND id > ?"
    (since,), (pulls,) = (log.query(scores, schema.SCORE, first) for first in (number, 0))
    (failed,) = log.query(
        "SELECT count(DISTINCT arm) FROM events WHERE kind = 'LearnerLeft' AND "
        "json_extract(data, '$.how') = 'failed'"
    )
    (names,) = log.query("SELECT json_group_array(name) FROM (SELECT * FROM arms ORDER BY arm)")
    learners = tuple(map(str, json.loads(names)))
    (process,) = log.query(f"SELECT json_extract(data, '$.process') {data}", "Began") or ("",)
    (durability,) = log.query("SELECT durability FROM tail")
    verdict = json.loads(decided)["summary"] if decided and not since else None
    over = failed == len(learners)
    return Glance(created, learners, pulls, verdict, over, process, durability)


def _damage(file: Path, error: Exception) -> JournalError:
    entries, cause = intact_entries(file)
    cause = cause or one_line(str(error))
    return schema.damage_error(file, len(entries), pulls_in(entries), cause)


def _open(file: Path, damaged: bool = False, brief: bool = False) -> SqliteLog:
    """Open a journal to read it; one that is known to be damaged, as far as SQLite can."""
    need_journal(file)
    db = _connect_to_read(file, at_rest=brief and not _wal(file).exists())
    try:
        if damaged:  # else SQLite refuses a file that was cut off
            db.execute("PRAGMA writable_schema = ON")
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            raise Blank(f"{near(file)} is empty: no race has started in it. Start with race(...).")
        return SqliteLog(db, file)
    except BaseException:
        db.close()
        raise


def need_journal(file: Path) -> None:
    """Raise an error unless a file begins as a journal of this format does.

    SQLite reads it: on POSIX systems, closing a file that was opened without SQLite would end the
    locks of a race that runs in this process, and another program could remove its `-wal`.
    """
    if not file.is_file():
        raise JournalError(f"There is no journal {near(file)}. Check the path.")
    if not file.stat().st_size:
        waiting = _wal(file).stat().st_size if _wal(file).exists() else 0
        if waiting:  # a copy in progress: SQLite would delete the -wal
            said = f"Journal {near(file)} has 0 bytes, but {_wal(file).name} has {waiting}"
            raise JournalError(f"{said}. Copy both files again, together.")
        return
    try:
        with closing(_connect_to_read(file, at_rest=True)) as db:
            db.execute("PRAGMA writable_schema = ON")  # else not if it was cut off
            (application,) = db.execute("PRAGMA application_id").fetchone()
            (version,) = db.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        said = f"Journal {near(file)} cannot be read ({error}). Check its permissions."
        raise JournalError(said) from None  # it is not damaged
    except sqlite3.DatabaseError:
        application = version = 0
    if application != schema.APPLICATION:
        said = f"{near(file)} is not a journal: another program wrote it. Check the path."
        raise NotAJournal(said)
    if version != schema.VERSION:
        old = version < schema.VERSION
        way = "Start a new race in another file." if old else "Upgrade latebloomer."
        raise JournalError(
            f"Journal {near(file)} has format {version}, and this latebloomer reads only format "
            f"{schema.VERSION}. {way}"
        )


def _wal(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def is_held(file: Path) -> bool:
    """Return whether a process races on a journal now. Nothing is written."""
    lock = Path(f"{file}.lock").absolute()
    if not lock.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{lock.as_uri()}?mode=ro", uri=True, timeout=0)) as db:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        return "locked" in str(error)
    return False


def intact_entries(file: Path) -> tuple[list[Entry], str]:
    """Return the entries before the first damage, and what it is; empty if there is none."""
    entries: list[Entry] = []
    causes: list[str] = []
    for damaged in (False, True):
        try:
            with closing(_open(file, damaged)) as journal:
                for entry in journal.read():
                    entries.append(entry)
            causes += [] if entries else ["its first event is missing"]
        except (JournalError, *DAMAGE) as error:
            reason = error.__cause__ if isinstance(error, JournalError) else error
            if not isinstance(reason, DAMAGE):
                raise  # not a journal, or none that can be read
            causes.append(one_line(str(reason)))
        if entries or not causes:
            break
    return entries, causes[0] if causes else ""


def pulls_in(entries: list[Entry]) -> int:
    """Return how many of the entries are counted pulls."""
    return sum(isinstance(entry.event, ScoreReported) for entry in entries)


def remove(file: Path) -> None:
    """Remove a journal and SQLite's files next to it."""
    for end in ("", "-wal", "-shm"):
        Path(f"{file}{end}").unlink(missing_ok=True)


# --- connections ---


def _connect(file: Path, durability: str) -> sqlite3.Connection:
    """Open a file to write it. A new one is marked as a journal from its first page on."""
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


def _connect_to_read(file: Path, at_rest: bool) -> sqlite3.Connection:
    """Open a file read-only; in a read-only folder SQLite must know that nothing will change."""
    uri = file.absolute().as_uri()
    if at_rest:
        return sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True, isolation_level=None)
    db = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None, timeout=5)
    try:
        db.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as error:
        db.close()
        if _wal(file).exists():  # it holds pulls that SQLite cannot show from here
            raise JournalError(
                f"Journal {near(file)} cannot be read here ({error}). Copy it with "
                f"{_wal(file).name} into a folder that can be written."
            ) from None
        return _connect_to_read(file, at_rest=True)
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        pass  # the next statement fails too, where it is reported
    return db


def _cannot_write(file: Path, error: Exception) -> JournalError:
    return JournalError(f"Journal {file} cannot be written ({error}). {CANNOT_WRITE}")


@contextmanager
def locked(file: Path) -> Iterator[sqlite3.Connection]:
    """Hold the lock of a journal while it is opened; release it only if that fails."""
    lock = take_lock(file)
    try:
        yield lock
    except BaseException as error:
        lock.close()
        if isinstance(error, sqlite3.Error | OSError):
            raise _cannot_write(file, error) from error
        raise


def take_lock(file: Path) -> sqlite3.Connection:
    """Hold an exclusive lock on a file next to the journal until the process ends or closes it.

    SQLite's own locks work on every system and end with the process. On the journal itself such a
    lock would keep `latebloomer show` from reading it during the race.
    """
    try:
        lock = sqlite3.connect(f"{file}.lock", isolation_level=None, timeout=LOCK_SECONDS)
        lock.execute("BEGIN EXCLUSIVE")
        return lock
    except sqlite3.DatabaseError as error:
        if "locked" not in str(error):
            raise _cannot_write(file, error) from error
    lock.close()
    holder = "another process"
    with suppress(JournalError):
        holder = glance(file).process or holder
    advice = "Wait for it, stop it, or use another journal."
    raise JournalInUse(f"Journal {near(file)} is in use by {holder}. {advice}")


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
        raise schema.damage_error(file, 0, 0, cause)
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
            said = f"{near(file)} cannot be written ({error}). Make room, or give another file."
            raise JournalError(said) from error


def rescue(lost: EventLog, events: Iterable[Event]) -> SqliteLog:
    """Make a new journal, with all that is known, next to one that was deleted or replaced."""
    if lost.path is None:
        raise JournalError("A journal in memory cannot be lost.")
    now, old = time(), lost.path
    entries = [Entry(number, now, 0.0, event) for number, event in enumerate(events, 1)]
    names = numbered(old.with_name(f"{old.stem}.rescued{old.suffix}"))
    path = next(name for name in names if not os.path.lexists(name))
    with locked(path) as lock:
        return write_new(path, entries, lost.durability, lock)


def numbered(path: Path) -> Iterator[Path]:
    """Return the name itself, then race-2.db, race-3.db, ..."""
    yield path
    yield from (path.with_name(f"{path.stem}-{k}{path.suffix}") for k in count(2))
