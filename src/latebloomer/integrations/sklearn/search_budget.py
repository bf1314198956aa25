"""One budget for a search: what its race may spend, and what is set aside to refit the winner."""

from __future__ import annotations

from typing import Any, NamedTuple

from latebloomer.core.ledger import ANY
from latebloomer.errors import BudgetError, SettingError, need_number, need_whole, require
from latebloomer.policies.registry import policy_for
from latebloomer.racing.training_share import Share

LEAST = 2.0  # full trainings that a race is given where nothing is said, or half of one for each
REFIT_SHARE = 1 / 3  # of the time, or of the pulls of a rule that plans none


class SearchBudget(NamedTuple):
    """What is asked of the race, and what the refit may take."""

    race: dict[str, Any]  # as `race` takes it
    aside: float  # set aside of the budget for the refit, in its unit
    said: str  # about the refit, before anything is spent; nothing without one

    @property
    def by_trainings(self) -> bool:
        """Whether a pull is a share of each estimator's full training."""
        return "full_steps" in self.race


def search_budget(search: Any, full_steps: dict[str, int]) -> SearchBudget:
    """How the budget of a search is shared out, by its settings.

    `full_steps` is each estimator's full training, in its own steps.
    """
    _need_refit_for_extra(search)
    given = {name: getattr(search, name) for name in ("budget", "trainings", "seconds")}
    named = [f"{name}={value}" for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise SettingError(
            f"{' and '.join(named)}, but a search has one budget: trainings=3 counts full "
            "trainings, budget=2000 pulls, seconds=600 time"
        )
    if search.budget is not None:
        return _in_pulls(search, len(full_steps))
    if search.horizon is not None:
        raise SettingError(
            f"horizon={search.horizon}, but that is for budget=: with trainings= or seconds= "
            "learners are compared at one full training"
        )
    if search.seconds is not None:
        return _in_seconds(search, full_steps)
    return _in_trainings(search, full_steps)


def _need_refit_for_extra(search: Any) -> None:
    require(search.extra_refit in (True, False), "extra_refit", search.extra_refit,
            "True or False", "True spends the refit on top of the budget")  # fmt: skip
    if search.extra_refit and not search.refit:
        raise SettingError(
            "extra_refit=True with refit=False, but without a refit nothing is spent on one: "
            "leave one of them out"
        )


def refit_is_inside(search: Any) -> bool:
    """Whether the refit is set aside from the budget."""
    return bool(search.refit) and not search.extra_refit


def _said(search: Any, inside: str, on_top: str) -> str:
    """What is said of the refit before anything is spent."""
    if not search.refit:
        return ""
    return on_top if search.extra_refit else inside


def _in_trainings(search: Any, full_steps: dict[str, int]) -> SearchBudget:
    trainings, aside = search.trainings, int(refit_is_inside(search))
    if trainings is None:
        trainings = aside + max(LEAST, len(full_steps) / 2)
    need_number("trainings", trainings)
    if aside and not trainings > 1:
        raise BudgetError(
            f"trainings={trainings:g} with refit=True, but one training is set aside to refit "
            "the winner on all rows: give more, refit=False, or extra_refit=True, which spends it "
            "on top"
        )
    said = _said(
        search,
        f"1 of {trainings:g} full trainings is set aside to refit the winner on all rows",
        "one full training on top of the budget will refit the winner on all rows",
    )
    return SearchBudget({"trainings": trainings - aside, "full_steps": full_steps}, aside, said)


def _in_seconds(search: Any, full_steps: dict[str, int]) -> SearchBudget:
    need_number("seconds", search.seconds)
    aside = REFIT_SHARE * search.seconds if refit_is_inside(search) else 0.0
    said = _said(
        search,
        f"{aside:.3g} of {search.seconds:g} s are set aside to refit the winner on all rows",
        "one full training after that time will refit the winner on all rows",
    )
    return SearchBudget({"seconds": search.seconds - aside, "full_steps": full_steps}, aside, said)


def _in_pulls(search: Any, arms: int) -> SearchBudget:
    budget, horizon = need_whole("budget", search.budget), search.horizon
    aside = 0
    if refit_is_inside(search):
        aside = _refit_pulls(search.policy, arms, budget) if horizon is None else horizon
        if aside >= budget:
            raise BudgetError(
                f"budget={budget} with refit=True, but {aside} pulls are set aside to refit the "
                "winner on all rows: give more, refit=False, or extra_refit=True, which spends "
                "them on top"
            )
    many = f"{horizon}" if horizon is not None else "as many as it had in the race"
    said = _said(
        search,
        f"{aside} of {budget} pulls are set aside to refit the winner on all rows",
        f"pulls on top of the budget will refit the winner on all rows: {many}",
    )
    return SearchBudget({"budget": budget - aside, "horizon": horizon}, aside, said)


def _refit_pulls(policy: Any, arms: int, budget: int) -> int:
    """Pulls to set aside so that the refit can have as many as the winner had in the race."""

    def last_level(pulls: int) -> int:
        plan = policy_for(policy, arms, pulls, pulls).plan(arms, pulls, pulls)
        return 0 if ANY in plan.keep else int(plan.upto[-1])

    try:
        if not last_level(budget):  # any arm may have any number: there is no level to know
            return round(REFIT_SHARE * budget)
    except BudgetError:
        return 0  # too little for the race itself, which says so
    low, high = 1, budget  # pulls of the race
    while high - low > 1:
        middle = (low + high) // 2
        try:
            fits = middle + last_level(middle) <= budget
        except BudgetError:
            fits = True  # too little to plan with: more are needed
        low, high = (middle, high) if fits else (low, middle)
    return budget - low


def refit_steps(
    search: Any, asked: SearchBudget, share: Share | None, horizon: int, pulls: int
) -> int:
    """Steps of the refit: one full training, or in pulls as many as were set aside for it."""
    if share is not None:
        return share.full_steps
    if search.extra_refit:
        return horizon if search.horizon is not None else pulls
    return int(asked.aside)
