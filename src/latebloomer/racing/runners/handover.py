"""A learner that was trained in another process comes back: pickled, or by its save and load."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.restore import Target, restore
from latebloomer.racing.checkpoints.saved_states import saved_event
from latebloomer.racing.checkpoints.storage import Stored
from latebloomer.racing.learner import Entry, trained
from latebloomer.racing.runners.contract import RunnerContext, directly
from latebloomer.session.events import Saved, WarningNoted

BARE = (
    "it yields scores alone, so nothing of it could be handed over if it wins, since it trains in "
    "another process: let it yield (score, model)"
)


class HandedOver(NamedTuple):
    """The learner, None where it cannot come; and what the race should take notice of."""

    learner: Any
    events: list[WarningNoted | Saved]


def hand_over(
    stage: RunnerContext,
    entry: Entry,
    wanted: tuple[int, int],
    fetched: bytes | str,
    save: Callable[[], Stored | str | None],
) -> HandedOver:
    """The learner `wanted`, an arm and its pulls, from what its process answered.

    `fetched` is its pickle, or why there is none; `save` lets its process save it now.
    """
    why = fetched
    if isinstance(fetched, bytes):
        try:
            return HandedOver(pickle.loads(fetched), [])  # of our own process
        except Exception as error:  # of a GPU or a module that is not here
            why = reason_of(error)
    events: list[WarningNoted | Saved] = []
    try:
        return HandedOver(_by_load(stage, entry, wanted, save, events), events)
    except LearnerError:
        text = (
            f"it was trained in another process and cannot be handed over ({why!s}): give it "
            "save(folder) and load(folder), or let a generator yield (score, model)"
        )
        return HandedOver(None, [*events, WarningNoted(wanted[0], text)])


def _by_load(
    stage: RunnerContext,
    entry: Entry,
    wanted: tuple[int, int],
    save: Callable[[], Stored | str | None],
    events: list[WarningNoted | Saved],
) -> Any:
    arm, pulls = wanted
    saved = stage.states.newest(arm, pulls)
    if saved is None or saved.n != pulls:
        stored = save()
        if not isinstance(stored, Stored):
            raise LearnerError(stored or "it has no save and load")
        saved = saved_event(arm, pulls, stored)
        events.append(saved)
    target = Target(entry, pulls, saved, stage.recorded(arm), stage.states.storage)
    try:
        return trained(restore(target, directly, lambda learner: 0).learner)
    except Exception as error:  # the learner's own: what it needs is not on this machine
        raise LearnerError(reason_of(error)) from error
