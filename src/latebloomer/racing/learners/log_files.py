"""The logs of learners: one file per learner, next to the journal."""

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

LAST = 5  # number of last lines of a log that pages show
TAIL = 4096  # bytes at the end of a log that are read for these lines


def logs_next_to(journal: Path) -> Path:
    """Return the folder of a race's logs; learners that write a log create it."""
    return journal.with_name(f"{journal.name}.logs")


def file_name(name: str) -> str:
    """Return a name of a file for a learner's name.

    >>> file_name("lr=0.1"), file_name("../x")
    ('lr=0.1', '.._x-d6b96a97')
    """
    safe = "".join(c if c.isalnum() or c in "=-_.,+ " else "_" for c in name)[:80].strip(" ")
    if safe == name and safe.strip("."):
        return name
    return f"{safe or 'learner'}-{sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def files_of(journal: Path, name: str) -> dict[str, Path]:
    """Return the log of a learner and the folder in which it saves itself, if they exist."""
    log = logs_next_to(journal) / f"{file_name(name)}.log"
    places = {"Log": log, "Folder": log.with_suffix("")}
    return {label: path for label, path in places.items() if path.exists()}


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
        except OSError:  # there is no log
            continue
        if any(lines):
            texts[name] = "\n".join(lines[-LAST:])
    return texts
