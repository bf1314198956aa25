"""What holds of a problem at a budget, to print; `theory` finds it, `Problem.check` asks."""

from __future__ import annotations

from dataclasses import dataclass

from latebloomer.theory.inputs import Floats


@dataclass(frozen=True)
class AssumptionReport:
    """The paper's assumptions, the gaps and who is best when, up to a budget; `print` it.

    Attributes
    ----------
    label : str
        Of the problem.
    names : tuple[str, ...]
        Of the arms, in order.
    budget : int
        T, pulls in all.
    falls : tuple[int | None, ...]
        By arm, the first n with mu(n + 1) < mu(n).
    bends_up : tuple[int | None, ...]
        By arm, the first n at which the next increment is larger.
    c : float
        Given, for `largest_beta`.
    largest_beta : float | None
        With this c; None where the first increment exceeds c.
    beta : float
        Given, for `smallest_c`.
    smallest_c : float
        With this beta.
    best : int
        The arm that is best at the budget.
    gaps : Floats
        Of the arms at the budget.
    changes : tuple[tuple[int, int], ...]
        (first horizon, arm that is best from there).
    """

    label: str
    names: tuple[str, ...]
    budget: int
    falls: tuple[int | None, ...]
    bends_up: tuple[int | None, ...]
    c: float
    largest_beta: float | None
    beta: float
    smallest_c: float
    best: int
    gaps: Floats
    changes: tuple[tuple[int, int], ...]

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


def _some(items: list[str], most: int = 12) -> str:
    more = len(items) - most
    return ", ".join(items[:most]) + (f", ... ({more} more)" if more > 0 else "")
