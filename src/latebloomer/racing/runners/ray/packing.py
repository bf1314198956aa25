"""How learners travel: the functions that build them, pickled, and where their modules are.

Pickles go from the driver to its own actors and back, never to or from anyone else.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from typing import NamedTuple

from latebloomer.errors import LearnerError, extra
from latebloomer.racing.learner import Entry
from latebloomer.racing.runners.object_pulls import already_had


class PackedLearners(NamedTuple):
    """The learners of a race, to be built in other processes."""

    entries: bytes  # in one pickle: data that learners share travels once
    path: tuple[str, ...]  # where the driver looks for modules


def pack(entries: Sequence[Entry]) -> PackedLearners:
    """Pack the learners, or say which one cannot be sent and why."""
    cloudpickle = extra("ray.cloudpickle", "races on Ray", "ray")
    for entry in entries:
        if not entry.rebuilds:
            already_had(entry.given, 0)  # one that was trained here does not begin there
    try:
        return PackedLearners(bytes(cloudpickle.dumps(list(entries))), tuple(sys.path))
    except Exception:  # whatever pickling a user's object raises
        for entry in entries:
            _need_packable(entry, cloudpickle.dumps)
        raise


def _need_packable(entry: Entry, dumps: object) -> None:
    try:
        dumps(entry)  # type: ignore[operator]
    except Exception as error:
        raise LearnerError(
            f"learner {entry.name!r} cannot be sent to another process ({type(error).__name__}: "
            f"{error}): give a function that makes what it needs (files, locks, connections, "
            "models on a GPU) when it is called, instead of an object that holds it"
        ) from error


def unpack(packed: PackedLearners) -> list[Entry]:
    """The learners, where they are to be built; folders of the driver are looked in too."""
    sys.path += [folder for folder in packed.path if folder not in sys.path]
    entries: list[Entry] = pickle.loads(packed.entries)
    return entries
