"""What holds of a problem at a budget: the paper's assumptions, the gaps, who is best when."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from latebloomer.errors import require
from latebloomer.problems.curves import Floats

TIE = 1e-12  # means closer than this differ by rounding only (curves are of order 1)


@dataclass(frozen=True)
class Report:
    """Facts about a problem's curves up to a budget; `print` it."""

    label: str
    names: tuple[str, ...]
    budget: int
    falls: tuple[int | None, ...]  # by arm, the first n with mu(n + 1) < mu(n)
    bends_up: tuple[int | None, ...]  # by arm, the first n at which the next increment is larger
    c: float
    largest_beta: float | None  # with this c; None where the first increment exceeds c
    beta: float
    smallest_c: float  # with this beta
    best: int
    gaps: Floats
    changes: tuple[tuple[int, int], ...]  # (first horizon, arm that is best from there)

    @property
    def assumption_1(self) -> bool:
        """Whether every arm is non-decreasing and concave up to the budget [Mussi24, Ass. 1]."""
        return not any(n is not None for n in self.falls + self.bends_up)

    @property
    def assumption_2(self) -> bool:
        """Whether this c goes with some beta > 1 up to the budget [Mussi24, Ass. 2]."""
        return self.largest_beta is not None and self.largest_beta > 1

    def __str__(self) -> str:
        best = [f"{self.names[arm]} from {horizon}" for horizon, arm in self.changes]
        gaps = [f"{name} {gap:.4g}" for name, gap in zip(self.names, self.gaps, strict=True)]
        lines = [
            f"{self.label}: {len(self.names)} arms, budget {self.budget}",
            f"Assumption 1 (non-decreasing, concave): {self._first()}",
            f"Assumption 2 (increments at most c n^-beta): {self._second()}",
            f"best arm at {self.budget}: {self.names[self.best]}",
            f"gaps at {self.budget}: {_some(gaps)}",
            f"best arm by horizon: {_some(best)}",
        ]
        return "\n".join(lines)

    def _first(self) -> str:
        if self.assumption_1:
            return "holds"
        found = [
            f"{name} {what} at pull {n}"
            for what, where in (("falls", self.falls), ("bends up", self.bends_up))
            for name, n in zip(self.names, where, strict=True)
            if n is not None
        ]
        return f"broken; {_some(found)}"

    def _second(self) -> str:
        needed = f"beta = {self.beta:g} needs c >= {self.smallest_c:.4g}"
        if self.largest_beta is None:
            return f"c = {self.c:g} is below the first increment; {needed}"
        return f"c = {self.c:g} allows beta <= {self.largest_beta:.5g}; {needed}"


def report(
    label: str,
    names: tuple[str, ...],
    means: Floats,
    changes: tuple[tuple[int, int], ...],
    c: float,
    beta: float,
) -> Report:
    """The report on the table of means up to the budget."""
    require(0 < c < math.inf, "c", c, "above 0 and finite", "increments are at most c n^-beta")
    require(beta > 1, "beta", beta, "above 1", "Assumption 2 asks for it")
    steps = np.diff(means, axis=1)
    steep = np.max(steps, axis=0, initial=0.0)  # of the steepest arm, n = 1, 2, ...
    return Report(
        label=label,
        names=names,
        budget=means.shape[1],
        falls=_first(-steps),
        bends_up=_first(np.diff(steps, axis=1)),
        c=c,
        largest_beta=_largest_beta(steep, c),
        beta=beta,
        smallest_c=float(np.max(steep * np.arange(1, len(steep) + 1.0) ** beta, initial=0.0)),
        best=changes[-1][1],
        gaps=means[:, -1].max() - means[:, -1],
        changes=changes,
    )


def _largest_beta(steep: Floats, c: float) -> float | None:
    """From gamma(n) <= c n^-beta: beta <= log(c / gamma(n)) / log n for n >= 2."""
    if len(steep) and steep[0] > c:
        return None
    n = np.flatnonzero(steep[1:] > 0) + 2.0
    rising = steep[1:][steep[1:] > 0]
    return float(np.min(np.log(c / rising) / np.log(n), initial=math.inf))


def _first(excess: Floats) -> tuple[int | None, ...]:
    """By arm, the first n at which the excess is more than rounding."""
    over = excess > TIE
    return tuple(int(np.argmax(row)) + 1 if row.any() else None for row in over)


def _some(items: list[str], most: int = 12) -> str:
    more = len(items) - most
    return ", ".join(items[:most]) + (f", ... ({more} more)" if more > 0 else "")
