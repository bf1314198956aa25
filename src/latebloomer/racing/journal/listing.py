"""The journals of a folder: the races in them at a glance, and names for new ones.

To list a race, nothing is replayed and no row is checked: a few queries for each file, so that
hundreds of them are listed at once. `read_verdict` checks every row.

A name that ends in a slash is a folder, and each race gets a new file in it:
`races/2026-11-15-1530-brisk-fern.db`, the local date and time and two words. A name is taken under
the journal's own lock, so that two processes never get the same one.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from latebloomer import errors
from latebloomer._util.atomic_files import make_folder
from latebloomer._util.text import brief, one_line
from latebloomer.page.race_page import ALL_FAILED, FINISHED, INTERRUPTED, RUNNING
from latebloomer.racing.journal import ERROR, IF_EXISTS, NEW, RACES, JournalFile, Place, files
from latebloomer.racing.journal.journal import DAMAGE, EventLog, near
from latebloomer.session.events import Created

EMPTY, DAMAGED, UNREADABLE = "empty", "damaged", "unreadable"


@dataclass(frozen=True)
class ListedRace:
    """One journal of a folder, as far as it can be read at a glance."""

    path: str
    state: str  # RUNNING, INTERRUPTED, FINISHED, ALL_FAILED, EMPTY, DAMAGED or UNREADABLE
    written: float  # seconds since 1970
    bytes: int  # of the journal
    checkpoint_bytes: int  # of the learners' states next to it
    learners: tuple[str, ...] = ()
    pulls: int = 0
    budget: int | None = None  # None for a time-based race
    seconds: float | None = None
    winner: str | None = None  # of a finished race
    score: float | None = None
    certified: bool = False
    wrong: str = ""  # why it cannot be read


def list_races(folder: Place) -> list[ListedRace]:
    """Return every journal of a folder, the one written last at the end; a bad one as such."""
    found = (listed_race(path) for path in journal_files(folder))
    return [race for race in found if race is not None]


def listed_race(path: Path) -> ListedRace | None:
    """Return one journal; None for a file that is not one."""
    own = sum(_bytes(f"{path}{end}") for end in ("", *BESIDE))
    sizes = written_at(path), own, _folder_bytes(_checkpoints(path))
    try:
        found = files.glance(path)
    except files.NotAJournal:
        return None
    except files.Blank as error:
        return ListedRace(str(path), EMPTY, *sizes, wrong=str(error))
    except (errors.JournalError, OSError) as error:
        state = DAMAGED if isinstance(error.__cause__, DAMAGE) else UNREADABLE
        return ListedRace(str(path), state, *sizes, wrong=one_line(str(error)))
    verdict, settings = found.verdict or {}, found.created.settings
    state = FINISHED if verdict else ALL_FAILED if found.failed else running_or_interrupted(path)
    return ListedRace(
        str(path), state, *sizes, found.learners, found.pulls,
        settings.get("budget"), settings.get("seconds"), verdict.get("name"),
        verdict.get("score"), bool(verdict.get("certified")),
    )  # fmt: skip


def running_or_interrupted(path: Path) -> str:
    """Return the state of a race that has neither finished nor failed."""
    return RUNNING if files.is_held(path) else INTERRUPTED


# --- size on disk ---


def _checkpoints(path: Path) -> Path:
    return path.with_name(f"{path.name}.checkpoints")


def _folder_bytes(folder: Path) -> int:
    found = (os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
    return sum(map(_bytes, found))


def _bytes(file: str) -> int:
    with suppress(OSError):  # there is none, or it was removed meanwhile
        return os.lstat(file).st_size
    return 0


@dataclass(frozen=True)
class Cleaned:
    """What was removed next to one journal."""

    path: str
    bytes: int
    learners: int


def clean(folder: Place) -> Iterator[Cleaned]:
    """Remove the checkpoints of all learners but the winners of finished races in a folder.

    A race that runs, is interrupted or cannot be read keeps all its checkpoints. A learner without
    a checkpoint is trained again from the start if its race is ever extended.
    """
    for race in list_races(folder):
        path = Path(race.path)
        if race.state == FINISHED and race.winner in race.learners and race.checkpoint_bytes:
            try:
                with closing(files.take_lock(path.absolute())):  # so that no process resumes it
                    removed = _drop_losers(_checkpoints(path), race.learners.index(race.winner))
            except errors.JournalInUse:
                continue
            saved = race.checkpoint_bytes - _folder_bytes(_checkpoints(path))
            if removed:
                yield Cleaned(race.path, saved, removed)


def _drop_losers(folder: Path, winner: int) -> int:
    removed = 0
    for learner in sorted(folder.iterdir()):
        if learner.is_dir() and learner.name.isdecimal() and int(learner.name) != winner:
            shutil.rmtree(learner, ignore_errors=True)
            removed += not learner.exists()
    return removed


BESIDE = ("-wal", "-shm", "-journal", ".lock", ".draft")  # ends of files that belong to a journal

ADJECTIVES = (  # noqa: SIM905
    "amber bold brave brisk bright calm clear clever cool crisp eager early fair fine fleet free "
    "fresh gentle glad golden grand green happy keen kind late light lively lucky merry mild neat "
    "noble patient plain proud quick quiet rapid ready sharp silver smart steady swift tidy vivid "
    "warm wild wise witty young zesty"
).split()
NOUNS = (  # noqa: SIM905
    "acorn alder aspen badger bay beech birch bloom brook cedar cherry clover cloud comet coral "
    "crane creek daisy dawn dove dune elm falcon fern field finch fox garden grove hare hawk "
    "hazel heron hill holly ivy lake lark leaf lily lotus maple meadow moon moss oak olive otter "
    "owl pine plum pond poppy reed ridge river robin rose sage sky star stone swan tulip willow"
).split()


def check_journal_options(journal: Any, if_exists: Any) -> None:
    """Raise a `SettingError` unless these say where a race goes."""
    text = os.fspath(journal) if isinstance(journal, str | os.PathLike) else ""
    if journal is not None and not (isinstance(text, str) and text.strip()):
        needed = "a file, a folder that ends in a slash, or None to keep the race in memory"
        raise errors.SettingError(f"journal={brief(journal)} must be {needed}.")
    known, why = isinstance(if_exists, str) and if_exists in IF_EXISTS, "a journal may hold a race"
    errors.require(known, "if_exists", if_exists, "'error', 'resume' or 'new'", why)


def names_folder(journal: Place | None) -> bool:
    """Return whether new files are made in it, rather than one of that name.

    >>> names_folder("races/"), names_folder("race.db")
    (True, False)
    """
    return journal is not None and os.fspath(journal).endswith(("/", os.sep))


def begin(journal: Place | None, created: Created, if_exists: str = ERROR) -> EventLog:
    """Make the journal of a new race; a race that is on disk is never changed."""
    if journal is None or not (names_folder(journal) or if_exists == NEW):
        return files.create(journal, created)
    made = journal if isinstance(journal, JournalFile) else JournalFile(journal)
    for path in _new_names(journal) if names_folder(journal) else files.numbered(Path(journal)):
        if not os.path.lexists(path):
            # Else another process made it just now.
            with suppress(errors.JournalInUse, errors.JournalMismatch):
                return files.create(replace(made, path=path), created, fresh=True)
    raise errors.JournalError("No name is free for the journal. Give one with journal=....")


def _new_names(journal: Place) -> Iterator[Path]:
    try:
        folder = make_folder(Path(journal))
    except errors.OutputError as error:
        said = f"No journal can be written in {Path(journal)} ({os.strerror(error.errno or 0)})."
        raise errors.JournalError(f"{said} {files.CANNOT_WRITE}") from error
    for _ in range(1000):
        words = secrets.choice(ADJECTIVES), secrets.choice(NOUNS)
        yield folder / f"{datetime.now():%Y-%m-%d-%H%M}-{'-'.join(words)}.db"


# --- those that are there ---


def journal_files(folder: Place) -> list[Path]:
    """Return the files of a folder that may be journals, the one written last at the end."""
    place = Path(folder)
    if not place.is_dir():
        said = f"There is no folder {near(place.absolute())}"
        raise errors.JournalError(f"{said}. Give another folder, or start with race(...).")
    found = [path for path in place.iterdir() if _may_be_journal(path)]
    return sorted(found, key=lambda path: (written_at(path), path.name))


def _may_be_journal(path: Path) -> bool:
    """Return whether to look closer: by name, by what lies next to it, or by its first bytes."""
    if path.name.endswith(BESIDE) or not path.is_file():
        return False
    if path.suffix == ".db" or path.with_name(f"{path.name}-wal").exists():
        return True
    with suppress(errors.JournalError):
        files.need_journal(path)
        return True
    return False


def written_at(path: Path) -> float:
    """Return when a journal was written last; during a race the -wal has the latest pulls."""
    times = [0.0]
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            found = file.stat()
            if found.st_size or file is path:  # a reader may leave an empty -wal
                times.append(found.st_mtime)
    return max(times)


def newest_journal(folder: Place = RACES) -> Path:
    """Return the journal of a folder that was written last; files without a race do not count."""
    for path in reversed(journal_files(folder)):
        try:
            files.read(path, brief=True).close()
        except (files.Blank, files.NotAJournal):
            continue
        except errors.JournalError:
            pass  # damaged or unreadable: opening it raises the reason
        return path
    place = near(Path(folder).absolute())
    raise errors.JournalError(f"There is no journal in {place}. Name the file, or use race(...).")


def journal_at(journal: Place | None) -> Path:
    """Return an existing journal: the file, or the latest of a folder; of `races/` by default."""
    place = Path(RACES if journal is None else journal)
    return newest_journal(place) if journal is None or place.is_dir() else place
