"""One run, from the first pull to the recommendation, and many runs on the CPU.

The loop around the moves exists once for all targets: `gpu/gpu_kernels.py` also compiles `play`.
"""

from typing import Any, NamedTuple

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, OVER, Floats, Game, Ints, Ledger
from latebloomer.core.moves import advance, begin, observe, recommend
from latebloomer.core.policy_moves import Bound, key
from latebloomer.core.random import SHUFFLE_STREAM, uniform
from latebloomer.policies.base import Policy
from latebloomer.problems.noise import KnownNoise, Noise, reward, variates

AHEAD = 32  # rewards of an arm that are drawn together; even, and a power of two


class RewardSource(NamedTuple):
    """The source of rewards: the problem's means and noise, and each arm's next rewards."""

    means: Floats  # (arms, pulls)
    kind: int
    scales: Floats  # (arms,)
    shape: float
    ahead: Floats  # (arms, AHEAD)
    order: Ints = ()  # the problem's arm for each arm of the policy


class Lane(NamedTuple):
    """The memory of a run."""

    ledger: Ledger
    source: Any  # a `RewardSource`, or `SumIncrements` for runs by sums


@kernel
def pull(source: RewardSource, seed: int, run: int, i: int, n: int) -> float:
    """Return the reward of arm `i`'s pull number `n`, counted from 0."""
    slot, ahead = n & (AHEAD - 1), source.ahead[i]
    if slot == 0:
        means, scale = source.means[i], source.scales[i]
        variates(ahead, source.kind, source.shape, seed, run, i, n)
        for k in range(min(AHEAD, len(means) - n)):
            ahead[k] = reward(source.kind, scale, means[n + k], ahead[k])
    return ahead[slot]


# Rewards of a noise with its own kernel.


class OwnRewardSource(NamedTuple):
    """The source of rewards of a noise with its own kernel, in place of `RewardSource`."""

    means: Floats  # (arms, pulls)
    numbers: Any  # `self` inside the kernel
    order: Ints = ()


@kernel
def own_reward(self: Any, mean: float, seed: int, run: int, arm: int, pull: int) -> float:
    """Take the place of `Noise.reward`, which is bound when kernels are compiled."""
    raise NotImplementedError


@kernel
def pull_own(source: OwnRewardSource, seed: int, run: int, i: int, n: int) -> float:
    """Return the reward of a pull, like `pull`."""
    return own_reward(source.numbers, source.means[i][n], seed, run, i, n)


def draw_of(noise: Noise) -> Bound:
    """Return the kernels that draw the rewards of a noise in place of `pull`."""
    if isinstance(noise, KnownNoise):
        return ()
    return (pull, pull_own), (own_reward, type(noise).reward)


# The problem's arm for an arm of the policy: the same arm, or an arm by the random order of a run.
# These kernels have only the order as argument. The type of a source may contain the type of a
# noise, which other processes that read the compiled code may not have.


@kernel
def leave_order(order: Ints, seed: int, run: int) -> None:
    """Do nothing, because the policy's arms are the problem's arms."""


@kernel
def same_arm(order: Ints, i: int) -> int:
    """Return the same arm."""
    return i


@kernel
def draw_order(order: Ints, seed: int, run: int) -> None:
    """Draw a random order of arms for a run [Fisher-Yates]."""
    for i in range(len(order)):
        order[i] = i
    for last in range(len(order) - 1, 0, -1):
        place = int((last + 1) * uniform(seed, run, SHUFFLE_STREAM, last))
        i = order[last]
        order[last] = order[place]
        order[place] = i


@kernel
def arm_in_order(order: Ints, i: int) -> int:
    """Return the problem's arm at place `i` of the order."""
    return order[i]


def order_of(policy: type[Policy]) -> Bound:
    """Return the kernels that map the policy's arms to the problem's arms."""
    if not policy.treats_arms_in_order:
        return ()
    return (leave_order, draw_order), (same_arm, arm_in_order)


def arms_in_order(policy: Policy, arms: int, seed: int, run: int) -> list[int]:
    """Return the problem's arm for each arm of the policy in one run."""
    order = list(range(arms))
    if policy.treats_arms_in_order:
        draw_order(order, key(seed), run)
    return order


@kernel
def turn(game: Game, ledger: Ledger, source: RewardSource, run: int, i: int) -> int:
    """Pull arm `i` and return the next arm."""
    reward = pull(source, game.seed, run, same_arm(source.order, i), ledger.n[i])
    observe(game, ledger, i, reward)
    return advance(game, ledger, i, run)


@kernel
def play(game: Game, ledger: Ledger, source: RewardSource, run: int) -> int:
    """Simulate one run and return the recommended arm; the ledger has each arm's pulls."""
    begin(ledger)
    leave_order(source.order, game.seed, run)
    i = advance(game, ledger, ANY, run)
    while i != OVER:
        i = turn(game, ledger, source, run, i)
    return recommend(game, ledger)


@kernel
def play_many(
    game: Game, ledger: Ledger, source: RewardSource, first: int, recommended: Any, pulls: Any
) -> None:
    """Simulate runs from `first` on; each fills an entry of `recommended` and a row of `pulls`."""
    for place in range(len(recommended)):
        arm = play(game, ledger, source, first + place)
        recommended[place] = same_arm(source.order, arm)
        for i in range(len(ledger.n)):
            pulls[place][same_arm(source.order, i)] = ledger.n[i]


@kernel
def play_in_pairs(
    game: Game, left: Lane, right: Lane, first: int, recommended: Any, pulls: Any
) -> None:
    """Simulate runs like `play_many`, but two runs alternately, pull by pull.

    The next arm depends on the latest rating, and the rating on the arm. While the processor waits
    for one run, it works on the other.
    """
    for place in range(0, len(recommended), 2):
        # 0 if the last run has no partner.
        run, more = first + place, min(1, len(recommended) - 1 - place)
        begin(left.ledger)
        begin(right.ledger)
        i = advance(game, left.ledger, ANY, run)
        j = advance(game, right.ledger, ANY, run + 1) if more == 1 else OVER
        while i >= 0 or j >= 0:  # faster than a comparison with OVER
            if i >= 0:
                i = turn(game, left.ledger, left.source, run, i)
            if j >= 0:
                j = turn(game, right.ledger, right.source, run + 1, j)
        # Write the right lane first: if it has no run, its entries are overwritten.
        recommended[place + more] = recommend(game, right.ledger)
        recommended[place] = recommend(game, left.ledger)
        for arm in range(len(left.ledger.n)):
            pulls[place + more][arm] = right.ledger.n[arm]
            pulls[place][arm] = left.ledger.n[arm]
