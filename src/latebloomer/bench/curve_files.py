"""A user's own curves: every file of a folder is a problem, each subfolder a set.

Layouts are those of `latebloomer.problems.recorded`: a ``.csv`` or ``.parquet`` with one column
per arm and one row per pull, or an ``.npz`` with one array per arm (or a table ``curves``). Higher
is better. What cannot be used is skipped and said, file by file.
"""

from __future__ import annotations

from pathlib import Path

from latebloomer.bench.curve_sets import Curves, Skipped
from latebloomer.errors import CurveError, LatebloomerError
from latebloomer.problems.recorded import READERS, load

SHORTEST = 4  # pulls


def read_folder(folder: Path, sigma: float | None = None) -> tuple[list[Curves], list[Skipped]]:
    """The problems of a folder, and what was skipped."""
    if not folder.is_dir():
        raise CurveError(f"{folder}: there is no such folder")
    found: list[Curves] = []
    skipped: list[Skipped] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            found.append(_problem(folder, path, sigma))
        except LatebloomerError as error:
            why = str(error).removeprefix(f"{path}: ")
            skipped.append(Skipped(str(path.relative_to(folder)), why))
    if not found:
        raise CurveError(f"{folder}: no curves in it that can be used{_reasons(skipped)}")
    return found, skipped


def _problem(folder: Path, path: Path, sigma: float | None) -> Curves:
    if path.suffix not in READERS:
        raise CurveError(f"{path}: no file of curves ({', '.join(READERS)})")
    try:
        problem = load(path)
    except (OSError, UnicodeDecodeError, ArithmeticError) as error:
        raise CurveError(f"{path}: cannot be read ({error})") from error
    if problem.length < SHORTEST:  # type: ignore[operator]
        raise CurveError(f"{path}: {problem.length} pulls, but a race needs at least {SHORTEST}")
    inside = path.parent.relative_to(folder)
    group = folder.resolve().name if inside == Path() else str(inside)
    return Curves(group, path.name, problem.curves, sigma)


def _reasons(skipped: list[Skipped]) -> str:
    if not skipped:
        return ": it is empty"
    shown = "; ".join(f"{what}: {why}" for what, why in skipped[:5])
    return f": {shown}" + (f"; and {len(skipped) - 5} more" if len(skipped) > 5 else "")
