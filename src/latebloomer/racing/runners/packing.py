"""Learners on their way to other processes, and the winner on its way back.

To other processes go the functions that build learners, pickled, with the folders of their
modules. Back comes the trained winner: pickled, or by its save and load. Pickles go from the
driver to its own processes and back, never to or from anyone else.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple, TypeAlias

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints import restored_learners
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.learners.entries import Entry, already_had
from latebloomer.racing.learners.learner import trained
from latebloomer.racing.runners.process_state import program_numbers_kept
from latebloomer.racing.runners.runner import HandedOver, Report
from latebloomer.session import events
from latebloomer.session.events import Saved, SaveFailed

Saving: TypeAlias = Callable[[], Saved | SaveFailed | None]


class PackedLearners(NamedTuple):
    """The learners of a race, to be built in other processes."""

    entries: bytes | Sequence[Entry]  # one pickle: data that learners share travels once
    path: tuple[str, ...]  # where the driver looks for modules


def pack(entries: Sequence[Entry], copied: bool = False) -> PackedLearners:
    """Return the learners for other processes; raise an error that names one that cannot be sent.

    For processes that are a copy of this one they are not pickled.
    """
    for entry in entries:
        if not entry.rebuilds:
            already_had(entry.passed, 0)  # one that was trained here does not begin there
    if copied:
        return PackedLearners(entries, ())
    try:
        return PackedLearners(dumps(list(entries)), tuple(sys.path))
    except Exception:  # whatever pickling a user's object raises
        for entry in entries:
            try:
                dumps(entry)
            except Exception as error:
                raise LearnerError(
                    f"learner {entry.name!r} cannot be sent to another process "
                    f"({type(error).__name__}: {error}): give a function that makes what it needs "
                    "(files, locks, connections, models on a GPU) when it is called"
                ) from error
        raise


def dumps(value: object) -> bytes:
    """Return a pickle; by cloudpickle if it is installed, which takes interactive functions."""
    for module in ("cloudpickle", "ray.cloudpickle"):
        with suppress(ImportError):
            return bytes(import_module(module).dumps(value))
    return pickle.dumps(value)


def unpack(packed: PackedLearners) -> Sequence[Entry]:
    """Return the learners in the process that builds them; search the driver's folders too."""
    if not isinstance(packed.entries, bytes):
        return packed.entries
    sys.path += [folder for folder in packed.path if folder not in sys.path]
    return pickle.loads(packed.entries)


def hand_over(
    states: SavedStates,
    entry: Entry,
    arm: int,
    pulls: int,
    fetched: bytes | str,
    save: Saving,
    reports: list[Report],
) -> HandedOver:
    """Return the learner from what its process answered: its pickle, or why there is none.

    `save` lets its process save it now; `reports` are recorded too.
    """
    why = fetched
    if isinstance(fetched, bytes):
        try:
            return HandedOver(pickle.loads(fetched), reports)  # written by our own process
        except Exception as error:  # of a GPU or a module that is not here
            why = reason_of(error)
    try:
        at = states.restorable(arm, pulls, seen=False)
        if at.saved is None or at.saved.n != pulls:
            saved = save()
            if not isinstance(saved, Saved):
                raise LearnerError("it cannot be saved")
            reports.append(saved)
            at = at._replace(saved=saved, storage=states.storage)
        with program_numbers_kept():
            learner, _, _ = restored_learners.restore(entry, at)
        return HandedOver(trained(learner), reports)
    except Exception:  # the learner's own: what it needs is not on this machine
        text = (
            f"it was trained in another process and cannot be returned ({why!s}). Give it "
            "save(folder) and load(folder), or let a generator yield (score, model)"
        )
        return HandedOver(None, [*reports, events.WarningNoted(arm, text)])
