"""What a claim is, and what the checks of several claims ask.

A check is given the rows of a figure's runs and says whether a sentence of the paper holds in
them, or that their intervals leave it open (`evidence.py`). The sentences are in
`section_8_claims.py` and `appendix_claims.py`, each beside its check; `claim_results.py` decides
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from latebloomer.paper.evidence import Evidence, Finding, Quantity, all_of, below, listed, measured
from latebloomer.paper.experiments import ALGORITHMS
from latebloomer.paper.figure import Row
from latebloomer.paper.series import largest, over

OURS = ("R-UCBE", "R-SR")
BASELINES = tuple(name for name in ALGORITHMS if name not in OURS)
SMALL = 0.05  # an error below this is small: the text's own number for R-SR

Rows: TypeAlias = Sequence[Row]
Check: TypeAlias = Callable[[Rows], Evidence]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what decides it."""

    figure: str  # whose runs decide it
    where: str
    sentence: str
    decided_by: str
    check: Check


@dataclass(frozen=True)
class Passage:
    """A passage of the paper; a check marked with a sentence of it joins the list of claims."""

    claims: list[Claim]
    figure: str
    where: str

    def __call__(self, sentence: str, decided_by: str) -> Callable[[Check], Check]:
        """Mark a check as what decides a sentence."""

        def add(check: Check) -> Check:
            self.claims.append(Claim(self.figure, self.where, sentence, decided_by, check))
            return check

        return add


def values_of(quantities: dict[str, Quantity], digits: int = 3) -> str:
    """'RR .123, SR .4', without the intervals."""
    return listed({name: quantity.value for name, quantity in quantities.items()}, digits)


def errors_below(limit: float, rows: Rows) -> Finding:
    """Whether every error is below a limit."""
    return all_of(below(measured(row), limit) for row in rows)


def stays_small(rows: Rows, algorithm: str, first: int) -> Finding:
    """Whether the error is small at every budget from `first` on."""
    return errors_below(SMALL, over(rows, algorithm, first))


def largest_error(rows: Rows) -> str:
    """'largest error .01 [.002, .054] (T = 200)'."""
    worst = largest(rows)
    return f"largest error {measured(worst)} (T = {worst.T})"


def least(values: dict[str, Quantity], names: Sequence[str]) -> tuple[str, Quantity]:
    """The name with the smallest value, and that value."""
    return min(((name, values[name]) for name in names), key=lambda item: item[1].value)
