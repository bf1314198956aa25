"""The paper's empirical claims as data, decided from the runs of both modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from latebloomer.errors import LatebloomerError
from latebloomer.paper import series
from latebloomer.paper.experiments import (
    ALGORITHMS,
    AS_PUBLISHED,
    AS_WRITTEN,
    SETTING_A,
    SETTING_B,
)
from latebloomer.paper.table_rows import Row, read_rows, select, write_rows
from latebloomer.paper.workbench import Bench

OURS = ("R-UCBE", "R-SR")
BASELINES = tuple(name for name in ALGORITHMS if name not in OURS)
REPRODUCED, ONLY_PUBLISHED, NOT = "reproduced", "only as published", "not reproduced"
FILE = "claims.csv"


class Finding(NamedTuple):
    """Whether a claim holds in some runs, and the numbers that say so."""

    holds: bool
    numbers: str


class Verdict(NamedTuple):
    """A decided claim: a row of the table."""

    figure: str
    where: str
    claim: str
    decided_by: str
    verdict: str
    as_written: str
    as_published: str


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what decides it."""

    figure: str  # whose runs decide it
    where: str
    sentence: str
    decided_by: str
    check: Callable[[Sequence[Row]], Finding]


Loader = Callable[[Bench, str], list[Row]]
LOADERS: dict[str, Loader] = {
    "setting-a": lambda bench, mode: series.errors(bench, SETTING_A, mode),
    "simple-regret": lambda bench, mode: series.errors(bench, SETTING_A, mode),
    "exploration": series.exploration,
    "setting-b": lambda bench, mode: series.errors(bench, SETTING_B, mode),
    "noise": series.noise,
    "imdb": series.imdb,
}


def decide(bench: Bench, figures: set[str]) -> list[Verdict]:
    """The verdicts on the claims of these figures; those in the folder on others are kept."""
    from latebloomer.paper.claims_appendix import APPENDIX_CLAIMS
    from latebloomer.paper.claims_main import MAIN_CLAIMS

    claims = (*MAIN_CLAIMS, *APPENDIX_CLAIMS)
    path = bench.folder / FILE
    before: list[Verdict] = read_rows(path, Verdict) if path.is_file() else []
    fresh = {
        figure: _decided(bench, figure, [claim for claim in claims if claim.figure == figure])
        for figure in dict.fromkeys(claim.figure for claim in claims)
        if figure in figures
    }
    verdicts = [
        verdict
        for figure in dict.fromkeys(claim.figure for claim in claims)
        for verdict in fresh.get(figure, [old for old in before if old.figure == figure])
    ]
    if verdicts:
        write_rows(path, verdicts)
    return verdicts


def _decided(bench: Bench, figure: str, claims: Sequence[Claim]) -> list[Verdict]:
    """Decide the claims of one figure; none where its data are missing."""
    try:
        written = LOADERS[figure](bench, AS_WRITTEN)
        published = LOADERS[figure](series.as_in_the_paper(bench), AS_PUBLISHED)
    except LatebloomerError:
        return []
    return [_verdict(claim, claim.check(written), claim.check(published)) for claim in claims]


def _verdict(claim: Claim, written: Finding, published: Finding) -> Verdict:
    verdict = REPRODUCED if written.holds else ONLY_PUBLISHED if published.holds else NOT
    said = [
        f"{'holds' if found.holds else 'fails'}: {found.numbers}" for found in (written, published)
    ]
    return Verdict(
        claim.figure, claim.where, claim.sentence, claim.decided_by, verdict, said[0], said[1]
    )


# --- what checks are made of ---


def at(rows: Sequence[Row], algorithm: str, budget: int) -> Row:
    """The row of an algorithm at a budget."""
    return select(rows, algorithm=algorithm, T=budget)[0]


def over(
    rows: Sequence[Row], algorithm: str, first: float = 0, last: float = float("inf")
) -> list[Row]:
    """The rows of an algorithm at budgets from `first` to `last`."""
    return [row for row in select(rows, algorithm=algorithm) if first <= row.T <= last]


def mean(rows: Sequence[Row], what: str = "error") -> float:
    """The mean of a column."""
    return sum(getattr(row, what) for row in rows) / len(rows)


def means(
    rows: Sequence[Row], what: str = "error", first: float = 0, last: float = float("inf")
) -> dict[str, float]:
    """The mean of each of the nine algorithms over budgets, the smallest first."""
    found = {name: mean(over(rows, name, first, last), what) for name in ALGORITHMS}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def largest(rows: Sequence[Row], what: str = "error") -> Row:
    """The row with the largest value."""
    return max(rows, key=lambda row: getattr(row, what))


def apart(low: Row, high: Row, what: str = "error") -> bool:
    """Whether the interval of `low` ends below that of `high`."""
    return bool(getattr(low, f"{what}_high") < getattr(high, f"{what}_low"))


def settles(rows: Sequence[Row], algorithm: str, limit: float) -> int | None:
    """The first budget from which the error stays below a limit."""
    start = None
    for row in over(rows, algorithm):
        if row.error >= limit:
            start = None
        elif start is None:
            start = row.T
    return start


def listed(values: dict[str, float], digits: int = 3) -> str:
    """'RR .123, SR .4' of names with numbers."""
    return ", ".join(f"{name} {short(value, digits)}" for name, value in values.items())


def short(value: float, digits: int = 3) -> str:
    """A number without its leading zero.

    >>> short(0.0625), short(1.0), short(-0.5)
    ('.062', '1', '-.5')
    """
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text or "0"
