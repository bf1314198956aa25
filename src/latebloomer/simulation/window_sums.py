"""Runs by sums: an exact shortcut for policies with a fixed plan and window means.

Between two decisions such a policy looks only at window sums. With Gaussian noise the increments
of an arm's prefix sum between the plan's breakpoints are independent Gaussians, so they are drawn
directly: the same distribution as pull by pull, at a cost that does not depend on the budget. The
policy's own kernels rate, drop and recommend; only the entries of `S` that they read are filled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import (
    PHASE,
    PHASE_START,
    PULLS,
    RACERS,
    SWEEPS,
    Floats,
    Ints,
    Ledger,
    keep_best,
    reset,
)
from latebloomer.core.moves import Game, rate_jointly, recommend, update_rating
from latebloomer.core.random import normal
from latebloomer.policies.base import Policy
from latebloomer.policies.plan_text import describe


class SumIncrements(NamedTuple):
    """Breakpoints of the prefix sums, and what an arm gains from one to the next."""

    points: Ints  # 0 and then the pull counts at which some policy reads a sum
    gains: Floats  # (arms, points): the sum of the means since the point before
    spreads: Floats  # (arms, points): the standard deviation of that gain
    reached: Ints  # (arms,): the last point that is filled


@kernel
def draw_sums(
    increments: SumIncrements, ledger: Ledger, seed: int, run: int, i: int, n: int
) -> None:
    """Fill the prefix sum of arm `i` at the breakpoints up to `n` pulls."""
    S, points, k = ledger.S[i], increments.points, increments.reached[i]
    while k + 1 < len(points) and points[k + 1] <= n:
        k += 1
        gain = increments.gains[i][k] + increments.spreads[i][k] * normal(seed, run, i, k)
        S[points[k]] = S[points[k - 1]] + gain
        ledger.last[i] = gain  # the latest reward itself if the two points are neighbors
    increments.reached[i] = k
    ledger.n[i] = n


@kernel
def play_by_sums(game: Game, ledger: Ledger, increments: SumIncrements, run: int) -> int:
    """Simulate one run phase by phase, in the place of `play`; return the recommended arm."""
    reset(ledger)
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
            i = ledger.racing[place]
            draw_sums(
                increments, ledger, game.seed, run, i, cursor[PHASE_START] + each + (place < more)
            )
            update_rating(game.rule, ledger, i, game.horizon)
        cursor[PULLS] += size * each + more
        cursor[PHASE_START] += each
        cursor[SWEEPS] = cursor[PHASE_START]
        cursor[PHASE] = phase + 1
        rate_jointly(game.rule, ledger, game.horizon)
    return recommend(game, ledger)


def breakpoints_of(policies: list[Policy], arms: int, budget: int, horizon: int) -> Any:
    """Return 0 and the pull counts at which any of the policies reads a prefix sum.

    There is one list for all, so that policies see the same random numbers.
    """
    points = {0}
    for policy in policies:
        for phase in describe(policy, arms, budget, horizon).phases:
            for n in (phase.upto, phase.upto + 1)[: 1 + (phase.more > 0)]:
                span = policy.rated_window(n)
                points |= {n, n - (span or n)} | ({n - 1} if span == 1 else set())
    return np.array(sorted(points), dtype=np.int64)


def increments_of(points: Any, means: Floats, scales: Floats) -> SumIncrements:
    """Return the gains between breakpoints for these means and standard deviations."""
    sums = np.zeros((len(means), len(points)))
    for arm, row in enumerate(means):
        sums[arm, 1:] = np.cumsum(row)[points[1:] - 1]  # point 0 comes first, where sums are 0
    gains = np.diff(sums, axis=1, prepend=0.0)
    spreads = scales[:, None] * np.sqrt(np.diff(points, prepend=0))
    return SumIncrements(points, gains, spreads, np.zeros(len(means), np.int64))
