"""A ledger without a past: running sums instead of prefix sums, past rewards drawn again (GPU).

On a GPU it is cheaper to regenerate a past reward from its counter than to store it. Here `S`
holds a few numbers per arm, the paper's running sums [Mussi24, App. C] and what the newest second
difference needs, and `Q` says how to draw a reward again. The policy's text is the same; the few
kernels it names for an arm's past are bound to these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from latebloomer.core.estimators import window_length
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Floats, Ledger, remember_levels, remember_nothing
from latebloomer.core.random import normal_by
from latebloomer.core.recurrences import Sums, grow, projected_mean_of, slide
from latebloomer.core.statistics import second_difference
from latebloomer.policies.base import Policy
from latebloomer.problems.noise import GAUSSIAN, reward, variate
from latebloomer.simulation.card_random import three_normals

TOTAL, A, B, C, D = range(5)  # places in an arm's row of `S`
BEND, NEWEST, BEFORE = range(5, 8)  # and where noise is estimated from second differences
SUMS_PER_ARM, WITH_BENDS = 5, 8
MIDDLE, OUTER = range(2)  # places in `GpuRewardSource.past`


class PastRewards(NamedTuple):
    """What stands in `Ledger.Q`: how to draw any reward of the run again."""

    source: Any  # a `GpuRewardSource`
    window: float
    seed: int
    run: int


class GpuRewardSource(NamedTuple):
    """A `RewardSource` that draws rewards one by one, with the ziggurat's table in near memory."""

    means: Floats
    kind: int
    scales: Floats
    shape: float
    ziggurat: Floats
    window: float = 0.0
    past: Any = ()  # two cells: what a pull drew along with its reward, see `pull_with_past`


@kernel
def pull_once(source: GpuRewardSource, seed: int, run: int, i: int, n: int) -> float:
    """The reward of arm `i`'s pull number `n`, counted from 0, drawn by itself."""
    if source.kind == GAUSSIAN:
        value = normal_by(source.ziggurat, seed, run, i, n)
    else:
        value = variate(source.kind, source.shape, seed, run, i, n)
    return reward(source.kind, source.scales[i], source.means[i][n], value)


@kernel
def pull_with_past(source: GpuRewardSource, seed: int, run: int, i: int, n: int) -> float:
    """The same, and the two rewards that the sums of a window need then (`update_slope_sums`).

    Both for every thread, though one whose window grows needs but one: threads that part at a
    branch would wait for each other's draws.
    """
    h, before = window_length(source.window, n + 1), window_length(source.window, n)
    if h == 0:
        return pull_once(source, seed, run, i, n)
    middle, edge = n - h, n - h - before  # counted from 0
    scale, means = source.scales[i], source.means[i]
    if source.kind == GAUSSIAN:
        x, y, z = three_normals(source.ziggurat, seed, run, i, n, middle, edge)
    else:
        x = variate(source.kind, source.shape, seed, run, i, n)
        y = variate(source.kind, source.shape, seed, run, i, middle)
        z = variate(source.kind, source.shape, seed, run, i, edge)
    source.past[MIDDLE] = reward(source.kind, scale, means[middle], y)
    source.past[OUTER] = reward(source.kind, scale, means[edge], z)
    return reward(source.kind, scale, means[n], x)


@kernel
def redraw(past: PastRewards, i: int, n: int) -> float:
    """The n-th reward of arm `i`, counted from 1."""
    return pull_once(past.source, past.seed, past.run, i, n - 1)


@kernel
def update_level_sums(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Keep the sum of all rewards and that of the window."""
    row, past = ledger.S[i], ledger.Q
    h = window_length(past.window, n)
    row[TOTAL] = row[TOTAL] + reward if n > 1 else reward
    if h > 0:
        before = row[A] if n > 1 and window_length(past.window, n - 1) > 0 else 0.0
        leaves = h == window_length(past.window, n - 1)
        row[A] = before + reward - (redraw(past, i, n - h) if leaves else 0.0)


@kernel
def update_slope_sums(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Keep the sum of all rewards and the four of the window and the one before it."""
    row, past = ledger.S[i], ledger.Q
    h, before = window_length(past.window, n), window_length(past.window, n - 1)
    row[TOTAL] = row[TOTAL] + reward if n > 1 else reward
    if h == 0:
        return
    sums = Sums(0, 0.0, 0.0, 0.0, 0.0)
    if before > 0:
        sums = Sums(before, row[A], row[B], row[C], row[D])
    middle, edge = past.source.past[MIDDLE], past.source.past[OUTER]
    sums = grow(sums, n, reward, edge) if h > before else slide(sums, n, reward, middle, edge)
    row[A], row[B], row[C], row[D] = sums.a, sums.b, sums.c, sums.d


@kernel
def update_slope_sums_and_bend(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """The same, and the newest second difference."""
    row = ledger.S[i]
    if n > 2:
        row[BEND] = second_difference(reward, row[NEWEST], row[BEFORE])
    if n > 1:
        row[BEFORE] = row[NEWEST]
    row[NEWEST] = reward
    update_slope_sums(ledger, i, n, reward)


@kernel
def newest_bend_of_sums(ledger: Ledger, i: int) -> float:
    """`newest_bend`."""
    return ledger.S[i][BEND]


@kernel
def recent_mean_of_sums(ledger: Ledger, i: int, h: int) -> float:
    """`recent_mean` for the spans that running sums know: one reward, all, or the window."""
    if h == 1:
        return ledger.last[i]
    if h == ledger.n[i]:
        return ledger.S[i][TOTAL] / h
    return ledger.S[i][A] / h


@kernel
def projected_mean_of_sums(ledger: Ledger, i: int, h: int, horizon: int) -> float:
    """`projected_mean` for the window."""
    row = ledger.S[i]
    return projected_mean_of(Sums(h, row[A], row[B], row[C], row[D]), horizon)


def past_kernels(policy: type[Policy], bends: bool) -> dict[str, Callable[..., Any]]:
    """What the names for an arm's past are bound to where the past is drawn again."""
    slopes = update_slope_sums_and_bend if bends else update_slope_sums
    light = {remember_nothing: remember_nothing, remember_levels: update_level_sums}
    pull = {} if policy.remember in light else {"pull": pull_with_past}
    return pull | {
        "remember": light.get(policy.remember, slopes),
        "recent_mean": recent_mean_of_sums,
        "projected_mean": projected_mean_of_sums,
        "newest_bend": newest_bend_of_sums,
    }
