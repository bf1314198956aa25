"""The plan for the remaining arms: the terms of a play, and the phases that follow from them."""

from typing import NamedTuple

from latebloomer.core.ledger import ANY, Game, Plan
from latebloomer.core.policy_moves import game_of, key
from latebloomer.policies.base import Policy, cost_of, knockout, last_that, least_budget

# Times the available pulls: largest budget tried for a plan that the horizon cuts short.
LARGEST_PLAN = 64


class Terms(NamedTuple):
    """The constants of a play. Arms that failed, finished or were dropped are not in it."""

    policy: Policy
    session_arms: int  # number of arms of the session
    arms: tuple[int, ...]  # numbers, in the session, of the arms in play
    budget: int  # deciding pulls of all arms of the session
    remaining: int  # number of pulls that may still be made
    own_pulls: int  # pulls that the arms in play have had, plus `remaining`
    horizon: int
    seed: int
    min_pulls: int = 1  # no arm is dropped before it has had this many pulls
    # Pulls that every arm in play has had; phases before that are not decided again.
    level: int = 0
    # Arms of which some pulls add no step and repeat the last reward.
    repeats_scores: frozenset[int] = frozenset()
    # If a replan set them: pulls per arm at which one of k, ..., 2 arms is dropped.
    levels: tuple[int, ...] = ()
    prices: tuple[float, ...] = ()  # per arm in play, if drops depend on prices
    run: int = 0  # number of the run that sets the policy's random choices


def game_for(terms: Terms) -> Game:
    """Return the constants of the moves: numbers of the session, and the plan in force."""
    policy, arms, horizon = terms.policy, terms.session_arms, terms.horizon
    budget = max(terms.budget, least_budget(policy, arms, horizon, terms.min_pulls))
    game = game_of(policy, arms, budget, horizon, key(terms.seed), terms.min_pulls)
    whole = len(terms.arms) == arms and not terms.level and terms.own_pulls == budget
    if whole and not terms.levels:
        return game
    settings = policy.restricted(game.settings, terms.arms)
    if ANY in game.plan.keep:
        return game._replace(
            settings=settings, plan=_plan_without_levels(terms), budget=terms.budget
        )
    sweeps = policy.decides_after_sweeps()
    plan = _plan_without_levels(terms) if sweeps else _phases(terms)
    return game._replace(settings=settings, plan=plan, budget=terms.own_pulls)


def _plan_without_levels(terms: Terms) -> Plan:
    """Return the plan of a policy that decides after every pull or sweep."""
    policy, size = terms.policy, max(2, len(terms.arms))
    budget = max(terms.own_pulls, least_budget(policy, size, terms.horizon))
    return _lists(policy.plan(size, budget, terms.horizon))


def _phases(terms: Terms) -> Plan:
    """Return the phases of the arms in play.

    The first phase ends at the number of pulls that the arms already have, so they are rated by
    all their rewards. No phase ends earlier, so no arm is dropped by a part of its rewards.
    """
    policy, size, horizon, level = terms.policy, len(terms.arms), terms.horizon, terms.level
    if size < 2:  # nothing to decide: the only arm gets all remaining pulls
        return Plan([1], [horizon])
    if terms.levels:
        return _plan_of_levels(terms)

    def plan(budget: int, min_pulls: int) -> Plan:
        least = least_budget(policy, size, horizon, min_pulls)
        return policy.plan(size, max(budget, least), horizon, min_pulls)

    budget, min_pulls = terms.own_pulls, terms.min_pulls
    if plan(budget, min_pulls).upto[0] < level:
        min_pulls = level
    if cost_of(plan(budget, min_pulls)) + size <= budget:  # cut short by the horizon
        most = LARGEST_PLAN * budget
        fits = last_that(lambda b: cost_of(plan(b, min_pulls)) <= terms.own_pulls, budget, most)
        budget = budget if fits is None else fits
    keep, upto = _lists(plan(budget, min_pulls))
    return Plan([size, *keep], [level, *upto]) if 0 < level < upto[0] else Plan(keep, upto)


def _plan_of_levels(terms: Terms) -> Plan:
    """Return the phases that a replan set; with prices, `settle` drops the arms."""
    size, level, horizon = len(terms.arms), terms.level, terms.horizon
    phases = [(size - j, max(level, n)) for j, n in enumerate(terms.levels)]
    if terms.prices:
        phases = [phases[0], (size, horizon)]
    else:
        phases.append((1, phases[-1][1]))
    keep, upto = _lists(knockout(phases, horizon))
    return Plan([size, *keep], [level, *upto]) if 0 < level < upto[0] else Plan(keep, upto)


def _lists(plan: Plan) -> Plan:
    return Plan(*(column.tolist() for column in plan))


def share_out(pulls: list[int], upto: int, remaining: int) -> list[int]:
    """Return the pulls to train each arm to: at most `upto`, with `remaining` new pulls in total.

    Arms with the fewest pulls come first. If fewer pulls remain than arms are behind, the first of
    these arms get them.

    >>> pulls = [5, 15, 20]
    >>> share_out(pulls, upto=20, remaining=99), share_out(pulls, upto=20, remaining=12)
    ([20, 20, 20], [16, 16, 20])
    >>> share_out([3, 3, 9], upto=9, remaining=5)
    [6, 5, 9]
    """
    if sum(upto - n for n in pulls) <= remaining:
        return [upto] * len(pulls)
    low, high = min(pulls), upto
    while high - low > 1:
        middle = (low + high) // 2
        fits = sum(max(0, middle - n) for n in pulls) <= remaining
        low, high = (middle, high) if fits else (low, middle)
    more = remaining - sum(max(0, low - n) for n in pulls)
    targets = []
    for n in pulls:
        extra = n <= low and more > 0
        more -= extra
        targets.append(max(n, low) + extra)
    return targets
