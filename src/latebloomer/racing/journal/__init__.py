"""The events of a race on disk."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from latebloomer.errors import require

RACES = "races/"  # the folder where a race is recorded by default
ERROR, RESUME, NEW = IF_EXISTS = ("error", "resume", "new")  # if a journal already holds a race
DURABILITIES = ("normal", "full")
Place = str | os.PathLike[str]


@dataclass(frozen=True)
class JournalFile:
    """Say where a race is recorded and how: what `journal=` takes in place of a path.

    Parameters
    ----------
    path : str | os.PathLike[str]
        A file, or a folder with a slash at its end for a new file in it.
    durability : str
        "normal" survives a killed process; "full" also survives a power failure, by syncing to
        disk after every pull.
    checkpoint_format : str
        How a scikit-learn search writes its checkpoints: "pickle", or "skops" for files that are
        loaded without running any code. (`SklearnLearner` has its own setting.)
    trusted : Sequence[str | type] | None
        Types that skops may load, in addition to those that it trusts itself.

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
        require(
            self.durability in DURABILITIES, "durability", self.durability, "'normal' or 'full'",
            "'full' waits for the disk after every pull",
        )  # fmt: skip

    def __fspath__(self) -> str:
        return os.fspath(self.path)
