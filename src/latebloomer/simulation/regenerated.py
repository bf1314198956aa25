"""A ledger without a past: running sums instead of prefix sums, past rewards drawn again.

On a GPU it is cheaper to regenerate a past reward from its counter than to store it. Here `S`
holds six numbers per arm, the paper's running sums [Mussi24, App. C], and `Q` says how to draw a
reward again. The policy's text is the same; the few words it uses for an arm's past are bound to
these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from latebloomer.core.estimators import window_length
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Floats, Ledger, remember_levels, remember_nothing
from latebloomer.core.random import normal_by
from latebloomer.core.recurrences import (
    Sums,
    grow,
    projected_mean_of,
    slide,
)
from latebloomer.policies.base import Policy
from latebloomer.problems.noise import GAUSSIAN, reward, variate

TOTAL, LENGTH, A, B, C, D = range(6)  # cells of an arm's row of `S`
CELLS_PER_ARM = 6


class Past(NamedTuple):
    """What stands in `Ledger.Q`: how to draw any reward of the run again."""

    source: Any  # a `Drawn`
    window: float
    seed: int
    run: int


class Drawn(NamedTuple):
    """A `Source` for drawing rewards one by one, with the ziggurat's table in near memory."""

    means: Floats
    kind: int
    scales: Floats
    shape: float
    ziggurat: Floats


@kernel
def pull_once(source: Drawn, seed: int, run: int, i: int, n: int) -> float:
    """The reward of arm `i`'s pull number `n`, counted from 0, drawn by itself."""
    if source.kind == GAUSSIAN:
        value = normal_by(source.ziggurat, seed, run, i, n)
    else:
        value = variate(source.kind, source.shape, seed, run, i, n)
    return reward(source.kind, source.scales[i], source.means[i][n], value)


@kernel
def reward_again(past: Past, i: int, n: int) -> float:
    """The n-th reward of arm `i`, counted from 1."""
    return pull_once(past.source, past.seed, past.run, i, n - 1)


@kernel
def roll_levels(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Keep the sum of all rewards and that of the window."""
    cells, past = ledger.S[i], ledger.Q
    h = window_length(past.window, n)
    cells[TOTAL] = cells[TOTAL] + reward if n > 1 else reward
    if h > 0:
        before = cells[A] if n > 1 and window_length(past.window, n - 1) > 0 else 0.0
        leaves = h == window_length(past.window, n - 1)
        cells[A] = before + reward - (reward_again(past, i, n - h) if leaves else 0.0)


@kernel
def roll_slopes(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Keep the sum of all rewards and the four of the window and the one before it."""
    cells, past = ledger.S[i], ledger.Q
    h, before = window_length(past.window, n), window_length(past.window, n - 1)
    cells[TOTAL] = cells[TOTAL] + reward if n > 1 else reward
    if h == 0:
        return
    sums = Sums(0, 0.0, 0.0, 0.0, 0.0)
    if before > 0:
        sums = Sums(before, cells[A], cells[B], cells[C], cells[D])
    # Both draws for every thread, though one that grows needs the first alone: threads that part
    # at a branch would wait for each other's draws.
    edge = reward_again(past, i, n - 2 * h + h - before)
    middle = reward_again(past, i, n - h)
    sums = grow(sums, n, reward, edge) if h > before else slide(sums, n, reward, middle, edge)
    cells[A], cells[B], cells[C], cells[D] = sums.a, sums.b, sums.c, sums.d


@kernel
def rolled_recent_mean(ledger: Ledger, i: int, h: int) -> float:
    """`recent_mean` for the spans that running sums know: one reward, all, or the window."""
    if h == 1:
        return ledger.last[i]
    if h == ledger.n[i]:
        return ledger.S[i][TOTAL] / h
    return ledger.S[i][A] / h


@kernel
def rolled_projected_mean(ledger: Ledger, i: int, h: int, horizon: int) -> float:
    """`projected_mean` for the window."""
    cells = ledger.S[i]
    return projected_mean_of(Sums(h, cells[A], cells[B], cells[C], cells[D]), horizon)


def rolling_words(policy: type[Policy]) -> dict[str, Callable[..., Any]]:
    """What the words for an arm's past mean where the past is drawn again."""
    light = {remember_nothing: remember_nothing, remember_levels: roll_levels}
    return {
        "remember": light.get(policy.remember, roll_slopes),
        "recent_mean": rolled_recent_mean,
        "projected_mean": rolled_projected_mean,
    }
