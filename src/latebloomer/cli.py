"""The command `latebloomer`, the outermost layer: reads words, calls the library, prints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from latebloomer import __version__
from latebloomer.citation import cite as bibtex
from latebloomer.errors import LatebloomerError
from latebloomer.policies import REGISTRY, make_policy

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


POLICY_HELP = f"Name, or name:setting=value,...: {', '.join(REGISTRY)}."


@app.command()
@says_errors
def plan(
    arms: Annotated[int, typer.Option(help="How many learners compete.")],
    budget: Annotated[int, typer.Option(help="Pulls in all.")],
    policy: Annotated[str, typer.Option(help=POLICY_HELP)] = "r-sr",
    horizon: Annotated[
        int | None, typer.Option(help="Pulls at which arms are compared; the budget if not given.")
    ] = None,
) -> None:
    """Show how a policy would spend a budget, before anything is spent."""
    typer.echo(make_policy(policy).describe(arms, budget, horizon))


@app.command()
@says_errors
def cite(
    what: Annotated[str, typer.Argument(help="A policy or a key of the references.")] = "Mussi24",
) -> None:
    """Print the BibTeX entry to cite."""
    typer.echo(bibtex(what))
