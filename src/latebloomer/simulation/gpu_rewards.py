"""Rewards as a GPU draws them best: in words of 32 bits, and again rather than stored.

The random bits are those of `core.random`, which holds words in signed 64-bit integers that every
target knows; a card multiplies words of 32 bits in one instruction. The three rewards that a pull
needs are drawn in one loop, because each alone is a chain of which every link waits for the one
before.

On a GPU it is cheaper to draw a past reward again from its counter than to store it. `S` then
holds a few numbers per arm, the paper's running sums [Mussi24, App. C] and what the latest second
difference needs, and `Q` tells how to draw a reward again. The policy's text is the same; the few
kernels it names for an arm's past are bound to these.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.estimators import Sums, grow, projected_mean_of, slide, window_length
from latebloomer.core.kernel import kernel, numpy_kernel
from latebloomer.core.ledger import Floats, Ledger, remember_levels, remember_nothing
from latebloomer.core.random import MASK, Words, first_try, normal_beyond, normal_by
from latebloomer.core.statistics import second_difference
from latebloomer.policies.base import Policy
from latebloomer.problems.noise import GAUSSIAN, reward, variate

_RUN_HIGH = 0xFFFF
TOTAL, A, B, C, D = range(5)  # places in an arm's row of `S`
BEND, NEWEST, BEFORE = range(5, 8)  # and where noise is estimated from second differences
MIDDLE, OUTER = range(2)  # places in `GpuRewardSource.past`


# --- random numbers ---


@numpy_kernel
def round_in_32_bits(a: Any, b: Any, c: Any, d: Any, low_key: Any, high_key: Any) -> Any:
    """Return one round of Philox4x32."""
    p, q = np.uint64(0xD2511F53) * np.uint64(a), np.uint64(0xCD9E8D57) * np.uint64(c)
    return (
        np.uint32(q >> np.uint64(32)) ^ b ^ low_key,
        np.uint32(q & np.uint64(MASK)),
        np.uint32(p >> np.uint64(32)) ^ d ^ high_key,
        np.uint32(p & np.uint64(MASK)),
    )


@numpy_kernel
def philox_block_in_32_bits(c0: int, c1: int, c2: int, c3: int, k0: int, k1: int) -> Words:
    """Return what `philox_block` returns.

    >>> [f"{word:08x}" for word in philox_block_in_32_bits(0, 0, 0, 0, 0, 0)]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    a, b, c, d = np.uint32(c0), np.uint32(c1), np.uint32(c2), np.uint32(c3)
    low_key, high_key = np.uint32(k0), np.uint32(k1)
    for _ in range(10):
        a, b, c, d = round_in_32_bits(a, b, c, d, low_key, high_key)
        low_key = np.uint32((np.uint64(low_key) + np.uint64(0x9E3779B9)) & np.uint64(MASK))
        high_key = np.uint32((np.uint64(high_key) + np.uint64(0xBB67AE85)) & np.uint64(MASK))
    return int(a), int(b), int(c), int(d)


@numpy_kernel
def half_in_32_bits(index: int, a: Any, b: Any, c: Any, d: Any) -> tuple[int, int]:
    """Return the words of a block that belong to one of its two draws."""
    if index & 1 == 0:
        return int(a), int(b)
    return int(c), int(d)


@numpy_kernel
def three_normals(
    table: Any, seed: int, run: int, stream: int, i: int, j: int, k: int
) -> tuple[float, float, float]:
    """Return the Gaussians `normal_by` of three indices of a stream.

    >>> from latebloomer.core.random import ZIGGURAT, normal
    >>> three = three_normals(ZIGGURAT, 1, 2, 3, 40, 31, 22)
    >>> three == tuple(normal(1, 2, 3, index) for index in (40, 31, 22))
    True
    """
    a0, b0, c0 = np.uint32((i >> 1) & MASK), np.uint32((j >> 1) & MASK), np.uint32((k >> 1) & MASK)
    a1 = b1 = c1 = np.uint32(stream & MASK)
    a2 = b2 = c2 = np.uint32(run & MASK)
    a3 = b3 = c3 = np.uint32((run >> 32) & _RUN_HIGH)
    low_key, high_key = np.uint32(seed & MASK), np.uint32((seed >> 32) & MASK)
    for _ in range(10):
        a0, a1, a2, a3 = round_in_32_bits(a0, a1, a2, a3, low_key, high_key)
        b0, b1, b2, b3 = round_in_32_bits(b0, b1, b2, b3, low_key, high_key)
        c0, c1, c2, c3 = round_in_32_bits(c0, c1, c2, c3, low_key, high_key)
        low_key = np.uint32((np.uint64(low_key) + np.uint64(0x9E3779B9)) & np.uint64(MASK))
        high_key = np.uint32((np.uint64(high_key) + np.uint64(0xBB67AE85)) & np.uint64(MASK))
    high_i, low_i = half_in_32_bits(i, a0, a1, a2, a3)
    high_j, low_j = half_in_32_bits(j, b0, b1, b2, b3)
    high_k, low_k = half_in_32_bits(k, c0, c1, c2, c3)
    x, y = first_try(table, high_i, low_i), first_try(table, high_j, low_j)
    z = first_try(table, high_k, low_k)
    # Threads that need more tries, for whichever of the three, go through them together.
    while x == 0.0 or y == 0.0 or z == 0.0:
        if x == 0.0:
            n, high, low = i, high_i, low_i
        elif y == 0.0:
            n, high, low = j, high_j, low_j
        else:
            n, high, low = k, high_k, low_k
        value = normal_beyond(table, seed, run, stream, n, high, low)
        if x == 0.0:
            x = value
        elif y == 0.0:
            y = value
        else:
            z = value
    return x, y, z


# --- rewards ---


class PastRewards(NamedTuple):
    """How to draw any reward of the run again: `Ledger.Q`."""

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
    """Return the reward of arm `i`'s pull number `n`, counted from 0, drawn alone."""
    if source.kind == GAUSSIAN:
        value = normal_by(source.ziggurat, seed, run, i, n)
    else:
        value = variate(source.kind, source.shape, seed, run, i, n)
    return reward(source.kind, source.scales[i], source.means[i][n], value)


# What every policy's kernels are bound to on a GPU.
DRAWN: dict[str, Any] = {"pull": pull_once, "philox_block": philox_block_in_32_bits}


@kernel
def pull_with_past(source: GpuRewardSource, seed: int, run: int, i: int, n: int) -> float:
    """Return the same; also draw the two rewards that the sums of a window then need.

    They are for `update_slope_sums`.

    Every thread draws both, though one whose window grows needs only one: threads that part at a
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
def update_level_sums(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Keep the sum of all rewards and the sum of the window."""
    row, past = ledger.S[i], ledger.Q
    h = window_length(past.window, n)
    row[TOTAL] = row[TOTAL] + reward if n > 1 else reward
    if h > 0:
        before = row[A] if n > 1 and window_length(past.window, n - 1) > 0 else 0.0
        leaves = h == window_length(past.window, n - 1)
        old = pull_once(past.source, past.seed, past.run, i, n - h - 1) if leaves else 0.0
        row[A] = before + reward - old


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
    """Keep the same sums and the latest second difference."""
    row = ledger.S[i]
    if n > 2:
        row[BEND] = second_difference(reward, row[NEWEST], row[BEFORE])
    if n > 1:
        row[BEFORE] = row[NEWEST]
    row[NEWEST] = reward
    update_slope_sums(ledger, i, n, reward)


@kernel
def newest_bend_of_sums(ledger: Ledger, i: int) -> float:
    """Return what `newest_bend` returns."""
    return ledger.S[i][BEND]


@kernel
def recent_mean_of_sums(ledger: Ledger, i: int, h: int) -> float:
    """Return `recent_mean` for the spans of running sums: one reward, all, or the window."""
    if h == 1:
        return ledger.last[i]
    if h == ledger.n[i]:
        return ledger.S[i][TOTAL] / h
    return ledger.S[i][A] / h


@kernel
def projected_mean_of_sums(ledger: Ledger, i: int, h: int, horizon: int) -> float:
    """Return `projected_mean` for the window."""
    row = ledger.S[i]
    return projected_mean_of(Sums(h, row[A], row[B], row[C], row[D]), horizon)


def past_kernels(policy: type[Policy], bends: bool) -> dict[str, Callable[..., Any]]:
    """Return the kernels for an arm's past, by name, if the past is drawn again."""
    slopes = update_slope_sums_and_bend if bends else update_slope_sums
    light = {remember_nothing: remember_nothing, remember_levels: update_level_sums}
    pull = {} if policy.remember in light else {"pull": pull_with_past}
    return pull | {
        "remember": light.get(policy.remember, slopes),
        "recent_mean": recent_mean_of_sums,
        "projected_mean": projected_mean_of_sums,
        "newest_bend": newest_bend_of_sums,
    }
