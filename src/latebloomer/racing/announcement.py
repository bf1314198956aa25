"""The lines that are printed before the first pull: the plan of a race as text."""

from collections.abc import Mapping

from latebloomer._util.text import quoted
from latebloomer.policies.plan_text import Description, counted, first_drop_text
from latebloomer.racing.learners.learner import Share
from latebloomer.racing.race_clock import grace_of
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners.runner import Runner

SHOWN = 6  # maximum phases in the text of a plan; of more, the first and the last ones


def announced_plan(race: RaceState, runner: Runner) -> str:
    """Return the plan of a race as text, with the length of a pull."""
    session, settings = race.session, race.settings
    rule = settings.rule.removeprefix("auto: ") + " (chosen by auto)" * settings.auto
    if settings.seconds is not None:
        time = f"{settings.seconds:g} s; the first pull of each learner shows how many pulls fit."
        lines = [f"Racing {len(session.names)} learners with policy {rule}. Budget: {time}"]
        if settings.auto:
            lines.append("Until each learner has had two pulls, the plan takes prices as equal.")
        if settings.winner_share:
            share = f"{settings.winner_share:.0%} of the time"
            lines.append(f"{share} is reserved for training the winner further.")
        if runner.interrupts:
            grace = grace_of(settings.seconds)
            lines.append(f"A pull that still runs {grace:.3g} s after the end is interrupted.")
        return "\n".join(lines)
    arms, budget = len(session.names), session.deciding_budget
    plan = session.policy.describe(arms, budget, session.horizon, session.min_pulls)
    aside = session.budget - budget
    text = plan_in_words(plan, rule, aside, settings.pulls_per_training)
    helps = workers_in_words(plan, aside) if runner.can_lose_learners else []
    return "\n".join([text, *pull_in_words(settings.shares), *helps])


def plan_in_words(
    plan: Description, rule: str, aside: int = 0, pulls_per_training: int | None = None
) -> str:
    """Return a plan in a few lines of text; `latebloomer plan` prints more.

    `aside` is the number of pulls reserved for the winner. `pulls_per_training` is the
    number of pulls in a full training, if pulls are fractions of it.

    >>> from latebloomer.policies.foresight import Foresight
    >>> print(plan_in_words(Foresight().describe(4, 150, 200), "foresight (chosen by auto)", 50))
    Racing 4 learners with policy foresight (chosen by auto). Budget: 200 pulls. The question ...
    Plan: train all 4 learners to 23 pulls, the best 3 continue to 31, the best 2 to 48, the ...
    First drop: the lowest-ranked learner at 23 pulls. An improvement after its drop cannot ...
    >>> plan = Foresight().describe(4, 200, 100)
    >>> print(plan_in_words(plan, "foresight", pulls_per_training=100))
    Racing 4 learners with policy foresight. Budget: 2 full trainings = 200 pulls of 1/100 ...
    Plan: train all 4 learners to 24 % of their training, the best 3 continue to 38 %, the best ...
    First drop: the lowest-ranked learner at 24 %. An improvement after its drop cannot be seen.
    """
    pulls = plan.budget + aside
    question = f"which learner would be best after {plan.horizon:,} pulls each?"
    budget = f"{pulls:,} pulls. The question is: {question}"
    if pulls_per_training is not None:
        whole = pulls / pulls_per_training
        trained = f"{whole:g} full training{'s' * (whole != 1)}"
        budget = f"{trained} = {pulls:,} pulls of 1/{pulls_per_training} training each."
    parts = _phases_in_words(plan, pulls_per_training)
    if plan.policy.decides_after_sweeps():
        parts[-1] += ", dropping learners that cannot win after every sweep"
    if aside:
        parts.append(f"the winner for {aside:,} more pull{'s' * (aside != 1)}")
    left = f"{plan.unspent:,} pull{'s are' if plan.unspent != 1 else ' is'} left over"
    unspent = f"; {left}" if plan.unspent else ""
    lines = [
        f"Racing {plan.arms} learners with policy {rule}. Budget: {budget}",
        f"Plan: {', '.join(parts)}{unspent}.",
    ]
    if plan.first_drop is not None:
        n, dropped, arms = plan.first_drop
        lines.append(
            first_drop_text(
                _level(n, pulls_per_training) if pulls_per_training else counted(n), dropped, arms
            )
        )
    if pulls_per_training is None and plan.budget < plan.advised_budget:
        lines.append(plan.advice)
    return "\n".join(lines)


def _phases_in_words(plan: Description, pulls_per_training: int | None) -> list[str]:
    """Return how far each phase trains which learners; only a count of phases in the middle."""
    parts: list[str] = []
    for phase in plan.phases:
        unit = " of their training" if pulls_per_training else f" pull{'s' * (phase.upto != 1)}"
        unit = "" if parts else unit
        every = "both" if phase.arms == 2 else f"all {phase.arms}"
        which = f"the best {phase.arms}" if parts else f"train {every} learners"
        which += " continue" * (len(parts) == 1)
        text = f"{which} to {_level(phase.upto, pulls_per_training)}{unit}"
        if phase.arms is None:
            text = f"{phase.pulls:,} pulls one by one, each to the learner with the best estimate"
        parts.append(text)
    if len(parts) > SHOWN + 1:  # one hidden phase needs as much room as its count
        parts = [*parts[: SHOWN - 2], f"{len(parts) - SHOWN} more phases", *parts[-2:]]
    return parts


def _level(pulls: int, pulls_per_training: int | None) -> str:
    """Return a number of pulls as text, or as a share of a full training.

    >>> _level(23, None), _level(1, 3), _level(25, 100), _level(2, 1000)
    ('23', '33 %', '25 %', '0.2 %')
    """
    if pulls_per_training is None:
        return f"{pulls:,}"
    share = 100 * pulls / pulls_per_training
    return f"{share:.0f} %" if share >= 1 else f"{share:.1g} %"


def workers_in_words(plan: Description, aside: int = 0) -> list[str]:
    """Return a sentence about how many workers can help and how much, for a plan with phases.

    The speed-up is all pulls divided by the pulls of the longest learner. The result is empty for
    a policy that decides after every pull.

    >>> from latebloomer.policies.foresight import Foresight
    >>> workers_in_words(Foresight().describe(8, 400))
    ['Up to 8 workers can train at the same time: at most 4.4 times as fast as one.']
    """
    if any(phase.arms is None for phase in plan.phases):
        return []
    longest = max(phase.upto + bool(phase.more) for phase in plan.phases) + aside
    speed = (plan.budget - plan.unspent + aside) / longest
    text = f"Up to {plan.arms} workers can train at the same time"
    return [f"{text}: at most {speed:.2g} times as fast as one."]


def pull_in_words(shares: Mapping[str, Share]) -> list[str]:
    r"""Return sentences about the steps in a pull, for the shortest and longest training.

    >>> pull_in_words({"a": Share(30, 30), "b": Share(30, 30)})
    ['One pull is 1 step for each learner (30 in total).']
    >>> steps = {"net": 3600, "sgd": 250, "tree": 5, "svc": 1}
    >>> print(*pull_in_words({name: Share(full, 100) for name, full in steps.items()}), sep="\n")
    One pull is 2.5 steps for sgd (250 in total) and up to 36 steps for net (3600 in total).
    svc trains in one pull.
    tree has only 5 steps: pulls without a step repeat the last score at no cost.
    """
    sentences = []
    order = sorted(shares.items(), key=lambda item: item[1].full_steps)
    fine = [pair for pair in order if not (pair[1].repeats_scores or pair[1].in_one_step)]
    if fine:
        ends = [(quoted(name), share) for name, share in (fine[0], fine[-1])]
        if len(fine) == len(shares) > 1 and ends[0][1] == ends[1][1]:
            ends = [("each learner", fine[0][1])]
        each = " and up to ".join(_steps(*pair) for pair in dict.fromkeys(ends))
        sentences.append(f"One pull is {each}.")
    whole = [name for name, share in order if share.in_one_step]
    if whole:
        verb = "trains" if len(whole) == 1 else "train"
        sentences.append(f"{', '.join(whole)} {verb} in one pull.")
    short = [(quoted(name), share) for name, share in order if share.repeats_scores]
    few = [f"{name} has only {share.full_steps} steps" for name, share in short]
    if few:
        sentences.append(
            f"{', '.join(few)}: pulls without a step repeat the last score at no cost."
        )
    return sentences


def _steps(name: str, share: Share) -> str:
    each = f"{share.full_steps / share.pulls:.3g}"
    return f"{each} step{'s' * (each != '1')} for {name} ({share.full_steps} in total)"
