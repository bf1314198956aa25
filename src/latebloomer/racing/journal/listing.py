"""The races of a folder at a glance: who, how far, what came of it, and what it takes on disk.

Nothing is replayed and no row is checked: a few queries for each file, so that hundreds of them
are listed at once. `read_verdict` is what checks every row.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from latebloomer._util.text import one_line
from latebloomer.errors import JournalError, JournalInUse
from latebloomer.page.race_page import FINISHED, INTERRUPTED, RUNNING
from latebloomer.racing.journal import files
from latebloomer.racing.journal.journal import DAMAGE
from latebloomer.racing.journal.names import BESIDE, Place, journal_files, written_at

EMPTY, DAMAGED, UNREADABLE = "empty", "damaged", "unreadable"

CREATED = "SELECT data FROM events WHERE id = 1 AND kind = 'created'"
VERDICT = "SELECT id, data FROM events WHERE kind = 'decided' ORDER BY id DESC LIMIT 1"
PULLS = "SELECT count(*) FROM events WHERE kind = 'told'"
SINCE = "SELECT count(*) FROM events WHERE id > ? AND kind = 'told'"


@dataclass(frozen=True)
class ListedRace:
    """One journal of a folder, as far as it can be read at a glance."""

    path: str
    state: str  # RUNNING, INTERRUPTED, FINISHED, EMPTY, DAMAGED or UNREADABLE
    written: float  # seconds since 1970
    bytes: int  # of the journal
    checkpoint_bytes: int  # of the learners' states beside it
    learners: tuple[str, ...] = ()
    pulls: int = 0
    budget: int | None = None  # None by the clock
    seconds: float | None = None
    winner: str | None = None  # of a race that is over
    score: float | None = None
    certified: bool = False
    wrong: str = ""  # why it cannot be read

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"learners": list(self.learners)}


@dataclass(frozen=True)
class _Known:
    """What a journal says of its race."""

    created: dict[str, Any]
    pulls: int
    verdict: dict[str, Any] | None


def list_races(folder: Place) -> list[ListedRace]:
    """Every journal of a folder, the one written last at the end; a bad one is listed as such."""
    found = (listed_race(path) for path in journal_files(folder))
    return [race for race in found if race is not None]


def listed_race(path: Path) -> ListedRace | None:
    """One journal; None for a file that is not ours."""
    sizes = written_at(path), _journal_bytes(path), _folder_bytes(_checkpoints(path))
    try:
        return _with_race(path, _at_a_glance(path), *sizes)
    except files.Blank as error:
        return ListedRace(str(path), EMPTY, *sizes, wrong=str(error))
    except (JournalError, AttributeError, *DAMAGE, OSError) as error:
        if not files.is_ours(path):
            return None  # another program's
        damaged = isinstance(error, DAMAGE) or isinstance(error.__cause__, DAMAGE)
        state = DAMAGED if damaged else UNREADABLE
        return ListedRace(str(path), state, *sizes, wrong=one_line(str(error)))


def _at_a_glance(path: Path) -> _Known:
    db, _ = files.glance(path)
    with closing(db):
        return _queried(db)


def _queried(db: sqlite3.Connection) -> _Known:
    first = db.execute(CREATED).fetchone()
    if first is None:
        raise ValueError("its first event is missing")
    last = db.execute(VERDICT).fetchone()
    if last is not None and not db.execute(SINCE, (last[0],)).fetchone()[0]:
        verdict = json.loads(last[1])
        return _Known(json.loads(first[0]), int(verdict["spent"]), verdict)
    return _Known(json.loads(first[0]), int(db.execute(PULLS).fetchone()[0]), None)


def _with_race(
    path: Path, known: _Known, written: float, size: int, checkpoints: int
) -> ListedRace:
    verdict, settings = known.verdict or {}, known.created["settings"]
    state = FINISHED if verdict else RUNNING if files.is_held(path) else INTERRUPTED
    return ListedRace(
        str(path), state, written, size, checkpoints, tuple(map(str, known.created["names"])),
        known.pulls, settings.get("budget"), settings.get("seconds"), verdict.get("name"),
        verdict.get("score"), bool(verdict.get("certified")),
    )  # fmt: skip


# --- what it takes on disk ---


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
    """What was removed beside one journal."""

    path: str
    bytes: int
    learners: int


def clean(folder: Place) -> Iterator[Cleaned]:
    """Remove the checkpoints of all but the winners, of the finished races in a folder.

    A race that runs, is interrupted or cannot be read keeps all of its own. A learner without a
    checkpoint is trained again, should its race ever be given more.
    """
    for race in list_races(folder):
        path = Path(race.path)
        if race.state == FINISHED and race.winner in race.learners and race.checkpoint_bytes:
            try:
                with closing(
                    files.take_lock(path.absolute())
                ):  # so that nobody goes on with it meanwhile
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
