"""The commands reproduce and cite: the paper's figures, and whom to cite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latebloomer.citation import cite as bibtex
from latebloomer.cli.terminal_output import say
from latebloomer.errors import Interrupted
from latebloomer.paper import AS_WRITTEN, PUBLISHED_RUNS


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Figures or tables by name, or all.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show the names.")] = False,
    runs: Annotated[int, typer.Option(help="Runs of each algorithm at each budget.")] = (
        PUBLISHED_RUNS
    ),
    mode: Annotated[str, typer.Option(help="as-written or as-published.")] = AS_WRITTEN,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("reproduction"),
    jobs: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Make the paper's figures and tables again. Each of its claims gets a verdict."""
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
        said = f"stopped; the same command goes on with what is missing in {out}"
        raise Interrupted(said, None) from None
    if failures:
        raise typer.Exit(2)


def cite(
    what: Annotated[str, typer.Argument(help="A policy or a key of the references.")] = "Mussi24",
) -> None:
    """Print the BibTeX entry to cite."""
    say(bibtex(what))
