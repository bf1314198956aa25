"""The live page: a local server that reads journals while they are written; `serve` runs it."""

from latebloomer.watch.server import serve

__all__ = ["serve"]
