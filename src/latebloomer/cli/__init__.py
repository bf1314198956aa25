"""The command `latebloomer`, the outermost layer: reads words, calls the library, prints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from latebloomer.citation import cite as bibtex
from latebloomer.cli.bench_command import register as register_bench
from latebloomer.cli.race_commands import register as register_race
from latebloomer.cli.reproduce_command import register as register_lab
from latebloomer.errors import LatebloomerError, SettingError, unknown
from latebloomer.policies import REGISTRY, split_policies
from latebloomer.policies.registry import policy_for
from latebloomer.version import __version__

app = typer.Typer(
    name="latebloomer",
    help="Spend one fixed budget over learners that get better with training; keep the right one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"latebloomer {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Spend one fixed budget over learners that get better with training; keep the right one."""


def says_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Print this library's errors as one line and leave with code 2; others are bugs and show."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except LatebloomerError as error:
            typer.echo(f"{type(error).__name__}: {error}", err=True)
            sys.exit(2)

    return wrapped


KNOWN = f"auto, {', '.join(REGISTRY)}"
POLICY_HELP = f"Name, or name:setting=value,...: {KNOWN}."
SEVERAL_HELP = f"Names with commas between, each perhaps name:setting=value,...: {KNOWN}."
OUT_HELP = "Keep all counts in this file; if it exists, play what it lacks and show the whole."
ADDRESS_HELP = "Of a Ray cluster: auto, ray://host:10001; without one, Ray is started here."
PROBLEM_HELP = "paper-a, paper-b, imdb, random:FAMILY:K=10:seed=3, or a file of curves."


@app.command()
@says_errors
def plan(
    arms: Annotated[int, typer.Option(help="How many learners compete.")],
    budget: Annotated[int, typer.Option(help="Pulls in all.")],
    policy: Annotated[str, typer.Option(help=POLICY_HELP)] = "auto",
    horizon: Annotated[
        int | None, typer.Option(help="Pulls at which arms are compared; the budget if not given.")
    ] = None,
) -> None:
    """Show how a policy would spend a budget, before anything is spent."""
    at = budget if horizon is None else horizon
    typer.echo(policy_for(policy, arms, budget, at).describe(arms, budget, horizon))


@app.command()
@says_errors
def simulate(
    problem: Annotated[str, typer.Option(help=PROBLEM_HELP)],
    budget: Annotated[str, typer.Option(help="Pulls in all; several with commas.")],
    policy: Annotated[str, typer.Option(help=SEVERAL_HELP)] = "r-ucbe,r-sr,sh",
    runs: Annotated[int, typer.Option(help="Runs of each policy at each budget.")] = 1000,
    seed: Annotated[int, typer.Option(help="Another seed is another luck.")] = 0,
    horizon: Annotated[
        int | None, typer.Option(help="Pulls at which arms are compared; the budget if not given.")
    ] = None,
    target: Annotated[str, typer.Option(help="cpu, gpu or python.")] = "cpu",
    method: Annotated[str, typer.Option(help="auto, pulls or sums.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="Of the CPU; all cores by default.")] = None,
    chunk: Annotated[int | None, typer.Option(help="Runs that are counted together.")] = None,
    first_run: Annotated[int, typer.Option(help="The number of the first run.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this file.")] = None,
    out: Annotated[Path | None, typer.Option(help=OUT_HELP)] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw error and regret to this file.")] = None,
    engine: Annotated[str, typer.Option(help="local, or ray: tasks on a cluster.")] = "local",
    address: Annotated[str | None, typer.Option(help=ADDRESS_HELP)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Play policies on a problem many times: errors, regrets and pulls with intervals."""
    from latebloomer.simulation.simulate import simulate as run

    found = run(
        problem,
        split_policies(policy),
        [whole_number("--budget", part) for part in budget.split(",")],
        runs,
        seed,
        horizon=horizon,
        target=target,
        method=method,
        threads=threads,
        progress=not quiet,
        chunk=chunk,
        first_run=first_run,
        out=out,
        engine=engine,
        address=address,
    )
    typer.echo(found.to_json() if json else str(found))
    if csv is not None:
        found.to_csv(csv)
    if plot is not None:
        found.plot(plot, what="both")


def whole_number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        said = f"{name} {text!r}, but it must be a whole number, or some with commas between"
        raise SettingError(said) from None


@app.command()
@says_errors
def download(
    what: Annotated[str, typer.Argument(help="imdb: the paper's seven recorded curves.")],
    folder: Annotated[Path, typer.Argument(help="Where to put them; LATEBLOOMER_DATA names it.")],
) -> None:
    """Fetch public recorded curves, checked by their sha256."""
    from latebloomer.problems.download import download_imdb

    if what != "imdb":
        raise unknown("data set", what, ["imdb"])
    typer.echo(f"wrote {download_imdb(folder)}")


@app.command()
@says_errors
def cite(
    what: Annotated[str, typer.Argument(help="A policy or a key of the references.")] = "Mussi24",
) -> None:
    """Print the BibTeX entry to cite."""
    typer.echo(bibtex(what))


for register in (register_race, register_lab, register_bench):
    register(app)
