"""A learner that was trained in another process comes back: pickled, or by its save and load."""

from __future__ import annotations

import pickle
from collections.abc import Callable

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.restore import Target, restore
from latebloomer.racing.checkpoints.saved_states import saved_event
from latebloomer.racing.checkpoints.storage import Stored
from latebloomer.racing.learner import Entry, trained
from latebloomer.racing.runners.contract import HandedOver, Report, RunnerContext
from latebloomer.session.events import WarningNoted

BARE = (
    "it yields only scores and trains in another process, so nothing of it can be returned if it "
    "wins. Let it yield (score, model)"
)


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
        target = Target(entry, pulls, saved, context.recorded(arm), context.states.storage)
        return HandedOver(
            trained(restore(target, lambda one: one.pull(), lambda one: 0).learner), events
        )
    except Exception:  # the learner's own: what it needs is not on this machine
        text = (
            f"it was trained in another process and cannot be returned ({why!s}). Give it "
            "save(folder) and load(folder), or let a generator yield (score, model)"
        )
        return HandedOver(None, [*events, WarningNoted(arm, text)])
