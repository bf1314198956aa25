"""A check that functions build a new object for each learner of a race.

A function may return an object or a generator that was built outside of the function, and so the
same object for several learners. Then one object would be trained several times per sweep, and
the race would compare its scores with themselves. (Learners that are passed as objects are
compared before the race starts.)
"""

import weakref
from contextlib import suppress
from typing import Any

from latebloomer.errors import LearnerError
from latebloomer.racing.learners.learner import ScoreStream, bare
from latebloomer.racing.runners.process_state import CalledLearner, called_learner

# For each object, by its id and as long as it exists: the race and the learner that use it.
_learners: dict[int, tuple[weakref.ref[Any], CalledLearner | None]] = {}


def need_own_object(learner: Any) -> None:
    """Raise a `LearnerError` if another learner of the current race is the same object."""
    built = bare(learner)
    built = built.scores if isinstance(built, ScoreStream) else built
    place, now = id(built), called_learner()
    _, before = _learners.get(place, (None, None))
    if now and before and now.race is before.race and now.arm != before.arm:
        raise LearnerError(
            "its function returned the same object as for another learner of this race, so a pull "
            "of one would train both: build a new object inside the function"
        )
    with suppress(TypeError):  # no weak reference is possible, so nothing can be stored
        _learners[place] = weakref.ref(built, lambda _: _learners.pop(place, None)), now
