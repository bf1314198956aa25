"""The page `index.html`: every picture, the numbers behind it and the claims, in one file."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from latebloomer._util.atomic_files import write_file
from latebloomer.page.html_document import html_document
from latebloomer.paper.claim_results import (
    NOT,
    ONLY_PUBLISHED,
    REPRODUCED,
    UNDECIDED,
    ClaimResult,
)
from latebloomer.paper.figure import PARTS, Figure, Workbench
from latebloomer.version import __version__

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1080px;margin:2rem auto;padding:0 1rem}
body{color:#1b1f24} h1{font-size:1.7rem}
h2{font-size:1.15rem;margin-top:2.5rem;border-top:1px solid #d8dee4;padding-top:1rem}
img{max-width:100%;height:auto} table{border-collapse:collapse;font-size:12.5px;width:100%}
th,td{border-bottom:1px solid #e4e8ec;padding:.25rem .5rem;text-align:left;vertical-align:top}
th{background:#f6f8fa;position:sticky;top:0} .scroll{max-height:26rem;overflow:auto}
.numbers td{font-variant-numeric:tabular-nums;white-space:nowrap}
.verdict{white-space:nowrap;font-weight:600} .reproduced{color:#1a7f37} .only{color:#9a6700}
.not{color:#cf222e} .open,.note,.meta{color:#57606a}
nav a{margin-right:.8rem;white-space:nowrap}
summary{cursor:pointer;color:#0969da;margin:.4rem 0} code{background:#f6f8fa;padding:.1rem .25rem}
"""
CLASSES = {REPRODUCED: "reproduced", ONLY_PUBLISHED: "only", NOT: "not", UNDECIDED: "open"}
MOST_ROWS = 600  # of a table on the page; the file has all
DIGITS = 4


def write_page(
    bench: Workbench, figures: Sequence[Figure], results: Sequence[ClaimResult]
) -> None:
    """Write the page of all figures that are in the folder."""
    made = [figure for figure in figures if _record(bench, figure).is_file()]
    links = " ".join(f'<a href="#{figure.name}">{figure.name}</a>' for figure in made)
    body = "\n".join(_section(bench, figure) for figure in made)
    text = html_document(
        "The paper, reproduced",
        STYLE,
        f"<h1>Best arm identification for stochastic rising bandits, reproduced</h1>"
        f"{_about()}<nav>{links}</nav>{_claims(results)}{body}",
    )
    write_file(bench.folder / "index.html", text)


def _about() -> str:
    return (
        f"<p class='meta'>Made by latebloomer {__version__}. <b>as-written</b> plays the text's "
        "definitions with the library's policies; <b>as-published</b> plays the conventions that "
        "made the published series. Intervals are 95 %: Wilson's for errors and Student's for "
        "regrets as written, mean ± 2 sd/√runs, rounded, as published. A claim is decided where "
        "they exclude its boundary; rows that leave it open are played more often, up to 10,000 "
        "runs, and what then still is open is undecided.</p>"
    )


def _claims(results: Sequence[ClaimResult]) -> str:
    if not results:
        return ""
    counts = ", ".join(f"{sum(r.verdict == word for r in results)} {word}" for word in CLASSES)
    head = "<tr><th>claim<th>decided by<th>verdict<th>as written<th>as published</tr>"
    lines = "".join(_claim(result) for result in results)
    return f"<h2 id='claims'>Claims</h2><p>{counts}.</p><table>{head}{lines}</table>"


def _claim(result: ClaimResult) -> str:
    kind = CLASSES[result.verdict]
    return (
        f"<tr><td>{escape(result.claim)} <span class='note'>({escape(result.where)})</span>"
        f"<td>{escape(result.decided_by)}<td class='verdict {kind}'>{result.verdict}"
        f"<td>{escape(result.as_written)}<td>{escape(result.as_published)}</tr>"
    )


def _section(bench: Workbench, figure: Figure) -> str:
    record = json.loads(_record(bench, figure).read_text(encoding="utf-8"))
    picture = base64.b64encode((bench.folder / f"{figure.name}.png").read_bytes()).decode()
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in record["notes"])
    return (
        f"<h2 id='{figure.name}'>{escape(figure.title)}</h2>"
        f"<p class='meta'><code>{figure.name}</code>, {record['mode']}, {record['runs']} runs</p>"
        f"<img alt='{escape(figure.title)}' src='data:image/png;base64,{picture}'>{notes}"
        f"<details><summary>numbers</summary>{_table(bench.folder / f'{figure.name}.csv')}"
        "</details>"
    )


def _table(path: Path) -> str:
    with path.open(newline="", encoding="utf-8") as file:
        head, *lines = list(csv.reader(file))
    shown = "".join(
        "<tr>" + "".join(f"<td>{escape(_short(cell))}" for cell in line) + "</tr>"
        for line in lines[:MOST_ROWS]
    )
    more = len(lines) - MOST_ROWS
    rest = f"<p class='note'>{more} more rows in {path.name}</p>" if more > 0 else ""
    titles = "".join(f"<th>{escape(cell)}" for cell in head)
    return (
        f"<div class='scroll'><table class='numbers'><tr>{titles}</tr>{shown}</table></div>{rest}"
    )


def _short(cell: str) -> str:
    """A number with few digits; any other text as it is.

    >>> _short("0.123456"), _short("3200"), _short("R-SR")
    ('0.1235', '3200', 'R-SR')
    """
    if "." not in cell and "e" not in cell:
        return cell
    try:
        return f"{float(cell):.{DIGITS}g}"
    except ValueError:
        return cell


def _record(bench: Workbench, figure: Figure) -> Path:
    return bench.folder / PARTS / f"{figure.name}.json"
