"""Problems from a user's own folder: each file is a problem, and each subfolder is a set.

Layouts are those of `latebloomer.problems.recorded`: a ``.csv`` or ``.parquet`` with one column
per learner and one row per pull, or an ``.npz`` with one array per learner (or a table
``curves``); and journals of finished races. Runs of the same learners are one problem: an ``.npz``
whose ``curves`` are (learners, runs, pulls), or files ``name.run1.csv``, ``name.run2.csv`` and so
on. Higher is better. Files that cannot be used are skipped and reported.
"""

import re
from contextlib import closing
from pathlib import Path

import numpy as np

from latebloomer.bench.curves import Curves, Skipped
from latebloomer.errors import CurveError, LatebloomerError
from latebloomer.policies.plan_text import counted
from latebloomer.problems.curves import Floats
from latebloomer.problems.recorded import READERS, load_runs
from latebloomer.racing.journal.files import read
from latebloomer.session.events import (
    FAILED,
    Created,
    Joined,
    LearnerLeft,
    RaceFinished,
    ScoreReported,
)

SHORTEST = 4  # pulls
RUN = re.compile(r"(.+)\.run(\d+)")  # stem of the name of a file with one run
SQLITE = b"SQLite format 3\x00"  # first bytes of every journal
COMPANIONS = ("-wal", "-shm", ".lock")  # endings of files that a journal leaves next to it
CHECKPOINTS = ".checkpoints"  # ending of the folder of checkpoints next to a journal


def read_folder(folder: Path, sigma: float | None = None) -> tuple[list[Curves], list[Skipped]]:
    """Return the problems of a folder, and what was skipped.

    Parameters
    ----------
    folder : Path
        Folder with a file for each problem.
    sigma : float | None
        Standard deviation of noise that is added. Default: no noise.

    Returns
    -------
    tuple
        Problems, and skipped files with their reasons.

    Raises
    ------
    CurveError
        The folder does not exist, or no file in it can be used.
    """
    if not folder.is_dir():
        raise CurveError(f"{folder}: there is no such folder")
    problems: list[Curves] = []
    skipped: list[Skipped] = []
    for name, paths in files_by_problem(folder).items():
        try:
            problems.append(_problem(folder, name, paths, sigma))
        except LatebloomerError as error:
            why = str(error).removeprefix(str(paths[0])).lstrip(": ")
            skipped.append(Skipped(str(name.relative_to(folder)), why))
    if not problems:
        shown = [f"{what}: {why}" for what, why in skipped[:5]] or ["it is empty"]
        shown += [f"and {len(skipped) - 5} more"] if len(skipped) > 5 else []
        raise CurveError(f"{folder}: no curves in it that can be used: {'; '.join(shown)}")
    return problems, skipped


def files_by_problem(folder: Path) -> dict[Path, list[Path]]:
    """Return the files of each problem by name; several runs of a problem are in order."""
    runs_by_name: dict[Path, list[tuple[int, Path]]] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        of_journal = any(part.endswith(CHECKPOINTS) for part in inside.parts[:-1])
        if path.is_file() and not path.name.endswith(COMPANIONS) and not of_journal:
            run = RUN.fullmatch(path.stem) if path.suffix in READERS else None
            name = path.with_name(run[1] + path.suffix) if run else path
            runs_by_name.setdefault(name, []).append((int(run[2]) if run else 0, path))
    return {name: [path for _, path in sorted(runs)] for name, runs in runs_by_name.items()}


def _problem(folder: Path, name: Path, paths: list[Path], sigma: float | None) -> Curves:
    runs, note = _runs(paths)
    pulls = runs.shape[2]
    if pulls < SHORTEST:
        raise CurveError(f"{paths[0]}: {counted(pulls)}, but a race needs at least {SHORTEST}")
    inside = name.parent.relative_to(folder)
    group = folder.resolve().name if inside == Path() else str(inside)
    if runs.shape[1] > 1:
        return Curves(group, name.name, runs.mean(axis=1), runs=runs, note=note)
    return Curves(group, name.name, runs[:, 0], sigma, note=note)


def _runs(paths: list[Path]) -> tuple[Floats, str]:
    """Return rewards (learners, runs, pulls), and a note about them."""
    path = paths[0]
    try:
        if path.suffix not in READERS:
            return read_journal(path)
        first, *others = runs = [run for file in paths for run in load_runs(file)]
    except (OSError, UnicodeDecodeError, ArithmeticError) as error:
        raise CurveError(f"{path}: cannot be read ({error})") from error
    for run in others:
        if first.names != run.names:
            raise CurveError(f"{path}: {run.label} holds other learners than {first.label}")
        if first.length != run.length:
            lengths = f"{first.length} pulls in {first.label}, {run.length} in {run.label}"
            raise CurveError(f"{path}: runs of unequal length: {lengths}")
    return np.stack([run.curves for run in runs], axis=1), ""


def read_journal(path: Path) -> tuple[Floats, str]:
    """Return the rewards (learners, 1, pulls) of a finished race, and a note.

    All curves are cut to the length of the shortest one. Failed learners are left out.
    """
    with path.open("rb") as file:
        if file.read(len(SQLITE)) != SQLITE:
            raise CurveError(f"{path}: not a file of curves ({', '.join(READERS)}) or a journal")
    with closing(read(path)) as journal:
        events = [entry.event for entry in journal.read()]
    if not any(isinstance(event, RaceFinished) for event in events):
        raise CurveError(f"{path}: the race is not finished")
    created = next(event for event in events if isinstance(event, Created))
    sign = 1.0 if created.settings.get("maximize", True) else -1.0
    names = [*created.names, *(event.name for event in events if isinstance(event, Joined))]
    departures = [
        event for event in events if isinstance(event, LearnerLeft) and event.how == FAILED
    ]
    failed = sorted({event.arm for event in departures})
    curves: dict[int, list[float]] = {arm: [] for arm in range(len(names)) if arm not in failed}
    for event in events:
        if isinstance(event, ScoreReported) and event.arm in curves:
            curves[event.arm].append(sign * event.score)
    if len(curves) < 2:
        raise CurveError(f"{path}: {len(curves)} of its learners did not fail, but 2 are needed")
    shortest = min(curves, key=lambda arm: len(curves[arm]))
    known, most = len(curves[shortest]), max(map(len, curves.values()))
    notes = []
    if known < most:
        notes.append(
            f"learners are compared at pull {known}, up to which all are known: "
            f"{names[shortest]!r} was trained no further, another up to {most}"
        )
    if failed:
        notes.append(f"without {', '.join(names[arm] for arm in failed)}, which failed")
    return np.array([[scores[:known]] for scores in curves.values()]), "; ".join(notes)
