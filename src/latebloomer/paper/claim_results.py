"""The paper's claims decided from the runs of both modes: the file `claims.csv`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from latebloomer.errors import LatebloomerError
from latebloomer.paper import series
from latebloomer.paper.claims import CLAIMS, Claim, Evidence
from latebloomer.paper.experiments import AS_PUBLISHED, AS_WRITTEN, SETTING_A, SETTING_B
from latebloomer.paper.figure import Row, Workbench, read_rows, write_rows

REPRODUCED, ONLY_PUBLISHED, NOT = "reproduced", "only as published", "not reproduced"
FILE = "claims.csv"
LOADERS: dict[str, Callable[[Workbench, str], list[Row]]] = {
    "setting-a": lambda bench, mode: series.errors(bench, SETTING_A, mode),
    "simple-regret": lambda bench, mode: series.errors(bench, SETTING_A, mode),
    "exploration": series.exploration,
    "setting-b": lambda bench, mode: series.errors(bench, SETTING_B, mode),
    "noise": series.noise,
    "imdb": series.imdb,
}


class ClaimResult(NamedTuple):
    """A decided claim: a row of the file."""

    figure: str
    where: str
    claim: str
    decided_by: str
    verdict: str  # one of the three words above
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
    try:
        written = LOADERS[figure](bench, AS_WRITTEN)
        published = LOADERS[figure](series.with_published_runs(bench), AS_PUBLISHED)
    except LatebloomerError:
        return []
    return [
        result_of(claim, claim.check(written), claim.check(published))
        for claim in CLAIMS
        if claim.figure == figure
    ]


def result_of(claim: Claim, written: Evidence, published: Evidence) -> ClaimResult:
    """What the evidence of both modes says of a claim: the text's own definitions come first."""
    verdict = REPRODUCED if written.holds else ONLY_PUBLISHED if published.holds else NOT
    said = (f"{'holds' if e.holds else 'fails'}: {e.numbers}" for e in (written, published))
    return ClaimResult(claim.figure, claim.where, claim.sentence, claim.decided_by, verdict, *said)
