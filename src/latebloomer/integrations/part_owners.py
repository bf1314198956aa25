"""Which learner trains a model: two learners that train the same weights in turn are found out."""

import weakref
from collections.abc import Iterable
from functools import partial
from typing import Any

from latebloomer.errors import LearnerError

SHARED = "shared"  # in place of an owner, once two learners have trained a part in turn
_owners: dict[int, tuple[Any, object]] = {}  # by id of a part: a weak reference to it, its owner


class TrainedParts:
    """Claims weights and optimizers at each pull of one learner.

    A learner may continue to train what another learner has trained before, as in a second race.
    If the other learner trains it again, their scores mean nothing, and both fail. Weights that
    need no gradient may be shared.
    """

    def __init__(self) -> None:
        self._owner = object()
        self._mine: set[int] = set()  # ids of the parts that this learner has trained

    def __reduce__(self) -> tuple[type["TrainedParts"], tuple[()]]:
        return TrainedParts, ()  # ids mean nothing for copies and in other processes

    def claim(self, parts: Iterable[Any]) -> None:
        """Note that this learner trains the parts now; raise an error if it shares one."""
        parts = list(parts)
        for part in parts:
            _, owner = _owners.get(id(part), (None, self._owner))
            if owner is SHARED or (owner is not self._owner and id(part) in self._mine):
                self._note(parts, SHARED)
                raise LearnerError(
                    "its model or optimizer is trained by another learner of this process too, so "
                    "its scores mean nothing: build both inside the function that builds the "
                    "learner, such as copy.deepcopy(pretrained)"
                )
        self._note(parts, self._owner)

    def restored(self, parts: Iterable[Any]) -> None:
        """Note that the parts have this learner's state again, after a restore."""
        self._note(parts, self._owner)

    def _note(self, parts: Iterable[Any], owner: object) -> None:
        for part in parts:
            self._mine.add(id(part))
            known = _owners.get(id(part))
            if known is None:
                _owners[id(part)] = weakref.ref(part, partial(_forget, id(part))), owner
            elif known[1] is not owner:
                _owners[id(part)] = known[0], owner


def _forget(number: int, _: object) -> None:
    _owners.pop(number, None)
