"""What a race prints before its first pull: the plan, and what a pull is."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from latebloomer.policies.plan_text import Description, Phase, counted, first_drop_text
from latebloomer.racing.training_share import Share

SHOWN = 6  # phases; of more, the first and the last


def plan_in_words(
    plan: Description,
    rule: str,
    aside: int = 0,
    one: int | None = None,
    trainings: float | None = None,
) -> str:
    """Return the plan in a few lines; `latebloomer plan` prints more.

    `aside` pulls are reserved for the winner; `one` full training is that many pulls, if pulls are
    fractions of it.

    >>> from latebloomer.policies.foresight import Foresight
    >>> print(plan_in_words(Foresight().describe(4, 150, 200), "foresight (chosen by auto)", 50))
    Racing 4 learners with policy foresight (chosen by auto). Budget: 200 pulls; learners are ...
    Plan: train all 4 learners to 23 pulls, then the best 3 to 31, then the best 2 to 48, then ...
    First drop: the lowest-ranked learner at 23 pulls. An improvement after its drop cannot ...
    >>> print(plan_in_words(Foresight().describe(4, 200, 100), "foresight", one=100))
    Racing 4 learners with policy foresight. Budget: 2 full trainings = 200 pulls of 1/100 ...
    Plan: train all 4 learners to 24 % of their training, then the best 3 to 38 %, then the ...
    First drop: the lowest-ranked learner at 24 %. An improvement after its drop cannot be seen.
    """
    pulls = plan.budget + aside
    if one is None:
        budget = f"{pulls} pulls; learners are compared at {plan.horizon} pulls"
    else:
        whole = pulls / one if trainings is None else trainings
        budget = f"{whole:g} full training{'s' * (whole != 1)} = {pulls} pulls of 1/{one} training"
        budget += " each"
    lines = [
        f"Racing {plan.arms} learners with policy {rule}. Budget: {budget}.",
        f"Plan: {_phases(plan, one, aside)}.",
    ]
    if plan.first_drop is not None:
        n, dropped, arms = plan.first_drop
        lines.append(first_drop_text(_level(n, one) if one else counted(n), dropped, arms))
    if one is None and plan.budget < plan.advised_budget:
        lines.append(plan.advice)
    return "\n".join(lines)


def _phases(plan: Description, one: int | None, aside: int) -> str:
    """Return what each phase does, in one line."""
    said = [_phase(phase, one, first=j == 0) for j, phase in enumerate(plan.phases)]
    if len(said) > SHOWN:
        more = len(said) - SHOWN
        said = [*said[: SHOWN - 2], f"{more} more phase{'s' * (more > 1)}", *said[-2:]]
    if plan.policy.decides_after_sweeps():
        said[-1] += ", dropping learners that cannot win after every sweep"
    if aside:
        said.append(f"the winner for {aside} more pull{'s' * (aside != 1)}")
    left = f"; {plan.unspent} pulls are left over" if plan.unspent else ""
    return f"{', then '.join(said)}{left}"


def _phase(phase: Phase, one: int | None, first: bool) -> str:
    if phase.arms is None:
        return f"{phase.pulls} pulls one by one, each to the learner with the highest estimate"
    unit = "" if not first else " pulls" if one is None else " of their training"
    which = f"train all {phase.arms} learners" if first else f"the best {phase.arms}"
    return f"{which} to {_level(phase.upto, one)}{unit}"


def _level(pulls: int, one: int | None) -> str:
    """Return a number of pulls, or the share of a full training that they are.

    >>> _level(23, None), _level(1, 3), _level(25, 100), _level(2, 1000)
    ('23', '33 %', '25 %', '0.2 %')
    """
    if one is None:
        return str(pulls)
    share = 100 * pulls / one
    return f"{share:.0f} %" if share >= 1 else f"{share:.1g} %"


def workers_in_words(plan: Description, aside: int = 0) -> list[str]:
    """Return how many workers can help: all pulls over those of the longest learner.

    Nothing for a policy that decides after every pull.

    >>> from latebloomer.policies.foresight import Foresight
    >>> workers_in_words(Foresight().describe(8, 400))
    ['More than 5 workers will not make this race faster.']
    """
    if any(phase.arms is None for phase in plan.phases):
        return []
    longest = max(phase.upto + bool(phase.more) for phase in plan.phases) + aside
    count = ceil((plan.budget - plan.unspent + aside) / longest)
    return [f"More than {count} worker{'s' * (count != 1)} will not make this race faster."]


def pull_in_words(shares: Mapping[str, Share]) -> list[str]:
    r"""Return what a pull is in the learners' own steps: the shortest training and the longest.

    >>> steps = {"net": 3600, "sgd": 250, "tree": 5}
    >>> print(*pull_in_words({name: Share(full, 100) for name, full in steps.items()}), sep="\n")
    One pull is 2.5 steps for sgd (250 in total) and up to 36 steps for net (3600 in total).
    tree has only 5 steps: pulls that add no step repeat its last score and take no training time.
    """
    fine = {name: share for name, share in shares.items() if not share.repeats_scores}
    order = sorted(fine, key=lambda name: fine[name].full_steps)
    each = [
        _steps(name, fine[name])
        for name in (order if len(order) < 2 else order[:: len(order) - 1])
    ]
    said = [f"One pull is {' and up to '.join(each)}."] if each else []
    few = [
        f"{name} has only {one.full_steps} steps"
        for name, one in shares.items()
        if one.repeats_scores
    ]
    if few:
        which = "its last score" if len(few) == 1 else "the last score"
        said.append(
            f"{', '.join(few)}: pulls that add no step repeat {which} and take no training time."
        )
    return said


def _steps(name: str, share: Share) -> str:
    each = f"{share.full_steps / share.pulls:.3g}"
    return f"{each} step{'s' * (each != '1')} for {name} ({share.full_steps} in total)"
