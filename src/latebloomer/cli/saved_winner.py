"""`--save` keeps the winner: a generator that yields no model is refused at its first pull."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import wraps
from typing import Any

from latebloomer.errors import LearnerError
from latebloomer.racing.learner import Given

NO_MODEL = (
    "it yields scores alone, but --save keeps the winner, and a generator cannot be saved: let it "
    "yield (score, model), or leave --save out"
)


def with_models(learners: Mapping[str, Given]) -> dict[str, Given]:
    """The same learners, where generators must yield what could be saved."""
    return {name: _with_model(given) for name, given in learners.items()}


def _with_model(given: Any) -> Any:
    """A function, wrapped; objects and classes with `pull` are as they are."""
    if hasattr(given, "pull") or inspect.isclass(given) or not callable(given):
        return given

    @wraps(given)
    def build(*args: Any, **settings: Any) -> Any:
        made = given(*args, **settings)
        bare = isinstance(made, Iterator) and not hasattr(made, "pull")
        return _checked(made) if bare else made

    return build


def _checked(scores: Iterator[Any]) -> Iterator[Any]:
    for item in scores:
        if not (isinstance(item, tuple) and len(item) == 2 and item[1] is not None):
            raise LearnerError(NO_MODEL)
        yield item
