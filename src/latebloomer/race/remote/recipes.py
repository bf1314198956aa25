"""How a learner travels: the function that builds it, pickled, and where its modules are.

Pickles go from the driver to its own actors and back, never to or from anyone else.
"""

from __future__ import annotations

import pickle
import sys
from typing import NamedTuple

from latebloomer.errors import extra
from latebloomer.race.errors import LearnerError
from latebloomer.race.learner import Entry
from latebloomer.race.odometer import already_had


class Recipe(NamedTuple):
    """A learner that is to be built in another process."""

    name: str
    entry: bytes
    path: tuple[str, ...]  # where the driver looks for modules


def recipe_of(entry: Entry) -> Recipe:
    """Pack a learner, or say which one cannot be sent and why."""
    cloudpickle = extra("ray.cloudpickle", "work on several cores or machines", "ray")
    if not entry.rebuilds:
        already_had(entry.given, 0)  # one that was trained here is not the one that begins there
    try:
        packed = bytes(cloudpickle.dumps(entry))
    except Exception as error:  # whatever pickling the user's object raises
        raise LearnerError(
            f"learner {entry.name!r} cannot be sent to another process ({type(error).__name__}: "
            f"{error}): give a function that makes what it needs (files, locks, connections, "
            "models on a GPU) when it is called, instead of an object that holds it"
        ) from error
    return Recipe(entry.name, packed, tuple(sys.path))


def unpacked(recipe: Recipe) -> Entry:
    """The learner's entry, where it is to be built. Folders that exist here too are looked in."""
    sys.path += [folder for folder in recipe.path if folder not in sys.path]
    entry: Entry = pickle.loads(recipe.entry)
    return entry
