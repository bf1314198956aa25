"""A race in full trainings, in words: what a pull is, and what the plan comes to."""

from __future__ import annotations

from collections.abc import Mapping

from latebloomer.policies.plan_text import Description, Phase
from latebloomer.racing.training_share import Share

SHOWN = 6  # phases or learners; of more, the first and the last


def plan_in_trainings(plan: Description, trainings: float | None, what: str) -> str:
    """The plan, by the share of a full training that each phase brings learners to.

    >>> from latebloomer.policies import Foresight
    >>> print(plan_in_trainings(Foresight().describe(4, 200, 100), 2, "auto: foresight"))
    auto: foresight over 4 learners for 2 full trainings: 200 pulls, each 1/100 of a training
      4 learners to 24 % of their training, 3 to 38 %, 2 to 69 %
    Whoever is last after 24 % is dropped; a take-off after that is not seen.
    """
    one = plan.horizon
    whole = plan.budget / one if trainings is None else trainings
    lines = [
        f"{what} over {plan.arms} learners for {whole:g} full training{'s' * (whole != 1)}: "
        f"{plan.budget} pulls, "
        f"each 1/{one} of a training",
        f"  {_phases(plan.phases, one)}",
    ]
    if plan.last_seen is not None:
        n, dropped, arms = plan.last_seen
        who = "last" if dropped == 1 else f"among the last {dropped} of {arms}"
        lines.append(
            f"Whoever is {who} after {percent(n, one)} is dropped; a take-off after that is not "
            "seen."
        )
    return "\n".join(lines)


def _phases(phases: tuple[Phase, ...], one: int) -> str:
    texts = []
    for phase in phases:
        if phase.arms is None:
            texts.append(f"{phase.pulls} pulls one by one")
            continue
        who = f"{phase.arms} learners" if not texts else str(phase.arms)
        of = " of their training" if not texts else ""
        texts.append(f"{who} to {percent(phase.upto, one)}{of}")
    if len(texts) > SHOWN:
        texts = [*texts[: SHOWN - 2], f"({len(texts) - SHOWN} more phases)", *texts[-2:]]
    return ", ".join(texts)


def percent(pulls: int, one: int) -> str:
    """A share of a full training of `one` pulls.

    >>> percent(1, 3), percent(25, 100), percent(2, 1000)
    ('33 %', '25 %', '0.2 %')
    """
    share = 100 * pulls / one
    return f"{share:.0f} %" if share >= 1 else f"{share:.1g} %"


def pull_in_words(shares: Mapping[str, Share]) -> str:
    """What a pull is in the learners' own steps, from the shortest training to the longest.

    >>> steps = {"net": 3600, "sgd": 250, "tree": 5}
    >>> print(pull_in_words({name: Share(full, 100) for name, full in steps.items()}))
    A pull is from 2.5 steps of sgd (250 in all) to 36 steps of net (3600 in all).
    tree has 5 steps: its other pulls repeat its last score and cost nothing.
    """
    fine = {name: share for name, share in shares.items() if not share.coarse}
    ends = {name: fine[name] for name in _shortest_and_longest(fine)}
    each = [f"{_steps(share)} of {name} ({share.full} in all)" for name, share in ends.items()]
    said = [f"A pull is {'from ' * (len(each) > 1)}{' to '.join(each)}."] if each else []
    coarse = [f"{name} has {one.full} steps" for name, one in shares.items() if one.coarse]
    if coarse:
        said.append(f"{', '.join(coarse)}: {'its' if len(coarse) == 1 else 'their'} other pulls "
                    "repeat its last score and cost nothing.")  # fmt: skip
    return "\n".join(said)


def _shortest_and_longest(shares: Mapping[str, Share]) -> list[str]:
    order = sorted(shares, key=lambda name: shares[name].full)
    return order if len(order) < 2 else [order[0], order[-1]]


def _steps(share: Share) -> str:
    each = f"{share.full / share.pulls:.3g}"
    return f"{each} step{'s' * (each != '1')}"
