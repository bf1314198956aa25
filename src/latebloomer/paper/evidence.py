"""Claims, and the evidence that runs give for them: a claim holds, fails or stays open.

A check gets the rows of a figure and returns whether a sentence of the paper holds for them. It
compares quantities, which have 95 % intervals: `measured(row) < 0.05` is a finding, which is open
if the interval contains the boundary. Findings are combined with `&`, `~`, `all_of` and
`at_least`. An open finding has the rows because of which it is open; more runs of these rows may
decide it.

The sentences are in `claims.py`, each next to its check; `reproduction.py` decides them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isgeneratorfunction as yields
from itertools import takewhile
from math import inf
from typing import Any, NamedTuple, TypeAlias

from latebloomer.paper.experiments import ALGORITHMS, Setting
from latebloomer.paper.workbench import Row, select

Rows: TypeAlias = Sequence[Row]
OURS = ("R-UCBE", "R-SR")
BASELINES = tuple(name for name in ALGORITHMS if name not in OURS)
SMALL = 0.05  # a smaller error is "small": the text uses this number for R-SR


class Finding(NamedTuple):
    """Whether something holds (None if that is open), and the rows that it depends on."""

    holds: bool | None
    rows: tuple[Row, ...] = ()  # empty if nothing was simulated: the answer is exact

    def __bool__(self) -> bool:
        raise TypeError("a finding may be open: use its attribute `holds`")

    def __invert__(self) -> Finding:
        return self._replace(holds=None if self.holds is None else not self.holds)

    def __and__(self, other: Finding) -> Finding:
        return all_of((self, other))

    def runs(self) -> str:
        """Return the number of runs of the rows as text: '100 runs', '100 to 10,000 runs'."""
        counts = sorted({row.runs for row in self.rows})
        if not counts:
            return "computed"
        ends = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        return "1 run" if counts == [1] else f"{ends} runs"


@dataclass(frozen=True)
class Quantity:
    """A number that is computed from some rows, with its 95 % interval.

    >>> one = Quantity(0.5, 0.4, 0.6, ())
    >>> [(one < boundary).holds for boundary in (0.7, 0.55, 0.3)]
    [True, None, False]
    """

    value: float
    low: float
    high: float
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        return f"{short(self.value)} [{short(self.low)}, {short(self.high)}]"

    def __sub__(self, other: Quantity | float) -> Quantity:
        if not isinstance(other, Quantity):
            other = Quantity(other, other, other, ())
        ends = (self.low - other.high, self.high - other.low)
        return Quantity(self.value - other.value, *ends, _rows_of((self, other)))

    def __lt__(self, other: Quantity | float) -> Finding:
        apart = self - other
        return Finding(True if apart.high < 0 else False if apart.low >= 0 else None, apart.rows)

    def __gt__(self, other: Quantity | float) -> Finding:
        apart = self - other
        return Finding(True if apart.low > 0 else False if apart.high <= 0 else None, apart.rows)


def _rows_of(parts: Iterable[Quantity | Finding]) -> tuple[Row, ...]:
    return tuple(dict.fromkeys(row for part in parts for row in part.rows))


def all_of(findings: Iterable[Finding]) -> Finding:
    """Return the finding that every one of the findings holds."""
    listed = list(findings)
    return at_least(len(listed), listed)


def at_least(count: int, findings: Iterable[Finding]) -> Finding:
    """Return the finding that at least `count` hold, for every outcome of the open ones.

    >>> yes, no, open = Finding(True), Finding(False), Finding(None)
    >>> [at_least(2, case).holds for case in ((yes, yes, open), (yes, open), (yes, no))]
    [True, None, False]
    """
    listed = list(findings)
    sure = sum(finding.holds is True for finding in listed)
    unsure = [finding for finding in listed if finding.holds is None]
    if sure < count <= sure + len(unsure):
        return Finding(None, _rows_of(unsure))
    return Finding(sure >= count, _rows_of(listed))


def holding(findings: Iterable[Finding]) -> int:
    """Return how many findings certainly hold."""
    return sum(finding.holds is True for finding in findings)


# --- quantities of rows ---


def measured(row: Row, what: str = "error") -> Quantity:
    """Return the error, regret or pulls of a row."""
    value = getattr(row, "pulls_best" if what == "pulls" else what)
    return Quantity(value, getattr(row, f"{what}_low"), getattr(row, f"{what}_high"), (row,))


def total(quantities: Sequence[Quantity], weight: float = 1.0) -> Quantity:
    """Return the weighted sum; the ends of its interval are the weighted sums of the ends.

    Runs at different budgets share their random draws, so independence must not be assumed.
    """
    columns = ("value", "low", "high")
    sums = [weight * sum(getattr(quantity, name) for quantity in quantities) for name in columns]
    return Quantity(sums[0], sums[1], sums[2], _rows_of(quantities))


def mean(quantities: Sequence[Quantity]) -> Quantity:
    """Return the mean; the ends of its interval are the means of the ends."""
    return total(quantities, 1 / len(quantities))


def mean_error(rows: Rows) -> Quantity:
    """Return the mean error of rows."""
    return mean([measured(row) for row in rows])


def at(rows: Rows, algorithm: str, budget: int, what: str = "error") -> Quantity:
    """Return the error, regret or pulls of an algorithm at a budget."""
    return measured(select(rows, algorithm=algorithm, T=budget)[0], what)


def over(rows: Rows, algorithm: str, first: float = 0, last: float = inf) -> list[Row]:
    """Return the rows of an algorithm at budgets from `first` to `last`."""
    return [row for row in select(rows, algorithm=algorithm) if first <= row.T <= last]


def means(rows: Rows, what: str = "error", last: float = inf) -> dict[str, Quantity]:
    """Return the mean of each algorithm over budgets, the smallest first."""
    own = {name: over(rows, name, last=last) for name in ALGORITHMS}
    by_name = {name: mean([measured(row, what) for row in part]) for name, part in own.items()}
    return dict(sorted(by_name.items(), key=lambda item: item[1].value))


def successes(rows: Rows, first: int = 0, of: Sequence[str] = ALGORITHMS) -> dict[str, Quantity]:
    """Return the number of budgets at which each algorithm is right, the largest first."""
    one, totals = Quantity(1.0, 1.0, 1.0, ()), {}
    for name in of:
        totals[name] = total([one - measured(row) for row in over(rows, name, first)])
    return dict(sorted(totals.items(), key=lambda item: -item[1].value))


def largest(rows: Rows) -> Row:
    """Return the row with the largest error."""
    return max(rows, key=lambda row: row.error)


def least(values: dict[str, Quantity], names: Sequence[str]) -> str:
    """Return the smallest of the named values as text: '.2 [.1, .3] (RR)'."""
    name = min(names, key=lambda name: values[name].value)
    return f"{values[name]} ({name})"


def share_of_pulls(rows: Rows) -> Quantity:
    """Return the mean share of the budget that the best arm gets."""
    return mean([total([measured(row, "pulls")], 1 / row.T) for row in rows])


def settles(rows: Rows, algorithm: str, limit: float) -> int | None:
    """Return the first budget from which the error stays below `limit`; None if there is none."""
    small = takewhile(lambda row: row.error < limit, reversed(over(rows, algorithm)))
    return min((row.T for row in small), default=None)


def errors_below(limit: float, rows: Rows) -> Finding:
    """Return whether every error is below a limit."""
    return all_of(measured(row) < limit for row in rows)


# --- numbers as text ---


def short(value: float, digits: int = 3) -> str:
    """Return a number without its leading zero.

    >>> short(0.0625), short(1.0), short(-0.5), short(0.0)
    ('.062', '1', '-.5', '0')
    """
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text or "0"


def values_of(quantities: dict[str, Quantity], digits: int = 3) -> str:
    """Return names with values, without the intervals: 'RR .123, SR .4'."""
    return ", ".join(
        f"{name} {short(quantity.value, digits)}" for name, quantity in quantities.items()
    )


def largest_error(rows: Rows) -> str:
    """Return 'largest error .01 [.002, .054] (T = 200)'."""
    worst = largest(rows)
    return f"largest error {measured(worst)} (T = {worst.T})"


# --- claims ---


class Evidence(NamedTuple):
    """The finding of a check about its claim, and the numbers that show it.

    One rule for how claims are read: a sentence that states a limit, says all or consistently, or
    denies something must hold at every budget (and noise level) that it is about. Any other
    sentence about several budgets is decided by the means over these budgets; `strictly` then says
    whether it holds at every one of them.
    """

    finding: Finding
    numbers: str
    strictly: Finding | None = None  # None: `finding` is already strict


Check: TypeAlias = Callable[[Rows], Evidence]
# The parts of a claim: numbers, the finding that they show, and the strict finding if the part is
# decided by means.
Parts: TypeAlias = Iterator[tuple[str, list[Finding]] | tuple[str, list[Finding], Finding]]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and the check that decides it."""

    passage: Passage
    sentence: str
    decided_by: str
    check: Check


@dataclass(frozen=True)
class Passage:
    """A passage of the paper; calls add its sentences to the list of claims."""

    claims: list[Claim]  # the list to which claims are added
    figure: str  # the figure whose rows decide them
    where: str
    setting: Setting

    def __call__(self, sentence: str) -> Callable[[tuple[str, Check]], None]:
        """Add a sentence with its check as a claim; `decided_by` describes the check."""
        return lambda check: self.claims.append(Claim(self, sentence, *check))


def decided_by(criterion: str) -> Callable[[Callable[..., Any]], tuple[str, Check]]:
    """Describe what a check decides by; a check that yields parts holds if all parts hold."""

    def joined(check: Callable[..., Any], rows: Rows) -> Evidence:
        texts, findings, *strictly = zip(*check(rows), strict=True)
        numbers, strict = (
            "; ".join(texts),
            all_of(finding for part in strictly for finding in part),
        )
        finding = all_of(finding for part in findings for finding in part)
        return Evidence(finding, numbers, strict if strictly else None)

    return lambda check: (criterion, partial(joined, check) if yields(check) else check)
