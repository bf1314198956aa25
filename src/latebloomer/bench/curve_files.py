"""A user's own curves: every file of a folder is a problem, each subfolder a set.

Layouts are those of `latebloomer.problems.recorded`: a ``.csv`` or ``.parquet`` with one column
per learner and one row per pull, or an ``.npz`` with one array per learner (or a table
``curves``); and journals of finished races. Runs of the same learners are one problem: an
``.npz`` whose ``curves`` are (learners, runs, pulls), or files ``name.run1.csv``,
``name.run2.csv`` and so on. Higher is better. Files that cannot be used are skipped and reported.
"""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import numpy as np

from latebloomer.bench.curve_sets import Curves, Skipped
from latebloomer.errors import CurveError, LatebloomerError
from latebloomer.problems import Problem
from latebloomer.problems.curves import Floats
from latebloomer.problems.recorded import READERS, load_runs
from latebloomer.racing.journal.files import read
from latebloomer.session.events import FAILED, Created, Decided, Joined, LearnerLeft, ScoreReported

SHORTEST = 4  # pulls
RUN = re.compile(r"(.+)\.run(\d+)")  # the stem of a file that holds one run
SQLITE = b"SQLite format 3\x00"  # how every journal begins
COMPANIONS = ("-wal", "-shm", ".lock")  # endings of files that a journal leaves next to it
CHECKPOINTS = ".checkpoints"  # ending of the folder that it leaves next to it


def read_folder(folder: Path, sigma: float | None = None) -> tuple[list[Curves], list[Skipped]]:
    """Return the problems of a folder, and what was skipped.

    Parameters
    ----------
    folder : Path
        Folder with a file for each past race.
    sigma : float | None
        Standard deviation of noise that is added. Default: no noise.

    Returns
    -------
    tuple
        Problems, and what was skipped with its reason.

    Raises
    ------
    CurveError
        There is no such folder, or no file in it can be used.
    """
    if not folder.is_dir():
        raise CurveError(f"{folder}: there is no such folder")
    found: list[Curves] = []
    skipped: list[Skipped] = []
    for name, paths in files_by_problem(folder).items():
        try:
            found.append(_problem(folder, name, paths, sigma))
        except LatebloomerError as error:
            why = str(error).removeprefix(str(paths[0])).lstrip(": ")
            skipped.append(Skipped(str(name.relative_to(folder)), why))
    if not found:
        shown = "; ".join(f"{what}: {why}" for what, why in skipped[:5]) or "it is empty"
        more = f"; and {len(skipped) - 5} more" if len(skipped) > 5 else ""
        raise CurveError(f"{folder}: no curves in it that can be used: {shown}{more}")
    return found, skipped


def files_by_problem(folder: Path) -> dict[Path, list[Path]]:
    """Return the files of each problem; files of its runs, in their order, under one name."""
    found: dict[Path, list[tuple[int, Path]]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not _belongs_to_a_journal(path.relative_to(folder)):
            run = RUN.fullmatch(path.stem) if path.suffix in READERS else None
            name = path.with_name(run[1] + path.suffix) if run else path
            found.setdefault(name, []).append((int(run[2]) if run else 0, path))
    return {name: [path for _, path in sorted(runs)] for name, runs in found.items()}


def _belongs_to_a_journal(path: Path) -> bool:
    return path.name.endswith(COMPANIONS) or any(
        folder.name.endswith(CHECKPOINTS) for folder in path.parents
    )


def _problem(folder: Path, name: Path, paths: list[Path], sigma: float | None) -> Curves:
    runs, note = _runs(paths)
    pulls = runs.shape[2]
    if pulls < SHORTEST:
        plural = "" if pulls == 1 else "s"
        raise CurveError(f"{paths[0]}: {pulls} pull{plural}, but a race needs at least {SHORTEST}")
    inside = name.parent.relative_to(folder)
    group = folder.resolve().name if inside == Path() else str(inside)
    if runs.shape[1] > 1:
        return Curves(group, name.name, runs.mean(axis=1), runs=runs, note=note)
    return Curves(group, name.name, runs[:, 0], sigma, note=note)


def _runs(paths: list[Path]) -> tuple[Floats, str]:
    """Return rewards (learners, runs, pulls), and a note on them."""
    first = paths[0]
    try:
        if first.suffix not in READERS:
            return read_journal(first)
        problems = [problem for path in paths for problem in load_runs(path)]
    except (OSError, UnicodeDecodeError, ArithmeticError) as error:
        raise CurveError(f"{first}: cannot be read ({error})") from error
    for problem in problems:
        _need_same(first, problems[0], problem)
    return np.stack([problem.curves for problem in problems], axis=1), ""


def _need_same(path: Path, first: Problem, other: Problem) -> None:
    """Raise an error unless two runs have the same learners and length."""
    if first.names != other.names:
        raise CurveError(f"{path}: {other.label} holds other learners than {first.label}")
    if first.length != other.length:
        raise CurveError(
            f"{path}: runs of unequal length: {first.length} pulls in {first.label}, "
            f"{other.length} in {other.label}"
        )


def read_journal(path: Path) -> tuple[Floats, str]:
    """Return the rewards (learners, 1, pulls) of a finished race, and a note.

    Curves end where the first of them ends. Learners that failed are left out.
    """
    with path.open("rb") as file:
        if file.read(len(SQLITE)) != SQLITE:
            raise CurveError(f"{path}: not a file of curves ({', '.join(READERS)}) or a journal")
    with closing(read(path)) as journal:
        events = [entry.event for entry in journal.read()]
    if not any(isinstance(event, Decided) for event in events):
        raise CurveError(f"{path}: the race is not finished")
    created = next(event for event in events if isinstance(event, Created))
    sign = 1.0 if created.settings.get("maximize", True) else -1.0
    names = [*created.names, *(event.name for event in events if isinstance(event, Joined))]
    curves: dict[str, list[float]] = {name: [] for name in names}
    for event in events:
        if isinstance(event, ScoreReported):
            curves[names[event.arm]].append(sign * event.score)
    left = [event for event in events if isinstance(event, LearnerLeft) and event.how == FAILED]
    failed = [names[arm] for arm in sorted({event.arm for event in left})]
    for name in failed:
        del curves[name]
    if len(curves) < 2:
        raise CurveError(f"{path}: {len(curves)} of its learners did not fail, but 2 are needed")
    shortest, longest = (pick(curves, key=lambda name: len(curves[name])) for pick in (min, max))
    known, most = len(curves[shortest]), len(curves[longest])
    notes = []
    if known < most:
        notes.append(
            f"learners are compared at pull {known}, up to which all are known: {shortest!r} was "
            f"trained no further, another up to {most}"
        )
    if failed:
        notes.append(f"without {', '.join(failed)}, which failed")
    rewards = np.array([[scores[:known]] for scores in curves.values()])
    return rewards, "; ".join(notes)
