"""Functions by which commands print and write files."""

import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import typer

import latebloomer
from latebloomer._util.atomic_files import need_different, need_writable
from latebloomer._util.console import line_width, print_aside
from latebloomer._util.text import printable, wrapped
from latebloomer.cli.option_checks import naming
from latebloomer.errors import LatebloomerError, OutputError

# File, the function that writes it, and a command to repeat that.
Output = tuple[Path | None, Callable[[Path], object], str]


def say(text: object, err: bool = False) -> None:
    """Print text with control characters escaped, because names of learners may contain them."""
    typer.echo(printable(str(text)), err=err)


def say_in_lines(text: str, err: bool = False, indent: int = 0) -> None:
    """Print sentences; on a terminal, wrap lines between words. Do not use it for commands.

    Lines that continue another one begin with `indent` blanks.
    """
    say(wrapped(printable(text), line_width(sys.stderr if err else sys.stdout), indent), err)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print the warnings of this package as sentences, without a place in its source."""
    own, show = str(Path(latebloomer.__file__).parent), warnings.showwarning

    def print_warning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if file is None and filename.startswith(own):
            print_aside(f"Warning: {printable(str(message))}")
        else:
            show(message, category, filename, lineno, file, line)

    warnings.showwarning = print_warning
    try:
        yield
    finally:
        warnings.showwarning = show


def command(*words: object) -> str:
    """Return a command of this program as the user would type it."""
    return shlex.join(["latebloomer", *map(str, words)])


def redrawn(texts: Iterable[object]) -> None:
    """Show each text in place of the previous one; in a file, one below the other.

    Ctrl-C ends only this display.
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
    """Raise an error, before any work, if a file of an option cannot be written."""
    need_different({**{f"the {name}": path for name, path in other.items()}, **files})
    for option, path in files.items():
        if path is not None:
            with naming(option):
                need_writable(path)


def write_each(*files: Output, err: bool = False) -> None:
    """Write all requested files in order, even if one fails; then raise the first error.

    Each file comes with a command that writes it again, for its error message, or "".
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
