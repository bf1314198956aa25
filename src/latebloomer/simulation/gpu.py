"""Runs on the GPU: the policies' own text through numba-cuda, one thread for each run.

If a policy looks at windows only, past rewards are drawn again instead of stored
(`gpu_rewards.py`) and a run lives in its thread's own memory. Other policies store prefix sums
in the card's memory, which bounds the runs in flight. All sums are float64: in float32 they change
pulls.
"""

from functools import cache
from typing import Any

import numpy as np

from latebloomer._util.memory import FreeMemory, need_memory
from latebloomer.core.kernel import lower
from latebloomer.core.ledger import CELLS, FAN, Ledger
from latebloomer.core.moves import POOL, arrays_for, game_of, kernels_of, ledger_bytes
from latebloomer.core.random import ZIGGURAT
from latebloomer.errors import NoDevice, SettingError, extra
from latebloomer.policies.base import Policy
from latebloomer.simulation import gpu_rewards
from latebloomer.simulation.cpu import Player, play
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.gpu_rewards import GpuRewardSource, PastRewards

config = extra("numba", "simulations on a GPU", "gpu").config
if not hasattr(np, "row_stack"):
    # numba-cuda up to 0.30 reads this name when it compiles; NumPy 2.5 removed it. It was vstack.
    np.row_stack = np.vstack
# A global of this module, because numba's simulator replaces it by its own.
cuda = extra("numba.cuda", "simulations on a GPU", "gpu")

BLOCK = 128  # threads of a block
SHARE = 0.6  # of the card's free memory that stored prefix sums may take
ADVICE = "set a smaller budget or horizon, give fewer arms, or use target='cpu'"
# Registers of a thread in kernels that store: with more of them, fewer runs are in flight to hide
# what the card's memory takes (Foresight on an H200: 12 billion pulls/s without a limit, 19 with
# it). Kernels that draw the past again wait for no memory; a limit only makes them spill.
STORING_REGISTERS = 96
# The ziggurat's table is read at random. As a compiled-in constant it lies in constant memory,
# where threads that read different places wait for each other: 2.6 billion pulls/s (R-UCBE on an
# H200). From each block's shared memory it is 13 billion.
TABLE = len(ZIGGURAT)
# What a thread reads and writes at every pull is in its block's shared memory, a column for each
# thread, so that threads at different arms do not wait for each other.
NEAR_BYTES = 42 * 1024  # of shared memory that a block may take in addition to the table
SUMS = {False: 5, True: 8}  # cells of an arm's running sums, without and with second differences
SMALL = 6  # cells of an arm in addition to its past: pulls, last reward, rating, memo, places


def threads_near(arms: int, cells: int) -> int:
    """Return how many threads of a block fit into near memory, with that many cells per arm.

    >>> threads_near(5, 8), threads_near(8, 8), threads_near(32, 8)
    (128, 64, 0)
    """
    sizes = (BLOCK, BLOCK // 2, BLOCK // 4)
    return next((size for size in sizes if 8 * cells * arms * size <= NEAR_BYTES), 0)


# --- CUDA kernels ---


@cache
def device_jit() -> Any:
    """Return the compiler of what kernels call; the simulator takes no options."""
    options = {} if config.ENABLE_CUDASIM else {"forceinline": True}
    return cuda.jit(device=True, **options)


def storing_jit() -> Any:
    """Return the compiler of kernels that store; the simulator takes no options."""
    return cuda.jit if config.ENABLE_CUDASIM else cuda.jit(max_registers=STORING_REGISTERS)


def _run_of(policy: type[Policy], **past: Any) -> Any:
    """Return `play` for a policy, as kernels call it."""
    return lower(play, device_jit(), **kernels_of(policy) | gpu_rewards.DRAWN | past)


@cache
def table_loader() -> Any:
    """Return a device function that copies the ziggurat's table to a block's shared memory."""

    @device_jit()
    def load(table, ziggurat):  # type: ignore[no-untyped-def]
        for cell in range(cuda.threadIdx.x, TABLE, cuda.blockDim.x):
            table[cell] = ziggurat[cell]
        cuda.syncthreads()

    return load


@cache
def redrawing_kernel(policy: type[Policy], arms: int, bends: bool, noise: int) -> tuple[Any, int]:
    """Return a CUDA kernel that simulates runs without a stored past, and its block's threads.

    The kind of noise is compiled in: what other kinds would do takes registers, though it never
    runs (R-UCBE on an H200: 20.3 billion pulls/s, 21.9 with it). Kernels that store lose by it.
    """
    run_of, load = _run_of(policy, **gpu_rewards.past_kernels(policy, bends)), table_loader()
    work, sums = 2 * arms + FAN, SUMS[bends]
    threads = threads_near(arms, 3 + sums)

    @cuda.jit
    def runs(game, source, window, first, recommended, pulls):  # type: ignore[no-untyped-def]
        table = cuda.shared.array(TABLE, np.float64)
        n = cuda.shared.array((arms, threads), np.int64)
        last = cuda.shared.array((arms, threads), np.float64)
        rating = cuda.shared.array((arms, threads), np.float64)
        S = cuda.shared.array((arms, sums, threads), np.float64)
        load(table, source.ziggurat)
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
    """Return a CUDA kernel that stores prefix sums in the card's memory, and its threads."""
    many_runs, load = _many_runs(policy), table_loader()
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
        load(table, source.ziggurat)
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
        many_runs(game, source, table, ledger, memory.n.shape[1], first, recommended, pulls)

    return runs, threads


@cache
def far_kernel(policy: type[Policy]) -> tuple[Any, int]:
    """Return the same if there are too many arms, so that all of a run is in the card's memory."""
    many_runs, load = _many_runs(policy), table_loader()

    @storing_jit()
    def runs(game, source, memory, first, recommended, pulls):  # type: ignore[no-untyped-def]
        table = cuda.shared.array(TABLE, np.float64)
        load(table, source.ziggurat)
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
        many_runs(game, source, table, ledger, memory.n.shape[1], first, recommended, pulls)

    return runs, BLOCK


def _many_runs(policy: type[Policy]) -> Any:
    """Return a device function that simulates every `threads`-th run in one ledger."""
    run_of = _run_of(policy)

    @device_jit()
    def many_runs(  # type: ignore[no-untyped-def]
        game, source, table, ledger, threads, first, recommended, pulls
    ):
        near = GpuRewardSource(
            source.means, source.kind, source.scales, source.shape, table, 0.0, table
        )
        for i in range(ledger.n.shape[0]):  # prefix sums begin at 0
            ledger.S[i][0] = 0.0
            ledger.Q[i][0] = 0.0
        for place in range(cuda.grid(1), recommended.shape[0], threads):
            recommended[place] = run_of(game, ledger, near, first + place)
            for i in range(ledger.n.shape[0]):
                pulls[place, i] = ledger.n[i]

    return many_runs


# --- players ---


def gpu_player(experiment: Experiment, policy: Policy) -> Player:
    """Return a function that simulates runs on the GPU."""
    if not cuda.is_available():
        cure = "Use target='cpu', or see what `python -m numba -s` prints under CUDA."
        raise NoDevice(f"target='gpu' found no GPU or no CUDA driver on this machine. {cure}")
    if experiment.breakpoints is not None:
        raise SettingError("method='sums' needs target='cpu'. Use method='pulls' on a GPU.")
    arms, numbers = experiment.arms, (experiment.budget, experiment.horizon, experiment.seed)
    what = f"the table of the means of {arms} arms up to pull {experiment.means.longest}"
    _need_card(experiment.means.size, what)
    game = to_device(game_of(policy, arms, *numbers, compiled=True))
    noise, means = experiment.noise, experiment.means.table
    given = (means, noise.kind, noise.scales(arms), noise.shape, ZIGGURAT, 0.0, ZIGGURAT)
    source = to_device(GpuRewardSource(*given))
    running = policy.running_window()
    if running is not None:
        window, bends = float(running[0]), running[1]
        if threads_near(arms, 3 + SUMS[bends]):
            device = redrawing_kernel(type(policy), arms, bends, noise.kind)
            return _launcher(device, game, source, lambda runs: (window, runs))
    near, longest = threads_near(arms, SMALL) > 0, experiment.most_pulls(policy)
    device = storing_kernel(type(policy), arms) if near else far_kernel(type(policy))
    return _launcher(device, game, source, lambda runs: _ledgers(policy, arms, longest, runs))


def _need_card(needed: int, what: str, advice: str = ADVICE) -> None:
    """Raise a `ChunkError` unless the card has that many bytes."""
    need_memory(needed, what, advice, FreeMemory(_free_memory(), "on the GPU"))


def _launcher(device: tuple[Any, int], game: Any, source: Any, memory_for: Any) -> Player:
    """Return a player of a kernel; `memory_for` returns its memory and threads for some runs."""
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
    """Return ledgers for as many threads as fit on the card, and their number.

    The thread is the last index: threads that are at the same pull of the same arm, as those of
    policies with phases are, then read and write one line of memory together.
    """
    each, free = ledger_bytes(policy, arms, longest), int(SHARE * _free_memory())
    what = f"one run over {arms} arms, each of which may be pulled {longest} times,"
    need_memory(each, what, ADVICE, FreeMemory(free, f"{SHARE:.0%} of what is free on the GPU"))
    threads = max(1, min(runs, free // each))

    def array(shape: tuple[int, ...], kind: Any) -> Any:
        return cuda.device_array((*shape, threads), kind)

    return arrays_for(policy, arms, longest, array), threads


def _free_memory() -> int:
    free = cuda.current_context().get_memory_info()[0]
    return int(min(free, 2**40))  # the simulator returns infinity


def to_device(value: Any) -> Any:
    """Return the same named tuple with its arrays on the card."""
    if isinstance(value, np.ndarray):
        return cuda.to_device(np.ascontiguousarray(value))
    if isinstance(value, tuple):
        return type(value)(*map(to_device, value))
    return value
