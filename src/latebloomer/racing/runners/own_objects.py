"""Learners that functions build: within a race, no two may be the same object.

A function that returns a learner, or a generator, that was built outside of it returns the same
one for every name. It would be trained several times per sweep, and a winner would be selected
among its own scores. (Learners that are passed as objects are compared before the race starts.)
"""

import weakref
from contextlib import suppress
from typing import Any

from latebloomer.errors import LearnerError
from latebloomer.racing.learners.learner import ScoreStream, bare
from latebloomer.racing.runners.process_state import CalledLearner, called_learner

# Which learner of which race an object is, by its id, as long as the object exists.
_learners: dict[int, tuple[weakref.ref[Any], CalledLearner | None]] = {}


def need_own_object(learner: Any) -> None:
    """Raise a `LearnerError` if another learner of the race that calls is the same object."""
    built = bare(learner)
    built = built.scores if isinstance(built, ScoreStream) else built
    place, now = id(built), called_learner()
    _, before = _learners.get(place, (None, None))
    if now and before and now.race is before.race and now.arm != before.arm:
        raise LearnerError(
            "its function returned the object that another learner of this race is, so one would "
            "train the other: build a new one inside the function"
        )
    with suppress(TypeError):  # without weak references nothing can be remembered
        _learners[place] = weakref.ref(built, lambda _: _learners.pop(place, None)), now
