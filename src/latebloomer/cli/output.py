"""What commands print and write."""

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import typer

from latebloomer._util.atomic_files import need_different, need_writable
from latebloomer._util.console import line_width
from latebloomer._util.text import printable, wrapped
from latebloomer.cli.option_checks import naming
from latebloomer.errors import LatebloomerError, OutputError

Output = tuple[Path | None, Callable[[Path], object], str]  # file, what writes it, a command


def say(text: object, err: bool = False) -> None:
    """Print with control characters as escapes: names of learners are other people's text."""
    typer.echo(printable(str(text)), err=err)


def say_in_lines(text: str, err: bool = False) -> None:
    """Print sentences; on a terminal, lines end between words. Commands are not for this."""
    say(wrapped(printable(text), line_width(sys.stderr if err else sys.stdout)), err)


def command(*words: object) -> str:
    """Return a command of this program as one types it."""
    return shlex.join(["latebloomer", *map(str, words)])


def redrawn(texts: Iterable[object]) -> None:
    """Show texts as they come, each in place of the last; one below the other in a file.

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


def check_outputs(files: Mapping[str, Path | None], **other: Path) -> None:
    """Raise an error before the work if the files that options name cannot be written after it."""
    need_different({**{f"the {name}": path for name, path in other.items()}, **files})
    for option, path in files.items():
        if path is not None:
            with naming(option):
                need_writable(path)


def write_each(*files: Output, err: bool = False) -> None:
    """Write all that is asked for, in order, also if one fails; then raise its error.

    Each file has a command that tries again, which an error names, or an empty text.
    """
    failures: list[LatebloomerError] = []
    for path, write, again in files:
        try:
            if path is not None:
                write(path)
                if again:
                    say(f"wrote {path}", err=err)
        except OutputError as error:
            failures.append(OutputError(f"{error} Then: {again}") if again else error)
        except LatebloomerError as error:
            failures.append(error)
    for failure in failures[1:]:
        say(f"{type(failure).__name__}: {failure}", err=True)
    if failures:
        raise failures[0]
