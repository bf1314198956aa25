"""Transfer of learners to other processes, and of the winner back.

The functions that build learners are pickled and sent to other processes, with the folders of
their modules. The trained winner is sent back as a pickle, or by its save and load. Pickles are
only exchanged between the driver and its own processes.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple, TypeAlias

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError, SettingError
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

    entries: bytes | Sequence[Entry]  # one pickle, so that data shared by learners are sent once
    path: tuple[str, ...]  # folders in which the driver finds modules


def pack(entries: Sequence[Entry], copied: bool = False) -> PackedLearners:
    """Return the learners for other processes; raise an error that names one that cannot be sent.

    With `copied`, processes are forked from this one, so learners are not pickled.
    """
    for entry in entries:
        why = getattr(entry.passed, "bound_to_process", None)
        if isinstance(why, str):
            raise SettingError(f"learner {entry.name!r} {why}")
        if not entry.rebuilds:
            already_had(entry.passed, 0)  # raises an error for an object that was trained here
    if copied:
        return PackedLearners(entries, ())
    try:
        return PackedLearners(dumps(list(entries)), tuple(sys.path))
    except Exception:  # pickling a user's object may raise anything
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
    """Return a pickle; cloudpickle, if installed, also pickles interactive functions."""
    for module in ("cloudpickle", "ray.cloudpickle"):
        with suppress(ImportError):
            return bytes(import_module(module).dumps(value))
    return pickle.dumps(value)


def unpack(packed: PackedLearners) -> Sequence[Entry]:
    """Return the learners in the process that builds them; also find the driver's modules."""
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
    """Return the learner from the answer of its process: a pickle, or why there is none.

    `save` makes its process save it now; `reports` are passed on to be recorded.
    """
    why = fetched
    if isinstance(fetched, bytes):
        try:
            return HandedOver(pickle.loads(fetched), reports)  # written by our own process
        except Exception as error:  # it may need a GPU or a module that is not here
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
    except Exception:  # an error of the learner: something that it needs is not on this machine
        text = (
            f"it was trained in another process and cannot be returned ({why!s}). Give it "
            "save(folder) and load(folder), or let a generator yield (score, model)"
        )
        return HandedOver(None, [*reports, events.WarningNoted(arm, text)])
