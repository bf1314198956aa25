"""All figures, and how they are made into a folder: CSV, PNG and PDF each, and one page."""

from __future__ import annotations

import base64
import csv
import json
import time
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from latebloomer._util.atomic_files import make_folder, write_file
from latebloomer.errors import LatebloomerError, OutputError, extra, require, unknown
from latebloomer.page.race_html import html_document
from latebloomer.paper import MODES, extra_figures, live_imdb, setting_figures, theory_figures
from latebloomer.paper import claim_results as claims
from latebloomer.paper.workbench import PARTS, Figure, Workbench, write_rows
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
    """Return the figures of these names, each once; "all" is all except the live training."""
    known = {figure.name: figure for figure in FIGURES}
    wanted: dict[str, Figure] = {}
    for name in names:
        if name == "all":
            wanted |= {figure.name: figure for figure in FIGURES if figure.in_all}
        elif name in known:
            wanted[name] = known[name]
        else:
            raise unknown("figure", name, ["all", *known])
    require(bool(wanted), "names", list(names), "at least one, or all", "there is nothing to make")
    return list(wanted.values())


def reproduce(names: Sequence[str], bench: Workbench) -> list[str]:
    """Make figures, decide claims, write the page; return what could not be made, and why.

    Files that an earlier call with the same mode and runs has made are kept. Nothing else in the
    folder is touched.
    """
    figures = chosen(names)
    require(bench.mode in MODES, "mode", bench.mode, f"one of {', '.join(MODES)}", "no other is")
    require(bench.runs >= 1, "runs", bench.runs, "at least 1", "it counts runs")
    require(bench.jobs >= 1, "jobs", bench.jobs, "at least 1", "it counts threads")
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
    write_page(bench, claims.decide_claims(bench, figures))
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

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1080px;margin:2rem auto;padding:0 1rem}
body{color:#1b1f24} h1{font-size:1.7rem}
h2{font-size:1.15rem;margin-top:2.5rem;border-top:1px solid #d8dee4;padding-top:1rem}
img{max-width:100%;height:auto} table{border-collapse:collapse;font-size:12.5px;width:100%}
th,td{border-bottom:1px solid #e4e8ec;padding:.25rem .5rem;text-align:left;vertical-align:top}
th{background:#f6f8fa;position:sticky;top:0} .scroll{max-height:26rem;overflow:auto}
.numbers td{font-variant-numeric:tabular-nums;white-space:nowrap}
.claims td:nth-child(3){white-space:nowrap;font-weight:600} .reproduced{color:#1a7f37}
.only{color:#9a6700} .not{color:#cf222e} .undecided,.note,.meta{color:#57606a}
nav a{margin-right:.8rem;white-space:nowrap}
summary{cursor:pointer;color:#0969da;margin:.4rem 0} code{background:#f6f8fa;padding:.1rem .25rem}
"""
ABOUT = (
    f"<p class='meta'>Made by latebloomer {__version__}. <b>as-written</b> simulates the text's "
    "definitions with the library's policies; <b>as-published</b> uses the conventions that made "
    "the published series. Intervals are 95 %: Wilson's for errors and Student's for regrets as "
    "written, mean ± 2 sd/√runs, rounded, as published. A claim is decided if they exclude its "
    "boundary; rows that leave it open are repeated, up to 10,000 runs, and a claim that is still "
    "open is undecided.</p>"
)
MOST_ROWS = 600  # of a table on the page; the file has all


def write_page(bench: Workbench, results: Sequence[claims.ClaimResult]) -> None:
    """Write the page of all figures that are in the folder."""
    made = [figure for figure in FIGURES if _record(bench, figure).is_file()]
    links = " ".join(f'<a href="#{figure.name}">{figure.name}</a>' for figure in made)
    body = "\n".join(_section(bench, figure) for figure in made)
    title = "Best arm identification for stochastic rising bandits, reproduced"
    text = f"<h1>{title}</h1>{ABOUT}<nav>{links}</nav>{_claims(results)}{body}"
    write_file(bench.folder / "index.html", html_document("The paper, reproduced", STYLE, text))


def _claims(results: Sequence[claims.ClaimResult]) -> str:
    if not results:
        return ""
    counts = ", ".join(
        f"{sum(result.verdict == word for result in results)} {word}" for word in claims.VERDICTS
    )
    head = ("claim", "decided by", "verdict", "as written", "as published")
    rows = [
        (
            f"{one.claim} ({one.where})",
            one.decided_by,
            one.verdict,
            one.as_written,
            one.as_published,
        )
        for one in results
    ]
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
    kind = f" class='{text.split()[0]}'" if text in claims.VERDICTS else ""
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
