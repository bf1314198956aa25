"""Functions that open the file of a journal: a new one, one to continue, or one to read.

A file is checked before SQLite opens it, because SQLite would discard the `-wal` of an empty file.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import time
from typing import Any, NamedTuple, TypeVar

from latebloomer._util.text import near, one_line
from latebloomer.errors import JournalError, JournalInUse, JournalMismatch
from latebloomer.racing.journal import connections, event_log, schema
from latebloomer.racing.journal.connections import wal_of
from latebloomer.racing.journal.event_log import EventLog, SqliteLog
from latebloomer.racing.journal.journal_file import BESIDE, REWRITTEN, JournalFile, Place, resolved
from latebloomer.racing.journal.locks import RaceLock, is_locked
from latebloomer.racing.journal.schema import DAMAGE, Entry
from latebloomer.session import events
from latebloomer.session.events import Created, OtherEvent, ScoreReported

Found = TypeVar("Found", bound=OtherEvent)

CANNOT_WRITE = "Choose another folder with journal=, or keep no journal with journal=None."


class Blank(JournalError):
    """A file without a race, because a process was stopped while it created the file."""


class NotAJournal(JournalError):
    """A file that is not a journal."""


# --- new files ---


def create(journal: Place | None, created: Created, fresh: bool = False) -> EventLog:
    """Create a journal that begins with `created`; an existing race is never overwritten.

    With `fresh`, an existing file without a race is not overwritten either.
    """
    if journal is None:
        memory = event_log.MemoryLog()
        memory.append(created)
        return memory
    file = new_file(journal)
    with locked(file) as lock:
        _finish_rewriting(file)
        if fresh and os.path.lexists(file):
            raise JournalMismatch(f"{near(file)} exists.")
        _make_way(file)
        durability = journal.durability if isinstance(journal, JournalFile) else "normal"
        return write_new(file, [Entry(1, time(), 0.0, created)], durability, lock)


def write_new(
    file: Path, entries: Iterable[Entry], durability: str, lock: RaceLock | None = None
) -> SqliteLog:
    """Create a journal with these entries completely, or not at all."""
    db = connections.connect(file, durability)
    try:
        SqliteLog(db, file, durability).write(entries, *schema.TABLES.split(";\n")[:-1])
        return SqliteLog(db, file, durability, lock)
    except BaseException:
        db.close()
        raise


def new_file(place: Place, name: str = "journal") -> Path:
    """Return the path of a file that can be created, or raise an error about parameter `name`."""
    file = resolved(place)
    if file.name.endswith(BESIDE):
        end = next(end for end in BESIDE if file.name.endswith(end))
        raise JournalError(
            f"{name}={str(file)!r}, but no journal may end in {end!r}: files of such names "
            "belong to another journal. Choose another name."
        )
    if not file.parent.is_dir():
        raise JournalError(f"{name}={str(file)!r}: there is no folder {file.parent}. Create it.")
    if file.is_dir():
        way = "Give a file, or end the name with a slash to get a new file in it for each race."
        raise JournalError(f"{name}={str(file)!r} is a folder. {way}")
    return file


def _make_way(file: Path) -> None:
    """Remove a journal without pulls; raise an error if the file has anything else in it."""
    if not os.path.exists(file):
        return
    glanced = None
    with suppress(Blank):
        glanced = glance(file)
    if glanced is None or not glanced.pulls:  # nothing is lost
        connections.remove(file)
        return
    over = glanced.verdict is not None
    raise JournalMismatch(
        f"Journal {near(file)} already holds {'a finished' if over else 'an unfinished'} race of "
        f"{glanced.pulls} pulls and will not be overwritten. Use {event_log.resume_call(file)} or "
        f'if_exists="resume" to {"get its verdict" if over else "continue it"}, if_exists="new" '
        "for a new file next to it, or another file with journal=."
    )


# --- existing files ---


def reopen(journal: Place) -> SqliteLog:
    """Open a journal to continue its race; raise an error if another process runs it."""
    file = resolved(journal)
    finish_rewriting(file)
    # Raises an error about a bad file before anything changes.
    durability = glance(file).durability
    if isinstance(journal, JournalFile):
        durability = journal.durability
    with locked(file) as lock:
        return SqliteLog(connections.connect(file, durability), file, durability, lock)


def finish_rewriting(file: Path) -> None:
    """Finish writing a journal again, if its process was killed while doing so."""
    if Path(f"{file}{REWRITTEN}").exists():
        with closing(take_lock(file)):
            _finish_rewriting(file)


def _finish_rewriting(file: Path) -> None:
    """Finish writing a journal again, under the lock; an incomplete copy is removed."""
    draft = Path(f"{file}{REWRITTEN}")
    if not draft.exists():
        return
    if file.exists() and _events_in(draft, whole=True) > _events_in(file):
        connections.remove_beside(file)
        os.replace(draft, file)  # after a kill before this line, the next resume finds the draft
    connections.remove(draft)


def _events_in(file: Path, whole: bool = False) -> int:
    """Return the number of intact events of a journal; 0 if `whole` and not all are intact."""
    with suppress(JournalError):
        entries, damage = intact_entries(file)
        return 0 if whole and damage else len(entries)
    return 0


def read(journal: Place, brief: bool = False) -> SqliteLog:
    """Open a journal to read it; another process may run the race.

    With `brief`, no files of SQLite are left next to the journal; then no race may start on it
    meanwhile.
    """
    file = resolved(journal)
    try:
        return _open(file, brief=brief)
    except DAMAGE as error:
        raise _damage(file, error) from error


class Glance(NamedTuple):
    """Data about the race in a journal, read without checking every row."""

    created: Created
    learners: tuple[str, ...]  # including learners that were added
    pulls: int
    verdict: Mapping[str, Any] | None  # verdict of a finished race
    failed: bool  # whether every learner has failed
    process: str  # the latest process that opened the race
    durability: str


def glance(journal: Place) -> Glance:
    """Return the data about a race from the few rows that have them."""
    file = resolved(journal)
    with closing(read(file, brief=True)) as log:
        try:
            return _glance(log)
        except (AttributeError, *DAMAGE) as error:
            raise _damage(file, error) from error


def _glance(log: SqliteLog) -> Glance:
    created = schema.entry_of(log.query("SELECT * FROM events WHERE id = 1")).event
    if not isinstance(created, Created):
        raise ValueError("it does not begin with a race")
    joined = _events_of(log, events.Joined)
    learners = (*created.names, *(event.name for event in joined))
    number, decided = _latest(log, events.RaceFinished) or (0, None)
    _, began = _latest(log, events.ProcessStarted) or (0, None)
    scores = "SELECT count(*) FROM events WHERE kind = ? AND id > ?"
    (since,), (pulls,) = (log.query(scores, schema.SCORE, first) for first in (number, 0))
    departures = _events_of(log, events.LearnerLeft)
    failed = {event.arm for event in departures if event.how == events.FAILED}
    (durability,) = log.query("SELECT durability FROM tail")
    verdict = decided.summary if decided is not None and not since else None
    process = "" if began is None else began.process
    over = len(failed) == len(learners)
    return Glance(created, learners, pulls, verdict, over, process, str(durability))


def _events_of(log: SqliteLog, kind: type[Found]) -> list[Found]:
    """Return all events of one kind, in order."""
    rows = log.rows("SELECT * FROM events WHERE kind = ? ORDER BY id", kind.__name__)
    return [event for row in rows if isinstance(event := schema.entry_of(row).event, kind)]


def _latest(log: SqliteLog, kind: type[Found]) -> tuple[int, Found] | None:
    """Return the number of the latest event of one kind, and the event."""
    row = log.query("SELECT * FROM events WHERE kind = ? ORDER BY id DESC LIMIT 1", kind.__name__)
    if row is None:
        return None
    entry = schema.entry_of(row)
    return (entry.number, entry.event) if isinstance(entry.event, kind) else None


def _damage(file: Path, error: Exception) -> JournalError:
    entries, cause = intact_entries(file)
    cause = cause or one_line(str(error))
    return event_log.damage_error(file, len(entries), pulls_in(entries), cause)


def _open(file: Path, damaged: bool = False, brief: bool = False) -> SqliteLog:
    """Open a journal to read it; a `damaged` one is read as far as SQLite can."""
    need_journal(file)
    db = connections.connect_to_read(file, at_rest=brief and not wal_of(file).exists())
    try:
        if damaged:  # else SQLite does not open a truncated file
            db.execute("PRAGMA writable_schema = ON")
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            raise Blank(f"{near(file)} is empty: no race has started in it. Start with race(...).")
        return SqliteLog(db, file)
    except BaseException:
        db.close()
        raise


def need_journal(file: Path) -> None:
    """Raise an error unless a file begins like a journal of this format.

    The file is read by SQLite. On POSIX systems, closing a file that was opened without SQLite
    would release the locks of a race in this process, and another program could then remove its
    `-wal`.
    """
    if not file.is_file():
        raise JournalError(f"There is no journal {near(file)}. Check the path.")
    if not file.stat().st_size:
        waiting = wal_of(file).stat().st_size if wal_of(file).exists() else 0
        if waiting:  # perhaps a copy in progress: SQLite would delete the -wal
            problem = f"Journal {near(file)} has 0 bytes, but {wal_of(file).name} has {waiting}"
            raise JournalError(f"{problem}. Copy both files again, together.")
        return
    try:
        with closing(connections.connect_to_read(file, at_rest=True)) as db:
            db.execute("PRAGMA writable_schema = ON")  # so that a truncated file can be read, too
            (application,) = db.execute("PRAGMA application_id").fetchone()
            (version,) = db.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        problem = f"Journal {near(file)} cannot be read ({error}). Check its permissions."
        raise JournalError(problem) from None  # the journal itself is not damaged
    except sqlite3.DatabaseError:
        application = version = 0
    if application != schema.APPLICATION:
        problem = f"{near(file)} is not a journal: another program wrote it. Check the path."
        raise NotAJournal(problem)
    if version != schema.VERSION:
        old = version < schema.VERSION
        way = "Start a new race in another file." if old else "Upgrade latebloomer."
        raise JournalError(
            f"Journal {near(file)} has format {version}, and this latebloomer reads only format "
            f"{schema.VERSION}. {way}"
        )


def is_held(file: Path) -> bool:
    """Return whether a process runs the race of a journal now, without writing anything."""
    return is_locked(resolved(file))


def intact_entries(file: Path) -> tuple[list[Entry], str]:
    """Return the entries before the first damage, and its description; empty if not damaged."""
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
                raise  # not a journal, or it cannot be read
            causes.append(one_line(str(reason)))
        if entries or not causes:
            break
    return entries, causes[0] if causes else ""


def pulls_in(entries: list[Entry]) -> int:
    """Return the number of counted pulls among the entries."""
    return sum(isinstance(entry.event, ScoreReported) for entry in entries)


# --- the lock ---


def _cannot_write(file: Path, error: Exception) -> JournalError:
    return JournalError(f"Journal {file} cannot be written ({error}). {CANNOT_WRITE}")


@contextmanager
def locked(file: Path) -> Iterator[RaceLock]:
    """Take the lock of a journal before it is opened; release it only if opening fails."""
    lock = take_lock(file)
    try:
        yield lock
    except BaseException as error:
        lock.close()
        if isinstance(error, sqlite3.Error | OSError):
            raise _cannot_write(file, error) from error
        raise


def take_lock(file: Path) -> RaceLock:
    """Take the lock of a race, which is held until the process ends or closes it.

    The lock is on a file next to the journal. A lock on the journal itself would prevent
    `latebloomer show` from reading the journal during the race.
    """
    try:
        return RaceLock(file)
    except BlockingIOError:
        pass
    except OSError as error:
        raise _cannot_write(file, error) from error
    holder = "another process"
    with suppress(JournalError):
        holder = glance(file).process or holder
    advice = "Wait for it, stop it, or use another journal."
    raise JournalInUse(f"Journal {near(file)} is in use by {holder}. {advice}")
