"""How learners travel to other processes and back.

There the functions that build them go, pickled, with the folders of their modules. Back comes the
trained winner: pickled, or by its save and load. Pickles go from the driver to its own processes
and back, never to or from anyone else.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.saved_states import restore, saved_event
from latebloomer.racing.checkpoints.storage import Stored
from latebloomer.racing.learner import Entry, already_had, trained
from latebloomer.racing.runners.contract import HandedOver, Report, RunnerContext
from latebloomer.session.events import WarningNoted

BARE = (
    "it yields only scores and trains in another process, so nothing of it can be returned if it "
    "wins. Let it yield (score, model)"
)


class PackedLearners(NamedTuple):
    """The learners of a race, to be built in other processes."""

    entries: bytes | Sequence[Entry]  # one pickle: data that learners share travels once
    path: tuple[str, ...]  # where the driver looks for modules

    @classmethod
    def unpacked(cls, entries: Sequence[Entry]) -> PackedLearners:
        """Return the learners unchanged, for a process that is a copy of this one."""
        _need_fresh(entries)
        return cls(entries, ())


def pack(entries: Sequence[Entry]) -> PackedLearners:
    """Return the learners packed; raise an error that names one that cannot be sent."""
    _need_fresh(entries)
    try:
        return PackedLearners(dumps(list(entries)), tuple(sys.path))
    except Exception:  # whatever pickling a user's object raises
        for entry in entries:
            _need_packable(entry)
        raise


def dumps(value: object) -> bytes:
    """Return a pickle; by cloudpickle if it is installed, which takes interactive functions."""
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
    """Return the learners in the process that builds them; search the driver's folders too."""
    if not isinstance(packed.entries, bytes):
        return list(packed.entries)
    sys.path += [folder for folder in packed.path if folder not in sys.path]
    entries: list[Entry] = pickle.loads(packed.entries)
    return entries


# --- and back ---


def hand_over(
    context: RunnerContext,
    entry: Entry,
    arm: int,
    pulls: int,
    fetched: bytes | str,
    save: Callable[[], Stored | str | None],
) -> HandedOver:
    """Return the learner from what its process answered: its pickle, or why there is none.

    `save` lets its process save it now.
    """
    why = fetched
    if isinstance(fetched, bytes):
        try:
            return HandedOver(pickle.loads(fetched), [])  # written by our own process
        except Exception as error:  # of a GPU or a module that is not here
            why = reason_of(error)
    events: list[Report] = []
    try:
        saved = context.states.newest(arm, pulls)
        if saved is None or saved.n != pulls:
            stored = save()
            if not isinstance(stored, Stored):
                raise LearnerError(stored or "it has no save and load")
            saved = saved_event(arm, pulls, stored)
            events.append(saved)
        recorded, storage = context.recorded(arm), context.states.storage
        learner, _, _ = restore(entry, pulls, saved, recorded, storage)
        return HandedOver(trained(learner), events)
    except Exception:  # the learner's own: what it needs is not on this machine
        text = (
            f"it was trained in another process and cannot be returned ({why!s}). Give it "
            "save(folder) and load(folder), or let a generator yield (score, model)"
        )
        return HandedOver(None, [*events, WarningNoted(arm, text)])
