"""The results file, which has all counts exactly.

The results file is one JSON object, compressed if its name ends in .gz:

======== =======================================================================================
format   "latebloomer results"
edition  2; another number means other fields
origin   problem (label), arms (names), noise, opening (sha256 of the first means), seed
versions of the library that made the runs
targets  on which they ran
changes  [horizon, arm that is best from there on]
cells    one for each policy and budget, see below
pairs    one for each two policies that had the same runs, at each budget
======== =======================================================================================

Cells and pairs have the fields of `Cell` and `Pair` in `counts.py`. All counts and sums are exact
integers, some beyond 2^53; regrets are in units of 2^unit. `ranges` lists the covered runs as
[first, last); `pulls` lists, for each arm, [pulls, number of runs with that number of pulls].
Equal results give equal bytes, whatever chunks, machines or merges produced them.
"""

import gzip
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latebloomer._util.atomic_files import File
from latebloomer.errors import ResultsError
from latebloomer.simulation.results.counts import Cell, Origin, Pair, Ranges, join_ranges

FORMAT, EDITION = "latebloomer results", 2


def document_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `Results` that a file stores, as plain lists and dictionaries."""
    cells = [
        vars(cell) | {"pulls": [sorted(arm.items()) for arm in cell.pulls]}
        for cell in fields["cells"]
    ]
    counted = {"cells": cells, "pairs": [*map(vars, fields["pairs"])]}
    head = {"format": FORMAT, "edition": EDITION}
    return head | dict(fields) | {"origin": vars(fields["origin"])} | counted


def fields_in_file(path: File) -> dict[str, Any]:
    """Return the fields of `Results` from a file that `Results.save` wrote."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        advice = "Give the file that `Results.save` or `simulate(..., out=...)` wrote."
        raise ResultsError(f"There is no file {path}. {advice}") from None
    try:
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        if document["format"] != FORMAT:
            raise ValueError("`Results.save` did not write it")
    except (ValueError, EOFError, OSError, TypeError, KeyError) as error:
        raise ResultsError(f"{path} is not a results file: {error}") from error
    if document.get("edition") != EDITION:
        raise ResultsError(
            f"{path} has edition {document.get('edition')} of the results format, but this "
            f"version reads {EDITION}. Install the latebloomer that wrote it."
        )
    try:
        return _fields_of(document)
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(f"{path} is damaged: {type(error).__name__} {error}") from error


def _fields_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `Results` from a document; the inverse of `document_of`."""
    origin = document["origin"]
    pairs = (Pair(**pair | {"ranges": _ranges(pair)}) for pair in document["pairs"])
    return {
        "origin": Origin(**origin | {"arms": tuple(origin["arms"])}),
        "versions": tuple(document["versions"]),
        "targets": tuple(document["targets"]),
        "changes": _pairs_of_integers(document["changes"]),
        "cells": tuple(map(_cell, document["cells"])),
        "pairs": tuple(pairs),
    }


def _cell(entry: dict[str, Any]) -> Cell:
    counts = {
        "ranges": _ranges(entry),
        "recommendations": tuple(entry["recommendations"]),
        "pulls": tuple(Counter(dict(_pairs_of_integers(arm))) for arm in entry["pulls"]),
    }
    cell = Cell(**entry | counts)
    totals = {cell.runs, sum(cell.recommendations), *(arm.total() for arm in cell.pulls)}
    if len(totals) > 1:
        raise ValueError(f"the counts of {cell.policy} at budget {cell.budget} do not add up")
    return cell


def _ranges(entry: dict[str, Any]) -> Ranges:
    return join_ranges(_pairs_of_integers(entry["ranges"]), (), "a results file")


def _pairs_of_integers(rows: Any) -> tuple[tuple[int, int], ...]:
    return tuple((int(first), int(second)) for first, second in rows)


def flat(value: Any) -> Any:
    """Return a value as a cell of a CSV file: lists as JSON."""
    return json.dumps(value) if isinstance(value, list) else value
