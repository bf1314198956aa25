"""The command `latebloomer bench`; `register` adds it to the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latebloomer.errors import LatebloomerError, SettingError
from latebloomer.policies.registry import split_policies

SETS = (
    "Sets with commas between: lcdb11-linear, lcdb11-geometric, taskset, srb-imdb, yahpo (these "
    "five: public), random-FAMILY (six of them: random), paper-a, paper-b, imdb (paper), or all."
)
FOLDER = "Your own curves instead: a folder of .csv, .parquet or .npz files, one per problem."


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(bench)


def bench(
    folder: Annotated[Path | None, typer.Argument(help=FOLDER)] = None,
    sets: Annotated[str, typer.Option(help=SETS)] = "public",
    budgets: Annotated[str, typer.Option(help="In full trainings, with commas.")] = "1,2,4,8",
    policies: Annotated[str | None, typer.Option(help="With commas; twelve by default.")] = None,
    draws: Annotated[int, typer.Option(help="Draws of the noise for each problem.")] = 10,
    baseline: Annotated[str, typer.Option(help="Whom the others are compared with.")] = "r-sr",
    sigma: Annotated[float | None, typer.Option(help="Noise added to a folder's curves.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed is another luck.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.md, .csv and .png.")] = None,
    threads: Annotated[int | None, typer.Option(help="All cores by default.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Compare policies on recorded curves of real learners, or on your own."""
    from latebloomer.bench import TWELVE
    from latebloomer.bench import bench as play

    try:
        found = play(
            folder if folder is not None else sets.split(","),
            TWELVE if policies is None else split_policies(policies),
            [_number(part) for part in budgets.split(",")],
            draws,
            baseline=baseline,
            seed=seed,
            sigma=sigma,
            threads=threads,
            shown=not quiet,
        )
        written = found.write(out) if out is not None else []
    except LatebloomerError as error:
        typer.echo(f"{type(error).__name__}: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(found)
    if found.skipped:
        typer.echo(f"skipped {len(found.skipped)}: see the end of the report", err=True)
    for path in written:
        typer.echo(f"wrote {path}", err=True)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        said = f"--budgets {text!r}, but it must be numbers with commas between"
        raise SettingError(said) from None
