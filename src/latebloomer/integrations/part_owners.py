"""Owners of weights: learners that train the same weights in turn are detected."""

import weakref
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from latebloomer.errors import LearnerError
from latebloomer.racing.runners.process_state import CalledLearner, called_learner


class Owner(NamedTuple):
    """The learner that trained a part last."""

    learner: object  # None after two learners have trained the part in turn
    called: CalledLearner | None  # its race and name during the training; None: outside of races


SHARED = Owner(None, None)
# By id of a part: a weak reference to the part, and its owner.
_owners: dict[int, tuple[Any, Owner]] = {}


class TrainedParts:
    """Claim weights and optimizers at each pull of one learner.

    A learner may continue to train parts that a learner of an earlier race has trained. Two
    learners of one race must not train the same part. If an earlier learner trains a part again,
    the scores of both learners mean nothing, and both fail. Weights without gradients may be
    shared.
    """

    def __init__(self) -> None:
        self._learner = object()
        self._mine: set[int] = set()  # ids of the parts that this learner has trained

    def __reduce__(self) -> tuple[type["TrainedParts"], tuple[()]]:
        return TrainedParts, ()  # ids are not valid for copies and in other processes

    def claim(self, parts: Iterable[Any]) -> None:
        """Record that this learner trains the parts; raise an error if it shares one."""
        parts, now = list(parts), Owner(self._learner, called_learner())
        for part in parts:
            _, owner = _owners.get(id(part), (None, now))
            if owner.learner is not self._learner and (
                owner is SHARED or id(part) in self._mine or _in_one_race(owner, now)
            ):
                self._note(parts, SHARED)
                raise LearnerError(
                    "its model or optimizer is trained by another learner of this process too, so "
                    "its scores mean nothing: build both inside the function that builds the "
                    "learner, such as copy.deepcopy(pretrained)"
                )
        self._note(parts, now)

    def restored(self, parts: Iterable[Any]) -> None:
        """Record that the parts have this learner's state again, after a restore."""
        self._note(parts, Owner(self._learner, called_learner()))

    def _note(self, parts: Iterable[Any], owner: Owner) -> None:
        for part in parts:
            self._mine.add(id(part))
            known = _owners.get(id(part))
            if known is None:
                _owners[id(part)] = weakref.ref(part, partial(_forget, id(part))), owner
            elif known[1] != owner:
                _owners[id(part)] = known[0], owner


def _in_one_race(one: Owner, other: Owner) -> bool:
    """Return whether these are two different learners of one race."""
    if one.called is None or other.called is None:
        return False
    return one.called.race is other.called.race and one.called.arm != other.called.arm


def _forget(number: int, _: object) -> None:
    _owners.pop(number, None)
