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

from latebloomer._util.memory import FreeMemory, need_memory
from latebloomer.core.kernel import lower
from latebloomer.core.ledger import CELLS, FAN, Ledger
from latebloomer.core.moves import POOL, game_arrays, ledger_bytes, past_lengths
from latebloomer.core.random import ZIGGURAT
from latebloomer.errors import NoDevice, SettingError, extra
from latebloomer.policies.base import Policy
from latebloomer.simulation.card_random import philox_block_in_32_bits
from latebloomer.simulation.cpu import Player, play
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.redrawn_rewards import (
    SUMS_PER_ARM,
    WITH_BENDS,
    GpuRewardSource,
    PastRewards,
    past_kernels,
    pull_once,
)

BLOCK = 128  # threads of a block
SHARE = 0.6  # of the card's free memory that stored prefix sums may take
ADVICE = "set a smaller budget or horizon, give fewer arms, or use target='cpu'"


config = extra("numba", "simulations on a GPU", "gpu").config
# A global of this module, because numba's simulator replaces it by its own.
cuda = extra("numba.cuda", "simulations on a GPU", "gpu")


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


ON_A_CARD = {"pull": pull_once, "philox_block": philox_block_in_32_bits}


# Registers of a thread in kernels that store: with more of them, fewer runs are in flight to hide
# what the card's memory takes (Foresight on an H200: 12 billion pulls/s without a limit, 19 with
# it). Kernels that draw the past again wait for no memory; a limit only makes them spill.
STORING_REGISTERS = 96


def storing_jit() -> Any:
    """The compiler of kernels that store; the simulator takes no options."""
    return cuda.jit if config.ENABLE_CUDASIM else cuda.jit(max_registers=STORING_REGISTERS)


# The ziggurat's table is read at random. As a compiled-in constant it lies in constant memory,
# where threads that read different places wait for each other: 2.6 billion pulls/s (R-UCBE on an
# H200). From each block's shared memory it is 13 billion.
TABLE = len(ZIGGURAT)


# What a thread reads and writes at every pull is in its block's shared memory, a column for each
# thread, so that threads at different arms do not wait for each other.
NEAR_BYTES = 42 * 1024  # of shared memory that a block may take beside the ziggurat's table
SMALL = 6  # cells of an arm beside its past: pulls, newest reward, rating, memo, places


def threads_near(arms: int, cells: int) -> int:
    """Threads of a block whose arms fit into near memory, with so many cells for each; or 0.

    >>> threads_near(5, 8), threads_near(8, 8), threads_near(32, 8)
    (128, 64, 0)
    """
    sizes = (BLOCK, BLOCK // 2, BLOCK // 4)
    return next((size for size in sizes if 8 * cells * arms * size <= NEAR_BYTES), 0)


@cache
def redrawing_kernel(policy: type[Policy], arms: int, bends: bool, noise: int) -> tuple[Any, int]:
    """A CUDA kernel that plays runs of `policy` without a stored past, and its block's threads.

    The kind of noise is compiled in: what other kinds would do takes registers, though it never
    runs (R-UCBE on an H200: 20.3 billion pulls/s, 21.9 with it). Kernels that store lose by it.
    """
    bound: dict[str, Any] = policy.kernels() | ON_A_CARD | past_kernels(policy, bends)
    run_of = lower(play, device_jit(), **bound)
    work, sums = 2 * arms + FAN, WITH_BENDS if bends else SUMS_PER_ARM
    threads = threads_near(arms, 3 + sums)

    @cuda.jit
    def runs(game, source, window, first, recommended, pulls):  # type: ignore[no-untyped-def]
        table = cuda.shared.array(TABLE, np.float64)
        n = cuda.shared.array((arms, threads), np.int64)
        last = cuda.shared.array((arms, threads), np.float64)
        rating = cuda.shared.array((arms, threads), np.float64)
        S = cuda.shared.array((arms, sums, threads), np.float64)
        for cell in range(cuda.threadIdx.x, TABLE, cuda.blockDim.x):
            table[cell] = source.ziggurat[cell]
        cuda.syncthreads()
        near = GpuRewardSource(
            source.means, noise, source.scales, source.shape, table, window,
            cuda.local.array(2, np.float64),
        )  # fmt: skip
        place, column = cuda.grid(1), cuda.threadIdx.x
        if place >= recommended.shape[0]:
            return
        ledger = Ledger(
            n[:, column],
            last[:, column],
            rating[:, column],
            cuda.local.array(arms, np.float64),
            S[:, :, column],
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

    return runs, threads


@cache
def storing_kernel(policy: type[Policy], arms: int) -> tuple[Any, int]:
    """A CUDA kernel that plays runs of `policy` with prefix sums in the card's memory."""
    bound: dict[str, Any] = policy.kernels() | ON_A_CARD
    run_of = lower(play, device_jit(), **bound)
    work, threads = 2 * arms + FAN, threads_near(arms, SMALL)

    @storing_jit()
    def runs(game, source, memory, first, recommended, pulls):  # type: ignore[no-untyped-def]
        table = cuda.shared.array(TABLE, np.float64)
        n = cuda.shared.array((arms, threads), np.int64)
        last = cuda.shared.array((arms, threads), np.float64)
        rating = cuda.shared.array((arms, threads), np.float64)
        memo = cuda.shared.array((arms, threads), np.float64)
        racing = cuda.shared.array((arms, threads), np.int64)
        out = cuda.shared.array((arms, threads), np.int64)
        for cell in range(cuda.threadIdx.x, TABLE, cuda.blockDim.x):
            table[cell] = source.ziggurat[cell]
        cuda.syncthreads()
        near = GpuRewardSource(
            source.means, source.kind, source.scales, source.shape, table, 0.0, table
        )
        thread, column = cuda.grid(1), cuda.threadIdx.x
        if thread >= memory.n.shape[1]:
            return
        ledger = Ledger(
            n[:, column],
            last[:, column],
            rating[:, column],
            memo[:, column],
            memory.S[:, :, thread],
            memory.Q[:, :, thread],
            racing[:, column],
            out[:, column],
            cuda.local.array(arms, np.int64),
            cuda.local.array(work, np.int64),
            cuda.local.array(POOL, np.float64),
            cuda.local.array(CELLS, np.int64),
        )
        for i in range(arms):  # prefix sums begin at 0
            ledger.S[i][0] = 0.0
            ledger.Q[i][0] = 0.0
        for place in range(thread, recommended.shape[0], memory.n.shape[1]):
            recommended[place] = run_of(game, ledger, near, first + place)
            for i in range(arms):
                pulls[place, i] = ledger.n[i]

    return runs, threads


@cache
def far_kernel(policy: type[Policy]) -> tuple[Any, int]:
    """The same for so many arms that all of a run is in the card's memory."""
    bound: dict[str, Any] = policy.kernels() | ON_A_CARD
    run_of = lower(play, device_jit(), **bound)

    @storing_jit()
    def runs(game, source, memory, first, recommended, pulls):  # type: ignore[no-untyped-def]
        table = cuda.shared.array(TABLE, np.float64)
        for cell in range(cuda.threadIdx.x, TABLE, cuda.blockDim.x):
            table[cell] = source.ziggurat[cell]
        cuda.syncthreads()
        near = GpuRewardSource(
            source.means, source.kind, source.scales, source.shape, table, 0.0, table
        )
        thread = cuda.grid(1)
        if thread >= memory.n.shape[1]:
            return
        ledger = Ledger(
            memory.n[:, thread],
            memory.last[:, thread],
            memory.rating[:, thread],
            memory.memo[:, thread],
            memory.S[:, :, thread],
            memory.Q[:, :, thread],
            memory.racing[:, thread],
            memory.out[:, thread],
            memory.repeats_scores[:, thread],
            memory.work[:, thread],
            memory.pool[:, thread],
            memory.cursor[:, thread],
        )
        for i in range(ledger.n.shape[0]):  # prefix sums begin at 0
            ledger.S[i][0] = 0.0
            ledger.Q[i][0] = 0.0
        for place in range(thread, recommended.shape[0], memory.n.shape[1]):
            recommended[place] = run_of(game, ledger, near, first + place)
            for i in range(ledger.n.shape[0]):
                pulls[place, i] = ledger.n[i]

    return runs, BLOCK


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
        GpuRewardSource(
            means, noise.kind, noise.scales(arms), noise.shape, ZIGGURAT, 0.0, ZIGGURAT
        )
    )
    bends = policy.needs_bends()
    if window is not None and threads_near(arms, 3 + (WITH_BENDS if bends else SUMS_PER_ARM)):
        past = float(window)
        device = redrawing_kernel(type(policy), arms, bends, noise.kind)
        return _launcher(device, game, source, lambda runs: (past, runs))
    near, longest = threads_near(arms, SMALL) > 0, experiment.most_pulls(policy)
    device = storing_kernel(type(policy), arms) if near else far_kernel(type(policy))
    return _launcher(device, game, source, lambda runs: _ledgers(policy, arms, longest, runs))


def _need_card(needed: int, what: str, advice: str = ADVICE) -> None:
    """Raise a `ChunkError` unless the card has so many bytes."""
    need_memory(needed, what, advice, FreeMemory(_free_memory(), "on the GPU"))


def _launcher(device: tuple[Any, int], game: Any, source: Any, memory_for: Any) -> Player:
    """A player of a kernel and its block; `memory_for` runs is what it takes, and the threads."""
    kernel, block = device

    def play(first: int, recommended: Any, pulls: Any) -> None:
        what = f"a chunk of {len(recommended)} runs"
        _need_card(4 * (recommended.size + pulls.size), what, "give a smaller chunk")
        chosen = cuda.device_array(recommended.shape, np.int32)
        counts = cuda.device_array(pulls.shape, np.int32)
        memory, threads = memory_for(len(recommended))
        kernel[-(-threads // block), block](game, source, memory, first, chosen, counts)
        chosen.copy_to_host(recommended)
        counts.copy_to_host(pulls)

    return play


def _ledgers(policy: Policy, arms: int, longest: int, runs: int) -> tuple[Ledger, int]:
    """Ledgers for as many threads as the card has room for, and their number.

    The thread is the last index: threads that are at the same pull of the same arm, as those of
    policies with phases are, then read and write one line of memory together.
    """
    for_levels, for_slopes = past_lengths(policy, longest)
    each, free = ledger_bytes(policy, arms, longest), int(SHARE * _free_memory())
    what = f"one run over {arms} arms, each of which may be pulled {longest} times,"
    need_memory(each, what, ADVICE, FreeMemory(free, f"{SHARE:.0%} of what is free on the GPU"))
    threads = max(1, min(runs, free // each))

    def array(*shape: int, kind: Any = np.float64) -> Any:
        return cuda.device_array((*shape, threads), kind)

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
        repeats_scores=array(arms, kind=whole),
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
