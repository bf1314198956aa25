"""The races of a folder at a glance: learners, progress, result, and size on disk.

Nothing is replayed and no row is checked: a few queries for each file, so that hundreds of them
are listed at once. `read_verdict` checks every row.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from latebloomer._util.text import one_line
from latebloomer.errors import JournalError, JournalInUse
from latebloomer.page.race_page import ALL_FAILED, FINISHED, INTERRUPTED, RUNNING
from latebloomer.racing.journal import Place, files
from latebloomer.racing.journal.journal import DAMAGE
from latebloomer.racing.journal.names import BESIDE, journal_files, written_at

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
