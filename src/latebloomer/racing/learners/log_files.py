"""Where learners write what they print: one file for each, next to the journal."""

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

LAST = 5  # lines of a log that pages show
TAIL = 4096  # bytes that are read for them


def logs_next_to(journal: Path) -> Path:
    """Return the folder of a race's logs; learners that write one make it."""
    return journal.with_name(f"{journal.name}.logs")


def file_name(name: str) -> str:
    """Return a learner's name as the name of a file.

    >>> file_name("lr=0.1"), file_name("../x")
    ('lr=0.1', '.._x-d6b96a97')
    """
    safe = "".join(c if c.isalnum() or c in "=-_.,+ " else "_" for c in name)[:80].strip(" ")
    if safe == name and safe.strip("."):
        return name
    return f"{safe or 'learner'}-{sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def last_lines(journal: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the last lines of each learner that has a log."""
    folder = logs_next_to(journal)
    if not folder.is_dir():
        return {}
    texts = {}
    for name in names:
        try:
            with (folder / f"{file_name(name)}.log").open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except OSError:  # it has none
            continue
        if any(lines):
            texts[name] = "\n".join(lines[-LAST:])
    return texts
