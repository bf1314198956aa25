"""The list of races in a folder of journals.

To list a race, its events are not replayed and its rows are not checked. A few queries per file
are enough, so hundreds of races are listed quickly. `read_verdict` checks every row.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from latebloomer import errors
from latebloomer._util.text import near, one_line
from latebloomer.page.race_page import ALL_FAILED, FINISHED, INTERRUPTED, RUNNING
from latebloomer.racing.journal import files
from latebloomer.racing.journal.journal_file import BESIDE, RACES, Place, need_path, resolved
from latebloomer.racing.journal.schema import DAMAGE, checked
from latebloomer.racing.journal.value_codec import NotPlain

EMPTY, DAMAGED, UNREADABLE = "empty", "damaged", "unreadable"


@dataclass(frozen=True)
class ListedRace:
    """One journal of a folder, with the data that a few queries return."""

    path: str
    state: str  # RUNNING, INTERRUPTED, FINISHED, ALL_FAILED, EMPTY, DAMAGED or UNREADABLE
    written: float  # seconds since 1970
    bytes: int  # size of the journal
    checkpoint_bytes: int  # size of the checkpoints next to it
    learners: tuple[str, ...] = ()
    pulls: int = 0
    budget: int | None = None  # None if the budget is in seconds
    seconds: float | None = None
    winner: str | None = None  # winner of a finished race
    score: float | None = None
    certified: bool = False
    wrong: str = ""  # why the journal cannot be read


def list_races(folder: Place) -> list[ListedRace]:
    """Return every journal of a folder, also unreadable ones; the one written last comes last."""
    races = (listed_race(path) for path in journal_files(folder))
    return [race for race in races if race is not None]


def listed_race(path: Path) -> ListedRace | None:
    """Return one journal; None for a file that is not a journal."""
    file = resolved(path)
    own = sum(_bytes(f"{file}{end}") for end in ("", *BESIDE))
    sizes = written_at(file), own, _folder_bytes(_checkpoints(file))
    try:
        glanced = files.glance(path)
    except files.NotAJournal:
        return None
    except files.Blank as error:
        return ListedRace(str(path), EMPTY, *sizes, wrong=str(error))
    except (errors.JournalError, OSError) as error:
        state = DAMAGED if isinstance(error.__cause__, DAMAGE) else UNREADABLE
        return ListedRace(str(path), state, *sizes, wrong=one_line(str(error)))
    verdict, settings = glanced.verdict or {}, glanced.created.settings
    state = FINISHED if verdict else ALL_FAILED if glanced.failed else running_or_interrupted(path)
    try:
        return ListedRace(
            str(path),
            state,
            *sizes,
            glanced.learners,
            glanced.pulls,
            checked("budget", settings.get("budget"), int | None),
            checked("seconds", settings.get("seconds"), float | None),
            checked("winner", verdict.get("name"), str | None),
            checked("score", verdict.get("score"), float | None),
            bool(verdict.get("certified")),
        )
    except NotPlain as error:
        return ListedRace(str(path), DAMAGED, *sizes, wrong=one_line(str(error)))


def running_or_interrupted(path: Path) -> str:
    """Return the state of a race that has neither finished nor failed."""
    return RUNNING if files.is_held(path) else INTERRUPTED


def journal_files(folder: Place) -> list[Path]:
    """Return the files of a folder that may be journals; the one written last comes last."""
    place = Path(folder)
    if not place.is_dir():
        problem = f"There is no folder {near(place.absolute())}"
        raise errors.JournalError(f"{problem}. Give another folder, or start with race(...).")
    paths = [path for path in place.iterdir() if _may_be_journal(path)]
    return sorted(paths, key=lambda path: (written_at(path), path.name))


def _may_be_journal(path: Path) -> bool:
    """Return whether a file may be a journal, by its name, files next to it or first bytes."""
    if path.name.endswith(BESIDE) or not path.is_file():
        return False
    if path.suffix == ".db" or path.with_name(f"{path.name}-wal").exists():
        return True
    with suppress(errors.JournalError):
        files.need_journal(path)
        return True
    return False


def written_at(path: Path) -> float:
    """Return when a journal was last written; in a race, the -wal has the latest pulls."""
    times = [0.0]
    path = resolved(path)
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            status = file.stat()
            if status.st_size or file is path:  # a reader may leave an empty -wal
                times.append(status.st_mtime)
    return max(times)


def newest_journal(folder: Place = RACES) -> Path:
    """Return the journal of a folder that was written last; files without a race are ignored."""
    for path in reversed(journal_files(folder)):
        try:
            files.read(path, brief=True).close()
        except (files.Blank, files.NotAJournal):
            continue
        except errors.JournalError:
            pass  # damaged or unreadable: opening it later raises an error
        return path
    place = near(Path(folder).absolute())
    raise errors.JournalError(f"There is no journal in {place}. Name the file, or use race(...).")


def journal_at(journal: Place | None) -> Path:
    """Return an existing journal: the file, or the latest of a folder (default: `races/`)."""
    need_path("journal", RACES if journal is None else journal)
    place = Path(RACES if journal is None else journal)
    return newest_journal(place) if journal is None or place.is_dir() else place


@dataclass(frozen=True)
class Cleaned:
    """The checkpoints that were removed next to one journal."""

    path: str
    bytes: int
    learners: int


def clean(folder: Place) -> Iterator[Cleaned]:
    """Remove checkpoints of finished races in a folder, except those of the winners.

    All checkpoints of a race that runs, is interrupted or cannot be read are kept. A learner
    without a checkpoint is trained again from the start if its race is ever extended.
    """
    for race in list_races(folder):
        path = resolved(race.path)
        if race.state == FINISHED and race.winner in race.learners and race.checkpoint_bytes:
            try:
                # So that no process resumes the race meanwhile.
                with closing(files.take_lock(path)):
                    removed = _drop_losers(_checkpoints(path), race.learners.index(race.winner))
            except errors.JournalInUse:
                continue
            saved = race.checkpoint_bytes - _folder_bytes(_checkpoints(path))
            if removed:
                yield Cleaned(race.path, saved, removed)


def _drop_losers(folder: Path, winner: int) -> int:
    removed = 0
    for learner in sorted(folder.iterdir()):
        arm = learner.name.removesuffix("-model")
        if learner.is_dir() and arm.isdecimal() and int(arm) != winner:
            shutil.rmtree(learner, ignore_errors=True)
            removed += not learner.exists()
    return removed


def _checkpoints(path: Path) -> Path:
    return path.with_name(f"{path.name}.checkpoints")


def _folder_bytes(folder: Path) -> int:
    paths = (os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
    return sum(map(_bytes, paths))


def _bytes(file: str) -> int:
    with suppress(OSError):  # there is no such file, or it was removed meanwhile
        return os.lstat(file).st_size
    return 0
