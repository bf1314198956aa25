"""The commands reproduce and cite: the paper's figures, and what to cite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latebloomer.citation import cite as bibtex
from latebloomer.cli import options as o
from latebloomer.cli.terminal_output import say
from latebloomer.errors import Interrupted
from latebloomer.paper import AS_PUBLISHED, AS_WRITTEN, PUBLISHED_RUNS


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAMES]...", help="Figures or tables by name, or all."),
    ] = None,
    listed: Annotated[bool, o.flag("list")] = False,
    runs: Annotated[int, o.count("runs")] = PUBLISHED_RUNS,
    mode: Annotated[str, o.choice("mode", AS_WRITTEN, AS_PUBLISHED)] = AS_WRITTEN,
    out: Annotated[Path, o.text("reproduce.out")] = Path("reproduction"),
    jobs: Annotated[int | None, o.count("jobs")] = None,
    quiet: Annotated[bool, o.flag("quiet")] = False,
) -> None:
    """Reproduce the paper's figures, tables and claims."""
    from latebloomer.paper.reproduction import FIGURES
    from latebloomer.paper.reproduction import reproduce as make
    from latebloomer.paper.workbench import Workbench
    from latebloomer.simulation.local_runs import cores

    if listed or not names:
        for figure in FIGURES:
            say(f"{figure.name:16} {figure.title}")
        return
    bench = Workbench(out, runs, mode, cores() if jobs is None else jobs, shown=not quiet)
    try:
        failures = make(names, bench)
    except KeyboardInterrupt:
        advice = f". Repeat the command to make what is missing in {out}."
        raise Interrupted("Stopped", None, advice) from None
    if failures:
        raise typer.Exit(2)


def cite(
    what: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Policy, or key of a reference.")
    ] = "Mussi24",
) -> None:
    """Print the BibTeX entry to cite."""
    say(bibtex(what))
