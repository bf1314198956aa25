"""What runs say of a claim: it holds, it fails, or their intervals leave it open.

A comparison is decided where the 95 % interval of what was measured is on one side of the
boundary. Where it is not, it names the rows that leave it open, which can be played more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from latebloomer.paper.figure import Row


class Quantity(NamedTuple):
    """A number made of some rows, with the ends of its interval."""

    value: float
    low: float
    high: float
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        """'.224 [.216, .232]'."""
        return f"{short(self.value)} [{short(self.low)}, {short(self.high)}]"


class Finding(NamedTuple):
    """Whether something holds, and the rows that say so; None, and the rows that leave it open."""

    holds: bool | None
    rows: tuple[Row, ...] = ()  # none where nothing was played: the answer is exact

    def runs(self) -> str:
        """How often the rows were played: '100 runs', '100 to 10,000 runs'."""
        counts = sorted({row.runs for row in self.rows})
        if not counts:
            return "computed"
        ends = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        return "1 run" if counts == [1] else f"{ends} runs"


class Evidence(NamedTuple):
    """What a check found of its claim, and the numbers that say so."""

    finding: Finding
    numbers: str


# --- quantities ---


def measured(row: Row, what: str = "error") -> Quantity:
    """The error, regret or pulls of a row."""
    value = getattr(row, "pulls_best" if what == "pulls" else what)
    return Quantity(value, getattr(row, f"{what}_low"), getattr(row, f"{what}_high"), (row,))


def total(quantities: Sequence[Quantity], weight: float = 1.0) -> Quantity:
    """The weighted sum; its ends are the sums of the ends, whatever the runs have in common.

    Runs at different budgets meet the same luck, so nothing may be gained from independence.
    """
    return Quantity(
        weight * sum(one.value for one in quantities),
        weight * sum(one.low for one in quantities),
        weight * sum(one.high for one in quantities),
        _rows_of(quantities),
    )


def mean(quantities: Sequence[Quantity]) -> Quantity:
    """The mean, with the mean ends."""
    return total(quantities, 1 / len(quantities))


def mean_error(rows: Sequence[Row]) -> Quantity:
    """The mean error of rows."""
    return mean([measured(row) for row in rows])


def difference(one: Quantity, other: Quantity) -> Quantity:
    """One less the other; away from 0 where their two intervals are apart."""
    value = one.value - other.value
    return Quantity(value, one.low - other.high, one.high - other.low, _rows_of((one, other)))


# --- comparisons ---


def below(one: Quantity, boundary: float) -> Finding:
    """Whether a quantity is below a boundary.

    >>> [below(Quantity(0.5, 0.4, 0.6, ()), at).holds for at in (0.7, 0.55, 0.3)]
    [True, None, False]
    """
    return Finding(
        True if one.high < boundary else False if one.low >= boundary else None, one.rows
    )


def above(one: Quantity, boundary: float) -> Finding:
    """Whether a quantity is above a boundary."""
    return Finding(
        True if one.low > boundary else False if one.high <= boundary else None, one.rows
    )


def less(one: Quantity, other: Quantity) -> Finding:
    """Whether one is below the other: their intervals are apart."""
    return below(difference(one, other), 0.0)


def within(one: Quantity, low: float, high: float) -> Finding:
    """Whether a quantity is between two boundaries."""
    return all_of((above(one, low), below(one, high)))


def opposite(finding: Finding) -> Finding:
    """Yes for no, no for yes."""
    return finding._replace(holds=None if finding.holds is None else not finding.holds)


def all_of(findings: Iterable[Finding]) -> Finding:
    """Whether every one holds."""
    found = list(findings)
    return at_least(len(found), found)


def any_of(findings: Iterable[Finding]) -> Finding:
    """Whether one of them holds."""
    return at_least(1, findings)


def at_least(count: int, findings: Iterable[Finding]) -> Finding:
    """Whether so many hold, whichever way the open ones turn out.

    >>> yes, no, open = Finding(True), Finding(False), Finding(None)
    >>> [at_least(2, case).holds for case in ((yes, yes, open), (yes, open), (yes, no))]
    [True, None, False]
    """
    found = list(findings)
    sure = sum(finding.holds is True for finding in found)
    unsure = [finding for finding in found if finding.holds is None]
    if sure < count <= sure + len(unsure):
        return Finding(None, _rows_of(unsure))
    return Finding(sure >= count, _rows_of(found))


def _rows_of(parts: Iterable[Quantity | Finding]) -> tuple[Row, ...]:
    return tuple(dict.fromkeys(row for part in parts for row in part.rows))


# --- numbers in words ---


def short(value: float, digits: int = 3) -> str:
    """A number without its leading zero.

    >>> short(0.0625), short(1.0), short(-0.5), short(0.0)
    ('.062', '1', '-.5', '0')
    """
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text or "0"


def listed(values: dict[str, float], digits: int = 3) -> str:
    """'RR .123, SR .4' of names with numbers."""
    return ", ".join(f"{name} {short(value, digits)}" for name, value in values.items())


def at_row(row: Row) -> str:
    """'(R-UCBE, T = 100)'."""
    return f"({row.algorithm}, T = {row.T})"
