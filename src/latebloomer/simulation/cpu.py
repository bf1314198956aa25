"""One run, from the first pull to the recommendation, and how the CPU simulates many.

The loop around the moves is written once, for every target; `gpu.py` compiles the same `play`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core import moves
from latebloomer.core.kernel import Jit, cpu_jit, kernel, plain
from latebloomer.core.ledger import (
    ANY,
    OVER,
    PHASE,
    PHASE_START,
    PULLS,
    RACERS,
    SWEEPS,
    Floats,
    Game,
    Ledger,
    advance,
    keep_best,
    observe,
    rate_jointly,
    recommend,
    reset,
    update_rating,
)
from latebloomer.core.random import normal
from latebloomer.policies.base import Policy
from latebloomer.problems.noise import reward, variates
from latebloomer.simulation.experiment import Experiment, SumIncrements

MOST_OF_TWO = 2**26  # bytes (64 MiB) of a ledger up to which two runs are simulated side by side
AHEAD = 32  # rewards drawn at once for an arm; even, and a power of two

Player = Callable[[int, Any, Any], None]  # first run, recommended (out), pulls (out)


class RewardSource(NamedTuple):
    """Where rewards come from: the problem's means and noise, and each arm's next rewards."""

    means: Floats  # (arms, pulls)
    kind: int
    scales: Floats  # (arms,)
    shape: float
    ahead: Floats  # (arms, AHEAD)


class Lane(NamedTuple):
    """The memory of a run."""

    ledger: Ledger
    source: Any  # a `RewardSource`, or by sums `SumIncrements`


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


@kernel
def turn(game: Game, ledger: Ledger, source: RewardSource, run: int, i: int) -> int:
    """Pull arm `i` and return the next arm."""
    observe(game, ledger, i, pull(source, game.seed, run, i, ledger.n[i]))
    return advance(game, ledger, i, run)


@kernel
def play(game: Game, ledger: Ledger, source: RewardSource, run: int) -> int:
    """Simulate one run and return the recommended arm; the ledger then has each arm's pulls."""
    reset(ledger)
    i = advance(game, ledger, ANY, run)
    while i != OVER:
        i = turn(game, ledger, source, run, i)
    return recommend(game, ledger)


@kernel
def play_many(
    game: Game, ledger: Ledger, source: RewardSource, first: int, recommended: Any, pulls: Any
) -> None:
    """Simulate the runs from `first` on: an entry of `recommended` and a row of `pulls` each."""
    for place in range(len(recommended)):
        recommended[place] = play(game, ledger, source, first + place)
        for i in range(len(ledger.n)):
            pulls[place][i] = ledger.n[i]


@kernel
def play_in_pairs(
    game: Game, one: Lane, other: Lane, first: int, recommended: Any, pulls: Any
) -> None:
    """Simulate the same, two runs side by side, pull by pull.

    The next arm waits for the latest rating, and that for the arm: while one run waits, the other
    is worked on.
    """
    for place in range(0, len(recommended), 2):
        run, more = first + place, min(1, len(recommended) - 1 - place)  # 0 for the last of all
        reset(one.ledger)
        reset(other.ledger)
        i = advance(game, one.ledger, ANY, run)
        j = advance(game, other.ledger, ANY, run + 1) if more == 1 else OVER
        while i >= 0 or j >= 0:  # not OVER; a sign tells the compiler more
            if i >= 0:
                i = turn(game, one.ledger, one.source, run, i)
            if j >= 0:
                j = turn(game, other.ledger, other.source, run + 1, j)
        # The other's first: if there is none, its entries are overwritten.
        recommended[place + more] = recommend(game, other.ledger)
        recommended[place] = recommend(game, one.ledger)
        for arm in range(len(one.ledger.n)):
            pulls[place + more][arm] = other.ledger.n[arm]
            pulls[place][arm] = one.ledger.n[arm]


# --- by sums ---
#
# An exact shortcut for policies with a fixed plan and window means. Between two decisions such a
# policy looks only at window sums. With Gaussian noise the increments of an arm's prefix sum
# between the plan's breakpoints are independent Gaussians, so they are drawn directly: the same
# distribution as pull by pull, at a cost that does not depend on the budget. The policy's own
# kernels rate, drop and recommend; only the entries of `S` that they read are filled.


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
            i, n = ledger.racing[place], cursor[PHASE_START] + each + (place < more)
            draw_sums(increments, ledger, game.seed, run, i, n)
            update_rating(game.rule, ledger, i, game.horizon)
        cursor[PULLS] += size * each + more
        cursor[PHASE_START] += each
        cursor[SWEEPS] = cursor[PHASE_START]
        cursor[PHASE] = phase + 1
        rate_jointly(game.rule, ledger, game.horizon)
    return recommend(game, ledger)


# --- players ---


def compiled_player(experiment: Experiment, policy: Policy) -> Player:
    """Return a function that simulates runs in its own memory, so that each thread has one."""
    return _player(experiment, policy, lanes_of(experiment, policy), cpu_jit())


def plain_player(experiment: Experiment, policy: Policy, lanes: int = 1) -> Player:
    """Return the same in plain Python: slow, to compare compiled code with."""
    return _player(experiment, policy, lanes, plain)


def _player(experiment: Experiment, policy: Policy, count: int, jit: Jit) -> Player:
    arms, longest = experiment.arms, experiment.most_pulls(policy)
    numbers = (arms, experiment.budget, experiment.horizon, experiment.seed)
    game = moves.game_of(policy, *numbers, compiled=jit is not plain)

    def lane() -> Lane:
        if jit is plain:
            ledger = moves.lists_for(arms, moves.past_lengths(policy, longest))
        else:
            ledger = moves.arrays_for(policy, arms, longest)
        return Lane(ledger, source_of(experiment))

    if count == 2:
        return partial(moves.moves_of(type(policy), play_in_pairs, jit), game, lane(), lane())
    one = play if experiment.breakpoints is None else play_by_sums
    return partial(moves.moves_of(type(policy), play_many, jit, play=one), game, *lane())


def lanes_of(experiment: Experiment, policy: Policy) -> int:
    """Return how many runs are simulated side by side: two if the next arm waits for a rating.

    Phases name their arms in advance, and nothing waits. If a run takes much memory, two of them
    would only drive each other from the cache.
    """
    if experiment.breakpoints is not None or not policy.picks_by_rating:
        return 1
    size = moves.ledger_bytes(policy, experiment.arms, experiment.most_pulls(policy))
    return 2 if size <= MOST_OF_TWO else 1


def source_of(experiment: Experiment) -> RewardSource | SumIncrements:
    """Return where the rewards, or the sums that stand for them, come from."""
    arms, noise = experiment.arms, experiment.noise
    if experiment.breakpoints is not None:
        return experiment.increments._replace(reached=np.zeros(arms, np.int64))
    ahead = np.zeros((arms, AHEAD))
    return RewardSource(experiment.means.table, noise.kind, noise.scales(arms), noise.shape, ahead)
