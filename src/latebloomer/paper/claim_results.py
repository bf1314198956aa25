"""The paper's claims decided from the runs of both modes: the file `claims.csv`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from latebloomer.core.statistics import share
from latebloomer.errors import LatebloomerError
from latebloomer.paper import appendix_claims, section_8_claims, series
from latebloomer.paper.claims import Claim
from latebloomer.paper.evidence import Evidence
from latebloomer.paper.experiments import (
    IMDB,
    SETTING_A,
    SETTING_B,
    Setting,
)
from latebloomer.paper.figure import Row, Workbench, read_rows, write_rows
from latebloomer.paper.modes import AS_PUBLISHED, AS_WRITTEN

CLAIMS: tuple[Claim, ...] = (*section_8_claims.CLAIMS, *appendix_claims.CLAIMS)
REPRODUCED, ONLY_PUBLISHED, NOT = "reproduced", "only as published", "not reproduced"
UNDECIDED = "undecided"
FILE = "claims.csv"
MOST_RUNS = 10_000  # of a row that leaves a claim open
MOST_PULLS = 5e7  # played more for one claim, about two seconds
BY_SUMS = ("RR", "RR-SW", "SR", "R-SR")
AT_A_TIME = 8  # rows: the first few may decide it
LOADERS: dict[str, tuple[Setting, Callable[[Workbench, str], list[Row]]]] = {
    "setting-a": (SETTING_A, lambda bench, mode: series.errors(bench, SETTING_A, mode)),
    "simple-regret": (SETTING_A, lambda bench, mode: series.errors(bench, SETTING_A, mode)),
    "exploration": (SETTING_A, series.exploration),
    "setting-b": (SETTING_B, lambda bench, mode: series.errors(bench, SETTING_B, mode)),
    "noise": (SETTING_A, series.noise),
    "imdb": (IMDB, series.imdb),
}


class ClaimResult(NamedTuple):
    """A decided claim: a row of the file."""

    figure: str
    where: str
    claim: str
    decided_by: str
    verdict: str  # one of the four words above
    as_written: str
    as_published: str


def decide_claims(bench: Workbench, figures: set[str]) -> list[ClaimResult]:
    """Decide the claims of these figures; what the folder has on others is kept."""
    path = bench.folder / FILE
    before: list[ClaimResult] = read_rows(path, ClaimResult) if path.is_file() else []
    results = []
    for figure in dict.fromkeys(claim.figure for claim in CLAIMS):
        old = [result for result in before if result.figure == figure]
        results += _decide(bench, figure) if figure in figures else old
    if results:
        write_rows(path, results)
    return results


def _decide(bench: Workbench, figure: str) -> list[ClaimResult]:
    """Decide the claims of one figure; none where its data are missing."""
    setting, load = LOADERS[figure]
    try:
        written = load(bench, AS_WRITTEN)
        published = with_wilson(load(series.with_published_runs(bench), AS_PUBLISHED))
    except LatebloomerError:
        return []
    results = []
    for claim in (claim for claim in CLAIMS if claim.figure == figure):
        found = decide(bench, setting, AS_WRITTEN, claim, written)
        theirs = claim.check(published)
        if found.finding.holds is False:  # else it does not matter how theirs turns out
            theirs = decide(bench, setting, AS_PUBLISHED, claim, published)
        results.append(result_of(claim, found, theirs))
    return results


def decide(
    bench: Workbench, setting: Setting, mode: str, claim: Claim, rows: Sequence[Row]
) -> Evidence:
    """The evidence for a claim; rows that leave it open are played ten times as often, and again.

    It stays open where `MOST_RUNS` do not decide it, or would take more than `MOST_PULLS`.
    """
    found, pulls = claim.check(rows), 0
    while found.finding.holds is None:
        drawn = [row for row in found.finding.rows if row.error_low < row.error_high]
        runs = min(MOST_RUNS, 10 * min((row.runs for row in drawn), default=MOST_RUNS))
        few = [row for row in drawn if row.runs < runs][:AT_A_TIME]
        pulls += runs * sum(row.T for row in few if not _is_by_sums(row))
        if not few or pulls > MOST_PULLS:
            break
        more = series.more_runs(bench, setting, mode, few, runs)
        if mode == AS_PUBLISHED:
            more = with_wilson(more)
        replaced = dict(zip(few, more, strict=True))
        rows = [replaced.get(row, row) for row in rows]
        found = claim.check(rows)
    return found


def _is_by_sums(row: Row) -> bool:
    """Whether `simulate` plays the row by sums, which cost nothing."""
    return row.mode == AS_WRITTEN and row.algorithm in BY_SUMS


def with_wilson(rows: Sequence[Row]) -> list[Row]:
    """Published rows with Wilson's intervals: the printed ones have no width at 0 of 100.

    Where nothing is random there is one run, and it has none.
    """
    return [_with_wilson(row) if row.runs > 1 else row for row in rows]


def _with_wilson(row: Row) -> Row:
    found = share(round(row.error * row.runs), row.runs)
    return row._replace(error_low=found.low, error_high=found.high)


def result_of(claim: Claim, written: Evidence, published: Evidence) -> ClaimResult:
    """What the evidence of both modes says of a claim: the text's own definitions come first."""
    verdict = verdict_of(written.finding.holds, published.finding.holds)
    said = (_said(evidence) for evidence in (written, published))
    return ClaimResult(claim.figure, claim.where, claim.sentence, claim.decided_by, verdict, *said)


def verdict_of(written: bool | None, published: bool | None) -> str:
    """The word for what both modes say; None is left open."""
    if written is None or (written is False and published is None):
        return UNDECIDED
    return REPRODUCED if written else ONLY_PUBLISHED if published else NOT


def _said(evidence: Evidence) -> str:
    word = {True: "holds", False: "fails", None: "open"}[evidence.finding.holds]
    return f"{word} ({evidence.finding.runs()}): {evidence.numbers}"
