"""The arguments of a call, in groups: the budget, the rules that decide, and the other options.

`race`, `resume`, the searches and the races inside other tools all make a `RaceRequest` or a
`ResumeRequest`. The `Settings` of a race follow from its request and are kept in the journal.
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

LOCAL = {"name": "local"}  # the local runner, as the journal stores it

# With policy "auto", no learner is dropped before 2 pulls if the budget has at least 4 pulls per
# learner. The first score may be the score of an untrained model: on 16 to 128 recorded learners,
# the rule lowers the rank loss from .049 to .040. If the first score is already the score of a
# trained model, the rule costs .002. Three pulls would cost .004 to .013 at 4 pulls per learner.
FIRST_COMPARISON, PAID = 2, 4


class Units(NamedTuple):
    """The length of a pull, and the budget and the horizon in pulls."""

    budget: int | None  # None: the budget is in seconds
    horizon: int | None
    full_steps: dict[str, int] | None = None  # None: a pull is one step
    pulls_per_training: int | None = None


def usual_min_pulls(
    policy: Policy | str, arms: int, budget: int | None, winner_share: float = 0.0
) -> int:
    """Return the default of `min_pulls`: no learner is dropped before it has had that many pulls.

    It is 1, which changes no plan, for every policy but "auto" and for a budget in seconds.

    >>> [usual_min_pulls(*given) for given in (("auto", 8, 40), ("auto", 8, 30), ("sh", 8, 40))]
    [2, 1, 1]
    """
    if not (isinstance(budget, Integral) and isinstance(winner_share, Real)):
        return 1  # a race in seconds, or the settings raise an error
    pays = (1 - winner_share) * budget >= PAID * arms
    return FIRST_COMPARISON if pays and registry.is_auto(policy) else 1


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The amount that may be spent, in pulls, full trainings or seconds, and what a pull is."""

    pulls: int | None = None
    trainings: float | None = None
    seconds: float | None = None
    horizon: int | None = None
    full_steps: int | Mapping[str, int] | None = None
    pulls_per_training: int | None = None

    @property
    def amounts(self) -> dict[str, float]:
        """The amounts that are set, by the argument names of `race`; a valid request has one."""
        named = {"budget": self.pulls, "trainings": self.trainings, "seconds": self.seconds}
        return {name: value for name, value in named.items() if value is not None}

    def amount_alone(self) -> Budget:
        """Return the amount alone: a resumed race has the other fields in its journal."""
        return Budget(pulls=self.pulls, trainings=self.trainings, seconds=self.seconds)

    def units(self, learners: Mapping[str, Any], seed: int = 0) -> Units:
        """Return the length of a pull of these learners, and the budget and the horizon in pulls.

        >>> Budget(trainings=3, full_steps=40).units({"net": None})
        Units(budget=120, horizon=40, full_steps={'net': 40}, pulls_per_training=40)
        """
        pulls, horizon, trainings = self.pulls, self.horizon, self.trainings
        if trainings is None and self.full_steps is None:
            if self.pulls_per_training is not None:
                problem = (
                    f"pulls_per_training={self.pulls_per_training} needs trainings= or full_steps="
                )
                raise SettingError(f"{problem}: without them a pull is one step")
            return Units(pulls, horizon)
        for name, value in (("budget", pulls), ("horizon", horizon)):
            if trainings is not None and value is not None:
                raise SettingError(
                    f"trainings={trainings} and {name}={value}, but trainings= sets both budget "
                    f"and horizon: leave {name} out, or give budget= in pulls with full_steps="
                )
        shares = shares_of(learners, self.full_steps, self.pulls_per_training, seed)
        per_training = next(iter(shares.values())).pulls
        if trainings is not None:
            need_in("trainings", trainings, "(0, inf)", "it is the budget, in full trainings")
            pulls = max(1, round(trainings * per_training))
        require(
            horizon is None or horizon <= per_training,
            "horizon",
            horizon,
            f"at most {per_training}",
            "with full_steps= that is one full training",
        )
        steps = {name: share.full_steps for name, share in shares.items()}
        return Units(pulls, per_training if horizon is None else horizon, steps, per_training)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The settings that change decisions of a race, in addition to its budget and its learners."""

    policy: Policy | str = "auto"
    seed: int = 0
    maximize: bool = True
    winner_share: float = 0.0
    min_pulls: int | None = None  # None: `usual_min_pulls`
    score_range: tuple[float | None, float | None] | None = None  # None: the learners' attribute
    stop: str | None = None
    drops: str | None = None  # "worst" or "waste": see `race`


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options that change no decision: the runner, the displays and the callbacks."""

    runner: str | Runner | None = None  # None: local for a new race, recorded for a resumed one
    progress: bool = True
    callbacks: Sequence[Callback] | None = None
    watch: bool = False

    def __post_init__(self) -> None:
        need_flag("progress", self.progress, "True or False: it is whether to show the race")
        need_flag("watch", self.watch, "True or False: it is whether to serve the live page")


@dataclass(frozen=True, kw_only=True)
class RaceRequest:
    """The arguments that start a new race."""

    learners: Mapping[str, Given]
    budget: Budget
    rules: Rules = Rules()
    options: RunOptions = RunOptions()

    def settings(self, runner: Mapping[str, Any] = LOCAL) -> Settings:
        """Return the settings of the race, checked; the journal stores them."""
        rules, budget, learners = self.rules, self.budget, self.learners
        units = budget.units(learners, rules.seed)
        limits, min_pulls = rules.score_range, rules.min_pulls
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
            score_range=declared_range(learners) if limits is None else limits,
            stop=rules.stop,
            drops=rules.drops,
            runner=runner,
            learner_settings=described(learners) or None,
        )


@dataclass(frozen=True, kw_only=True)
class ResumeRequest:
    """The arguments that resume or extend a race; a larger budget also pays for new learners."""

    learners: Mapping[str, Given]
    budget: Budget = Budget()  # a larger total; empty: unchanged
    add: Mapping[str, Given] | None = None
    revive: bool = True
    policy: Policy | str | None = None  # needed only if it is not part of this library
    options: RunOptions = RunOptions()
