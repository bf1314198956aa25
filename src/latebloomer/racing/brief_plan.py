"""The plan of a race in a few lines: what is said before the first pull."""

from __future__ import annotations

from collections.abc import Callable

from latebloomer.policies.plan_text import Description, Phase, first_drop_text
from latebloomer.racing.share_text import percent

SHOWN = 6  # phases; of more, the first and the last


def plan_in_pulls(plan: Description, what: str, set_aside: int = 0) -> str:
    """The plan, by the pulls that each phase brings learners to; `latebloomer plan` says more.

    >>> from latebloomer.policies.foresight import Foresight
    >>> print(plan_in_pulls(Foresight().describe(4, 150, 200), "auto: foresight", 50))
    auto: foresight over 4 learners with 200 pulls, compared at 200 pulls each
      4 learners to 23 pulls each, 3 to 31, 2 to 48, then 50 pulls for the winner
    First drop: the lowest-ranked learner at 23 pulls. An improvement after its drop cannot be seen.
    """
    lines = [
        f"{what} over {plan.arms} learners with {plan.budget + set_aside} pulls, compared at "
        f"{plan.horizon} pulls each",
        f"  {_phases(plan, str, ' pulls each', set_aside)}",
        *plan.outlook,
    ]
    if plan.budget < plan.advised_budget:
        lines.append(plan.advice)
    return "\n".join(lines)


def plan_in_trainings(
    plan: Description, trainings: float | None, what: str, set_aside: int = 0
) -> str:
    """The plan, by the share of a full training that each phase brings learners to.

    >>> from latebloomer.policies.foresight import Foresight
    >>> print(plan_in_trainings(Foresight().describe(4, 200, 100), 2, "auto: foresight"))
    auto: foresight over 4 learners for 2 full trainings: 200 pulls, each 1/100 of a training
      4 learners to 24 % of their training, 3 to 38 %, 2 to 69 %
    First drop: the lowest-ranked learner at 24 %. An improvement after its drop cannot be seen.
    """
    one, pulls = plan.horizon, plan.budget + set_aside
    whole = pulls / one if trainings is None else trainings
    lines = [
        f"{what} over {plan.arms} learners for {whole:g} full training{'s' * (whole != 1)}: "
        f"{pulls} pulls, each 1/{one} of a training",
        f"  {_phases(plan, lambda n: percent(n, one), ' of their training', set_aside)}",
    ]
    if plan.first_drop is not None:
        n, dropped, arms = plan.first_drop
        lines.append(first_drop_text(percent(n, one), dropped, arms))
    return "\n".join(lines)


def _phases(plan: Description, upto: Callable[[int], str], unit: str, set_aside: int) -> str:
    """Who is brought to what, in one line."""
    said = [_phase(phase, upto, unit if j == 0 else "") for j, phase in enumerate(plan.phases)]
    if len(said) > SHOWN:
        said = [*said[: SHOWN - 2], f"({len(said) - SHOWN} more phases)", *said[-2:]]
    if plan.policy.decides_after_sweeps():
        said.append("and after every sweep those that cannot win are dropped")
    if plan.unspent:
        said.append(f"{plan.unspent} pulls unspent")
    if set_aside:
        said.append(f"then {set_aside} pulls for the winner")
    return ", ".join(said)


def _phase(phase: Phase, upto: Callable[[int], str], unit: str) -> str:
    if phase.arms is None:
        return f"{phase.pulls} pulls one by one, each to whoever is rated highest"
    who = f"{phase.arms} learners" if unit else f"{phase.arms}"
    return f"{who} to {upto(phase.upto)}{unit}"
