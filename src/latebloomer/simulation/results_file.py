"""The results file: one JSON object, compressed if its name ends in .gz.

======== =======================================================================================
format   "latebloomer results"
edition  1; another number means other fields
origin   problem (label), arms (names), noise, opening (sha256 of the first means), seed
versions of the library that made the runs
targets  on which they ran
changes  [horizon, arm that is best from there on]
cells    one for each policy and budget, see below
pairs    one for each two policies that played the same runs, at each budget
======== =======================================================================================

Cells and pairs have the fields of `Cell` and `Pair` in `counts.py`. All counts and sums are exact
whole numbers, some beyond 2^53; regrets are in units of 2^unit. `ranges` lists [first, last) of
the runs covered; `pulls` lists for each arm [pulls, how many runs had so many]. Equal results are
equal bytes, whatever chunks, machines or merges they came from.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

from latebloomer.errors import ResultsError
from latebloomer.simulation.counts import Cell, Pair
from latebloomer.simulation.histogram import Histogram
from latebloomer.simulation.results import File, Origin, Results
from latebloomer.simulation.run_ranges import as_ranges

FORMAT = "latebloomer results"
EDITION = 1


def write(results: Results, path: File) -> None:
    """Write beside `path`, then move there: whatever happens, the old or the new file is whole."""
    target = Path(path)
    data = json.dumps(as_document(results), separators=(",", ":")).encode()
    if target.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            _write_through(file, data)
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def read(path: File) -> Results:
    """The results in a file, or an error that says why they cannot be read."""
    data = Path(path).read_bytes()
    try:
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (ValueError, EOFError, OSError) as error:
        raise ResultsError(f"{path} is not a results file: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ResultsError(f"{path} is not a results file: `Results.save` did not write it")
    if document.get("edition") != EDITION:
        raise ResultsError(
            f"{path} has edition {document.get('edition')} of the results format, but this "
            f"version reads {EDITION}: install the latebloomer that wrote it"
        )
    try:
        return from_document(document)
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(f"{path} is damaged: {type(error).__name__} {error}") from error


def as_document(results: Results) -> dict[str, Any]:
    """Results as plain lists and dictionaries."""
    return {
        "format": FORMAT,
        "edition": EDITION,
        "origin": dataclasses.asdict(results.origin),
        "versions": results.versions,
        "targets": results.targets,
        "changes": results.changes,
        "cells": [
            _fields(cell) | {"pulls": [arm.pairs() for arm in cell.pulls]}
            for cell in results.cells
        ],
        "pairs": [_fields(pair) for pair in results.pairs],
    }


def from_document(document: dict[str, Any]) -> Results:
    """The inverse of `as_document`."""
    origin = document["origin"]
    return Results(
        Origin(**{**origin, "arms": tuple(origin["arms"])}),
        tuple(document["versions"]),
        tuple(document["targets"]),
        tuple((int(horizon), int(arm)) for horizon, arm in document["changes"]),
        tuple(map(_cell, document["cells"])),
        tuple(Pair(**{**pair, "ranges": as_ranges(pair["ranges"])}) for pair in document["pairs"]),
    )


def _fields(part: Cell | Pair) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}


def _cell(found: dict[str, Any]) -> Cell:
    cell = Cell(
        **{
            **found,
            "ranges": as_ranges(found["ranges"]),
            "recommendations": tuple(found["recommendations"]),
            "pulls": tuple(map(Histogram.from_pairs, found["pulls"])),
        }
    )
    totals = {cell.runs, sum(cell.recommendations), *(arm.count() for arm in cell.pulls)}
    if len(totals) > 1:
        raise ValueError(f"the counts of {cell.policy} at budget {cell.budget} do not add up")
    return cell


def _write_through(file: BinaryIO, data: bytes) -> None:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
