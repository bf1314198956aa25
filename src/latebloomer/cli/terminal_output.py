"""What commands print and write: nothing that a terminal would obey, nothing lost."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from latebloomer._util.atomic_files import need_different, need_writable
from latebloomer._util.text import printable
from latebloomer.errors import LatebloomerError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def say(text: object, err: bool = False) -> None:
    """Print, control characters as escapes: names of learners are other people's text."""
    typer.echo(printable(str(text)), err=err)


def say_error(error: LatebloomerError) -> None:
    """An error in one line."""
    say(f"{type(error).__name__}: {error}", err=True)


def command(*words: object) -> str:
    """A command of this program as one types it."""
    return shlex.join(["latebloomer", *map(str, words)])


def redrawn(texts: Iterable[object]) -> None:
    """Show texts as they come, each in the place of the last; one below the other in a file.

    Ctrl-C ends that and nothing else.
    """
    with suppress(KeyboardInterrupt):
        if not sys.stdout.isatty():
            for text in texts:
                say(f"{text}\n")
            return
        from rich.live import Live
        from rich.text import Text

        with Live(auto_refresh=False, vertical_overflow="crop") as live:
            for text in texts:
                live.update(Text(printable(str(text))), refresh=True)


def check_outputs(files: Mapping[str, Path | None], other: Mapping[str, Path | None]) -> None:
    """Say before the work what could not be written after it, by the options that name `files`."""
    need_different({**other, **files})
    for path in files.values():
        if path is not None:
            need_writable(path)


def write_each(*files: tuple[Path | None, Callable[[Path], object]]) -> None:
    """Write all that is asked for, in order, also where one fails; then raise its error."""
    failures = []
    for path, write in files:
        try:
            if path is not None:
                write(path)
        except LatebloomerError as error:
            failures.append(error)
    for failure in failures[1:]:
        say_error(failure)
    if failures:
        raise failures[0]
