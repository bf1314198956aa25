"""Tidy tables: one row per algorithm and budget, the same columns for every figure."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints


class Row(NamedTuple):
    """An algorithm at a budget, over runs."""

    algorithm: str
    T: int
    sigma: float
    error: float
    error_low: float
    error_high: float
    regret: float
    regret_low: float
    regret_high: float
    runs: int
    mode: str
    pulls_best: float  # mean pulls of the arm that is best at T
    best: int  # that arm
    recommended: int  # the arm recommended most often
    factor: float = 1.0  # of R-UCBE's exploration parameter a
    panel: str = ""  # where a figure has several


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    """Write named tuples of one kind as CSV; the file is complete or not there."""
    beside = path.with_name(f"{path.name}.part")
    with beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0]._fields)
        writer.writerows(rows)
    os.replace(beside, path)


def read_rows(path: Path, kind: type[Any] = Row) -> list[Any]:
    """Read what `write_rows` wrote."""
    types = get_type_hints(kind)
    with path.open(newline="", encoding="utf-8") as file:
        return [
            kind(**{name: types[name](text) for name, text in line.items()})
            for line in csv.DictReader(file)
        ]


def select(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """The rows with these values: `select(rows, algorithm="RR", T=100)`."""
    return [row for row in rows if all(getattr(row, k) == v for k, v in wanted.items())]
