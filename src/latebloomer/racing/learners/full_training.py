"""The length of each learner's full training, and the share of it that is one pull.

A mini-batch and a tree cannot be compared, but a hundredth of each learner's full training is a
fair unit. Each learner declares the length of its full training in its own steps. If a full
training has N pulls, pull n of the race ends at step round(n * full / N).
"""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from latebloomer._util.text import brief
from latebloomer.errors import MOST, SettingError, is_flag
from latebloomer.racing.learners.entries import Entry, seed_of
from latebloomer.racing.learners.learner import Share, bare
from latebloomer.session.checked_inputs import listed

Thing = TypeVar("Thing")
PULLS = 100  # pulls in a full training, unless the shortest training has fewer steps
FEWEST = 10  # minimum pulls in a full training


def full_training(steps: int) -> Callable[[Thing], Thing]:
    """Declare how many steps a full training of a class or function takes.

    Parameters
    ----------
    steps : int
        Number of steps in a full training, at least 1.

    Returns
    -------
    Callable
        A decorator that sets the attribute `full_steps`.

    Examples
    --------
    >>> @full_training(200)
    ... def net():
    ...     yield 0.5
    >>> net.full_steps
    200
    """
    _need_whole("full_steps=", steps, "steps")

    def declare(thing: Thing) -> Thing:
        thing.full_steps = steps  # type: ignore[attr-defined]
        return thing

    return declare


def shares_of(
    learners: Mapping[str, Any], full_steps: Any = None, pulls: int | None = None, seed: int = 0
) -> dict[str, Share]:
    """Return the share of a full training that is one pull, for each learner.

    `full_steps` is one number for all learners, a dict by name, or None: then each learner
    declares it. If a function builds the learner and does not declare it by `full_training`, the
    learner is built once to read it.

    >>> shares_of({"net": None, "forest": None}, {"net": 3600, "forest": 40})
    {'net': Share(full_steps=3600, pulls=40), 'forest': Share(full_steps=40, pulls=40)}
    >>> [shares_of({"net": None}, steps)["net"].pulls for steps in (5, 10, 60, 500)]
    [100, 10, 60, 100]
    """
    if full_steps is not None and not isinstance(full_steps, Mapping):
        full_steps = dict.fromkeys(learners, full_steps)
    steps: dict[str, Any] = dict(full_steps or {})
    unknown = [name for name in steps if name not in learners]
    if unknown:
        known, wrong = listed(list(learners)), listed(unknown)
        problem = (
            f"full_steps names {wrong}, but the learners are {known}. Correct the name {wrong}."
        )
        raise SettingError(problem)
    for name, learner in learners.items():
        if name not in steps:
            steps[name] = _asked(Entry(name, learner, seed_of(seed, name)))
    missing = [name for name, value in steps.items() if value is None]
    if missing:
        raise SettingError(
            f"The length of a full training is unknown for {listed(missing)}. Give it in steps: "
            f"full_steps={dict.fromkeys(missing, 200)}, an attribute full_steps, or the decorator "
            "latebloomer.full_training(200)."
        )
    for name, value in steps.items():
        _need_whole(f"full_steps of {name!r} is ", value, "steps")
    if pulls is None:
        # A learner that trains in one step is fully trained in one pull, whatever a pull of the
        # others is.
        shortest = min((length for length in steps.values() if length > 1), default=PULLS)
        pulls = shortest if FEWEST <= shortest < PULLS else PULLS
    _need_whole("pulls_per_training=", pulls, "pulls")
    return {name: Share(int(steps[name]), pulls) for name in learners}


def _asked(entry: Entry) -> int | None:
    """Return the steps that a learner declares, before or after it is built; None if unknown."""
    steps = declared(entry.passed)
    if steps is None and callable(entry.passed) and entry.rebuilds:
        with suppress(Exception):  # an error in the user's function: the race reports it later
            if not inspect.isgeneratorfunction(entry.passed):
                steps = declared(bare(entry.build()))
    return steps


def declared(learner: Any) -> int | None:
    """Return the attribute `full_steps` or the argument of a partial; None if there is neither."""
    if isinstance(learner, partial):
        return learner.keywords.get("full_steps", declared(learner.func))
    value = getattr(learner, "full_steps", None)
    # An attribute of instances, not of the class.
    described = isinstance(value, property) or callable(value)
    return None if described else value


def _need_whole(prefix: str, value: Any, what: str) -> None:
    if not hasattr(value, "__index__") or is_flag(value) or not 1 <= value <= MOST:
        meaning = f"the number of {what} in a full training"
        needed = f"an integer from 1 to 2^53: {meaning}"
        raise SettingError(f"{prefix}{brief(value)}, but it must be {needed}.")
