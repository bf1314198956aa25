"""The races of a folder at a glance: learners, progress, result, and size on disk.

Nothing is replayed and no row is checked: a few queries for each file, so that hundreds of them
are listed at once. `read_verdict` checks every row.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from latebloomer._util.atomic_files import make_folder
from latebloomer._util.text import brief, one_line
from latebloomer.errors import JournalError, JournalInUse, OutputError, SettingError, require
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

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self) | {"learners": list(self.learners)}


def list_races(folder: Place) -> list[ListedRace]:
    """Return every journal of a folder, the one written last at the end; a bad one as such."""
    found = (listed_race(path) for path in journal_files(folder))
    return [race for race in found if race is not None]


def listed_race(path: Path) -> ListedRace | None:
    """Return one journal; None for a file that is not one."""
    sizes = written_at(path), _journal_bytes(path), _folder_bytes(_checkpoints(path))
    try:
        found = files.glance(path)
    except files.Foreign:
        return None
    except files.Blank as error:
        return ListedRace(str(path), EMPTY, *sizes, wrong=str(error))
    except (JournalError, OSError) as error:
        state = DAMAGED if isinstance(error.__cause__, DAMAGE) else UNREADABLE
        return ListedRace(str(path), state, *sizes, wrong=one_line(str(error)))
    verdict, settings = found.verdict or {}, found.created.settings
    state = FINISHED if verdict else ALL_FAILED if found.failed else running_or_interrupted(path)
    return ListedRace(
        str(path), state, *sizes, tuple(map(str, found.created.names)), found.pulls,
        settings.get("budget"), settings.get("seconds"), verdict.get("name"),
        verdict.get("score"), bool(verdict.get("certified")),
    )  # fmt: skip


def running_or_interrupted(path: Path) -> str:
    """Return the state of a race that has neither finished nor failed."""
    return RUNNING if files.is_held(path) else INTERRUPTED


# --- size on disk ---


def _checkpoints(path: Path) -> Path:
    return path.with_name(f"{path.name}.checkpoints")


def _journal_bytes(path: Path) -> int:
    total = 0
    for end in ("", *BESIDE):
        file = path.with_name(f"{path.name}{end}")
        total += file.stat().st_size if file.is_file() else 0
    return total


def _folder_bytes(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size
            except OSError:  # removed meanwhile
                continue
    return total


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
            except JournalInUse:
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
    "amber bold brave brisk bright broad calm clear clever cool crisp deep eager early "
    "even fair fast fine firm fleet fond free fresh gentle glad golden grand green happy "
    "hardy honest keen kind large late light lively lucky mellow merry mild misty neat new "
    "noble open patient plain polite proud quick quiet rapid ready rich round sharp shy "
    "silent silver sleek slow small smart smooth snug soft solid sound spry steady still "
    "strong sunny sure swift tall tame tidy tiny true vast vivid warm wide wild wise witty "
    "young zesty"
).split()
NOUNS = (  # noqa: SIM905
    "acorn alder aspen aster badger bay beech birch bloom bramble brook cedar cherry "
    "clover cliff cloud comet coral crane creek daisy dale dawn delta dove dune elder elm "
    "falcon fern field finch fir fjord flame flint forest fox garden glade grove hare "
    "harbor hawk hazel heath heron hill holly ivy jay juniper lake lark laurel leaf lily "
    "linden lotus lynx maple marsh meadow moon moss oak olive orchard otter owl peak "
    "pebble pine plum pond poplar poppy quail rain reed reef ridge river robin rose rowan "
    "rush sage seal shore sky sorrel sparrow spruce star stone stream swan thistle thrush "
    "thyme tide tulip valley violet wave willow wren yarrow"
).split()


def check_journal_options(journal: Any, if_exists: Any) -> None:
    """Raise a `SettingError` unless these say where a race goes."""
    try:
        text = "-" if journal is None else os.fspath(journal)
    except TypeError:
        text = ""
    if not (isinstance(text, str) and text.strip()):
        raise SettingError(
            f"journal={brief(journal)} must be a file, a folder that ends in a slash, or None to "
            f"keep the race in memory. Omit it to record the race in {RACES!r}."
        )
    require(
        isinstance(if_exists, str) and if_exists in IF_EXISTS, "if_exists", if_exists,
        "'error', 'resume' or 'new'", "it says what to do if the journal already holds a race",
    )  # fmt: skip


def names_folder(journal: Place | None) -> bool:
    """Return whether new files are made in it, rather than one of that name.

    >>> names_folder("races/"), names_folder("race.db")
    (True, False)
    """
    return journal is not None and os.fspath(journal).endswith(("/", os.sep))


def begin(journal: Place | None, created: Created, if_exists: str = ERROR) -> EventLog:
    """Make the journal of a new race; a race that is on disk is never changed."""
    if journal is not None and (names_folder(journal) or if_exists == NEW):
        made = journal if isinstance(journal, JournalFile) else JournalFile(journal)
        for path in _new_names(journal) if names_folder(journal) else _numbered(Path(journal)):
            log = files.create_if_free(replace(made, path=path), created)
            if log is not None:
                return log
        raise JournalError("No name is free for the journal. Give one with journal=....")
    return files.create(journal, created)


def _new_names(journal: Place) -> Iterator[Path]:
    try:
        folder = make_folder(Path(journal))
    except OutputError as error:
        raise JournalError(
            f"journal={os.fspath(journal)!r}: {error}. {files.CANNOT_WRITE}"
        ) from error
    for _ in range(1000):
        words = secrets.choice(ADJECTIVES), secrets.choice(NOUNS)
        yield folder / f"{datetime.now():%Y-%m-%d-%H%M}-{'-'.join(words)}.db"


def _numbered(path: Path) -> Iterable[Path]:
    """Return the name itself, then race-2.db, race-3.db, ..."""
    yield path
    yield from (path.with_name(f"{path.stem}-{k}{path.suffix}") for k in count(2))


# --- those that are there ---


def journal_files(folder: Place) -> list[Path]:
    """Return the files of a folder that may be journals, the one written last at the end."""
    place = Path(folder)
    if not place.is_dir():
        raise JournalError(
            f"There is no folder {near(place.absolute())}. Races are recorded in {RACES} of the "
            "folder that they run in; give another folder, or start with race(...)."
        )
    found = [path for path in place.iterdir() if _may_be_journal(path)]
    return sorted(found, key=lambda path: (written_at(path), path.name))


def _may_be_journal(path: Path) -> bool:
    """Return whether to look closer: by name, by what lies next to it, or by its first bytes."""
    if path.name.endswith(BESIDE) or not path.is_file():
        return False
    if path.suffix == ".db" or path.with_name(f"{path.name}-wal").exists():
        return True
    try:
        return files.has_mark(path)
    except JournalError:
        return False


def written_at(path: Path) -> float:
    """Return when a journal was written last; during a race the -wal has the latest pulls."""
    times = [0.0]
    for file in (path, path.with_name(f"{path.name}-wal")):
        try:
            found = file.stat()
        except OSError:
            continue
        if found.st_size or file is path:  # a reader may leave an empty -wal
            times.append(found.st_mtime)
    return max(times)


def newest_journal(folder: Place = RACES) -> Path:
    """Return the journal of a folder that was written last; files without a race do not count."""
    for path in reversed(journal_files(folder)):
        try:
            files.read(path, brief=True).close()
        except (files.Blank, files.Foreign):
            continue
        except JournalError:
            pass  # damaged or unreadable: opening it raises the reason
        return path
    raise JournalError(
        f"There is no journal in {near(Path(folder).absolute())}. Name the file, or start with "
        "race(...)."
    )


def journal_at(journal: Place | None) -> Path:
    """Return an existing journal: the file, or the latest of a folder; of `races/` by default."""
    place = Path(RACES if journal is None else journal)
    return newest_journal(place) if journal is None or place.is_dir() else place
