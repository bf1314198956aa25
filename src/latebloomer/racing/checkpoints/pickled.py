"""A checkpoint of a learner that has no way of its own to save: the learner, pickled.

Written where few learners may be in memory at once (`max_in_memory=`), and read again by a race that is
resumed with or without that. docs/security.md says when.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

PICKLE = "latebloomer-learner.pickle"


def pickling(learner: Any) -> Callable[[Path], None]:
    """What fills the folder of a checkpoint."""

    def fill(folder: Path) -> None:
        with (folder / PICKLE).open("wb") as file:
            pickle.dump(learner, file, pickle.HIGHEST_PROTOCOL)

    return fill


def is_pickled(folder: Path) -> bool:
    """Whether a checkpoint is of this kind."""
    return (folder / PICKLE).is_file()


def unpickled(folder: Path) -> Any:
    """The learner."""
    with (folder / PICKLE).open("rb") as file:
        return pickle.load(file)
