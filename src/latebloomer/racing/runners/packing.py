"""How learners travel: the functions that build them, pickled, and where their modules are.

Pickles go from the driver to its own processes and back, never to or from anyone else.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

from latebloomer.errors import LearnerError
from latebloomer.racing.learner import Entry
from latebloomer.racing.runners.object_pulls import already_had


class PackedLearners(NamedTuple):
    """The learners of a race, to be built in other processes."""

    entries: bytes | Sequence[Entry]  # one pickle: data that learners share travels once
    path: tuple[str, ...]  # where the driver looks for modules

    @classmethod
    def unpacked(cls, entries: Sequence[Entry]) -> PackedLearners:
        """As they are, for a process that is a copy of this one."""
        _need_fresh(entries)
        return cls(entries, ())


def pack(entries: Sequence[Entry]) -> PackedLearners:
    """Pack the learners, or say which one cannot be sent and why."""
    _need_fresh(entries)
    try:
        return PackedLearners(dumps(list(entries)), tuple(sys.path))
    except Exception:  # whatever pickling a user's object raises
        for entry in entries:
            _need_packable(entry)
        raise


def dumps(value: object) -> bytes:
    """A pickle; by cloudpickle, which takes functions that were typed in, where there is one."""
    for module in ("cloudpickle", "ray.cloudpickle"):
        with suppress(ImportError):
            return bytes(import_module(module).dumps(value))
    return pickle.dumps(value)


def _need_fresh(entries: Sequence[Entry]) -> None:
    for entry in entries:
        if not entry.rebuilds:
            already_had(entry.given, 0)  # one that was trained here does not begin there


def _need_packable(entry: Entry) -> None:
    try:
        dumps(entry)
    except Exception as error:
        raise LearnerError(
            f"learner {entry.name!r} cannot be sent to another process ({type(error).__name__}: "
            f"{error}): give a function that makes what it needs (files, locks, connections, "
            "models on a GPU) when it is called, instead of an object that holds it"
        ) from error


def unpack(packed: PackedLearners) -> list[Entry]:
    """The learners, where they are to be built; folders of the driver are looked in too."""
    if not isinstance(packed.entries, bytes):
        return list(packed.entries)
    sys.path += [folder for folder in packed.path if folder not in sys.path]
    entries: list[Entry] = pickle.loads(packed.entries)
    return entries
