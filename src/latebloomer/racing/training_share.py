"""Pulls that are the same share of each learner's own full training, and the plan in these words.

A mini-batch and a tree have little in common; a hundredth of what each learner takes when it is
trained whole is a fair unit. Each learner says how long its full training is, in its own steps,
and pull n of the race ends at the step round(n * full / N), N pulls being a full training.
"""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from latebloomer.errors import SettingError, need_in, require
from latebloomer.policies.plan_text import Description, counted, first_drop_text
from latebloomer.racing.learner import Entry, Share, bare, seed_of
from latebloomer.session.checked_inputs import listed

Thing = TypeVar("Thing")
PULLS = 100  # of a full training, unless the shortest has fewer steps
FEWEST = 10  # pulls of a full training that are worth a race
SHOWN = 6  # phases of a plan in words; of more, the first and the last

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
    _need_whole("full_steps=", steps, "steps")

    def declare(thing: Thing) -> Thing:
        thing.full_steps = steps  # type: ignore[attr-defined]
        return thing

    return declare


def shares_of(
    learners: Mapping[str, Any], full_steps: Any = None, pulls: int | None = None, seed: int = 0
) -> dict[str, Share]:
    """Return what a pull of each learner is.

    `full_steps` is a number for all, a dict, or None: then each learner says it. A learner that is
    made by a function is built once to find out, unless the function says it: `full_training`.

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
        said = f"full_steps names {wrong}, but the learners are {known}. Correct the name {wrong}."
        raise SettingError(said)
    for name, given in learners.items():
        if name not in steps:
            steps[name] = _asked(Entry(name, given, seed_of(seed, name)))
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
        shortest = min(steps.values())
        pulls = shortest if FEWEST <= shortest < PULLS else PULLS
    _need_whole("pulls_per_training=", pulls, "pulls")
    return {name: Share(int(steps[name]), pulls) for name in learners}


def _asked(entry: Entry) -> int | None:
    """Return the steps that a learner says itself, or once it is built; None if unknown."""
    steps = declared(entry.given)
    if steps is None and callable(entry.given) and entry.rebuilds:
        with suppress(Exception):  # of the user's own function: the race reports it
            if not inspect.isgeneratorfunction(entry.given):
                steps = declared(bare(entry.build()))
    return steps


def declared(given: Any) -> int | None:
    """Return the attribute `full_steps`, or the argument of a partial; None if there is none."""
    if isinstance(given, partial):
        return given.keywords.get("full_steps", declared(given.func))
    value = getattr(given, "full_steps", None)
    described = isinstance(value, property) or callable(value)  # of instances, not of the class
    return None if described else value


def _need_whole(given: str, value: Any, what: str) -> None:
    if not hasattr(value, "__index__") or isinstance(value, bool) or value < 1:
        meaning = f"the number of {what} in a full training"
        raise SettingError(f"{given}{value!r}, but it must be an integer >= 1: {meaning}.")


def units_of(
    learners: Mapping[str, Any],
    budget: int | None,
    horizon: int | None,
    trainings: float | None,
    full_steps: Any,
    pulls_per_training: int | None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the settings that say what a pull is, and the budget and the horizon in pulls."""
    if trainings is None and full_steps is None:
        if pulls_per_training is not None:
            said = f"pulls_per_training={pulls_per_training} needs trainings= or full_steps="
            raise SettingError(f"{said}: without them a pull is one step")
        return {"budget": budget, "horizon": horizon}
    for name, value in (("budget", budget), ("horizon", horizon)):
        if trainings is not None and value is not None:
            raise SettingError(
                f"trainings={trainings} and {name}={value}, but trainings= sets both budget and "
                f"horizon: leave {name} out, or give budget= in pulls with full_steps="
            )
    shares = shares_of(learners, full_steps, pulls_per_training, seed)
    one = next(iter(shares.values())).pulls
    if trainings is not None:
        need_in("trainings", trainings, "(0, inf)", "it is the budget, in full trainings")
        budget = max(1, round(trainings * one))
    require(horizon is None or horizon <= one, "horizon", horizon, f"at most {one}",
            "with full_steps= that is one full training")  # fmt: skip
    return {
        "budget": budget,
        "horizon": one if horizon is None else horizon,
        "full_steps": {name: share.full_steps for name, share in shares.items()},
        "pulls_per_training": one,
    }


# --- what is printed before the first pull ---


def plan_in_words(plan: Description, rule: str, aside: int = 0, one: int | None = None) -> str:
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
    budget = f"{pulls:,} pulls; learners are compared at {plan.horizon:,} pulls"
    if one is not None:
        whole = pulls / one
        trained = f"{whole:g} full training{'s' * (whole != 1)}"
        budget = f"{trained} = {pulls:,} pulls of 1/{one} training each"
    said: list[str] = []
    for phase in plan.phases:
        unit = "" if said else " pulls" if one is None else " of their training"
        every = "both" if phase.arms == 2 else f"all {phase.arms}"
        which = f"the best {phase.arms}" if said else f"train {every} learners"
        text = f"{which} to {_level(phase.upto, one)}{unit}"
        if phase.arms is None:
            text = f"{phase.pulls:,} pulls one by one, each to the learner with the best estimate"
        said.append(text)
    if len(said) > SHOWN + 1:  # a single phase takes no more room than its count
        said = [*said[: SHOWN - 2], f"{len(said) - SHOWN} more phases", *said[-2:]]
    if plan.policy.decides_after_sweeps():
        said[-1] += ", dropping learners that cannot win after every sweep"
    if aside:
        said.append(f"the winner for {aside:,} more pull{'s' * (aside != 1)}")
    left = f"; {plan.unspent:,} pulls are left over" if plan.unspent else ""
    lines = [
        f"Racing {plan.arms} learners with policy {rule}. Budget: {budget}.",
        f"Plan: {', then '.join(said)}{left}.",
    ]
    if plan.first_drop is not None:
        n, dropped, arms = plan.first_drop
        lines.append(first_drop_text(_level(n, one) if one else counted(n), dropped, arms))
    if one is None and plan.budget < plan.advised_budget:
        lines.append(plan.advice)
    return "\n".join(lines)


def _level(pulls: int, one: int | None) -> str:
    """Return a number of pulls, or the share of a full training that they are.

    >>> _level(23, None), _level(1, 3), _level(25, 100), _level(2, 1000)
    ('23', '33 %', '25 %', '0.2 %')
    """
    if one is None:
        return f"{pulls:,}"
    share = 100 * pulls / one
    return f"{share:.0f} %" if share >= 1 else f"{share:.1g} %"


def workers_in_words(plan: Description, aside: int = 0) -> list[str]:
    """Return how many workers can help, and how much: by all pulls and the longest learner's.

    Nothing for a policy that decides after every pull.

    >>> from latebloomer.policies.foresight import Foresight
    >>> workers_in_words(Foresight().describe(8, 400))
    ['Up to 8 workers can train at the same time: at most 4.4 times as fast as one.']
    """
    if any(phase.arms is None for phase in plan.phases):
        return []
    longest = max(phase.upto + bool(phase.more) for phase in plan.phases) + aside
    speed = (plan.budget - plan.unspent + aside) / longest
    said = f"Up to {plan.arms} workers can train at the same time"
    return [f"{said}: at most {speed:.2g} times as fast as one."]


def pull_in_words(shares: Mapping[str, Share]) -> list[str]:
    r"""Return what a pull is in the learners' own steps: the shortest training and the longest.

    >>> steps = {"net": 3600, "sgd": 250, "tree": 5}
    >>> print(*pull_in_words({name: Share(full, 100) for name, full in steps.items()}), sep="\n")
    One pull is 2.5 steps for sgd (250 in total) and up to 36 steps for net (3600 in total).
    tree has only 5 steps: pulls without a step repeat the last score at no cost.
    """
    said = []
    order = sorted(shares.items(), key=lambda item: item[1].full_steps)
    fine = [(name, share) for name, share in order if not share.repeats_scores]
    if fine:
        each = " and up to ".join(_steps(*one) for one in dict.fromkeys([fine[0], fine[-1]]))
        said.append(f"One pull is {each}.")
    few = [f"{name} has only {one.full_steps} steps" for name, one in order if one.repeats_scores]
    if few:
        said.append(f"{', '.join(few)}: pulls without a step repeat the last score at no cost.")
    return said


def _steps(name: str, share: Share) -> str:
    each = f"{share.full_steps / share.pulls:.3g}"
    return f"{each} step{'s' * (each != '1')} for {name} ({share.full_steps} in total)"
