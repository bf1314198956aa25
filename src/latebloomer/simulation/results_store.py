"""What a simulation has found so far, and the file in which it is kept.

A file that exists already is gone on with: what it lacks is played, what it has is not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import combinations, pairwise
from pathlib import Path
from time import monotonic

from latebloomer.errors import ResultsError, SettingError
from latebloomer.policies.registry import rank
from latebloomer.simulation import run_ranges as ranges
from latebloomer.simulation.counts import Cell, Pair
from latebloomer.simulation.results import File, Results, changes_in
from latebloomer.simulation.rounds import Leg, Part, Round
from latebloomer.simulation.run_ranges import Ranges

EVERY = 15.0  # seconds of work that a kill may cost
SHARE = 20  # times what writing takes are worked before the next: 5 % for large results at most
SAME = ("settings", "method", "horizon", "means", "unit")  # of a cell that grows


class Kept:
    """Results that grow part by part, in memory and, where `out` names one, in a file."""

    def __init__(self, blank: Results, out: File | None) -> None:
        self.results = self._blank = blank
        self._path = None if out is None else Path(out)
        self._saved = blank
        self._next = monotonic() + EVERY
        if self._path is not None:
            self.results = self._saved = _opened(self._path, blank)

    def legs(self, rounds: Sequence[Round], first: int, last: int) -> list[Leg]:
        """What of the runs [first, last) is missing; an error where the file has other ones."""
        for part in rounds:
            self._check(part)
        return [leg for part in rounds for leg in self._legs(part, first, last)]

    def gather(self, parts: Iterable[Part]) -> None:
        """Add what was found; whatever ends it early, the file has all that came."""
        try:
            for part in parts:
                self.add(part)
        finally:
            self.save()

    def add(self, part: Part) -> None:
        """Count what was found and not known before; write it when it is time."""
        leg = part.leg
        new = replace(
            self._blank,
            changes=leg.changes,
            cells=tuple(cell for cell in part.cells if cell.policy in leg.cells),
            pairs=tuple(pair for pair in part.pairs if (pair.first, pair.second) in leg.pairs),
        )
        if part.cells:
            self.results = self.results.merge(new)
        if monotonic() > self._next:
            self.save()

    def save(self) -> None:
        """Write the file, unless it has all that is known."""
        if self._path is not None and self.results is not self._saved:
            began, new = monotonic(), self.results
            new.save(self._path)
            self._saved = new
            self._next = monotonic() + max(EVERY, SHARE * (monotonic() - began))

    # --- what is missing ---

    def _legs(self, round_: Round, first: int, last: int) -> Iterator[Leg]:
        """Ranges of runs, each with the cells and pairs that lack it."""
        budget, labels = round_.budget, sorted(round_.labels, key=rank)
        cells = {label: _holes(self._cell(label, budget), first, last) for label in labels}
        couples = combinations(labels, 2)
        pairs = {two: _holes(self._pair(two, budget), first, last) for two in couples}
        ends = {n for holes in (*cells.values(), *pairs.values()) for n in sum(holes, ())}
        changes = changes_in(round_.tasks[0].means)
        for start, end in pairwise(sorted(ends)):
            alone = frozenset(label for label, holes in cells.items() if _covers(holes, start))
            both = frozenset(two for two, holes in pairs.items() if _covers(holes, start))
            if alone or both:
                needed = round_.only(alone.union(*both))
                yield Leg(needed, start, end, alone, both, changes)

    def _cell(self, label: str, budget: int) -> Cell | None:
        found = (cell for cell in self.results.cells if cell.policy == label)
        return next((cell for cell in found if cell.budget == budget), None)

    def _pair(self, labels: tuple[str, str], budget: int) -> Pair | None:
        found = (pair for pair in self.results.pairs if (pair.first, pair.second) == labels)
        return next((pair for pair in found if pair.budget == budget), None)

    # --- what must agree ---

    def _check(self, round_: Round) -> None:
        for new in round_.tally().cells():
            old = self._cell(new.policy, new.budget)
            if old is not None:
                self._need_same(old, new)
                self._need_company(old, round_)

    def _need_same(self, old: Cell, new: Cell) -> None:
        for name in SAME:
            ours, theirs = getattr(new, name), getattr(old, name)
            if ours != theirs:
                what = "the sha256 of the means" if name == "means" else name
                raise ResultsError(
                    f"{self._path} has {new.policy} at budget {new.budget} with {what} {theirs}, "
                    f"but this call has {ours}: give another file, or ask for the same"
                )

    def _need_company(self, old: Cell, round_: Round) -> None:
        """By sums the luck depends on the policies that are played together."""
        met = {old.policy}
        for pair in self.results.pairs:
            if pair.budget == old.budget and old.policy in (pair.first, pair.second):
                met |= {pair.first, pair.second}
        if old.method == "sums" and met != set(round_.labels):
            raise ResultsError(
                f"{self._path} has {', '.join(sorted(met, key=rank))} at budget {old.budget} by "
                f"sums, but this call has {', '.join(sorted(round_.labels, key=rank))}: by sums "
                "the luck depends on which policies are played together, so ask for the same "
                "ones, or give another file"
            )


def _opened(path: Path, blank: Results) -> Results:
    """What the file has; nothing is written yet."""
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise SettingError(
            f"out={str(path)!r}, but {str(path.parent)!r} is no folder that can be written to: "
            "make it, or give another file"
        )
    if not path.exists():
        return blank
    found = Results.load(path)
    ours, theirs = asdict(blank.origin), asdict(found.origin)
    for name, value in ours.items():
        if value != theirs[name]:
            what = "first means (sha256)" if name == "opening" else name
            raise ResultsError(
                f"{path} has results with {what} {theirs[name]!r}, but this call has {value!r}: "
                "give another file, or ask for the same"
            )
    return found


def _holes(part: Cell | Pair | None, first: int, last: int) -> Ranges:
    return ranges.missing(() if part is None else part.ranges, first, last)


def _covers(parts: Ranges, run: int) -> bool:
    return any(first <= run < last for first, last in parts)
