"""The command `latebloomer reproduce`; `register` adds it to the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latebloomer.errors import LatebloomerError
from latebloomer.paper import AS_WRITTEN, FIGURES, PUBLISHED_RUNS, Workbench
from latebloomer.paper import reproduce as make
from latebloomer.simulation.local_runs import cores


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(reproduce)


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
    """Make the paper's figures and tables again, with a verdict on each of its claims."""
    if listed or not names:
        for figure in FIGURES:
            typer.echo(f"{figure.name:16} {figure.title}")
        return
    bench = Workbench(out, runs, mode, cores() if jobs is None else jobs, shown=not quiet)
    try:
        failures = make(names, bench)
    except LatebloomerError as error:
        typer.echo(f"{type(error).__name__}: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo(f"stopped; the same command goes on with what is missing in {out}", err=True)
        raise typer.Exit(130) from None
    if failures:
        raise typer.Exit(2)
