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
pairs    one for each two policies that had the same runs, at each budget
======== =======================================================================================

Cells and pairs have the fields of `Cell` and `Pair` in `counts.py`. All counts and sums are exact
integers, some beyond 2^53; regrets are in units of 2^unit. `ranges` lists [first, last) of the
runs covered; `pulls` lists for each arm [pulls, number of runs that had that many]. Equal results
are equal bytes, whatever chunks, machines or merges they came from.
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
from latebloomer.simulation import counts as counting
from latebloomer.simulation.counts import Cell, Counts, Histogram, Pair
from latebloomer.simulation.experiment import CountedRuns, Experiment
from latebloomer.simulation.results import Origin, Results
from latebloomer.simulation.tally import Tally

FORMAT = "latebloomer results"
EDITION = 1
EVERY = 15.0  # seconds of work that a kill may cost
SHARE = 20  # work this many times as long as the last save took: at most 5 % for large results


def write(results: Results, path: File) -> None:
    """Write the file, compressed if its name ends in .gz; the old file stays until then."""
    data = json.dumps(as_document(results), separators=(",", ":")).encode()
    write_file(path, gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)


def read(path: File) -> Results:
    """Return the results in a file, or raise an error that says why they cannot be read."""
    data = Path(path).read_bytes()
    try:
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (ValueError, EOFError, OSError) as error:
        raise ResultsError(f"{path} is not a results file: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ResultsError(f"{path} is not a results file: `Results.save` did not write it.")
    if document.get("edition") != EDITION:
        raise ResultsError(
            f"{path} has edition {document.get('edition')} of the results format, but this "
            f"version reads {EDITION}. Install the latebloomer that wrote it."
        )
    try:
        return from_document(document)
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(f"{path} is damaged: {type(error).__name__} {error}") from error


def as_document(results: Results) -> dict[str, Any]:
    """Return results as plain lists and dictionaries."""
    return {
        "format": FORMAT,
        "edition": EDITION,
        "origin": dataclasses.asdict(results.origin),
        "versions": results.versions,
        "targets": results.targets,
        "changes": results.changes,
        "cells": [
            vars(cell) | {"pulls": [arm.pairs() for arm in cell.pulls]} for cell in results.cells
        ],
        "pairs": [vars(pair) for pair in results.pairs],
    }


def from_document(document: dict[str, Any]) -> Results:
    """Return the results of which `as_document` made the document."""
    origin = document["origin"]
    return Results(
        Origin(**origin | {"arms": tuple(origin["arms"])}),
        tuple(document["versions"]),
        tuple(document["targets"]),
        tuple((int(horizon), int(arm)) for horizon, arm in document["changes"]),
        tuple(map(_cell, document["cells"])),
        tuple(
            Pair(**pair | {"ranges": counting.read_ranges(pair["ranges"])})
            for pair in document["pairs"]
        ),
    )


def _cell(found: dict[str, Any]) -> Cell:
    read = {
        "ranges": counting.read_ranges(found["ranges"]),
        "recommendations": tuple(found["recommendations"]),
        "pulls": tuple(map(Histogram.from_pairs, found["pulls"])),
    }
    cell = Cell(**found | read)
    totals = {cell.runs, sum(cell.recommendations), *(arm.count() for arm in cell.pulls)}
    if len(totals) > 1:
        raise ValueError(f"the counts of {cell.policy} at budget {cell.budget} do not add up")
    return cell


# --- results that grow ---


class GrowingResults:
    """Hold what a simulation has found so far, in memory and, if `out` is given, in a file.

    If the file exists, only the runs that it lacks are simulated.
    """

    def __init__(self, blank: Results, out: File | None) -> None:
        self.results = self._blank = blank
        self._path = None if out is None else Path(out)
        if self._path is not None and self._path.is_file():
            self.results = read(self._path)
            ours, theirs = (dataclasses.asdict(one.origin) for one in (blank, self.results))
            counting.need_same(f"this simulation with {self._path}", ours, theirs)
        self._saved = self.results
        self._next_save = monotonic() + EVERY

    def missing(self, experiments: Sequence[Experiment]) -> list[Experiment]:
        """Return the experiments that are left; raise an error if the file has other settings."""
        if self.results.cells:
            for experiment in experiments:
                self._check(experiment)
        missing = [part for one in experiments for part in self._missing(one)]
        if missing and self._path is not None:
            need_writable(self._path)  # rather than after hours of work
        return missing

    def gather(self, counted: CountedRuns) -> None:
        """Add what was found; whatever ends it early, the file has all that came."""
        try:
            for experiment, counts in counted:
                self.add(experiment, counts)
        finally:
            self.save()

    def add(self, experiment: Experiment, counts: Counts) -> None:
        """Add the counts of runs that are not known yet; write them when it is time."""
        if counts.cells:
            known, run = self._known(experiment.budget), counts.cells[0].ranges[0][0]
            new = Counts(
                tuple(
                    one
                    for one in counts.cells
                    if not counting.covers(known.get(one.labels, ()), run)
                ),
                tuple(
                    one
                    for one in counts.pairs
                    if not counting.covers(known.get(one.labels, ()), run)
                ),
            )
            made = self._blank.with_counts(new, experiment.means.changes)
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

    def _known(self, budget: int) -> dict[tuple[str, ...], Any]:
        """Return the ranges of runs of each policy and each pair, by labels."""
        found = (*self.results.cells, *self.results.pairs)
        return {one.labels: one.ranges for one in found if one.budget == budget}

    def _missing(self, experiment: Experiment) -> Iterator[Experiment]:
        """Yield ranges of runs, each with the policies that lack it, alone or in a pair."""
        labels, known = sorted(experiment.policies, key=rank), self._known(experiment.budget)
        holes = {
            some: counting.missing_ranges(known.get(some, ()), experiment.first, experiment.last)
            for some in [*((label,) for label in labels), *combinations(labels, 2)]
        }
        ends = {end for ranges in holes.values() for ends in ranges for end in ends}
        for first, last in pairwise(sorted(ends)):
            lacking = {
                one for some in holes if counting.covers(holes[some], first) for one in some
            }
            if lacking:
                yield dataclasses.replace(experiment.only(lacking), first=first, last=last)

    def _check(self, experiment: Experiment) -> None:
        """Raise a `ResultsError` unless the file has the same settings for these policies."""
        for new in Tally.of(experiment).cells():
            old = self.results.find_cell(new.policy, new.budget)
            if old is not None:
                what = f"{new.policy} at budget {new.budget} with {self._path}"
                new.need_same_settings(old, what)
                self._need_company(old, experiment)

    def _need_company(self, old: Cell, experiment: Experiment) -> None:
        """Raise unless the policies are the same: by sums the draws depend on all of them."""
        pairs = (pair.labels for pair in self.results.pairs if pair.budget == old.budget)
        met = {old.policy}.union(*(labels for labels in pairs if old.policy in labels))
        if old.method == "sums" and met != set(experiment.policies):
            raise ResultsError(
                f"{self._path} has {', '.join(sorted(met, key=rank))} at budget {old.budget} by "
                f"sums, but this call has {', '.join(sorted(experiment.policies, key=rank))}. By "
                "sums, the random draws depend on which policies are simulated together: give the "
                "same policies, or another file."
            )
