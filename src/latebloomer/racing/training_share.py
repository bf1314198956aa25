"""Pulls that are the same share of each learner's own full training.

A mini-batch and a tree have little in common; a hundredth of what each learner takes when it is
trained whole is a fair unit. Each learner says how long its full training is, in its own steps,
and pull n of the race ends at the step round(n * full / N), N pulls being a full training.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, NamedTuple, TypeVar

from latebloomer.errors import SettingError, need_number, require

Thing = TypeVar("Thing")
PULLS = 100  # of a full training, unless the shortest has fewer steps
FEWEST = 10  # pulls of a full training that are worth a race


class Share(NamedTuple):
    """What part of its full training a learner's pull is.

    >>> Share(250, 100).steps_after(1), Share(250, 100).steps_of(2)
    (3, 2)
    """

    full_steps: int  # steps of this learner's full training
    pulls: int  # pulls of a full training, the same for all learners

    def steps_after(self, n: int) -> int:
        """Return the steps after n pulls: round(n * full / pulls), but the first pull trains."""
        return max(min(n, 1), (2 * n * self.full_steps + self.pulls) // (2 * self.pulls))

    def steps_of(self, n: int) -> int:
        """Return the steps of the n-th pull; 0 if it adds none."""
        return self.steps_after(n) - self.steps_after(n - 1)

    @property
    def repeats_scores(self) -> bool:
        """True if some pulls add no step and repeat the last score."""
        return self.full_steps < self.pulls


class ShareLearner:
    """A learner whose pull is a share of its full training."""

    def __init__(self, learner: Any, share: Share) -> None:
        self.learner, self.share = learner, share
        self.steps = 0  # of the newest pull
        self._pulls = 0
        self._score: Any = None
        self._ended = False
        self._at_once = _takes_steps(learner.pull)
        for name in ("save", "load"):
            if hasattr(learner, name):
                setattr(self, name, getattr(learner, name))

    def stand_at(self, pulls: int, score: float | None) -> None:
        """Set the pulls made and the last score of a learner that was restored."""
        self._pulls, self._score = pulls, score

    def pull(self) -> Any:
        """Train the steps of the next pull; one that adds none repeats the last score."""
        steps = self.share.steps_of(self._pulls + 1)
        if steps and self._ended:
            raise StopIteration
        if steps:
            self._score, self.steps = self._train(steps)
        else:
            self.steps = 0
        self._pulls += 1
        return self._score

    def _train(self, steps: int) -> tuple[Any, int]:
        """Return the score after the steps, or after those that were left, and their number."""
        if self._at_once:
            return self.learner.pull(steps=steps), steps
        score = None
        for made in range(steps):
            try:
                score = self.learner.pull()
            except StopIteration:
                if made == 0:
                    raise
                self._ended = True
                return score, made
        return score, steps


def _takes_steps(pull: Callable[..., Any]) -> bool:
    try:
        return "steps" in inspect.signature(pull).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False


# --- how long each learner's full training is ---


def full_training(steps: int) -> Callable[[Thing], Thing]:
    """Declare how many steps a full training of a class or function takes.

    Parameters
    ----------
    steps : int
        Steps in a full training.

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
    _need_steps("full_steps", steps)

    def declare(thing: Thing) -> Thing:
        thing.full_steps = steps  # type: ignore[attr-defined]
        return thing

    return declare


def shares_of(
    learners: Mapping[str, Any], full_steps: Any = None, pulls_per_training: int | None = None
) -> dict[str, Share]:
    """Return what a pull of each learner is; nothing is built to find out.

    `full_steps` is a number for all, a dict, or None: then each learner says it.

    >>> shares_of({"net": None, "forest": None}, {"net": 3600, "forest": 40})
    {'net': Share(full_steps=3600, pulls=40), 'forest': Share(full_steps=40, pulls=40)}
    """
    _need_known(full_steps if isinstance(full_steps, Mapping) else {}, learners)
    steps: dict[str, Any] = {
        name: _steps_of(name, one, full_steps) for name, one in learners.items()
    }
    missing = [name for name, value in steps.items() if value is None]
    if missing:
        raise SettingError(
            f"The length of a full training is unknown for {_listed(missing)}. Give it in steps: "
            f"full_steps={{{missing[0]!r}: 200}}, an attribute full_steps, or the decorator "
            "latebloomer.full_training(200)."
        )
    for name, value in steps.items():
        _need_steps(f"full of {name!r}", value)
    pulls = _pulls_per_training(min(steps.values()), pulls_per_training)
    return {name: Share(int(value), pulls) for name, value in steps.items()}


def _steps_of(name: str, given: Any, full_steps: Any) -> Any:
    """Return the steps of one learner's full training; None if they are unknown."""
    if isinstance(full_steps, Mapping) and name in full_steps:
        return full_steps[name]
    return declared(given) if full_steps is None or isinstance(full_steps, Mapping) else full_steps


def declared(given: Any) -> int | None:
    """Return the attribute `full_steps`, or the argument of a partial; None if there is none."""
    if isinstance(given, partial):
        return given.keywords.get("full_steps", declared(given.func))
    value = getattr(given, "full_steps", None)
    described = isinstance(value, property) or callable(value)  # of instances, not of the class
    return None if described else value


def _pulls_per_training(shortest: int, given: int | None) -> int:
    """Return 100, or the steps of the shortest full training if these are 10 to 99.

    >>> [_pulls_per_training(shortest, None) for shortest in (5, 10, 60, 500)]
    [100, 10, 60, 100]
    """
    if given is None:
        return shortest if FEWEST <= shortest < PULLS else PULLS
    whole = isinstance(given, int) and not isinstance(given, bool)
    require(whole and given >= 1, "pulls_per_training", given, "an integer >= 1",
            "it is how many pulls make a full training")  # fmt: skip
    return given


def _need_steps(name: str, value: Any) -> None:
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    require(whole and value >= 1, name, value, "an integer >= 1",
            "it is the number of steps in a full training")  # fmt: skip


def _need_known(full_steps: Mapping[str, Any], learners: Mapping[str, Any]) -> None:
    unknown = [name for name in full_steps if name not in learners]
    if unknown:
        raise SettingError(
            f"full names {_listed(unknown)}, but the learners are {_listed(list(learners))}"
        )


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(str, names[:6]))
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


# --- a race's budget in full trainings ---


class Units(NamedTuple):
    """What a race is asked for, in pulls."""

    budget: int | None
    horizon: int | None
    shares: dict[str, Share]  # empty where a pull is one step

    @property
    def settings(self) -> dict[str, Any]:
        """Part of the settings that the journal keeps."""
        if not self.shares:
            return {}
        pulls = next(iter(self.shares.values())).pulls
        return {
            "full_steps": {name: share.full_steps for name, share in self.shares.items()},
            "pulls_per_training": pulls,
        }


def units_of(
    learners: Mapping[str, Any],
    budget: int | None,
    horizon: int | None,
    trainings: float | None,
    full_steps: Any,
    pulls_per_training: int | None,
) -> Units:
    """Return the budget, the horizon and each learner's share, from what was given."""
    if trainings is None and full_steps is None:
        if pulls_per_training is not None:
            raise SettingError(
                f"pulls_per_training={pulls_per_training} needs trainings= or full_steps=: "
                "without them a pull is one step"
            )
        return Units(budget, horizon, {})
    for name, value in (("budget", budget), ("horizon", horizon)):
        if trainings is not None and value is not None:
            raise SettingError(
                f"trainings={trainings} and {name}={value}, but trainings= sets both budget and "
                f"horizon: leave {name} out, or give budget= in pulls with full_steps="
            )
    shares = shares_of(learners, full_steps, pulls_per_training)
    one = next(iter(shares.values())).pulls if shares else PULLS
    if trainings is None:
        require(horizon is None or horizon <= one, "horizon", horizon, f"at most {one}",
                "with full_steps= that is one full training")  # fmt: skip
        return Units(budget, one if horizon is None else horizon, shares)
    need_number("trainings", trainings)
    require(0 < trainings < inf, "trainings", trainings, "above 0",
            "it is the budget, in full trainings of a learner")  # fmt: skip
    return Units(max(1, round(trainings * one)), one, shares)
