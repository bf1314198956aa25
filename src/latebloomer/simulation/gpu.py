"""Runs on the GPU: the policies' own text through numba-cuda, one thread for each run.

Where a policy looks at windows only, past rewards are drawn again instead of stored
(`redrawn_rewards.py`) and a run lives in its thread's own memory. Other policies store prefix sums
in the card's memory, which bounds the runs in flight. All sums are float64: in float32 they change
pulls.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from latebloomer.core.kernel import lower
from latebloomer.core.ledger import CELLS, FAN, Ledger
from latebloomer.core.memory import FreeMemory, need_memory
from latebloomer.core.moves import POOL, game_arrays, ledger_bytes, past_lengths
from latebloomer.core.random import ZIGGURAT
from latebloomer.errors import NoDevice, SettingError, extra
from latebloomer.policies.base import Policy
from latebloomer.simulation.cpu import Player, play
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.redrawn_rewards import (
    SUMS_PER_ARM,
    GpuRewardSource,
    PastRewards,
    past_kernels,
    pull_once,
)

BLOCK = 128  # threads of a block
MOST_ARMS = 32  # beyond, a thread's own arrays would not stay near; prefix sums are stored
SHARE = 0.6  # of the card's free memory that stored prefix sums may take
ADVICE = "set a smaller budget or horizon, give fewer arms, or use target='cpu'"


def _cuda() -> Any:
    """numba's CUDA target."""
    if not hasattr(np, "row_stack"):
        # numba-cuda up to 0.30 touches numpy.row_stack at import, which NumPy 2.5 removed; it
        # was another name of vstack.
        np.row_stack = np.vstack
    return extra("numba.cuda", "simulations on a GPU", "gpu")


config = extra("numba", "simulations on a GPU", "gpu").config
cuda = _cuda()  # a global of this module: numba's simulator swaps it for its own


def need_device() -> None:
    """Raise unless there is a GPU to run on."""
    if not cuda.is_available():
        raise NoDevice(
            "target='gpu', but CUDA finds no GPU or no driver here: use target='cpu', or see "
            "what `python -m numba -s` says under CUDA"
        )


@cache
def device_jit() -> Any:
    """The compiler of what kernels call; the simulator compiles nothing and takes no options."""
    options = {} if config.ENABLE_CUDASIM else {"forceinline": True}
    return cuda.jit(device=True, **options)


# The ziggurat's table is read at random. As a compiled-in constant it lies in constant memory,
# where threads that read different places wait for each other: 2.6 billion pulls/s (R-UCBE on an
# H200). From each block's shared memory it is 13 billion.
TABLE = len(ZIGGURAT)


@cache
def redrawing_kernel(policy: type[Policy], arms: int) -> Any:
    """A CUDA kernel that plays runs of `policy` over `arms` arms in its threads' own memory."""
    bound: dict[str, Any] = policy.kernels() | past_kernels(policy) | {"pull": pull_once}
    run_of = lower(play, device_jit(), **bound)
    work = 2 * arms + FAN

    @cuda.jit
    def runs(game, source, window, first, recommended, pulls):  # type: ignore[no-untyped-def]
        table = cuda.shared.array(TABLE, np.float64)
        for cell in range(cuda.threadIdx.x, TABLE, cuda.blockDim.x):
            table[cell] = source.ziggurat[cell]
        cuda.syncthreads()
        near = GpuRewardSource(source.means, source.kind, source.scales, source.shape, table)
        place = cuda.grid(1)
        if place >= recommended.shape[0]:
            return
        ledger = Ledger(
            cuda.local.array(arms, np.int64),
            cuda.local.array(arms, np.float64),
            cuda.local.array(arms, np.float64),
            cuda.local.array(arms, np.float64),
            cuda.local.array((arms, SUMS_PER_ARM), np.float64),
            PastRewards(near, window, game.seed, first + place),
            cuda.local.array(arms, np.int64),
            cuda.local.array(arms, np.int64),
            cuda.local.array(arms, np.int64),
            cuda.local.array(work, np.int64),
            cuda.local.array(POOL, np.float64),
            cuda.local.array(CELLS, np.int64),
        )
        recommended[place] = run_of(game, ledger, near, first + place)
        for i in range(arms):
            pulls[place, i] = ledger.n[i]

    return runs


@cache
def storing_kernel(policy: type[Policy]) -> Any:
    """A CUDA kernel that plays runs of `policy` with prefix sums in the card's memory."""
    bound: dict[str, Any] = policy.kernels() | {"pull": pull_once}
    run_of = lower(play, device_jit(), **bound)

    @cuda.jit
    def runs(game, source, memory, first, recommended, pulls):  # type: ignore[no-untyped-def]
        table = cuda.shared.array(TABLE, np.float64)
        for cell in range(cuda.threadIdx.x, TABLE, cuda.blockDim.x):
            table[cell] = source.ziggurat[cell]
        cuda.syncthreads()
        near = GpuRewardSource(source.means, source.kind, source.scales, source.shape, table)
        thread = cuda.grid(1)
        if thread >= memory.n.shape[0]:
            return
        ledger = Ledger(
            memory.n[thread],
            memory.last[thread],
            memory.rating[thread],
            memory.memo[thread],
            memory.S[thread],
            memory.Q[thread],
            memory.racing[thread],
            memory.out[thread],
            memory.coarse[thread],
            memory.work[thread],
            memory.pool[thread],
            memory.cursor[thread],
        )
        for i in range(ledger.n.shape[0]):  # prefix sums begin at 0
            ledger.S[i][0] = 0.0
            ledger.Q[i][0] = 0.0
        for place in range(thread, recommended.shape[0], memory.n.shape[0]):
            recommended[place] = run_of(game, ledger, near, first + place)
            for i in range(ledger.n.shape[0]):
                pulls[place, i] = ledger.n[i]

    return runs


def gpu_player(experiment: Experiment, policy: Policy) -> Player:
    """A function that plays runs on the GPU."""
    need_device()
    if experiment.breakpoints is not None:
        raise SettingError("method='sums' with target='gpu', but sums are for target='cpu'")
    arms, budget, horizon = experiment.arms, experiment.budget, experiment.horizon
    what = f"the table of the means of {arms} arms up to pull {experiment.means.longest}"
    _need_card(experiment.means.size, what)
    game = to_device(game_arrays(policy, arms, budget, horizon, experiment.seed))
    noise, window, means = experiment.noise, policy.running_window(), experiment.means.table
    source = to_device(
        GpuRewardSource(means, noise.kind, noise.scales(arms), noise.shape, ZIGGURAT)
    )
    if window is not None and arms <= MOST_ARMS:
        device, past = redrawing_kernel(type(policy), arms), float(window)
        return _launcher(device, game, source, lambda runs: (past, runs))
    device, longest = storing_kernel(type(policy)), experiment.most_pulls(policy)
    return _launcher(device, game, source, lambda runs: _ledgers(policy, arms, longest, runs))


def _need_card(needed: int, what: str, advice: str = ADVICE) -> None:
    """Raise a `ChunkError` unless the card has so many bytes."""
    need_memory(needed, what, advice, FreeMemory(_free_memory(), "on the GPU"))


def _launcher(device: Any, game: Any, source: Any, memory_for: Any) -> Player:
    """A player; `memory_for` a number of runs is what the kernel takes, and the threads."""

    def play(first: int, recommended: Any, pulls: Any) -> None:
        what = f"a chunk of {len(recommended)} runs"
        _need_card(4 * (recommended.size + pulls.size), what, "give a smaller chunk")
        chosen = cuda.device_array(recommended.shape, np.int32)
        counts = cuda.device_array(pulls.shape, np.int32)
        memory, threads = memory_for(len(recommended))
        blocks = -(-threads // BLOCK)
        device[blocks, BLOCK](game, source, memory, first, chosen, counts)
        chosen.copy_to_host(recommended)
        counts.copy_to_host(pulls)

    return play


def _ledgers(policy: Policy, arms: int, longest: int, runs: int) -> tuple[Ledger, int]:
    """Ledgers for as many threads as the card has room for, and their number."""
    for_levels, for_slopes = past_lengths(policy, longest)
    each, free = ledger_bytes(policy, arms, longest), int(SHARE * _free_memory())
    what = f"one run over {arms} arms, each of which may be pulled {longest} times,"
    need_memory(each, what, ADVICE, FreeMemory(free, f"{SHARE:.0%} of what is free on the GPU"))
    threads = max(1, min(runs, free // each))

    def array(*shape: int, kind: Any = np.float64) -> Any:
        return cuda.device_array((threads, *shape), kind)

    whole = np.int64
    ledger = Ledger(
        n=array(arms, kind=whole),
        last=array(arms),
        rating=array(arms),
        memo=array(arms),
        S=array(arms, for_levels),
        Q=array(arms, for_slopes),
        racing=array(arms, kind=whole),
        out=array(arms, kind=whole),
        coarse=array(arms, kind=whole),
        work=array(2 * arms + FAN, kind=whole),
        pool=array(POOL),
        cursor=array(CELLS, kind=whole),
    )
    return ledger, threads


def _free_memory() -> int:
    free = cuda.current_context().get_memory_info()[0]
    return int(min(free, 2**40))  # the simulator says infinity


def to_device(value: Any) -> Any:
    """The same named tuple with its arrays on the card."""
    if isinstance(value, np.ndarray):
        return cuda.to_device(np.ascontiguousarray(value))
    if isinstance(value, tuple):
        return type(value)(*map(to_device, value))
    return value
