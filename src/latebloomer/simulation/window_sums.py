"""Runs by sums: an exact shortcut for policies with a fixed plan and window means.

Such a policy uses only window sums for its decisions. With Gaussian noise, the increments of an
arm's prefix sum between the plan's breakpoints are independent Gaussians, so they are drawn
directly. The results have the same distribution as runs by pulls, and the cost does not depend on
the budget. The policy's own kernels rate, drop and recommend; only the sums that they read are
drawn.
"""

from typing import Any, NamedTuple

from latebloomer.core.history import place_sum
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import (
    ANY,
    PHASE,
    PHASE_START,
    PULLS,
    RACERS,
    SWEEPS,
    Game,
    Ints,
    Ledger,
)
from latebloomer.core.moves import begin, rate_jointly, recommend, update_rating
from latebloomer.core.random import normal
from latebloomer.core.ranking import keep_best
from latebloomer.errors import SettingError
from latebloomer.policies.base import Policy
from latebloomer.policies.plan_text import describe
from latebloomer.policies.registry import label_of
from latebloomer.problems import Gaussian, Problem
from latebloomer.problems.curves import Floats


class SumIncrements(NamedTuple):
    """Breakpoints of the prefix sums, and the distribution of the increments between them."""

    points: Ints  # 0 and the pull counts at which some policy reads a sum
    gains: Floats  # (arms, points): sum of the means since the previous point
    spreads: Floats  # (arms, points): standard deviation of that gain
    reached: Ints  # (arms,): index of the last point that is drawn
    order: Ints  # as in `RewardSource`


def is_by_sums(method: str, problem: Problem, policies: list[Policy], numbers: Any) -> bool:
    """Return whether to simulate by sums; raise an error if that is requested but impossible."""
    if method == "pulls":
        return False
    obstacles = []
    for policy in policies:
        fixed = ANY not in policy.plan(*numbers).keep
        if not (fixed and policy.rated_share() is not None and policy.rates_by_sums()):
            lacks = "no fixed plan with window means, or its memory has no sums"
            obstacles.append(f"{label_of(policy)} has {lacks}")
    if not isinstance(problem.noise, Gaussian):
        obstacles.append(f"the noise is {problem.noise}, not Gaussian")
    if obstacles and method == "sums":
        why = "; ".join(obstacles)
        raise SettingError(f"method='sums' is not possible: {why}. Use method='pulls' or 'auto'.")
    return not obstacles


def breakpoints_of(policies: list[Policy], arms: int, budget: int, horizon: int) -> list[int]:
    """Return 0 and the pull counts at which any of the policies reads a prefix sum.

    All policies share one list, so that they get the same random numbers.
    """
    points = {0}
    for policy in policies:
        for phase in describe(policy, arms, budget, horizon).phases:
            for n in (phase.upto, phase.upto + 1)[: 1 + (phase.more > 0)]:
                span = policy.rated_span(n)
                points |= {n, n - span} | ({n - 1} if span == 1 else set())
    return sorted(points)


# --- a run by sums ---


@kernel
def draw_sums(
    increments: SumIncrements, ledger: Ledger, seed: int, run: int, i: int, n: int
) -> None:
    """Draw the prefix sums of arm `i` at the breakpoints up to `n` pulls."""
    points, k = increments.points, increments.reached[i]
    while k + 1 < len(points) and points[k + 1] <= n:
        k += 1
        gain = increments.gains[i][k] + increments.spreads[i][k] * normal(seed, run, i, k)
        place_sum(ledger, i, points[k - 1], points[k], gain)
        ledger.last[i] = gain  # the latest reward itself, if the two points are adjacent
    increments.reached[i] = k
    ledger.n[i] = n


@kernel
def play_by_sums(game: Game, ledger: Ledger, increments: SumIncrements, run: int) -> int:
    """Simulate one run phase by phase, in place of `play`; return the recommended arm."""
    begin(ledger)
    cursor = ledger.cursor
    for i in range(len(ledger.n)):
        increments.reached[i] = 0
    for phase in range(len(game.plan.keep)):
        keep_best(ledger, game.plan.keep[phase])
        size, unspent = cursor[RACERS], game.budget - cursor[PULLS]
        each, more = game.plan.upto[phase] - cursor[PHASE_START], 0
        if size * each > unspent:  # the budget ends within this phase
            each, more = unspent // size, unspent % size
        for place in range(size):
            i, n = ledger.racing[place], cursor[PHASE_START] + each + (place < more)
            draw_sums(increments, ledger, game.seed, run, i, n)
            update_rating(game.settings, ledger, i, game.horizon)
        cursor[PULLS] += size * each + more
        cursor[PHASE_START] += each
        cursor[SWEEPS] = cursor[PHASE_START]
        cursor[PHASE] = phase + 1
        rate_jointly(game.settings, ledger, game.horizon)
    return recommend(game, ledger)
