"""All figures, and how they are made into a folder: CSV, PNG and PDF each, and one page."""

import base64
import csv
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from latebloomer import paper
from latebloomer._util.atomic_files import make_folder, write_file
from latebloomer.core.statistics import share
from latebloomer.errors import LatebloomerError, OutputError, extra, need_whole, require, unknown
from latebloomer.page.race_html import html_document, page_file
from latebloomer.paper import experiments as ex
from latebloomer.paper import extra_figures, live_imdb, setting_figures, theory_figures
from latebloomer.paper.claims import CLAIMS
from latebloomer.paper.evidence import Claim, Evidence
from latebloomer.paper.workbench import PARTS, Figure, Row, Workbench, read_rows, write_rows
from latebloomer.simulation.plots import write_figure
from latebloomer.version import __version__

FIGURES: tuple[Figure, ...] = (  # in the order of the page
    theory_figures.estimators,
    setting_figures.setting_a_arms,
    setting_figures.setting_a,
    setting_figures.simple_regret,
    setting_figures.exploration,
    setting_figures.setting_b_arms,
    setting_figures.setting_b,
    setting_figures.noise,
    setting_figures.imdb_arms,
    setting_figures.imdb,
    live_imdb.imdb_live,
    setting_figures.running_time,
    extra_figures.bounds,
    theory_figures.lower_bound_figure,
    theory_figures.concavity,
    extra_figures.families,
)
KINDS = ("csv", "png", "pdf")
DPI = 150  # resolution of the pictures


def chosen(names: Sequence[str]) -> list[Figure]:
    """Return the figures of these names, in the order of the page; "all" is without live ones."""
    known = ["all", *(figure.name for figure in FIGURES)]
    for name in names:
        if name not in known:
            raise unknown("figure", name, known)
    wanted = [one for one in FIGURES if one.name in names or ("all" in names and one.in_all)]
    require(bool(wanted), "names", list(names), "at least one, or all", "there is nothing to make")
    return wanted


def reproduce(names: Sequence[str], bench: Workbench) -> list[str]:
    """Make figures, decide claims, write the page; return what could not be made, and why.

    Files that an earlier call with the same mode and runs has made are kept. Nothing else in the
    folder is touched.
    """
    figures = chosen(names)
    known = bench.mode in paper.MODES
    require(known, "mode", bench.mode, " or ".join(paper.MODES), "figures have no other")
    need_whole("runs", bench.runs, 1, "it counts runs")
    need_whole("jobs", bench.jobs, 1, "it counts threads")
    extra("matplotlib", "figures", "plots").use("Agg")
    pyplot = extra("matplotlib.pyplot", "figures", "plots")
    make_folder(bench.folder / PARTS)
    failures = []
    for figure in figures:
        started = time.perf_counter()
        try:
            found = _make(figure, bench, pyplot)
        except OutputError:
            raise  # the others could not be written either
        except LatebloomerError as error:
            failures.append(f"{figure.name}: {type(error).__name__}: {error}")
            bench.say(failures[-1])
            continue
        spent = "kept" if found else f"{time.perf_counter() - started:.1f} s"
        bench.say(f"{figure.name:16} {spent:>8}  {bench.folder / figure.name}.png")
    write_page(bench, decide_claims(bench, figures))
    bench.say(f"{'index':16} {'':>8}  {bench.folder / 'index.html'}")
    return failures


def _make(figure: Figure, bench: Workbench, pyplot: Any) -> bool:
    """Write the files of a figure; return True if they were there already."""
    record = _record(bench, figure)
    conditions = {"mode": bench.mode, "runs": bench.runs}
    table, *pictures = files = [bench.folder / f"{figure.name}.{kind}" for kind in KINDS]
    if record.is_file() and all(file.is_file() for file in files):
        known = json.loads(record.read_text(encoding="utf-8"))
        if known | conditions == known:
            return True
    record.unlink(missing_ok=True)
    rows = figure.rows(bench)
    write_rows(table, rows)
    with pyplot.style.context("default"):
        drawn, notes = figure.show(pyplot, rows, bench.mode)
        drawn.set_dpi(DPI)
        drawn.get_layout_engine().execute(drawn)  # once: else each file computes the layout twice
        drawn.set_layout_engine(None)
        for file in pictures:
            write_figure(drawn, file, dpi=DPI)
        pyplot.close(drawn)
    write_file(record, json.dumps(conditions | {"notes": notes}))
    return False


def _record(bench: Workbench, figure: Figure) -> Path:
    return bench.folder / PARTS / f"{figure.name}.json"


# --- the page `index.html`: every picture, the numbers behind it and the claims ---

ABOUT = (
    f"<p class='meta'>Made by latebloomer {__version__}. <b>as-written</b> simulates the text's "
    "definitions with the library's policies; <b>as-published</b> uses the conventions that made "
    "the published series. Intervals are 95 %: Wilson's for errors and Student's for regrets as "
    "written, mean ± 2 sd/√runs, rounded, as published. A claim is decided if they exclude its "
    "boundary; rows that leave it open are repeated, up to 10,000 runs, and a claim that is still "
    "open is undecided.</p>"
)
MOST_ROWS = 600  # of a table on the page; the file has all


def write_page(bench: Workbench, results: "Sequence[ClaimResult]") -> None:
    """Write the page of all figures that are in the folder."""
    made = [figure for figure in FIGURES if _record(bench, figure).is_file()]
    links = " ".join(f'<a href="#{figure.name}">{figure.name}</a>' for figure in made)
    body = "\n".join(_section(bench, figure) for figure in made)
    title = "Best arm identification for stochastic rising bandits, reproduced"
    text = f"<h1>{title}</h1>{ABOUT}<nav>{links}</nav>{_claims(results)}{body}"
    page = html_document("The paper, reproduced", page_file("reproduction.css"), text)
    write_file(bench.folder / "index.html", page)


def _claims(results: "Sequence[ClaimResult]") -> str:
    if not results:
        return ""
    found = [result.verdict for result in results]
    counts = ", ".join(f"{found.count(word)} {word}" for word in VERDICTS)
    head = ("claim", "decided by", "verdict", "as written", "as published")
    rows = [(f"{one.claim} ({one.where})", *one[3:]) for one in results]
    return f"<h2 id='claims'>Claims</h2><p>{counts}.</p>{_table('claims', head, rows)}"


def _section(bench: Workbench, figure: Figure) -> str:
    record = json.loads(_record(bench, figure).read_text(encoding="utf-8"))
    picture = base64.b64encode((bench.folder / f"{figure.name}.png").read_bytes()).decode()
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in record["notes"])
    with (bench.folder / f"{figure.name}.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    table = _table("numbers", head, [map(_short, row) for row in rows[:MOST_ROWS]])
    more = f"{len(rows) - MOST_ROWS} more rows in {figure.name}.csv" if rows[MOST_ROWS:] else ""
    return (
        f"<h2 id='{figure.name}'>{escape(figure.title)}</h2>"
        f"<p class='meta'><code>{figure.name}</code>, {record['mode']}, {record['runs']} runs</p>"
        f"<img alt='{escape(figure.title)}' src='data:image/png;base64,{picture}'>{notes}"
        f"<details><summary>numbers</summary><div class='scroll'>{table}</div>"
        f"<p class='note'>{more}</p></details>"
    )


def _table(kind: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; cells that are a verdict have its first word as their class."""
    titles = "".join(f"<th>{escape(cell)}" for cell in head)
    lines = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table class='{kind}'><tr>{titles}</tr>{lines}</table>"


def _cell(text: str) -> str:
    kind = f" class='{text.split()[0]}'" if text in VERDICTS else ""
    return f"<td{kind}>{escape(text)}"


def _short(cell: str) -> str:
    """Return a number with few digits; any other text unchanged.

    >>> _short("0.123456"), _short("3200"), _short("R-SR")
    ('0.1235', '3200', 'R-SR')
    """
    try:
        return f"{float(cell):.4g}" if "." in cell or "e" in cell else cell
    except ValueError:
        return cell


# --- the claims, decided from the runs of both modes: the file `claims.csv` ---

VERDICTS = ("reproduced", "only as published", "not reproduced", "undecided")
REPRODUCED, ONLY_PUBLISHED, NOT, UNDECIDED = VERDICTS
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
    path, made = bench.folder / "claims.csv", {figure.name: figure for figure in figures}
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
    as_written = replace(bench, mode=paper.AS_WRITTEN)
    as_published = replace(bench, mode=paper.AS_PUBLISHED, runs=paper.PUBLISHED_RUNS)
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
    by_sums = BY_SUMS if bench.mode == paper.AS_WRITTEN else ()
    while found.finding.holds is None:
        drawn = [row for row in found.finding.rows if row.error_low < row.error_high]
        runs = min(MOST_RUNS, 10 * min((row.runs for row in drawn), default=MOST_RUNS))
        few = [row for row in drawn if row.runs < runs][:AT_A_TIME]
        pulls += runs * sum(row.T for row in few if row.algorithm not in by_sums)
        if not few or pulls > MOST_PULLS:
            break
        more = ex.more_runs(bench, claim.passage.setting, few, runs)
        if bench.mode == paper.AS_PUBLISHED:
            more = with_wilson(more)
        replaced = dict(zip(few, more, strict=True))
        rows = [replaced.get(row, row) for row in rows]
        found = claim.check(rows)
    return found


def with_wilson(rows: Sequence[Row]) -> list[Row]:
    """Return published rows with Wilson's intervals: the printed ones have no width at 0 of 100.

    Rows of one run are not random and keep an interval without width.
    """
    wilson = [share(round(row.error * row.runs), row.runs) for row in rows]
    return [
        row._replace(error_low=ends.low, error_high=ends.high) if row.runs > 1 else row
        for row, ends in zip(rows, wilson, strict=True)
    ]


def result_of(claim: Claim, written: Evidence, published: Evidence) -> ClaimResult:
    """Return the verdict on a claim; the text's own definitions come first."""
    verdict = verdict_of(written.finding.holds, published.finding.holds)
    where = (claim.passage.figure, claim.passage.where, claim.sentence, claim.decided_by)
    return ClaimResult(*where, verdict, _as_text(written), _as_text(published))


def verdict_of(written: bool | None, published: bool | None) -> str:
    """Return the verdict for the answers of both modes; None stands for open."""
    if written is None or (written is False and published is None):
        return UNDECIDED
    return REPRODUCED if written else ONLY_PUBLISHED if published else NOT


def _as_text(evidence: Evidence) -> str:
    word = {True: "holds", False: "fails", None: "open"}[evidence.finding.holds]
    return f"{word} ({evidence.finding.runs()}): {evidence.numbers}"
