"""The app with all its commands, and how each of them ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from latebloomer.cli.journal_commands import races, repair, report, show
from latebloomer.cli.paper_commands import cite, reproduce
from latebloomer.cli.race_commands import extend, race, resume
from latebloomer.cli.simulation_commands import bench, download, plan, policies, simulate
from latebloomer.cli.terminal_output import say, say_error
from latebloomer.cli.watch_commands import watch
from latebloomer.errors import Interrupted, LatebloomerError
from latebloomer.version import __version__

ERROR, INTERRUPTED = 2, 130  # exit codes; 130 is the shell's for Ctrl-C
COMMANDS = (
    plan, policies, simulate, download, cite, race, resume, extend, races, show, watch, report,
    repair, reproduce, bench,
)  # fmt: skip

app = typer.Typer(
    name="latebloomer",
    help="Spend one fixed budget over learners that get better with training; keep the right one.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help is text: `random:FAMILY:K` is no emoji, [name] no markup
)


def show_version(wanted: bool) -> None:
    if wanted:
        say(f"latebloomer {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Spend one fixed budget over learners that get better with training; keep the right one."""


def with_exit_code(command: Callable[..., None]) -> Callable[..., None]:
    """Errors of this library are one line and code 2; Ctrl-C says how to go on and is code 130.

    Other errors are bugs and show.
    """

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except Interrupted as stop:
            say(stop, err=True)
            raise typer.Exit(INTERRUPTED) from None
        except LatebloomerError as error:
            say_error(error)
            raise typer.Exit(ERROR) from None

    return wrapped


for command in COMMANDS:
    app.command()(with_exit_code(command))
