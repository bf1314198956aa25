"""What a call asks for: how much may be spent, what decides, and what changes no decision.

`race`, `resume`, the searches and races inside other tools all make one of these. What follows
from it for a race, and is kept in its journal, are its `Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

from latebloomer.errors import SettingError, need_flag, need_in, require
from latebloomer.policies import registry
from latebloomer.racing.learners.entries import declared_range, described
from latebloomer.racing.learners.full_training import shares_of
from latebloomer.racing.learners.learner import Given
from latebloomer.racing.settings import Settings, with_plain_settings

if TYPE_CHECKING:
    from latebloomer.policies.base import Policy
    from latebloomer.racing.callbacks import Callback
    from latebloomer.racing.runners.runner import Runner

LOCAL = {"name": "local"}  # the runner, as a journal keeps it

# With "auto", a learner has two pulls before it can be dropped, if the budget has four for each.
# One score may be that of an untrained model: with 16 to 128 recorded learners, two pulls lower
# the rank loss from .049 to .040. Where the first score is of a trained one they cost .002, and
# three cost .004 to .013 at four pulls for each.
FIRST_COMPARISON, PAID = 2, 4


class Units(NamedTuple):
    """What a pull is, and the budget and the horizon in pulls."""

    budget: int | None  # None if it is a time
    horizon: int | None
    full_steps: dict[str, int] | None = None  # None: a pull is one step
    pulls_per_training: int | None = None


def usual_min_pulls(
    policy: Policy | str, arms: int, budget: int | None, winner_share: float = 0.0
) -> int:
    """Return the pulls before which no learner is dropped, if none are given.

    A policy that was named keeps its own plan, and a race in seconds has a rule by prices.

    >>> [usual_min_pulls(*given) for given in (("auto", 8, 40), ("auto", 8, 30), ("sh", 8, 40))]
    [2, 1, 1]
    """
    if not (isinstance(budget, Integral) and isinstance(winner_share, Real)):
        return 1  # a race in seconds, or the settings raise an error
    pays = (1 - winner_share) * budget >= PAID * arms
    return FIRST_COMPARISON if pays and registry.is_auto(policy) else 1


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much may be spent: pulls, full trainings or seconds, of which one is given."""

    pulls: int | None = None
    trainings: float | None = None
    seconds: float | None = None
    horizon: int | None = None
    full_steps: int | Mapping[str, int] | None = None
    pulls_per_training: int | None = None

    @property
    def amounts(self) -> dict[str, float]:
        """What is given, by the names that calls have for it; it should be one."""
        named = {"budget": self.pulls, "trainings": self.trainings, "seconds": self.seconds}
        return {name: value for name, value in named.items() if value is not None}

    def amount_alone(self) -> Budget:
        """Return how much, without what a pull is: a race that goes on knows that."""
        return Budget(pulls=self.pulls, trainings=self.trainings, seconds=self.seconds)

    def units(self, learners: Mapping[str, Any], seed: int = 0) -> Units:
        """Return what a pull of these learners is, and what they may spend, in pulls.

        >>> Budget(trainings=3, full_steps=40).units({"net": None})
        Units(budget=120, horizon=40, full_steps={'net': 40}, pulls_per_training=40)
        """
        pulls, horizon, trainings = self.pulls, self.horizon, self.trainings
        if trainings is None and self.full_steps is None:
            if self.pulls_per_training is not None:
                said = (
                    f"pulls_per_training={self.pulls_per_training} needs trainings= or full_steps="
                )
                raise SettingError(f"{said}: without them a pull is one step")
            return Units(pulls, horizon)
        for name, value in (("budget", pulls), ("horizon", horizon)):
            if trainings is not None and value is not None:
                raise SettingError(
                    f"trainings={trainings} and {name}={value}, but trainings= sets both budget "
                    f"and horizon: leave {name} out, or give budget= in pulls with full_steps="
                )
        shares = shares_of(learners, self.full_steps, self.pulls_per_training, seed)
        one = next(iter(shares.values())).pulls
        if trainings is not None:
            need_in("trainings", trainings, "(0, inf)", "it is the budget, in full trainings")
            pulls = max(1, round(trainings * one))
        require(
            horizon is None or horizon <= one,
            "horizon",
            horizon,
            f"at most {one}",
            "with full_steps= that is one full training",
        )
        steps = {name: share.full_steps for name, share in shares.items()}
        return Units(pulls, one if horizon is None else horizon, steps, one)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What decides how a race goes, besides its budget and its learners."""

    policy: Policy | str = "auto"
    seed: int = 0
    maximize: bool = True
    winner_share: float = 0.0
    min_pulls: int | None = None  # None: what makes a first comparison mean something
    score_range: tuple[float | None, float | None] | None = None  # None: the learners' own
    stop: str | None = None
    drops: str | None = None  # which learner is dropped in a race in seconds


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What changes no decision: where pulls run, what is shown, and who is told."""

    runner: str | Runner | None = None  # None: on this machine, or as recorded
    progress: bool = True
    callbacks: Sequence[Callback] | None = None
    watch: bool = False

    def __post_init__(self) -> None:
        need_flag("progress", self.progress, "True or False: it is whether to show the race")
        need_flag("watch", self.watch, "True or False: it is whether to serve the live page")


@dataclass(frozen=True, kw_only=True)
class RaceRequest:
    """A new race."""

    learners: Mapping[str, Given]
    budget: Budget
    rules: Rules = Rules()
    options: RunOptions = RunOptions()

    def settings(self, runner: Mapping[str, Any] = LOCAL) -> Settings:
        """Return what the journal keeps of the request, checked."""
        rules, budget, learners = self.rules, self.budget, self.learners
        units = budget.units(learners, rules.seed)
        given, min_pulls = rules.score_range, rules.min_pulls
        if min_pulls is None:
            share = rules.winner_share
            min_pulls = usual_min_pulls(rules.policy, len(learners), units.budget, share)
        return Settings(
            policy=with_plain_settings(registry.default_or_named(rules.policy)),
            auto=registry.is_auto(rules.policy),
            budget=units.budget,
            trainings=budget.trainings,
            seconds=budget.seconds,
            horizon=units.horizon,
            full_steps=units.full_steps,
            pulls_per_training=units.pulls_per_training,
            seed=rules.seed,
            maximize=rules.maximize,
            winner_share=rules.winner_share,
            min_pulls=min_pulls,
            score_range=declared_range(learners) if given is None else given,
            stop=rules.stop,
            drops=rules.drops,
            runner=runner,
            learner_settings=described(learners) or None,
        )


@dataclass(frozen=True, kw_only=True)
class ResumeRequest:
    """A race that goes on, perhaps with a larger budget, which pays for new learners."""

    learners: Mapping[str, Given]
    budget: Budget = Budget()  # a larger total; nothing: the race's own
    add: Mapping[str, Given] | None = None
    revive: bool = True
    policy: Policy | str | None = None  # if it is not one of this library
    options: RunOptions = RunOptions()
