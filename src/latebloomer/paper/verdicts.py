"""The verdicts on the paper's claims, decided from the runs of both modes: the file `claims.csv`.

Each claim has three: as written, with Algorithm 1 for R-UCBE; as published; and with our
recommendation, where R-UCBE makes the same pulls as written and recommends the largest estimate.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from latebloomer import paper
from latebloomer.core.statistics import share
from latebloomer.errors import LatebloomerError
from latebloomer.paper import experiments as ex
from latebloomer.paper.claims import CLAIMS
from latebloomer.paper.evidence import Claim, Evidence, Finding
from latebloomer.paper.workbench import Figure, Row, Workbench, read_rows, write_rows
from latebloomer.version import __version__

VERDICTS = ("reproduced", "only as published", "not reproduced", "undecided")
REPRODUCED, ONLY_PUBLISHED, NOT, UNDECIDED = VERDICTS
WORDS = {True: "holds", False: "fails", None: "open"}
MOST_RUNS = 10_000  # maximum runs of a row that leaves a claim open
MOST_PULLS = 5e7  # maximum additional pulls for one claim, about two seconds
BY_SUMS = ("RR", "RR-SW", "SR", "R-SR")  # `simulate` runs them by sums, at almost no cost
AT_A_TIME = 8  # rows repeated together: the first few may decide the claim

Rows: TypeAlias = Sequence[Any]
Repeat: TypeAlias = Callable[[ex.Setting, Rows, int], list[Row]]  # simulates rows over more runs


class ClaimResult(NamedTuple):
    """A decided claim: a row of the file."""

    figure: str
    where: str
    claim: str
    decided_by: str
    verdict: str  # one of VERDICTS, from `as_written` and `as_published`
    as_written: str  # holds, fails or open
    as_published: str
    with_our_recommendation: str
    # The three answers of the strict reading; empty if the claim is always read strictly.
    strictly: str
    numbers_as_written: str
    numbers_as_published: str
    numbers_with_our_recommendation: str
    version: str


def decide_claims(workbench: Workbench, figures: Sequence[Figure]) -> list[ClaimResult]:
    """Decide the claims of these figures; results for other figures in the folder are kept.

    Results for these figures are also kept if their data are missing.
    """
    path, by_name = workbench.folder / "claims.csv", {figure.name: figure for figure in figures}
    before: list[ClaimResult] = read_rows(path, ClaimResult)
    results = []
    for name in dict.fromkeys(claim.passage.figure for claim in CLAIMS):
        decided = _decide(workbench, by_name[name]) if name in by_name else None
        old = [result for result in before if result.figure == name]
        results += old if decided is None else decided
    if results:
        write_rows(path, results)
    return results


def _decide(workbench: Workbench, figure: Figure) -> list[ClaimResult] | None:
    """Decide the claims of one figure; None if its data are missing."""
    claims = [claim for claim in CLAIMS if claim.passage.figure == figure.name]
    if not claims:
        return []
    as_written = replace(workbench, mode=paper.AS_WRITTEN)
    as_published = replace(workbench, mode=paper.AS_PUBLISHED, runs=paper.PUBLISHED_RUNS)
    try:
        written = figure.rows(as_written)
        published = figure.rows(as_published)
    except LatebloomerError:
        return None
    views: tuple[tuple[Workbench, Rows, Repeat], ...] = (
        (as_written, _rows(ex.as_the_text_says, written), partial(ex.more_runs, as_written)),
        (as_published, _rows(with_wilson, published), partial(_more_published, as_published)),
        (as_written, _rows(ex.with_our_recommendation, written), partial(_more_ours, as_written)),
    )
    return [result_of(claim, *(decide(*view, claim) for view in views)) for claim in claims]


def _rows(view: Callable[[Rows], list[Row]], rows: Rows) -> Rows:
    """Return a view of rows with runs; rows of another kind are returned unchanged."""
    return view(rows) if rows and isinstance(rows[0], Row) else rows


def _more_published(workbench: Workbench, setting: ex.Setting, rows: Rows, runs: int) -> list[Row]:
    return with_wilson(ex.more_runs(workbench, setting, rows, runs))


def _more_ours(workbench: Workbench, setting: ex.Setting, rows: Rows, runs: int) -> list[Row]:
    """Simulate R-UCBE with the recommendation by the estimate; its rows are named R-UCBE."""
    asked = [ex.as_series(row, "R-UCBE", ex.ESTIMATE) for row in rows]
    new_rows = ex.more_runs(workbench, setting, asked, runs)
    return [ex.as_series(row, ex.ESTIMATE, "R-UCBE") for row in new_rows]


def decide(workbench: Workbench, rows: Rows, repeat: Repeat, claim: Claim) -> Evidence:
    """Return the evidence for a claim; repeat rows that leave it open ten times as often.

    The claim stays open if `MOST_RUNS` runs do not decide it or would need more than `MOST_PULLS`.
    """
    evidence, pulls = claim.check(rows), 0
    by_sums = BY_SUMS if workbench.mode == paper.AS_WRITTEN else ()
    while evidence.finding.holds is None:
        drawn = [row for row in evidence.finding.rows if row.error_low < row.error_high]
        runs = min(MOST_RUNS, 10 * min((row.runs for row in drawn), default=MOST_RUNS))
        few = [row for row in drawn if row.runs < runs][:AT_A_TIME]
        pulls += runs * sum(row.T for row in few if row.algorithm not in by_sums)
        if not few or pulls > MOST_PULLS:
            break
        replaced = dict(zip(few, repeat(claim.passage.setting, few, runs), strict=True))
        rows = [replaced.get(row, row) for row in rows]
        evidence = claim.check(rows)
    return evidence


def with_wilson(rows: Rows) -> list[Row]:
    """Return published rows with Wilson's intervals; printed ones have no width at 0 of 100.

    Rows of one run are not random and keep an interval without width.
    """
    wilson = [share(round(row.error * row.runs), row.runs) for row in rows]
    return [
        row._replace(error_low=ends.low, error_high=ends.high) if row.runs > 1 else row
        for row, ends in zip(rows, wilson, strict=True)
    ]


def result_of(claim: Claim, written: Evidence, published: Evidence, ours: Evidence) -> ClaimResult:
    """Return the verdicts on a claim; the definitions of the text come first."""
    verdict = verdict_of(written.finding.holds, published.finding.holds)
    where = (claim.passage.figure, claim.passage.where, claim.sentence, claim.decided_by)
    three = (written, published, ours)
    words = [_word(evidence.finding) for evidence in three]
    strict = ", ".join(
        _word(evidence.strictly) for evidence in three if evidence.strictly is not None
    )
    numbers = [f"{evidence.finding.runs()}: {evidence.numbers}" for evidence in three]
    return ClaimResult._make((*where, verdict, *words, strict, *numbers, __version__))


def verdict_of(written: bool | None, published: bool | None) -> str:
    """Return the verdict for the answers of both modes; None means open."""
    if written is None or (written is False and published is None):
        return UNDECIDED
    return REPRODUCED if written else ONLY_PUBLISHED if published else NOT


def _word(finding: Finding) -> str:
    return WORDS[finding.holds]
