"""The command watch: races as they run, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latebloomer.cli.terminal_output import say
from latebloomer.racing.journal import RACES

PLACE_HELP = "A journal, or a folder of them; races/ if it is there, else this folder."


def watch(
    place: Annotated[Path | None, typer.Argument(help=PLACE_HELP)] = None,
    port: Annotated[int, typer.Option(help="Of this machine; 0 takes a free one.")] = 0,
    exit_after_idle: Annotated[
        float | None,
        typer.Option(help="End so many seconds after the last race has ended and tab is closed."),
    ] = None,
) -> None:
    """Watch races in a browser while they run.

    The page is on this machine alone and changes nothing. Its address has a secret, which
    LATEBLOOMER_WATCH_TOKEN sets, so that a restart keeps it.
    """
    from latebloomer.watch import serve

    if place is None:
        place = Path(RACES) if Path(RACES).is_dir() else Path(".")
    try:
        serve(
            place,
            port,
            lambda address: say(f"watch at {address} (Ctrl-C ends it)"),
            exit_after_idle,
        )
    except KeyboardInterrupt:
        say("")
