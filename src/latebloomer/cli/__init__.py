"""The command `latebloomer`, the outermost layer: it reads options and calls the library."""

from latebloomer.cli.command_line import app

__all__ = ["app"]
