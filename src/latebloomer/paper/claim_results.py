"""The paper's claims decided from the runs of both modes: the file `claims.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from latebloomer.core.statistics import share
from latebloomer.errors import LatebloomerError
from latebloomer.paper import AS_PUBLISHED, AS_WRITTEN, PUBLISHED_RUNS, series
from latebloomer.paper.appendix_claims import CLAIMS as APPENDIX
from latebloomer.paper.evidence import Claim, Evidence
from latebloomer.paper.section_8_claims import CLAIMS as SECTION_8
from latebloomer.paper.workbench import Figure, Row, Workbench, read_rows, write_rows

CLAIMS: tuple[Claim, ...] = (*SECTION_8, *APPENDIX)
VERDICTS = ("reproduced", "only as published", "not reproduced", "undecided")
REPRODUCED, ONLY_PUBLISHED, NOT, UNDECIDED = VERDICTS
FILE = "claims.csv"
MOST_RUNS = 10_000  # limit for a row that leaves a claim open
MOST_PULLS = 5e7  # limit on additional pulls for one claim, about two seconds
BY_SUMS = ("RR", "RR-SW", "SR", "R-SR")  # `simulate` plays them by sums, at almost no cost
AT_A_TIME = 8  # rows: the first few may decide the claim


class ClaimResult(NamedTuple):
    """A decided claim: a row of the file."""

    figure: str
    where: str
    claim: str
    decided_by: str
    verdict: str  # one of the four words above
    as_written: str
    as_published: str


def decide_claims(bench: Workbench, figures: Sequence[Figure]) -> list[ClaimResult]:
    """Decide the claims of these figures; results of other figures in the folder are kept."""
    path, made = bench.folder / FILE, {figure.name: figure for figure in figures}
    before: list[ClaimResult] = read_rows(path, ClaimResult)
    results = []
    for name in dict.fromkeys(claim.passage.figure for claim in CLAIMS):
        old = [result for result in before if result.figure == name]
        results += _decide(bench, made[name]) if name in made else old
    if results:
        write_rows(path, results)
    return results


def _decide(bench: Workbench, figure: Figure) -> list[ClaimResult]:
    """Decide the claims of one figure; none if its data are missing."""
    as_written = replace(bench, mode=AS_WRITTEN)
    as_published = replace(bench, mode=AS_PUBLISHED, runs=PUBLISHED_RUNS)
    try:
        written = figure.rows(as_written)
        published = with_wilson(figure.rows(as_published))
    except LatebloomerError:
        return []
    results = []
    for claim in (claim for claim in CLAIMS if claim.passage.figure == figure.name):
        ours = decide(as_written, claim, written)
        theirs = claim.check(published)
        if ours.finding.holds is False:  # else the verdict does not depend on theirs
            theirs = decide(as_published, claim, published)
        results.append(result_of(claim, ours, theirs))
    return results


def decide(bench: Workbench, claim: Claim, rows: Sequence[Row]) -> Evidence:
    """Return the evidence for a claim; repeat rows that leave it open ten times as often.

    It stays open if `MOST_RUNS` do not decide it, or would take more than `MOST_PULLS`.
    """
    found, pulls = claim.check(rows), 0
    by_sums = BY_SUMS if bench.mode == AS_WRITTEN else ()
    while found.finding.holds is None:
        drawn = [row for row in found.finding.rows if row.error_low < row.error_high]
        runs = min(MOST_RUNS, 10 * min((row.runs for row in drawn), default=MOST_RUNS))
        few = [row for row in drawn if row.runs < runs][:AT_A_TIME]
        pulls += runs * sum(row.T for row in few if row.algorithm not in by_sums)
        if not few or pulls > MOST_PULLS:
            break
        more = series.more_runs(bench, claim.passage.setting, few, runs)
        if bench.mode == AS_PUBLISHED:
            more = with_wilson(more)
        replaced = dict(zip(few, more, strict=True))
        rows = [replaced.get(row, row) for row in rows]
        found = claim.check(rows)
    return found


def with_wilson(rows: Sequence[Row]) -> list[Row]:
    """Return published rows with Wilson's intervals: the printed ones have no width at 0 of 100.

    Rows of one run are not random and keep an interval without width.
    """
    found = []
    for row in rows:
        if row.runs > 1:
            _, low, high = share(round(row.error * row.runs), row.runs)
            row = row._replace(error_low=low, error_high=high)
        found.append(row)
    return found


def result_of(claim: Claim, written: Evidence, published: Evidence) -> ClaimResult:
    """Return the verdict on a claim; the text's own definitions come first."""
    verdict = verdict_of(written.finding.holds, published.finding.holds)
    said = (_as_text(evidence) for evidence in (written, published))
    passage = claim.passage
    return ClaimResult(
        passage.figure, passage.where, claim.sentence, claim.decided_by, verdict, *said
    )


def verdict_of(written: bool | None, published: bool | None) -> str:
    """Return the verdict for the answers of both modes; None stands for open."""
    if written is None or (written is False and published is None):
        return UNDECIDED
    return REPRODUCED if written else ONLY_PUBLISHED if published else NOT


def _as_text(evidence: Evidence) -> str:
    word = {True: "holds", False: "fails", None: "open"}[evidence.finding.holds]
    return f"{word} ({evidence.finding.runs()}): {evidence.numbers}"
