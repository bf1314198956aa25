"""The place of a journal, and how it is written."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from latebloomer._util.text import brief, has_current_folder
from latebloomer.errors import SettingError, require

RACES = "races/"  # default folder of journals
ERROR, RESUME, NEW = IF_EXISTS = ("error", "resume", "new")  # if a journal already holds a race
DURABILITIES = ("normal", "full")
# Ending of a new copy of a journal, which replaces the journal when it is complete.
REWRITTEN = ".rewritten"
# Endings of files that belong to a journal.
BESIDE = ("-wal", "-shm", "-journal", ".lock", ".draft", REWRITTEN)
Place = str | os.PathLike[str]


def resolved(place: Place) -> Path:
    """Return the file at a path with links resolved, because SQLite's files are next to it.

    Every function that gets a journal from its caller calls this function first.
    """
    return Path(os.path.realpath(place))


def need_path(name: str, place: object) -> None:
    """Raise a `SettingError` unless a place is a path that this process can resolve.

    >>> need_path("journal", 2)
    Traceback (most recent call last):
    latebloomer.errors.SettingError: journal=2, but journal must be a path
    """
    text = os.fspath(place) if isinstance(place, str | os.PathLike) else None
    if not isinstance(text, str):
        raise SettingError(f"{name}={brief(place)}, but {name} must be a path")
    if "\0" in text:
        raise SettingError(f"{name}={brief(text)}, but a path must not have the character NUL")
    if not os.path.isabs(text) and not has_current_folder():
        raise SettingError(
            f"{name}={brief(text)} starts from the current folder, which has been removed: give "
            "a full path"
        )


@dataclass(frozen=True)
class JournalFile:
    """The place of a journal and how it is written; pass it as `journal=` instead of a path.

    Parameters
    ----------
    path : str | os.PathLike[str]
        A file, or a folder that ends in a slash, in which a new file is created.
    durability : str
        "normal" loses no pull if the process is killed; "full" loses none in a power failure
        either, because it waits for the disk after every pull.
    checkpoint_format : str
        How a scikit-learn search writes its checkpoints: "pickle", or "skops" for files that
        cannot run code when they are loaded. (`SklearnLearner` has its own setting.)
    trusted : Sequence[str | type] | None
        Types that skops may load, in addition to those that it trusts by default.

    Raises
    ------
    SettingError
        `durability` is neither "normal" nor "full".

    Examples
    --------
    >>> JournalFile("races/", durability="full").durability
    'full'
    """

    path: Place
    durability: str = "normal"
    checkpoint_format: str = "pickle"
    trusted: Sequence[str | type] | None = None

    def __post_init__(self) -> None:
        need_path("path", self.path)
        require(
            self.durability in DURABILITIES,
            "durability",
            self.durability,
            "'normal' or 'full'",
            "'full' waits for the disk after every pull",
        )

    def __fspath__(self) -> str:
        return os.fspath(self.path)
