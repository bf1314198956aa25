"""All figures, and the function that writes them: CSV, PNG and PDF of each, and one page."""

import base64
import csv
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from latebloomer import paper
from latebloomer._util.atomic_files import make_folder, write_file
from latebloomer.errors import (
    LatebloomerError,
    OutputError,
    extra,
    need_extras,
    need_whole,
    require,
    unknown,
)
from latebloomer.page.race_html import html_document, page_file
from latebloomer.paper import drawing, extra_figures, live_imdb, setting_figures, theory_figures
from latebloomer.paper.conventions import COLUMNS, CONVENTIONS
from latebloomer.paper.verdicts import VERDICTS, WORDS, ClaimResult, decide_claims
from latebloomer.paper.workbench import PARTS, Figure, Workbench, write_rows
from latebloomer.simulation.results.plots import write_figure
from latebloomer.version import __version__

FIGURES: tuple[Figure, ...] = (  # in the order of the page
    theory_figures.estimators,
    theory_figures.rates,
    setting_figures.setting_a_arms,
    setting_figures.table_1,
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
    theory_figures.instances,
    theory_figures.lower_bound_figure,
    theory_figures.concavity,
    extra_figures.families,
)
KINDS = ("csv", "png", "pdf")
DPI = 150  # resolution of the pictures


def chosen(names: Sequence[str]) -> list[Figure]:
    """Return the figures with these names, in the order of the page; "all" omits live figures."""
    known = ["all", *(figure.name for figure in FIGURES)]
    for name in names:
        if name not in known:
            raise unknown("figure", name, known)
    wanted = [
        figure for figure in FIGURES if figure.name in names or ("all" in names and figure.in_all)
    ]
    require(bool(wanted), "names", list(names), "at least one, or all", "there is nothing to make")
    return wanted


def reproduce(names: Sequence[str], workbench: Workbench) -> list[str]:
    """Make figures, decide claims and write the page; return texts about what failed, and why.

    Files of an earlier call of this version with the same mode and runs are kept. Files of the
    other mode and of other versions have other names. Other files in the folder are not changed.
    """
    figures = chosen(names)
    known = workbench.mode in paper.MODES
    require(known, "mode", workbench.mode, " or ".join(paper.MODES), "figures have no other")
    need_whole("runs", workbench.runs, 1, "it counts runs")
    need_whole("jobs", workbench.jobs, 1, "it counts threads")
    need_extras("figures", sim="numba", plots="matplotlib")
    extra("matplotlib", "figures", "plots").use("Agg")
    pyplot = extra("matplotlib.pyplot", "figures", "plots")
    make_folder(workbench.folder / PARTS)
    failures = []
    for figure in figures:
        started = time.perf_counter()
        try:
            kept = _make(figure, workbench, pyplot)
        except OutputError:
            raise  # the other files could not be written either
        except LatebloomerError as error:
            failures.append(f"{figure.name}: {type(error).__name__}: {error}")
            workbench.say(failures[-1])
            continue
        spent = "kept" if kept else f"{time.perf_counter() - started:.1f} s"
        workbench.say(f"{figure.name:16} {spent:>8}  {file_of(workbench, figure, 'png')}")
    write_page(workbench, decide_claims(workbench, figures))
    workbench.say(f"{'index':16} {'':>8}  {workbench.folder / 'index.html'}")
    return failures


def _make(figure: Figure, workbench: Workbench, pyplot: Any) -> bool:
    """Write the files of a figure; return True if they already existed."""
    record = _record(workbench, figure)
    conditions = {"mode": workbench.mode, "runs": workbench.runs, "version": __version__}
    table, *pictures = files = [file_of(workbench, figure, kind) for kind in KINDS]
    if record.is_file() and all(file.is_file() for file in files):
        known = json.loads(record.read_text(encoding="utf-8"))
        if known | conditions == known:
            return True
    record.unlink(missing_ok=True)
    rows = figure.rows(workbench)
    write_rows(table, rows)
    with pyplot.style.context("default"):
        drawn, notes = figure.show(pyplot, rows, workbench.mode)
        drawing.entitle(drawn, figure.title, rows, workbench.mode)
        drawn.set_dpi(DPI)
        drawn.get_layout_engine().execute(drawn)  # once: else each file computes the layout twice
        drawn.set_layout_engine(None)
        for file in pictures:
            write_figure(drawn, file, dpi=DPI)
        pyplot.close(drawn)
    write_file(record, json.dumps(conditions | {"notes": notes}))
    return False


def file_of(workbench: Workbench, figure: Figure, kind: str) -> Path:
    """Return the file of a figure: its name has the mode and the version that made it."""
    return workbench.folder / f"{figure.name}.{workbench.mode}.{__version__}.{kind}"


def _record(workbench: Workbench, figure: Figure) -> Path:
    return workbench.folder / PARTS / f"{figure.name}.{workbench.mode}.json"


# --- the page `index.html`: every picture, the numbers behind it and the claims ---

ABOUT = (
    f"<p class='meta'>Made by latebloomer {__version__}. <b>as-written</b> runs the text's "
    "algorithms, where R-UCBE recommends argmax B; <b>as-published</b> uses the conventions that "
    "made the published series; <b>with our recommendation</b> is as-written, but R-UCBE "
    "recommends the largest estimate. Intervals are 95 %: Wilson's for errors and Student's for "
    "regrets as written, mean ± 2 sd/√runs, rounded, as published. A claim is decided if they "
    "exclude its boundary; rows that leave it open are repeated, up to 10,000 runs, and a claim "
    "that is still open is undecided. A sentence that states a limit, says all or consistently, "
    "or denies something must hold at every budget that it is about; any other sentence about "
    "several budgets is decided by the means over them, and <b>strictly</b> says whether it holds "
    "at every one of them.</p>"
)
VIEWS = ("as written", "as published", "with our recommendation")
MOST_ROWS = 600  # maximum rows of a table on the page; the file has all rows


def write_page(workbench: Workbench, results: Sequence[ClaimResult]) -> None:
    """Write the page with all figures of this version in the folder, of both modes."""
    benches = [replace(workbench, mode=mode) for mode in paper.MODES]
    sections = [
        (bench, figure) for figure in FIGURES for bench in benches if _is_made(bench, figure)
    ]
    links = " ".join(
        f'<a href="#{_anchor(*section)}">{_anchor(*section)}</a>' for section in sections
    )
    body = "\n".join(_section(*section) for section in sections)
    title = "Best arm identification for stochastic rising bandits, reproduced"
    values = f"<h2 id='values'>Values of each mode</h2>{_table('values', COLUMNS, CONVENTIONS)}"
    text = f"<h1>{title}</h1>{ABOUT}<nav>{links}</nav>{_claims(results)}{values}{body}"
    page = html_document("The paper, reproduced", page_file("reproduction.css"), text)
    write_file(workbench.folder / "index.html", page)


def _is_made(workbench: Workbench, figure: Figure) -> bool:
    return _record(workbench, figure).is_file() and file_of(workbench, figure, "png").is_file()


def _anchor(workbench: Workbench, figure: Figure) -> str:
    return f"{figure.name}-{workbench.mode}"


def _claims(results: Sequence[ClaimResult]) -> str:
    if not results:
        return ""
    verdicts = [result.verdict for result in results]
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in VERDICTS)
    head = ("claim", "decided by", "verdict", *VIEWS, "strictly, in this order")
    rows = [
        (
            f"{result.claim} ({result.where})",
            result.decided_by,
            result.verdict,
            *_with_numbers(result),
            result.strictly,
        )
        for result in results
    ]
    text = f"{counts}. {'; '.join(summary(results))}."
    return f"<h2 id='claims'>Claims</h2><p>{text}</p>{_table('claims', head, rows)}"


def _with_numbers(result: ClaimResult) -> list[str]:
    words = (result.as_written, result.as_published, result.with_our_recommendation)
    numbers = (result.numbers_as_written, result.numbers_as_published)
    both = zip(words, (*numbers, result.numbers_with_our_recommendation), strict=True)
    return [f"{word} ({number})" for word, number in both]


def summary(results: Sequence[ClaimResult]) -> list[str]:
    """Return how many claims hold, fail and are open in each view."""
    words = zip(
        *(
            (result.as_written, result.as_published, result.with_our_recommendation)
            for result in results
        ),
        strict=True,
    )
    return [
        f"{view}: " + ", ".join(f"{verdicts.count(word)} {word}" for word in WORDS.values())
        for view, verdicts in zip(VIEWS, words, strict=True)
    ]


def _section(workbench: Workbench, figure: Figure) -> str:
    record = json.loads(_record(workbench, figure).read_text(encoding="utf-8"))
    picture = base64.b64encode(file_of(workbench, figure, "png").read_bytes()).decode()
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in record["notes"])
    numbers = file_of(workbench, figure, "csv")
    with numbers.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    table = _table("numbers", head, [map(_short, row) for row in rows[:MOST_ROWS]])
    more = f"{len(rows) - MOST_ROWS} more rows in {numbers.name}" if rows[MOST_ROWS:] else ""
    return (
        f"<h2 id='{_anchor(workbench, figure)}'>{escape(figure.title)}</h2>"
        f"<p class='meta'><code>{figure.name}</code>, {record['mode']}, {record['runs']} runs, "
        f"latebloomer {record['version']}</p>"
        f"<img alt='{escape(figure.title)}' src='data:image/png;base64,{picture}'>{notes}"
        f"<details><summary>numbers</summary><div class='scroll'>{table}</div>"
        f"<p class='note'>{more}</p></details>"
    )


def _table(kind: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; a cell with a verdict has the verdict's first word as its class."""
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
