"""One run, from the first pull to the recommendation, and how the CPU plays many of them.

The loop around the moves is written once, for every target; `gpu.py` lowers the same `play`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, OVER, Floats, Ledger, reset
from latebloomer.core.machine_code import compiled_moves
from latebloomer.core.moves import (
    Game,
    advance,
    arrays_for,
    game_arrays,
    game_of,
    lists_for,
    moves_of,
    observe,
    recommend,
    rows_in_use,
)
from latebloomer.policies.base import Policy
from latebloomer.problems.noise import reward, variates
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.window_sums import SumIncrements, play_by_sums

AHEAD = 32  # variates drawn at once for an arm; even, and a power of two

Player = Callable[[int, Any, Any], None]  # first run, recommended (out), pulls (out)


class RewardSource(NamedTuple):
    """Where rewards come from: the problem's means and noise, and each arm's next variates."""

    means: Floats  # (arms, pulls)
    kind: int
    scales: Floats  # (arms,)
    shape: float
    ahead: Floats  # (arms, AHEAD)


@kernel
def pull(source: RewardSource, seed: int, run: int, i: int, n: int) -> float:
    """The reward of arm `i`'s pull number `n`, counted from 0."""
    slot = n & (AHEAD - 1)
    ahead = source.ahead[i]
    if slot == 0:
        variates(ahead, source.kind, source.shape, seed, run, i, n)
    return reward(source.kind, source.scales[i], source.means[i][n], ahead[slot])


@kernel
def play(game: Game, ledger: Ledger, source: RewardSource, run: int) -> int:
    """Play one run; the recommended arm. The ledger then says how often each arm was pulled."""
    reset(ledger)
    i = advance(game, ledger, ANY, run)
    while i != OVER:
        observe(game, ledger, i, pull(source, game.seed, run, i, ledger.n[i]))
        i = advance(game, ledger, i, run)
    return recommend(game, ledger)


@kernel
def play_many(
    game: Game, ledger: Ledger, source: RewardSource, first: int, recommended: Any, pulls: Any
) -> None:
    """Play the runs from `first` on: an entry of `recommended` and a row of `pulls` for each."""
    for place in range(len(recommended)):
        recommended[place] = play(game, ledger, source, first + place)
        for i in range(len(ledger.n)):
            pulls[place][i] = ledger.n[i]


def compiled_player(experiment: Experiment, policy: Policy) -> Player:
    """A function that plays runs in memory of its own, so that each thread has one."""
    arms, budget, horizon = experiment.arms, experiment.budget, experiment.horizon
    game = game_arrays(policy, arms, budget, horizon, experiment.seed)
    ledger = arrays_for(policy, arms, experiment.most_pulls(policy))
    loop = compiled_moves(type(policy), play_many, play=one_run(experiment))
    return loop.with_first(game, ledger, source_of(experiment))


def plain_player(experiment: Experiment, policy: Policy) -> Player:
    """The same in plain Python: slow, and what compiled code is compared with."""
    arms, budget, horizon = experiment.arms, experiment.budget, experiment.horizon
    game = game_of(policy, arms, budget, horizon, experiment.seed)
    ledger = lists_for(arms)
    for rows in rows_in_use(policy, ledger):
        for row in rows:
            row.extend([0.0] * experiment.most_pulls(policy))
    loop = moves_of(type(policy), play_many, play=one_run(experiment))
    return partial(loop, game, ledger, source_of(experiment))


def one_run(experiment: Experiment) -> Any:
    """The kernel that plays one run, by pulls or by sums."""
    return play if experiment.breakpoints is None else play_by_sums


def source_of(experiment: Experiment) -> RewardSource | SumIncrements:
    """Where the rewards, or the sums that stand for them, come from."""
    arms, noise = experiment.arms, experiment.noise
    if experiment.breakpoints is not None:
        return experiment.increments._replace(reached=np.zeros(arms, np.int64))
    ahead = np.zeros((arms, AHEAD))
    return RewardSource(experiment.means.table, noise.kind, noise.scales(arms), noise.shape, ahead)
