"""Past rewards, which a GPU draws again from the counters of its random numbers.

`core/redrawn_past.py` has the kernels that store little of the past and request its rewards. The
kernels here return these rewards; `Ledger.Q` has the data to draw a reward again.
"""

from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.formulas import window_length
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Floats, Ledger
from latebloomer.core.policy_moves import Bound
from latebloomer.core.random import ZIGGURAT, normal_by, philox_block
from latebloomer.core.redrawn_past import redrawn_kernels, rewards_that_leave
from latebloomer.core.run_memory import WINDOW
from latebloomer.policies.base import Policy
from latebloomer.problems.noise import (
    GAUSSIAN,
    OWN,
    KindNumbers,
    KnownNoise,
    Noise,
    reward,
    variate,
)
from latebloomer.simulation.gpu.words_of_32_bits import philox_block_in_32_bits, three_normals
from latebloomer.simulation.one_run import draw_of, pull, pull_own, same_arm

MIDDLE, OUTER = range(2)  # indices in `GpuRewardSource.past`


class PastRewards(NamedTuple):
    """The data to draw any reward of the run again, stored as `Ledger.Q`."""

    source: Any  # a `GpuRewardSource`
    seed: int
    run: int


class GpuRewardSource(NamedTuple):
    """A `RewardSource` that draws rewards one by one, with its table in shared memory."""

    means: Floats
    kind: int
    scales: Floats
    shape: float
    ziggurat: Floats
    window: float = 0.0
    past: Any = ()  # two cells for the past rewards of `pull_with_past`
    order: Any = ()  # as in `RewardSource`
    numbers: Any = ()  # as in `OwnRewardSource`


@kernel
def pull_once(source: GpuRewardSource, seed: int, run: int, i: int, n: int) -> float:
    """Draw and return the reward of arm `i`'s pull number `n`, counted from 0."""
    if source.kind == GAUSSIAN:
        value = normal_by(source.ziggurat, seed, run, i, n)
    else:
        value = variate(source.kind, source.shape, seed, run, i, n)
    return reward(source.kind, source.scales[i], source.means[i][n], value)


# Kernels to which the kernels of every policy are bound on a GPU.
DRAWN: dict[Any, Any] = {pull: pull_once, philox_block: philox_block_in_32_bits}


def draw_on_gpu(noise: Noise) -> Bound:
    """Return the kernels that draw the rewards of a noise in place of `pull_once`."""
    own = draw_of(noise)
    return (*own, (pull_once, pull_own)) if own else ()


def gpu_source_of(noise: Noise, means: Floats) -> GpuRewardSource:
    """Return the source of the rewards."""
    arms = len(means)
    numbers = noise.numbers(arms)
    known = numbers if isinstance(noise, KnownNoise) else KindNumbers(OWN, np.zeros(arms), 0.0)
    drawn_from = (known.kind, known.scales, known.shape, ZIGGURAT)
    return GpuRewardSource(means, *drawn_from, past=ZIGGURAT, order=ZIGGURAT, numbers=numbers)


@kernel
def pull_with_past(source: GpuRewardSource, seed: int, run: int, i: int, n: int) -> float:
    """Return the reward like `pull_once`, and also draw the two rewards that leave a window.

    They are the rewards that leave a window, for `keep_slopes`.

    `keep_slopes` needs these rewards. Every thread draws both, although a thread whose window
    grows needs only one: after a branch, threads would wait for each other's draws.
    """
    h, before = window_length(source.window, n + 1), window_length(source.window, n)
    if h == 0:
        return pull_once(source, seed, run, i, n)
    middle, edge = n - h, n - h - before  # counted from 0
    if source.kind != GAUSSIAN:
        source.past[MIDDLE] = pull_once(source, seed, run, i, middle)
        source.past[OUTER] = pull_once(source, seed, run, i, edge)
        return pull_once(source, seed, run, i, n)
    scale, means = source.scales[i], source.means[i]
    x, y, z = three_normals(source.ziggurat, seed, run, i, n, middle, edge)
    source.past[MIDDLE] = reward(source.kind, scale, means[middle], y)
    source.past[OUTER] = reward(source.kind, scale, means[edge], z)
    return reward(source.kind, scale, means[n], x)


@kernel
def reward_by_counter(ledger: Ledger, i: int, n: int) -> float:
    """Return the n-th reward of arm `i`, from 1 on."""
    past = ledger.Q
    return pull_once(past.source, past.seed, past.run, same_arm(past.source.order, i), n - 1)


@kernel
def rewards_of_this_pull(
    ledger: Ledger, i: int, n: int, h: int, before: int
) -> tuple[float, float]:
    """Return the two past rewards that `pull_with_past` drew with the latest reward."""
    drawn = ledger.Q.source.past
    return drawn[MIDDLE], drawn[OUTER]


def past_kernels(policy: type[Policy], bends: bool) -> dict[Any, Any]:
    """Return the kernels that replace those of an arm's past and its pulls."""
    kernels = redrawn_kernels(policy, bends, reward_by_counter)
    if policy.memory.past is WINDOW:
        kernels |= {pull: pull_with_past, rewards_that_leave: rewards_of_this_pull}
    return kernels
