"""A user's own curves: every file of a folder is a problem, each subfolder a set.

Layouts are those of `latebloomer.problems.recorded`: a ``.csv`` or ``.parquet`` with one column
per learner and one row per pull, or an ``.npz`` with one array per learner (or a table
``curves``); and finished journals of this library. Runs of the same learners are one problem: an
``.npz`` whose ``curves`` are (learners, runs, pulls), or files ``name.run1.csv``,
``name.run2.csv`` and so on. Higher is better. What cannot be used is skipped and said, file by
file.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from latebloomer.bench.curve_sets import Curves, Skipped
from latebloomer.bench.journal_curves import is_beside_a_journal, is_journal, read_journal
from latebloomer.errors import CurveError, LatebloomerError
from latebloomer.problems import Problem
from latebloomer.problems.curves import Floats
from latebloomer.problems.recorded import READERS, load_runs

SHORTEST = 4  # pulls
RUN = re.compile(r"(.+)\.run(\d+)")  # the stem of a file that holds one run


def read_folder(folder: Path, sigma: float | None = None) -> tuple[list[Curves], list[Skipped]]:
    """The problems of a folder, and what was skipped.

    Parameters
    ----------
    folder : Path
        With a file for each past race.
    sigma : float | None
        Standard deviation of noise that is added; none if None.

    Returns
    -------
    tuple
        Problems, and what was skipped with its reason.
    """
    if not folder.is_dir():
        raise CurveError(f"{folder}: there is no such folder")
    found: list[Curves] = []
    skipped: list[Skipped] = []
    for name, paths in files_by_problem(folder).items():
        try:
            found.append(_problem(folder, name, paths, sigma))
        except LatebloomerError as error:
            why = str(error).removeprefix(f"{paths[0]}: ")
            skipped.append(Skipped(str(name.relative_to(folder)), why))
    if not found:
        raise CurveError(f"{folder}: no curves in it that can be used{_reasons(skipped)}")
    return found, skipped


def files_by_problem(folder: Path) -> dict[Path, list[Path]]:
    """The files of each problem; those of its runs, in their order, under one name."""
    found: dict[Path, list[tuple[int, Path]]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not is_beside_a_journal(path.relative_to(folder)):
            run = RUN.fullmatch(path.stem) if path.suffix in READERS else None
            name = path.with_name(run[1] + path.suffix) if run else path
            found.setdefault(name, []).append((int(run[2]) if run else 0, path))
    return {name: [path for _, path in sorted(runs)] for name, runs in found.items()}


def _problem(folder: Path, name: Path, paths: list[Path], sigma: float | None) -> Curves:
    runs, note = _runs(paths)
    pulls = runs.shape[2]
    if pulls < SHORTEST:
        raise CurveError(f"{paths[0]}: {pulls} pulls, but a race needs at least {SHORTEST}")
    inside = name.parent.relative_to(folder)
    group = folder.resolve().name if inside == Path() else str(inside)
    if runs.shape[1] > 1:
        return Curves(group, name.name, runs.mean(axis=1), runs=runs, note=note)
    return Curves(group, name.name, runs[:, 0], sigma, note=note)


def _runs(paths: list[Path]) -> tuple[Floats, str]:
    """Rewards (learners, runs, pulls), and what is to be said of them."""
    try:
        if paths[0].suffix not in READERS and is_journal(paths[0]):
            curves, note = read_journal(paths[0])
            return curves[:, None], note
        problems = [problem for path in paths for problem in _recorded(path)]
    except (OSError, UnicodeDecodeError, ArithmeticError) as error:
        raise CurveError(f"{paths[0]}: cannot be read ({error})") from error
    for problem in problems:
        _need_same(paths[0], problems[0], problem)
    return np.stack([problem.curves for problem in problems], axis=1), ""


def _recorded(path: Path) -> list[Problem]:
    if path.suffix not in READERS:
        kinds = ", ".join(READERS)
        raise CurveError(f"{path}: no file of curves ({kinds}) and no journal")
    return load_runs(path)


def _need_same(path: Path, first: Problem, other: Problem) -> None:
    """Runs are of the same learners, and as long."""
    if first.names != other.names:
        raise CurveError(f"{path}: {other.label} holds other learners than {first.label}")
    if first.length != other.length:
        raise CurveError(
            f"{path}: runs of unequal length: {first.length} pulls in {first.label}, "
            f"{other.length} in {other.label}"
        )


def _reasons(skipped: list[Skipped]) -> str:
    if not skipped:
        return ": it is empty"
    shown = "; ".join(f"{what}: {why}" for what, why in skipped[:5])
    return f": {shown}" + (f"; and {len(skipped) - 5} more" if len(skipped) > 5 else "")
