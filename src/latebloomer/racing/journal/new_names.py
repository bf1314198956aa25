"""Names for the journals of new races.

A path that ends in a slash is a folder in which each race gets a new file, such as
`races/2026-11-15-1530-brisk-fern.db`, with the local date and time and two words. A name is chosen
under the lock of the journal, so that two processes never get the same name.
"""

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from latebloomer import errors
from latebloomer._util.atomic_files import make_folder
from latebloomer._util.text import brief
from latebloomer.racing.journal import files
from latebloomer.racing.journal.event_log import EventLog
from latebloomer.racing.journal.journal_file import (
    ERROR,
    IF_EXISTS,
    NEW,
    JournalFile,
    Place,
    need_path,
)
from latebloomer.session.events import Created

ADJECTIVES = (  # noqa: SIM905
    "amber bold brave brisk bright calm clear clever cool crisp eager early fair fine fleet free "
    "fresh gentle glad golden grand green happy keen kind late light lively lucky merry mild neat "
    "noble patient plain proud quick quiet rapid ready sharp silver smart steady swift tidy vivid "
    "warm wild wise witty young zesty"
).split()
NOUNS = (  # noqa: SIM905
    "acorn alder aspen badger bay beech birch bloom brook cedar cherry clover cloud comet coral "
    "crane creek daisy dawn dove dune elm falcon fern field finch fox garden grove hare hawk "
    "hazel heron hill holly ivy lake lark leaf lily lotus maple meadow moon moss oak olive otter "
    "owl pine plum pond poppy reed ridge river robin rose sage sky star stone swan tulip willow"
).split()


def check_journal_options(journal: Any, if_exists: Any) -> None:
    """Raise a `SettingError` unless `journal` and `if_exists` are valid."""
    text = os.fspath(journal) if isinstance(journal, str | os.PathLike) else ""
    if journal is not None and not (isinstance(text, str) and text.strip()):
        needed = "a file, a folder that ends in a slash, or None to keep the race in memory"
        raise errors.SettingError(f"journal={brief(journal)} must be {needed}.")
    if journal is not None:
        need_path("journal", journal)
    known, why = isinstance(if_exists, str) and if_exists in IF_EXISTS, "a journal may hold a race"
    errors.require(known, "if_exists", if_exists, "'error', 'resume' or 'new'", why)


def names_folder(journal: Place | None) -> bool:
    """Return whether a path is a folder for new files, and not the name of a file.

    >>> names_folder("races/"), names_folder("race.db")
    (True, False)
    """
    return journal is not None and os.fspath(journal).endswith(("/", os.sep))


def fresh_names(journal: Place) -> Iterator[Path]:
    """Yield names for a new file in a folder, with the date, the time and two words."""
    try:
        folder = make_folder(Path(journal))
    except errors.OutputError as error:
        problem = (
            f"No journal can be written in {Path(journal)} ({os.strerror(error.errno or 0)})."
        )
        raise errors.JournalError(f"{problem} {files.CANNOT_WRITE}") from error
    for _ in range(1000):
        words = secrets.choice(ADJECTIVES), secrets.choice(NOUNS)
        yield folder / f"{datetime.now():%Y-%m-%d-%H%M}-{'-'.join(words)}.db"


def begin(
    journal: Place | None,
    created: Created,
    if_exists: str = ERROR,
    names: Callable[[Place], Iterable[Path]] = fresh_names,
) -> EventLog:
    """Create the journal of a new race; an existing race is never changed."""
    if journal is None or not (names_folder(journal) or if_exists == NEW):
        return files.create(journal, created)
    journal_file = journal if isinstance(journal, JournalFile) else JournalFile(journal)
    for path in names(journal) if names_folder(journal) else numbered(Path(journal)):
        if not os.path.lexists(path):
            # Otherwise, another process has just created it.
            with suppress(errors.JournalInUse, errors.JournalMismatch):
                return files.create(replace(journal_file, path=path), created, fresh=True)
    raise errors.JournalError("No name is free for the journal. Give one with journal=....")


def numbered(path: Path) -> Iterator[Path]:
    """Yield the name itself, then race-2.db, race-3.db, ..."""
    yield path
    yield from (path.with_name(f"{path.stem}-{k}{path.suffix}") for k in count(2))
