"""The plan for the arms that are left: what a play is made for, and the phases it follows."""

from typing import NamedTuple

from latebloomer.core.ledger import ANY, Game, Plan
from latebloomer.core.policy_moves import game_of, key
from latebloomer.policies.base import Policy, cost_of, knockout, last_that, least_budget

LARGEST_PLAN = 64  # times the pulls available: the largest budget that a cut-off plan is made for


class Terms(NamedTuple):
    """What a play is made for. A learner that failed, finished or was dropped is not in it."""

    policy: Policy
    session_arms: int  # number of arms of the session
    arms: tuple[int, ...]  # the arms in play, by their numbers in the session
    budget: int  # pulls of all arms of the session that decide
    left: int  # pulls that may still be made
    own_pulls: int  # pulls that the arms in play have had, plus those that are left
    horizon: int
    seed: int
    min_pulls: int = 1  # no arm is dropped before it has had this many pulls
    level: int = 0  # pulls that every arm in play has had; earlier phases are not decided again
    repeats_scores: frozenset[int] = frozenset()  # arms that repeat rewards between their steps
    levels: tuple[int, ...] = ()  # pulls of k, ..., 2 arms at the next drops: of a replan
    prices: tuple[float, ...] = ()  # by arm in play, if drops follow from them
    run: int = 0  # whose random choices the policy makes


def game_for(terms: Terms) -> Game:
    """Return the constants of the moves: the session's numbers, a plan for the arms in play."""
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

    The first one ends at the level where the arms are: its end rates them by all that is known.
    No phase ends before that level, so no arm is dropped on less than is known of it.
    """
    policy, size, horizon, level = terms.policy, len(terms.arms), terms.horizon, terms.level
    if size < 2:  # nothing to decide: the arm gets all pulls that are left
        return Plan([1], [horizon])
    if terms.levels:
        return _plan_of_levels(terms)

    def plan(budget: int, min_pulls: int) -> Plan:
        least = least_budget(policy, size, horizon, min_pulls)
        return policy.plan(size, max(budget, least), horizon, min_pulls)

    budget, min_pulls = terms.own_pulls, terms.min_pulls
    if plan(budget, min_pulls).upto[0] < level:
        min_pulls = level
    if cost_of(plan(budget, min_pulls)) + size <= budget:  # the horizon cuts phases short
        most = LARGEST_PLAN * budget
        fits = last_that(lambda b: cost_of(plan(b, min_pulls)) <= terms.own_pulls, budget, most)
        budget = budget if fits is None else fits
    keep, upto = _lists(plan(budget, min_pulls))
    return Plan([size, *keep], [level, *upto]) if 0 < level < upto[0] else Plan(keep, upto)


def _plan_of_levels(terms: Terms) -> Plan:
    """Return the phases that a replan gave; with prices, the session drops arms itself."""
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


def share_out(pulls: list[int], upto: int, left: int) -> list[int]:
    """Return the pulls that each arm is trained to, `upto` at most, while `left` can be made.

    Arms with the fewest pulls come first. If the pulls end within a sweep, the first of the arms
    that are behind get the last ones.

    >>> share_out([5, 15, 20], upto=20, left=99), share_out([5, 15, 20], upto=20, left=12)
    ([20, 20, 20], [16, 16, 20])
    >>> share_out([3, 3, 9], upto=9, left=5)
    [6, 5, 9]
    """
    if sum(upto - n for n in pulls) <= left:
        return [upto] * len(pulls)
    low, high = min(pulls), upto
    while high - low > 1:
        middle = (low + high) // 2
        fits = sum(max(0, middle - n) for n in pulls) <= left
        low, high = (middle, high) if fits else (low, middle)
    more = left - sum(max(0, low - n) for n in pulls)
    targets = []
    for n in pulls:
        extra = n <= low and more > 0
        more -= extra
        targets.append(max(n, low) + extra)
    return targets
