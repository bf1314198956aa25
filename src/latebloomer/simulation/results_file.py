"""The results file, and results that grow in it while they are made.

The file is one JSON object, compressed if its name ends in .gz:

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
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from time import monotonic
from typing import Any

from latebloomer._util.atomic_files import File, need_writable, write_file
from latebloomer.errors import ResultsError
from latebloomer.policies.registry import rank
from latebloomer.simulation.counts import (
    SETTINGS,
    Cell,
    Counts,
    Histogram,
    Pair,
    Ranges,
    missing_ranges,
    read_ranges,
)
from latebloomer.simulation.experiment import CountedRuns, Experiment, MissingRuns
from latebloomer.simulation.results import Origin, Results

FORMAT = "latebloomer results"
EDITION = 1
EVERY = 15.0  # seconds of work that a kill may cost
SHARE = 20  # times what writing takes are worked before the next: 5 % for large results at most


def write(results: Results, path: File) -> None:
    """Write the file, compressed if its name ends in .gz; the old one stays until it is whole."""
    data = json.dumps(as_document(results), separators=(",", ":")).encode()
    write_file(path, gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)


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
        tuple(
            Pair(**{**pair, "ranges": read_ranges(pair["ranges"])}) for pair in document["pairs"]
        ),
    )


def _fields(of: Cell | Pair) -> dict[str, Any]:
    return {field.name: getattr(of, field.name) for field in dataclasses.fields(of)}


def _cell(found: dict[str, Any]) -> Cell:
    cell = Cell(
        **{
            **found,
            "ranges": read_ranges(found["ranges"]),
            "recommendations": tuple(found["recommendations"]),
            "pulls": tuple(map(Histogram.from_pairs, found["pulls"])),
        }
    )
    totals = {cell.runs, sum(cell.recommendations), *(arm.count() for arm in cell.pulls)}
    if len(totals) > 1:
        raise ValueError(f"the counts of {cell.policy} at budget {cell.budget} do not add up")
    return cell


# --- results that grow ---


class GrowingResults:
    """What a simulation has found so far, in memory and, where `out` names one, in a file.

    A file that exists already is gone on with: what it lacks is played, what it has is not.
    """

    def __init__(self, blank: Results, out: File | None) -> None:
        self.results = self._blank = blank
        self._path = None if out is None else Path(out)
        if self._path is not None:
            self.results = _found_in(self._path, blank)
        self._saved = self.results
        self._next_save = monotonic() + EVERY

    def missing(
        self, experiments: Sequence[Experiment], first: int, last: int
    ) -> list[MissingRuns]:
        """What of the runs [first, last) is missing; an error where the file has other ones."""
        for experiment in experiments:
            self._check(experiment)
        missing = [runs for one in experiments for runs in self._missing(one, first, last)]
        if missing and self._path is not None:
            need_writable(self._path)  # rather than after hours of work
        return missing

    def gather(self, counted: CountedRuns) -> None:
        """Add what was found; whatever ends it early, the file has all that came."""
        try:
            for runs, counts in counted:
                self.add(runs, counts)
        finally:
            self.save()

    def add(self, runs: MissingRuns, counts: Counts) -> None:
        """Count what was found and not known before; write it when it is time."""
        if counts.cells:
            new = counts.only(runs.policies, runs.pairs)
            made = self._blank.with_counts(new, runs.experiment.means.changes)
            self.results = made if self.results is self._blank else self.results.merge(made)
        if monotonic() > self._next_save:
            self.save()

    def save(self) -> None:
        """Write the file, unless it has all that is known."""
        if self._path is not None and self.results is not self._saved:
            began, new = monotonic(), self.results
            new.save(self._path)
            self._saved = new
            self._next_save = monotonic() + max(EVERY, SHARE * (monotonic() - began))

    def _missing(self, experiment: Experiment, first: int, last: int) -> Iterator[MissingRuns]:
        """Ranges of runs, each with the policies and pairs that lack it."""
        budget, labels = experiment.budget, sorted(experiment.policies, key=rank)
        if not self.results.cells:  # as in most calls
            pairs_of_all = frozenset(combinations(labels, 2))
            yield MissingRuns(experiment, first, last, frozenset(labels), pairs_of_all)
            return
        cells = {
            label: _holes(self.results.find_cell(label, budget), first, last) for label in labels
        }
        pairs = {
            two: _holes(self._pair(*two, budget), first, last) for two in combinations(labels, 2)
        }
        ends = {n for holes in (*cells.values(), *pairs.values()) for n in sum(holes, ())}
        for start, end in pairwise(sorted(ends)):
            alone = frozenset(label for label, holes in cells.items() if _covers(holes, start))
            both = frozenset(two for two, holes in pairs.items() if _covers(holes, start))
            if alone or both:
                needed = experiment.only(alone.union(*both))
                yield MissingRuns(needed, start, end, alone, both)

    def _pair(self, one: str, other: str, budget: int) -> Pair | None:
        found = self.results.find_pairs(one, other)
        return next((pair for pair in found if pair.budget == budget), None)

    # --- what must agree ---

    def _check(self, experiment: Experiment) -> None:
        if not self.results.cells:
            return
        for new in experiment.tally().cells():
            old = self.results.find_cell(new.policy, new.budget)
            if old is not None:
                self._need_same(old, new)
                self._need_company(old, experiment)

    def _need_same(self, old: Cell, new: Cell) -> None:
        for name in SETTINGS:
            ours, theirs = getattr(new, name), getattr(old, name)
            if ours != theirs:
                what = "the sha256 of the means" if name == "means" else name
                raise ResultsError(
                    f"{self._path} has {new.policy} at budget {new.budget} with {what} {theirs}, "
                    f"but this call has {ours}: give another file, or ask for the same"
                )

    def _need_company(self, old: Cell, experiment: Experiment) -> None:
        """By sums the luck depends on the policies that are played together."""
        met = {old.policy}
        for pair in self.results.pairs:
            if pair.budget == old.budget and old.policy in (pair.first, pair.second):
                met |= {pair.first, pair.second}
        if old.method == "sums" and met != set(experiment.policies):
            raise ResultsError(
                f"{self._path} has {', '.join(sorted(met, key=rank))} at budget {old.budget} by "
                f"sums, but this call has {', '.join(sorted(experiment.policies, key=rank))}: by "
                "sums the luck depends on which policies are played together, so ask for the "
                "same ones, or give another file"
            )


def _found_in(path: Path, blank: Results) -> Results:
    """What the file has; nothing is written yet."""
    if not path.is_file():
        return blank
    found = read(path)
    ours, theirs = dataclasses.asdict(blank.origin), dataclasses.asdict(found.origin)
    for name, value in ours.items():
        if value != theirs[name]:
            what = "first means (sha256)" if name == "opening" else name
            raise ResultsError(
                f"{path} has results with {what} {theirs[name]!r}, but this call has {value!r}: "
                "give another file, or ask for the same"
            )
    return found


def _holes(found: Cell | Pair | None, first: int, last: int) -> Ranges:
    return missing_ranges(() if found is None else found.ranges, first, last)


def _covers(ranges: Ranges, run: int) -> bool:
    return any(first <= run < last for first, last in ranges)
