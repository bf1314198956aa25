"""Recorded curves from files.

=============  ==================================================================================
``.npz``       one 1-D array per arm, named as the arm, in the order of an optional array of names
               called ``order``; or a table ``curves`` (arms, pulls) with optional ``names``;
               ``curves`` (arms, runs, pulls) are several runs of the same arms
``.csv``       a header of arm names, then one row per pull, one column per arm; a column ``pull``,
               which must count 1, 2, ..., is optional
``.parquet``   the same columns
=============  ==================================================================================

A column named ``epoch``, ``step``, ``iteration`` or ``index``, or without a name, numbers the rows
and is not an arm; its numbers must rise. All arms have the same number of pulls, all values are
finite, and there are at least two arms.
"""

import csv
import math
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from latebloomer.errors import CurveError, extra, unknown
from latebloomer.problems.noise import Noise
from latebloomer.problems.problem import Problem

Columns: TypeAlias = dict[str, Any]  # means by name of the arm
# Columns that number the rows; pandas uses the last two for an index without a name.
COUNTERS = ("epoch", "step", "iteration", "index", "", "unnamed: 0", "__index_level_0__")


def load(path: str | Path, noise: Noise | float | None = None) -> Problem:
    """Return the problem recorded in a file; the ending of the file name decides the layout.

    Rewards are the recorded values themselves. If `noise` is set, the values are the means of
    rewards.

    Parameters
    ----------
    path : str | Path
        Path of a .npz, .csv or .parquet file.
    noise : Noise | float | None
        Noise, or the standard deviation of Gaussian noise. Default: no noise.

    Returns
    -------
    Problem
        Problem with one arm per curve.

    Raises
    ------
    CurveError
        The file is missing or not in a known layout.
    """
    runs = load_runs(path, noise)
    if len(runs) > 1:
        raise CurveError(
            f"{path}: {len(runs)} runs of each arm, but a problem has one curve of each; "
            "`latebloomer bench` takes runs"
        )
    return runs[0]


def load_runs(path: str | Path, noise: Noise | float | None = None) -> list[Problem]:
    """Return the runs recorded in a file; each is a problem with the same arms."""
    path = Path(path)
    if path.suffix not in READERS:
        raise unknown("layout of curves", path.suffix or path.name, READERS)
    if not path.is_file():
        raise CurveError(f"{path}: there is no such file")
    runs = _by_run(path, _without_counters(path, READERS[path.suffix](path)))
    try:
        return [Problem([*run.values()], noise, [*run], path.stem) for run in runs]
    except CurveError as error:
        raise CurveError(f"{path}: {error}") from None


def _by_run(path: Path, columns: Columns) -> list[Columns]:
    counts = {len(values) for values in columns.values() if np.ndim(values) == 2}
    if not counts:
        return [columns]
    if len(counts) > 1 or any(np.ndim(values) != 2 for values in columns.values()):
        raise CurveError(f"{path}: every arm must have as many runs")
    return [{name: values[run] for name, values in columns.items()} for run in range(*counts)]


def _read_npz(path: Path) -> Columns:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise CurveError(f"{path}: not an .npz of plain arrays ({error})") from error
    if "curves" in arrays:
        return _table(path, arrays)
    order = [str(name) for name in arrays.pop("order", np.array([*arrays]))]
    missing = [name for name in order if name not in arrays]
    if missing:
        raise CurveError(f"{path}: its `order` names {missing[0]!r}, which is not in the file")
    return {name: arrays[name] for name in order}


def _table(path: Path, arrays: Columns) -> Columns:
    curves = arrays["curves"]
    if curves.ndim not in (2, 3):
        raise CurveError(
            f"{path}: `curves` has shape {curves.shape}, but must be (arms, pulls) or "
            "(arms, runs, pulls)"
        )
    names = arrays.get("names", [f"arm {arm}" for arm in range(len(curves))])
    if len({str(name) for name in names}) != len(curves):
        raise CurveError(f"{path}: `names` must hold {len(curves)} different names, one per arm")
    return {str(name): curve for name, curve in zip(names, curves, strict=True)}


def _read_csv(path: Path) -> Columns:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    if len(set(header)) < len(header):
        raise CurveError(f"{path}: two columns of its header have the same name")
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise CurveError(f"{path}: line {line} has {len(row)} cells for {len(header)} columns")
    cells = {name: [row[column] for row in rows] for column, name in enumerate(header)}
    return {name: _numbers(path, name, c) for name, c in cells.items()}


def _numbers(path: Path, name: str, cells: list[str]) -> list[float]:
    numbers = []
    for pull, cell in enumerate(cells, start=1):
        try:
            numbers.append(float(cell) if cell.strip() else None)
        except ValueError:
            where = f"{path}: {cell!r} of {name!r} at pull {pull}"
            raise CurveError(f"{where} is not a number") from None
    return _until_null(numbers)


def _read_parquet(path: Path) -> Columns:
    parquet = extra("pyarrow.parquet", "Parquet files", "parquet")
    try:
        columns = parquet.read_table(path).to_pydict()
    except (ValueError, OSError) as error:
        raise CurveError(f"{path}: not a Parquet file ({error})") from error
    return {name: _until_null(values) for name, values in columns.items()}


def _until_null(values: list[Any]) -> list[Any]:
    """Return values without the nulls at the end; other nulls become NaN.

    If an arm is shorter than others, `Problem` raises an error that says where each arm ends.
    """
    while values and values[-1] is None:
        values = values[:-1]
    return [math.nan if value is None else value for value in values]


def _without_counters(path: Path, columns: Columns) -> Columns:
    """Return only the arms: check and omit columns that number the rows."""
    pulls = columns.get("pull")
    if pulls is not None and [*pulls] != [*range(1, len(pulls) + 1)]:
        raise CurveError(f"{path}: the column 'pull' must count 1, 2, ..., one row per pull")
    counters = [name for name in columns if name.strip().lower() in COUNTERS]
    for name in counters:
        if not all(before < after for before, after in pairwise(columns[name])):
            raise CurveError(
                f"{path}: the column {name!r} numbers the rows, so its numbers must rise; a "
                "learner needs another name"
            )
    return {name: columns[name] for name in columns if name not in (*counters, "pull")}


READERS = {".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet}
