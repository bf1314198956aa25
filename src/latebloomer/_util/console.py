"""Output that is not a result: in a terminal, a notebook or a file."""

import os
import sys
from contextlib import suppress
from typing import TextIO

from latebloomer._util.text import wrapped


def in_notebook() -> bool:
    """Return whether this process is a notebook's, which shows HTML, and stderr in red."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return hasattr(shell, "kernel")


def print_aside(text: str) -> None:
    """Print a line that is not a result: on stderr, or in a notebook on stdout."""
    stream = sys.stdout if in_notebook() else sys.stderr
    print(wrapped(text, line_width(stream)), file=stream, flush=True)


def line_width(stream: TextIO | None) -> int | None:
    """Return the number of characters per line of a terminal; None for other streams."""
    if stream is None or not stream.isatty():
        return None
    with suppress(OSError, ValueError):  # the stream claims to be a terminal but is not
        return os.get_terminal_size(stream.fileno()).columns or None
    return None


def display_mode() -> str:
    """Return the display for races here; a live table needs a terminal with a movable cursor."""
    if in_notebook():
        return "notebook"
    capable = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return "live" if capable else "lines"
