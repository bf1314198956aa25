"""Players: functions that simulate runs of one policy, and the memory that they need."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from latebloomer._util.memory import SMALL, free_memory, need_memory
from latebloomer.core.formulas import PrefixSums
from latebloomer.core.kernel import Jit, cpu_jit, plain
from latebloomer.core.policy_moves import game_of, moves_of, when_rated
from latebloomer.core.run_memory import arrays_for, ledger_bytes, lists_for, past_lengths
from latebloomer.policies.base import Policy
from latebloomer.problems.noise import KnownNoise
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.one_run import (
    AHEAD,
    Lane,
    OwnRewardSource,
    RewardSource,
    draw_of,
    order_of,
    play,
    play_in_pairs,
    play_many,
)
from latebloomer.simulation.window_sums import SumIncrements, play_by_sums

MOST_OF_TWO = 2**26  # maximum bytes (64 MiB) of a ledger for two runs to be simulated alternately

Player = Callable[[int, Any, Any], None]  # first run, recommended (out), pulls (out)


# --- players ---


def compiled_player(experiment: Experiment, policy: Policy) -> Player:
    """Return a function that simulates runs in its own memory; each thread needs one."""
    return _player(experiment, policy, lanes_of(experiment, policy), cpu_jit())


def plain_player(experiment: Experiment, policy: Policy, lanes: int = 1) -> Player:
    """Return a player in plain Python, which is slow and serves to check compiled code."""
    return _player(experiment, policy, lanes, plain)


def _player(experiment: Experiment, policy: Policy, count: int, jit: Jit) -> Player:
    arms, longest = experiment.arms, experiment.most_pulls(policy)
    numbers = (arms, experiment.budget, experiment.horizon, experiment.seed)
    game = game_of(policy, *numbers, compiled=jit is not plain)
    drawn = draw_of(experiment.noise)
    rated = (*when_rated(policy, game.plan), *order_of(type(policy)), *drawn)

    def lane() -> Lane:
        if jit is plain:
            ledger = lists_for(policy, arms, longest)
        else:
            ledger = arrays_for(policy, arms, longest)
        return Lane(ledger, source_of(experiment))

    if count == 2:
        return partial(moves_of(type(policy), play_in_pairs, jit, rated), game, lane(), lane())
    whole_run = play if experiment.breakpoints is None else play_by_sums
    many = moves_of(type(policy), play_many, jit, (*rated, (play, whole_run)))
    return partial(many, game, *lane())


def lanes_of(experiment: Experiment, policy: Policy) -> int:
    """Return the number of runs to simulate alternately: two if each pull depends on ratings.

    In a phase, the next arms are known in advance, so nothing waits. If a run needs much memory,
    two runs would only evict each other from the cache.
    """
    if experiment.breakpoints is not None or not policy.picks_by_rating:
        return 1
    size = ledger_bytes(policy, experiment.arms, experiment.most_pulls(policy))
    return 2 if size <= MOST_OF_TWO else 1


def source_of(experiment: Experiment) -> RewardSource | OwnRewardSource | SumIncrements:
    """Return the source of the rewards, or of the sums in place of rewards."""
    arms, noise, means = experiment.arms, experiment.noise, experiment.means
    order = np.zeros(arms, np.int64)
    if experiment.breakpoints is not None:
        return experiment.increments._replace(reached=np.zeros(arms, np.int64), order=order)
    if not isinstance(noise, KnownNoise):
        return OwnRewardSource(means.table, noise.numbers(arms), order)
    numbers = noise.numbers(arms)
    ahead = np.zeros((arms, AHEAD))
    return RewardSource(means.table, numbers.kind, numbers.scales, numbers.shape, ahead, order)


FLOAT_IN_A_LIST = 32  # bytes: the number and its pointer
COPIES = 4  # copies of the prefix sums of a formula, while they become an array


# --- the memory that runs will need, estimated before it is allocated ---


def threads_that_fit(experiment: Experiment, threads: int = 1) -> int:
    """Return how many of `threads` fit into memory; raise a `ChunkError` if none does.

    Each thread has its own ledgers, with one cell for every pull that an arm may get.
    """
    chunk = min(experiment.runs, experiment.runs_of_chunk)
    shared, each, of_run = bytes_of(experiment)
    if shared + threads * each + chunk * of_run <= SMALL:
        return threads
    free = free_memory()
    longest = experiment.means.longest
    what = f"a run over {experiment.arms} arms, each of which may be pulled {longest} times,"
    advice = "set a smaller budget or horizon, or give fewer arms or fewer policies at a time"
    need_memory(shared + each + of_run, what, advice, free)
    remaining = free.size - shared - each
    advice = f"give a smaller chunk, for example chunk={max(1, remaining // of_run // 8)}"
    need_memory(shared + each + chunk * of_run, f"a chunk of {chunk} runs", advice, free)
    return max(1, min(threads, (remaining + each - chunk * of_run) // each))


def bytes_of(experiment: Experiment) -> tuple[int, int, int]:
    """Return bytes: shared by all threads, per thread, and per run for its result.

    Threads share the means and, for runs by sums, the increments between breakpoints. Each thread
    has a player for each policy; on a GPU, players use the card's memory. The result of a run has,
    for each policy, the recommended arm and the pulls of each arm.
    """
    arms, policies = experiment.arms, experiment.policies.values()
    shared = experiment.means.size if experiment.means.made is None else 0
    each = 1
    if experiment.target != "gpu":
        each = sum(_player_bytes(experiment, policy) for policy in policies)
    return shared + 3 * 8 * arms * experiment.points, each, 4 * (arms + 1) * len(policies)


def _player_bytes(experiment: Experiment, policy: Policy) -> int:
    arms, longest = experiment.arms, experiment.most_pulls(policy)
    settings = policy.settings(arms, experiment.budget, experiment.horizon)
    sums = sum(8 * value.last for value in settings if isinstance(value, PrefixSums))
    if experiment.target == "python":
        by_arm = sum(past_lengths(policy.memory.past, longest))
        return FLOAT_IN_A_LIST * (arms * by_arm + sums // 8)
    return lanes_of(experiment, policy) * ledger_bytes(policy, arms, longest) + COPIES * sums
