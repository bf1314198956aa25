"""The budget of a search: what its race may spend, and what is reserved for the refit."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from latebloomer import errors
from latebloomer._util.text import short_seconds
from latebloomer.core.ledger import ANY
from latebloomer.integrations.library_learner import at_least_1
from latebloomer.integrations.sklearn.sklearn_learner import SklearnLearner
from latebloomer.integrations.sklearn.training.fold_model import WHY
from latebloomer.policies.plan_text import counted
from latebloomer.policies.registry import policy_for
from latebloomer.racing.learners import full_training
from latebloomer.racing.request import Budget, usual_min_pulls
from latebloomer.racing.verdict.verdict import Verdict

if TYPE_CHECKING:
    from latebloomer.integrations.sklearn.base_search import BaseRaceSearch

# Default budget of a race, in full trainings: this number for each estimator, and at least two in
# total. On 27 recorded tables, the returned model was as good as after training all learners: its
# test score was .0003 ± .0005 better with 12 learners, and .0003 ± .0006 better with 6. With .5 it
# was .0004 ± .0004 and .0005 ± .0012 worse, with 1/3 .0027 ± .0012 and .0055 ± .0025 worse.
EACH_TRAINING, LEAST = 0.6, 2.0
FIRST_DROP = 3, 0.1  # minimum pulls, and share of a full training, before a drop
# Models of different kinds get three pulls before any can be dropped, if the budget pays for seven
# pulls of each. On 16 and 32 recorded learners with 7 to 13 pulls each, three pulls instead of two
# change the rank loss by -.0009 (if the first score is that of an untrained model) and by +.0003.
JUDGED, PAYS = 3, 7
PULLS = 20, 100  # minimum and maximum number of pulls in a full training
EACH = 10  # pulls of each estimator that the budget should pay for
REFIT_SHARE = 1 / 3  # reserved share of the budget if the policy plans no levels
DEAR = 0.5  # warn of a step that costs more than this share of a full training
NEGLIGIBLE = 1.0  # no warning of steps below this number of seconds
TICK = 1e-9  # seconds: shortest time assumed for a pull or a step
EXTENDS = ("budget", "trainings", "seconds")  # a larger value extends the race of a journal


@dataclass(frozen=True)
class SearchBudget:
    """The budget of a search: for its race and for the refit."""

    race: Budget
    refit_cost: str  # cost of the refit, as text
    pulls_per_training: int | None = None
    full_steps: dict[str, int] | None = None  # steps of each estimator's full training
    min_pulls: int | None = None  # pulls of a learner before it can be dropped; None: usual rule
    refit_steps: int | None = None  # steps reserved for the refit, if the budget is in pulls


def search_budget(
    search: "BaseRaceSearch",
    learners: Mapping[str, SklearnLearner],
    recorded: Mapping[str, Any],
) -> SearchBudget:
    """Return the budget for a race of untrained learners; raise an error if nothing is left.

    `recorded` are the settings of the race to resume; empty for a new race.
    """
    errors.require(
        not search.extra_refit or bool(search.refit),
        "extra_refit",
        search.extra_refit,
        "False with refit=False",
        "without a refit nothing is spent on one",
    )
    budgets = {name: getattr(search, name) for name in EXTENDS}
    named = [f"{name}={value}" for name, value in budgets.items() if value is not None]
    if len(named) > 1:
        ways = "trainings=3 (full trainings), budget=2000 (pulls) or seconds=600 (time)"
        raise errors.SettingError(f"{' and '.join(named)}, but a search has one budget: {ways}")
    if search.budget is not None:
        return _in_pulls(search, len(learners))
    return _in_full_trainings(search, learners, recorded)


def _in_full_trainings(
    search: "BaseRaceSearch", learners: Mapping[str, SklearnLearner], recorded: Mapping[str, Any]
) -> SearchBudget:
    """Return a budget in full trainings or in seconds, by the steps that estimators declare."""
    errors.require(
        search.horizon is None,
        "horizon",
        search.horizon,
        "omitted without budget",
        "otherwise learners are compared at one full training",
    )
    if search.trainings is not None:
        errors.need_in(
            "trainings", search.trainings, "(0, inf)", "it is the budget, in full trainings"
        )
    pulls = _pulls_per_training(search, learners, recorded)
    in_one_step = sum(learner.in_one_step for learner in learners.values())
    cost, trainings, least = "one full training", None, search.min_pulls
    if search.seconds is None:
        others = len(learners) - in_one_step
        trainings = _race_trainings(search, in_one_step, others, pulls)
        least = least_pulls(search, len(learners), round(trainings * pulls))
    elif not search.extra_refit:
        cost = "the time of one full training"
    full_steps = {name: learner.full_steps for name, learner in learners.items()}
    race = Budget(
        trainings=trainings,
        seconds=search.seconds,
        full_steps=full_steps,
        pulls_per_training=pulls,
    )
    return SearchBudget(race, cost, pulls, full_steps, least)


def least_pulls(search: "BaseRaceSearch", learners: int, budget: int) -> int:
    """Return the number of pulls before which no learner is dropped."""
    if search.min_pulls is not None:
        return search.min_pulls
    usual = usual_min_pulls(search.policy, learners, budget, search.winner_share)
    pays = (1 - search.winner_share) * budget >= PAYS * learners
    return JUDGED if search.compares_models and usual > 1 and pays else usual


def _pulls_per_training(
    search: "BaseRaceSearch", learners: Mapping[str, SklearnLearner], recorded: Mapping[str, Any]
) -> int:
    """Return the number of pulls in a full training."""
    if search.pulls_per_training is not None:
        return at_least_1("pulls_per_training", search.pulls_per_training, WHY)
    if recorded.get("pulls_per_training") is not None:
        return int(recorded["pulls_per_training"])
    # Use few pulls: a call of `fit` with warm_start may cost as much as several trees.
    few, most = PULLS
    wanted = EACH * len(learners) / (search.trainings or inf)
    # The patience of an estimator is checked after each pull.
    waits = [
        ceil(example.full_steps / example.patience.steps)
        for example in learners.values()
        if example.patience is not None
    ]
    pulls = min(most, max([few, ceil(wanted), *waits]))
    pulls = most if search.seconds is not None else pulls
    steps = [learner.full_steps for learner in learners.values() if not learner.in_one_step]
    shortest = min(steps, default=pulls)
    return shortest if full_training.FEWEST <= shortest < pulls else pulls


def _race_trainings(search: "BaseRaceSearch", in_one_step: int, others: int, pulls: int) -> float:
    """Return the full trainings of the race, without the refit.

    An estimator that is trained in one step counts as one pull of the race, whatever it costs, so
    that the race is the same on every machine.
    """
    trainings, refits = search.trainings, int(refit_is_inside(search))
    if trainings is None:
        return _default_trainings(search, in_one_step, others, pulls)
    if trainings <= refits:
        reserved = "the refit of the winner takes one full training"
        raise _nothing_left(f"trainings={trainings:g}", reserved, f"more than {refits}")
    return float(trainings - refits)


def _default_trainings(
    search: "BaseRaceSearch", in_one_step: int, others: int, pulls: int
) -> float:
    """Return the full trainings of a race that drops no learner too early."""
    learners = others + in_one_step
    least = (max(LEAST, EACH_TRAINING * others) if others else 0.0) + in_one_step / pulls
    for budget in range(round(least * pulls), learners * pulls):
        usual = search.min_pulls or usual_min_pulls(search.policy, learners, budget)
        if not _drops_early(search, learners, budget, pulls, usual):
            return budget / pulls
    return max(least, learners)


def _drops_early(
    search: "BaseRaceSearch", learners: int, budget: int, pulls: int, least: int
) -> tuple[int, int] | None:
    """Return (pulls, count) of the first drop if it comes too early to be reliable; else None.

    A drop is too early before three pulls and a tenth of a full training. The result is None, too,
    if the policy plans no drops.
    """
    try:
        rule = policy_for(search.policy, learners, budget, pulls)
        first = rule.describe(learners, budget, pulls, least).first_drop
    except errors.BudgetError:  # the race raises it later
        return None
    fewest, share = FIRST_DROP
    if first is None or first[0] >= min(pulls, max(fewest, share * pulls)):
        return None
    return first[0], first[1]


def early_drop(search: "BaseRaceSearch", learners: Mapping[str, SklearnLearner]) -> str | None:
    """Return a warning if the budget is so small that learners are dropped too early."""
    pulls = _pulls_per_training(search, learners, {})
    if search.trainings is None:
        return None
    refits = int(refit_is_inside(search))
    budget = round((search.trainings - refits) * pulls)
    least = least_pulls(search, len(learners), budget)
    early = _drops_early(search, len(learners), budget, pulls, least)
    if early is None:
        return None
    done, dropped = early
    in_one_step = sum(learner.in_one_step for learner in learners.values())
    advised = refits + _default_trainings(search, in_one_step, len(learners) - in_one_step, pulls)
    which = f"{dropped} of {len(learners)} learners" if dropped > 1 else "the first learner"
    return (
        f"trainings={search.trainings:g} drops {which} after {counted(done)}, {done / pulls:.0%} "
        "of a training, so one that starts slowly cannot show what it learns. Give "
        f"trainings={ceil(advised * 10) / 10:g}, or race fewer learners"
    )


def dear_steps(
    verdict: Verdict, learners: Mapping[str, SklearnLearner], pulls_per_training: int
) -> list[str]:
    """Return a warning for each estimator whose only step cost much more than one pull.

    In our measurements, k-nearest neighbors, trees and ridge cost up to .1 of the other learners'
    mean full training, and a kernel machine up to .4.
    """
    in_one_step = {name for name, learner in learners.items() if learner.in_one_step}
    others = [view for view in verdict.learners if view.name not in in_one_step and view.pulls]
    if not others:
        return []
    mean = sum(view.seconds for view in others) / sum(view.pulls for view in others)
    training = mean * pulls_per_training
    return [
        f"{view.name} trains in one step, which is one pull of the budget, but took "
        f"{short_seconds(view.seconds)} s: {view.seconds / training:.1g} of the others' mean full "
        "training. Race it with seconds=, which charges what it costs, or leave it out"
        for view in verdict.learners
        if view.name in in_one_step and view.seconds > max(DEAR * training, NEGLIGIBLE)
    ]


def _in_pulls(search: "BaseRaceSearch", learners: int) -> SearchBudget:
    """Return a budget in pulls, with as many pulls reserved for the refit as the winner has."""
    budget, horizon = errors.need_whole("budget", search.budget), search.horizon
    reserved = 0
    if refit_is_inside(search):
        reserved = horizon or _refit_pulls(search.policy, learners, budget)
        if reserved >= budget:
            why = f"refit=True reserves {reserved} pulls to refit the winner"
            raise _nothing_left(f"budget={budget}", why, "more")
    # No learner is trained further than the refit, so learners are compared at its number of
    # pulls.
    level = horizon or reserved or None
    per_training = search.pulls_per_training  # the race raises an error for it
    race = Budget(pulls=budget - reserved, horizon=level, pulls_per_training=per_training)
    cost = f"{level} pulls" if level else "as many pulls as it had"
    return SearchBudget(race, cost, per_training, min_pulls=search.min_pulls, refit_steps=reserved)


def refit_is_inside(search: "BaseRaceSearch") -> bool:
    """Return whether the budget of a search also pays for the refit."""
    return bool(search.refit) and not search.extra_refit


def _nothing_left(setting: str, reserved: str, needed: str) -> errors.BudgetError:
    cure = f"Give {needed}, set refit=False, or set extra_refit=True to refit on top of it."
    return errors.BudgetError(f"{setting} leaves nothing for the race: {reserved}. {cure}")


def _last_level(policy: Any, arms: int, pulls: int, horizon: int) -> int | None:
    """Return the pulls that the winner has at the end; 0 if the policy has no such plan.

    Return None if there are too few pulls for a race.
    """
    try:
        plan = policy_for(policy, arms, pulls, horizon).plan(arms, pulls, horizon)
    except errors.BudgetError:
        return None
    return 0 if ANY in plan.keep else int(plan.upto[-1])


def _refit_pulls(policy: Any, arms: int, budget: int) -> int:
    """Return the pulls to reserve so that the refit can have as many as the winner had."""

    def total(pulls: int) -> int:
        return pulls + (_last_level(policy, arms, pulls, pulls) or 0)

    level = _last_level(policy, arms, budget, budget)
    if not level:  # too few pulls (the race raises the error), or a policy without levels
        return 0 if level is None else round(REFIT_SHARE * budget)
    return budget - 1 - bisect_right(range(2, budget), budget, key=total)
