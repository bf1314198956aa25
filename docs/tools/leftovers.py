"""Removes pages that were made of something that is gone: Sphinx would build them again."""

from __future__ import annotations

import re
from pathlib import Path


def remove_others(folder: Path, stems: set[str]) -> None:
    """Remove the files of a folder that are not called so, whatever their suffix."""
    for file in folder.iterdir():
        if file.is_file() and file.stem not in stems:
            file.unlink()


def remove_old_examples(made: Path, examples: Path) -> None:
    """Remove what the gallery made of examples that are gone; it leaves that lying."""
    names = [example.stem for example in examples.glob("*.py")]
    for file in [*made.glob("**/*plot_*")]:
        found = re.search(r"plot_\w+", file.stem)
        if found and not any(found[0].startswith(name) for name in names):
            file.unlink()
