"""Results that grow while runs finish, in memory and in a file."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from time import monotonic
from typing import Any

from latebloomer._util.atomic_files import File, need_writable
from latebloomer.errors import Interrupted, ResultsError
from latebloomer.policies.registry import rank
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.results.counts import Cell, Counts, Ranges, missing_ranges, need_same
from latebloomer.simulation.results.results import Results
from latebloomer.simulation.results.tally import Tally

EVERY = 15.0  # seconds between two saves, which a kill may cost
# Work at least this many times as long as the last save took, so that saves take at most 5 %.
SHARE = 20


# --- results that grow ---


class GrowingResults:
    """Hold the results of a simulation so far, in memory and, if `out` is set, in a file.

    If the file exists, only the runs that are missing in it are simulated.
    """

    def __init__(self, blank: Results, out: File | None) -> None:
        self.results = self._blank = blank
        self._path = None if out is None else Path(out)
        if self._path is not None and self._path.is_file():
            self.results = replace(Results.load(self._path), asked=blank.asked)
            what = f"this simulation with {self._path}"
            need_same(what, vars(blank.origin), vars(self.results.origin))
        self._saved = self.results
        self._next_save = monotonic() + EVERY

    def missing(self, experiments: Sequence[Experiment]) -> list[Experiment]:
        """Return the experiments still to run; raise an error if the file has other settings."""
        for experiment in experiments if self.results.cells else ():
            self._check(experiment)
        missing = [part for experiment in experiments for part in self._missing(experiment)]
        if missing and self._path is not None:
            need_writable(self._path)  # checked now, not after hours of work
        return missing

    def add(self, experiment: Experiment, counts: Counts) -> None:
        """Add the counts of new runs; save the file from time to time."""
        if counts.cells:
            known, ((run, _), *_) = self._known(experiment.budget), counts.cells[0].ranges
            fresh: Any = {
                name: tuple(new for new in several if not _covers(known.get(new.labels, ()), run))
                for name, several in counts._asdict().items()
            }
            arrived = replace(self._blank, changes=experiment.means.changes, **fresh)
            self.results = self.results.merge(arrived)
        if monotonic() > self._next_save:
            self.save()

    def interrupted(self, wanted: int) -> Interrupted:
        """Return the exception for Ctrl-C in a simulation of `wanted` runs per policy."""
        done: dict[int, int] = {}
        for cell in self.results.cells:
            done[cell.budget] = max(done.get(cell.budget, 0), cell.runs)
        state = f"Stopped after {sum(done.values())} of {wanted} runs of each policy"
        where = ". The exception's attribute `results` has the complete runs."
        if self._path is not None:
            where = f". They are in {self._path}: the same call simulates the others."
        return Interrupted(state, None, where, self.results)

    def save(self) -> None:
        """Write the file, unless it already has all results."""
        if self._path is not None and self.results is not self._saved:
            began, new = monotonic(), self.results
            new.save(self._path)
            self._saved = new
            self._next_save = monotonic() + max(EVERY, SHARE * (monotonic() - began))

    def _known(self, budget: int) -> dict[tuple[str, ...], Ranges]:
        """Return the ranges of runs of each policy and each pair, by labels."""
        counted = (*self.results.cells, *self.results.pairs)
        return {count.labels: count.ranges for count in counted if count.budget == budget}

    def _missing(self, experiment: Experiment) -> Iterator[Experiment]:
        """Yield ranges of runs that are missing for a policy or a pair of policies."""
        labels, known = sorted(experiment.policies, key=rank), self._known(experiment.budget)
        holes = [
            missing_ranges(known.get(some, ()), experiment.first, experiment.last)
            for some in [*((label,) for label in labels), *combinations(labels, 2)]
        ]
        ends = {end for ranges in holes for ends in ranges for end in ends}
        for first, last in pairwise(sorted(ends)):
            if any(_covers(ranges, first) for ranges in holes):
                yield replace(experiment, first=first, last=last)

    def _check(self, experiment: Experiment) -> None:
        """Raise a `ResultsError` unless the file has the same settings for these policies."""
        for new in Tally(experiment).cells():
            old = self.results.find_cell(new.policy, new.budget)
            if old is not None:
                what = f"{new.policy} at budget {new.budget} with {self._path}"
                new.need_same_settings(old, what)
                self._need_company(old, experiment)

    def _need_company(self, old: Cell, experiment: Experiment) -> None:
        """Raise an error if policies differ: by sums, the draws depend on all of them."""
        pairs = (pair.labels for pair in self.results.pairs if pair.budget == old.budget)
        met = {old.policy}.union(*(labels for labels in pairs if old.policy in labels))
        if old.method == "sums" and met != set(experiment.policies):
            raise ResultsError(
                f"{self._path} has {', '.join(sorted(met, key=rank))} at budget {old.budget} by "
                f"sums, but this call has {', '.join(sorted(experiment.policies, key=rank))}. By "
                "sums, draws depend on all policies: give the same ones, or another file."
            )


def _covers(ranges: Ranges, run: int) -> bool:
    return any(first <= run < last for first, last in ranges)
