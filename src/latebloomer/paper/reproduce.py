"""Makes figures into a folder: CSV, PNG and PDF each, and one page with all of them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latebloomer.errors import LatebloomerError, extra, require, unknown
from latebloomer.paper.claims import decide
from latebloomer.paper.experiments import MODES
from latebloomer.paper.figure import Figure, Made
from latebloomer.paper.figures import FIGURES
from latebloomer.paper.paper_page import write_page
from latebloomer.paper.table_rows import write_rows
from latebloomer.paper.workbench import PARTS, Bench

KINDS = ("csv", "png", "pdf")


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


def reproduce(names: Sequence[str], bench: Bench) -> list[str]:
    """Make the figures, the verdicts and the page; returns what could not be made, and why.

    What an earlier call of the same mode and runs has made is kept. Nothing else in the folder
    is touched.
    """
    figures = chosen(names)
    require(bench.mode in MODES, "mode", bench.mode, f"one of {', '.join(MODES)}", "no other is")
    require(bench.runs >= 1, "runs", bench.runs, "at least 1", "it counts runs")
    require(bench.jobs >= 1, "jobs", bench.jobs, "at least 1", "it counts threads")
    pyplot = _pyplot()
    (bench.folder / PARTS).mkdir(parents=True, exist_ok=True)
    failures = []
    for figure in figures:
        started = time.perf_counter()
        try:
            kept = _make(figure, bench, pyplot)
        except LatebloomerError as error:
            failures.append(f"{figure.name}: {type(error).__name__}: {error}")
            bench.say(failures[-1])
            continue
        spent = "kept" if kept else f"{time.perf_counter() - started:.1f} s"
        bench.say(f"{figure.name:16} {spent:>8}  {bench.folder / figure.name}.png")
    verdicts = decide(bench, {figure.name for figure in figures})
    write_page(bench, FIGURES, verdicts)
    bench.say(f"{'index':16} {'':>8}  {bench.folder / 'index.html'}")
    return failures


def _pyplot() -> Any:
    extra("matplotlib", "figures", "plots").use("Agg")
    return extra("matplotlib.pyplot", "figures", "plots")


def _make(figure: Figure, bench: Bench, pyplot: Any) -> bool:
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
    record.write_text(json.dumps(circumstances | {"notes": list(made.notes)}), encoding="utf-8")
    return False


def _same(record: Path, circumstances: dict[str, Any]) -> bool:
    if not record.is_file():
        return False
    known = json.loads(record.read_text(encoding="utf-8"))
    return all(known.get(name) == value for name, value in circumstances.items())


def _draw(made: Made, pyplot: Any, files: Sequence[Path]) -> None:
    with pyplot.style.context("default"):
        figure = made.draw(pyplot)
        for file in files:
            figure.savefig(file, dpi=150)
        pyplot.close(figure)
