"""Scores in a file that a program writes while it runs: rows of CSV, lines of JSON."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from latebloomer.errors import LearnerError, SettingError
from latebloomer.programs.score_reader import Score


class ScoreFile:
    """Follows a file and returns the scores of its new rows."""

    def __init__(self, where: str, name: str, step: str | None, cwd: str | None) -> None:
        path, _, column = where.rpartition(":")
        if not path:
            path, column = where, name
        self.path = Path(cwd or ".") / path
        if self.path.suffix not in (".csv", ".tsv", ".jsonl", ".json", ".ndjson"):
            raise SettingError(
                f"score_file={where!r}, but score_file must be a .csv or .jsonl file and a "
                "column, as in 'metrics.csv:val_acc'"
            )
        self.column, self._step = column, step
        self.restart()

    def restart(self) -> None:
        """Read from the file's present end: earlier rows are of an earlier program."""
        self._header: list[str] | None = None
        self._begun = b""
        self._at = 0
        for _ in self.new():  # the header, and rows that are there
            pass

    def new(self) -> Iterator[Score]:
        """Yield the scores of rows that are complete since the last call."""
        try:
            with self.path.open("rb") as file:
                if file.seek(0, 2) < self._at:  # written from its start again
                    self._at, self._begun, self._header = 0, b"", None
                file.seek(self._at)
                data = file.read()
        except OSError:  # the program has not made it yet
            return
        self._at += len(data)
        *rows, self._begun = (self._begun + data).split(b"\n")
        for row in rows:
            cells = self._cells(row.decode("utf-8", "replace").strip())
            if cells is not None and (score := self._score(cells)) is not None:
                yield score

    def _cells(self, row: str) -> dict[str, Any] | None:
        if not row:
            return None
        if self.path.suffix not in (".csv", ".tsv"):
            try:
                cells = json.loads(row)
            except ValueError:
                return None
            return cells if isinstance(cells, dict) else None
        cells = next(csv.reader([row], delimiter="\t" if self.path.suffix == ".tsv" else ","))
        if self._header is None:
            self._header = [name.strip() for name in cells]
            if self.column not in self._header:
                known = ", ".join(self._header)
                raise LearnerError(f"{self.path} has no column {self.column!r}. It has: {known}.")
            return None
        return dict(zip(self._header, cells, strict=False))

    def _score(self, cells: dict[str, Any]) -> Score | None:
        value = cells.get(self.column)
        if value is None or value == "":  # other rows of the same file
            return None
        try:
            step = None if self._step is None else int(float(cells[self._step]))
            return Score(float(value), step)
        except (KeyError, TypeError, ValueError):
            raise LearnerError(
                f"a row of {self.path} has {self.column}={value!r} and {self._step}="
                f"{cells.get(self._step or '')!r}, but both must be numbers"
            ) from None
