"""How many pulls an object has had in this process.

A learner that is given as an object and cannot load a checkpoint is, on resume, either fresh or
still the one that was raced before, as in a notebook after Ctrl-C. From outside they look alike;
training the latter again would train it twice.
"""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any

from latebloomer.errors import LearnerError

_had: dict[int, tuple[weakref.ref[Any], int | None]] = {}  # by id; None: in the midst of a pull


def note_pulls(learner: Any, pulls: int | None) -> None:
    """Remember an object for as long as it lives."""
    place = id(learner)
    with suppress(TypeError):  # it cannot be referred to weakly: nothing is known of it
        _had[place] = weakref.ref(learner, lambda _: _had.pop(place, None)), pulls


def already_had(learner: Any, needed: int) -> int:
    """Pulls that the object needs no more: none of a fresh one, all of the one that raced."""
    ref, pulls = _had.get(id(learner), (None, 0))
    if ref is None or ref() is not learner or pulls == 0:
        return 0
    if pulls == needed:
        return needed
    state = "was stopped in the middle of a pull" if pulls is None else f"has had {pulls} pulls"
    raise LearnerError(
        f"the object {state} in this process, and the race needs it at {needed}: give a fresh "
        "one, a function that builds one, or save and load"
    )
