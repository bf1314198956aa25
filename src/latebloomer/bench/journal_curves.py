"""A finished race as a problem: the curves that its journal holds."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np

from latebloomer.errors import CurveError
from latebloomer.problems.curves import Floats
from latebloomer.racing.journal.files import read
from latebloomer.session.events import FAILED, Created, Decided, Event, LearnerLeft, ScoreReported

SQLITE = b"SQLite format 3\x00"  # how every journal begins
BESIDE = ("-wal", "-shm", ".lock", ".v1")  # files of a journal that hold no race of their own
CHECKPOINTS = ".checkpoints"


def is_journal(path: Path) -> bool:
    """Whether a file may be a journal: whether SQLite wrote it."""
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def is_beside_a_journal(path: Path) -> bool:
    """Whether a file is only there because a journal is."""
    folders = (folder.name for folder in path.parents)
    return path.name.endswith(BESIDE) or any(name.endswith(CHECKPOINTS) for name in folders)


def read_journal(path: Path) -> tuple[Floats, str]:
    """The rewards (learners, pulls) up to where all are known, and a note on what that leaves out.

    Learners that failed are left out. An unfinished race is an error.
    """
    with closing(read(path)) as journal:
        events = [entry.event for entry in journal.read()]
    if not any(isinstance(event, Decided) for event in events):
        raise CurveError(f"{path}: the race is not finished")
    curves, failed = _rewards(events)
    if len(curves) < 2:
        raise CurveError(f"{path}: {len(curves)} learner did not fail, but it takes two")
    known, longest = min(map(len, curves.values())), max(map(len, curves.values()))
    notes = []
    if known < longest:
        first = min(curves, key=lambda name: len(curves[name]))
        notes.append(
            f"learners are compared at pull {known}, up to which all are known: {first!r} was "
            f"trained no further, another up to {longest}"
        )
    if failed:
        notes.append(f"without {', '.join(failed)}, which failed")
    return np.array([rewards[:known] for rewards in curves.values()]), "; ".join(notes)


def _rewards(events: list[Event]) -> tuple[dict[str, list[float]], list[str]]:
    """The rewards of the learners that did not fail, and the names of those that did."""
    created = next(event for event in events if isinstance(event, Created))
    sign = 1.0 if created.settings.get("maximize", True) else -1.0
    told: list[list[float]] = [[] for _ in created.names]
    failed = set()
    for event in events:
        if isinstance(event, ScoreReported):
            told[event.arm].append(sign * event.score)
        elif isinstance(event, LearnerLeft) and event.how == FAILED:
            failed.add(event.arm)
    named = enumerate(created.names)
    kept = {name: told[arm] for arm, name in named if arm not in failed}
    return kept, [created.names[arm] for arm in sorted(failed)]
