"""The command watch: races as they run, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latebloomer.cli import options as o
from latebloomer.cli.terminal_output import say
from latebloomer.racing.journal import RACES

PLACE_HELP = (
    "Journal, or folder of journals. Default: races/ if it exists, else the current folder."
)


def watch(
    place: Annotated[Path | None, typer.Argument(metavar="[PLACE]", help=PLACE_HELP)] = None,
    port: Annotated[int, o.count("port", 0, 65535)] = 0,
    exit_after_idle: Annotated[float | None, o.number("exit_after_idle")] = None,
) -> None:
    """Watch races in a browser while they run.

    The page is read-only and served on 127.0.0.1 only. Set LATEBLOOMER_WATCH_TOKEN and --port to
    keep its URL across restarts.
    """
    from latebloomer.watch import serve

    if place is None:
        place = Path(RACES) if Path(RACES).is_dir() else Path(".")
    try:
        serve(
            place, port, lambda address: say(f"watch at {address} (Ctrl-C ends it)"),
            exit_after_idle,
        )  # fmt: skip
    except KeyboardInterrupt:
        say("")
