"""The command `latebloomer`, the outermost layer: reads words, calls the library, prints."""

from latebloomer.cli.command_line import app

__all__ = ["app"]
