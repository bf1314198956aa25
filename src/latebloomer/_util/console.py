"""Where lines go that are not results: a terminal, a notebook, a file."""

import os
import sys
from contextlib import suppress
from typing import TextIO

from latebloomer._util.text import wrapped


def in_notebook() -> bool:
    """Return whether this is a notebook's process, which draws HTML and shows stderr in red."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return hasattr(shell, "kernel")


def print_aside(text: str) -> None:
    """Print a line that is not a result: on stderr, but not in a notebook, which makes it red."""
    stream = sys.stdout if in_notebook() else sys.stderr
    print(wrapped(text, line_width(stream)), file=stream, flush=True)


def line_width(stream: TextIO | None) -> int | None:
    """Return how many characters a line of a terminal has; None if it is not a terminal."""
    if stream is None or not stream.isatty():
        return None
    with suppress(OSError, ValueError):  # a stream that only says that it is a terminal
        return os.get_terminal_size(stream.fileno()).columns or None
    return None


def display_mode() -> str:
    """Return how a race is shown here: a live table needs a terminal that can move its cursor."""
    if in_notebook():
        return "notebook"
    capable = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return "live" if capable else "lines"
