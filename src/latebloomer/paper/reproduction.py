"""All figures, and how they are made into a folder: CSV, PNG and PDF each, and one page."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latebloomer._util.atomic_files import make_folder, write_file
from latebloomer.errors import LatebloomerError, OutputError, extra, require, unknown
from latebloomer.paper import (
    bounds_figure,
    estimator_figure,
    imdb_figures,
    live_imdb,
    lower_bound_figures,
    random_instances_figure,
    running_time_figure,
    setting_figures,
)
from latebloomer.paper.claim_results import decide_claims
from latebloomer.paper.figure import PARTS, Figure, Made, Workbench, write_rows
from latebloomer.paper.modes import MODES
from latebloomer.paper.paper_page import write_page
from latebloomer.simulation.plots import write_figure

FIGURES: tuple[Figure, ...] = (  # in the order of the page
    estimator_figure.FIGURE,
    setting_figures.A_ARMS,
    setting_figures.A_ERRORS,
    setting_figures.A_REGRET,
    setting_figures.EXPLORATION,
    setting_figures.B_ARMS,
    setting_figures.B_ERRORS,
    setting_figures.NOISE,
    imdb_figures.ARMS,
    imdb_figures.TABLE,
    live_imdb.FIGURE,
    running_time_figure.FIGURE,
    bounds_figure.FIGURE,
    lower_bound_figures.LOWER_BOUND,
    lower_bound_figures.CONCAVITY,
    random_instances_figure.FIGURE,
)
KINDS = ("csv", "png", "pdf")
DPI = 150  # of the pictures


def chosen(names: Sequence[str]) -> list[Figure]:
    """The figures of these names, each once; "all" is all but the live training."""
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
    """Make figures, decide claims, write the page; returns what could not be made, and why.

    What an earlier call of the same mode and runs has made is kept. Nothing else in the folder
    is touched.
    """
    figures = chosen(names)
    require(bench.mode in MODES, "mode", bench.mode, f"one of {', '.join(MODES)}", "no other is")
    require(bench.runs >= 1, "runs", bench.runs, "at least 1", "it counts runs")
    require(bench.jobs >= 1, "jobs", bench.jobs, "at least 1", "it counts threads")
    pyplot = _pyplot()
    make_folder(bench.folder / PARTS)
    failures = []
    for figure in figures:
        started = time.perf_counter()
        try:
            there = _make(figure, bench, pyplot)
        except OutputError:
            raise  # the others could not be written either
        except LatebloomerError as error:
            failures.append(f"{figure.name}: {type(error).__name__}: {error}")
            bench.say(failures[-1])
            continue
        spent = "kept" if there else f"{time.perf_counter() - started:.1f} s"
        bench.say(f"{figure.name:16} {spent:>8}  {bench.folder / figure.name}.png")
    results = decide_claims(bench, {figure.name for figure in figures})
    write_page(bench, FIGURES, results)
    bench.say(f"{'index':16} {'':>8}  {bench.folder / 'index.html'}")
    return failures


def _pyplot() -> Any:
    extra("matplotlib", "figures", "plots").use("Agg")
    return extra("matplotlib.pyplot", "figures", "plots")


def _make(figure: Figure, bench: Workbench, pyplot: Any) -> bool:
    """Write the files of a figure; True if they are there already."""
    record = bench.folder / PARTS / f"{figure.name}.json"
    circumstances = {"mode": bench.mode, "runs": bench.runs}
    files = [bench.folder / f"{figure.name}.{kind}" for kind in KINDS]
    if all(file.is_file() for file in files) and _same(record, circumstances):
        return True
    record.unlink(missing_ok=True)
    made = figure.make(bench)
    write_rows(files[0], made.rows)
    _draw(made, pyplot, files[1:])
    write_file(record, json.dumps(circumstances | {"notes": list(made.notes)}))
    return False


def _same(record: Path, circumstances: dict[str, Any]) -> bool:
    if not record.is_file():
        return False
    known = json.loads(record.read_text(encoding="utf-8"))
    return all(known.get(name) == value for name, value in circumstances.items())


def _draw(made: Made, pyplot: Any, files: Sequence[Path]) -> None:
    with pyplot.style.context("default"):
        figure = made.draw(pyplot)
        _lay_out(figure)
        for file in files:
            write_figure(figure, file, dpi=DPI)
        pyplot.close(figure)


def _lay_out(figure: Any) -> None:
    """Find the places of axes and legends once: else each file is drawn twice to find them."""
    figure.set_dpi(DPI)
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine(None)
