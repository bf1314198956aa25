"""CUDA kernels that run the policies' own code by numba-cuda, with one thread per run.

If a policy uses only windows of rewards, past rewards are drawn again instead of stored
(`core/redrawn_past.py`), and a run needs only the memory of its thread. For other policies, prefix
sums are stored in the card's memory, which limits the number of runs at the same time. All sums
are float64, because float32 would change which arms are pulled.
"""

from functools import cache
from typing import Any

import numpy as np

from latebloomer.core.kernel import lower
from latebloomer.core.ledger import CELLS, FAN, Ledger
from latebloomer.core.policy_moves import Bound, kernels_of
from latebloomer.core.random import ZIGGURAT
from latebloomer.core.redrawn_past import redrawn_cells
from latebloomer.core.run_memory import cells_of
from latebloomer.errors import extra
from latebloomer.policies.base import Policy
from latebloomer.simulation.gpu.redrawn_history import (
    DRAWN,
    GpuRewardSource,
    PastRewards,
    past_kernels,
)
from latebloomer.simulation.one_run import play, same_arm

config = extra("numba", "simulations on a GPU", "gpu").config
if not hasattr(np, "row_stack"):
    # numba-cuda up to 0.30 reads this name when it compiles, but NumPy 2.5 removed it: it was an
    # alias of vstack.
    np.row_stack = np.vstack
# A global of this module, because numba's simulator replaces it.
cuda = extra("numba.cuda", "simulations on a GPU", "gpu")

BLOCK = 128  # threads per block
# Maximum registers per thread in kernels that store. With more registers, fewer threads run at the
# same time to hide the latency of the card's memory (Foresight on an H200: 12 billion pulls/s
# without a limit, 19 with it). Kernels that draw the past again do not wait for memory, so a limit
# would only make them spill registers.
STORING_REGISTERS = 96
# The ziggurat's table is read at random places. As a compiled-in constant it would be in constant
# memory, where threads that read different places wait for each other: 2.6 billion pulls/s (R-UCBE
# on an H200). From the shared memory of each block, the speed is 13 billion.
TABLE = len(ZIGGURAT)
# The values that a thread reads and writes at every pull are in the shared memory of its block,
# with a column per thread, so that threads at different arms do not wait for each other.
NEAR_BYTES = 42 * 1024  # shared memory of a block, in addition to the table
# Number of cells of an arm in addition to its past: pulls, last reward and rating. Kernels that
# store the past also keep the arm's places and the policy's cells in shared memory.
FEW, SMALL = 3, 5


def threads_near(arms: int, cells: int) -> int:
    """Return the number of threads of a block whose cells fit into shared memory.

    >>> threads_near(5, 8), threads_near(8, 8), threads_near(32, 8)
    (128, 64, 0)
    """
    sizes = (BLOCK, BLOCK // 2, BLOCK // 4)
    return next((size for size in sizes if 8 * cells * arms * size <= NEAR_BYTES), 0)


def near_redrawing(arms: int, bends: bool) -> int:
    """Return the threads per block for kernels that draw the past again; 0 if none fit."""
    return threads_near(arms, FEW + redrawn_cells(bends))


def near_storing(policy: type[Policy], arms: int) -> int:
    """Return the threads per block for kernels that store the past; 0 if none fit."""
    return threads_near(arms, SMALL + cells_of(policy.memory)[0])


# --- CUDA kernels ---


@cache
def device_jit() -> Any:
    """Return the compiler of device functions; numba's simulator accepts no options."""
    options = {} if config.ENABLE_CUDASIM else {"forceinline": True}
    return cuda.jit(device=True, **options)


def storing_jit() -> Any:
    """Return the compiler of kernels that store; numba's simulator accepts no options."""
    return cuda.jit if config.ENABLE_CUDASIM else cuda.jit(max_registers=STORING_REGISTERS)


def _run_of(policy: type[Policy], bound: Bound, past: dict[Any, Any]) -> Any:
    """Return the device function `play` for a policy."""
    return lower(play, device_jit(), kernels_of(policy) | DRAWN | dict(bound) | past)


def _arm_of(bound: Bound) -> Any:
    """Return a device function that maps an arm of the policy to an arm of the problem."""
    return lower(dict(bound).get(same_arm, same_arm), device_jit())


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
def redrawing_kernel(
    policy: type[Policy], bound: Bound, arms: int, bends: bool, noise: int
) -> tuple[Any, int]:
    """Return a CUDA kernel that simulates runs without a stored past, and its threads per block.

    The kind of noise is compiled in. Otherwise the code of other kinds would need registers,
    although it never runs (R-UCBE on an H200: 20.3 billion pulls/s, 21.9 with the kind compiled
    in). Kernels that store become slower by it.
    """
    run_of = _run_of(policy, bound, past_kernels(policy, bends))
    load, arm_of = table_loader(), _arm_of(bound)
    work, sums = 2 * arms + FAN, redrawn_cells(bends)
    (of_arm, of_run), threads = cells_of(policy.memory), near_redrawing(arms, bends)

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
            cuda.local.array(2, np.float64), cuda.local.array(arms, np.int64), source.numbers,
        )  # fmt: skip
        place, column = cuda.grid(1), cuda.threadIdx.x
        if place >= recommended.shape[0]:
            return
        ledger = Ledger(
            n[:, column],
            last[:, column],
            rating[:, column],
            cuda.local.array((arms, of_arm), np.float64),
            S[:, :, column],
            PastRewards(near, game.seed, first + place),
            cuda.local.array(arms, np.int64),
            cuda.local.array(arms, np.int64),
            cuda.local.array(arms, np.int64),
            cuda.local.array(work, np.int64),
            cuda.local.array(of_run, np.float64),
            cuda.local.array(CELLS, np.int64),
        )
        recommended[place] = arm_of(near.order, run_of(game, ledger, near, first + place))
        for i in range(arms):
            pulls[place, arm_of(near.order, i)] = ledger.n[i]

    return runs, threads


@cache
def storing_kernel(policy: type[Policy], bound: Bound, arms: int, cells: int) -> tuple[Any, int]:
    """Return a CUDA kernel that stores prefix sums on the card, and its threads per block."""
    many_runs, load = _many_runs(policy, bound), table_loader()
    work, threads = 2 * arms + FAN, near_storing(policy, arms)
    of_arm, of_run = cells_of(policy.memory)

    @storing_jit()
    def runs(game, source, memory, first, recommended, pulls):  # type: ignore[no-untyped-def]
        table = cuda.shared.array(TABLE, np.float64)
        n = cuda.shared.array((arms, threads), np.int64)
        last = cuda.shared.array((arms, threads), np.float64)
        rating = cuda.shared.array((arms, threads), np.float64)
        arm = cuda.shared.array((arms, of_arm, threads), np.float64)
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
            arm[:, :, column],
            memory.S[:, :, thread],
            memory.Q[:, :, thread],
            racing[:, column],
            out[:, column],
            cuda.local.array(arms, np.int64),
            cuda.local.array(work, np.int64),
            cuda.local.array(of_run, np.float64),
            cuda.local.array(CELLS, np.int64),
        )
        order = cuda.local.array(cells, np.int64)
        many_runs(game, source, table, order, ledger, memory.n.shape[1], first, recommended, pulls)

    return runs, threads


@cache
def far_kernel(policy: type[Policy], bound: Bound, cells: int) -> tuple[Any, int]:
    """Return a CUDA kernel for many arms, with all data of a run in the card's memory."""
    many_runs, load = _many_runs(policy, bound), table_loader()

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
            memory.arm[:, :, thread],
            memory.S[:, :, thread],
            memory.Q[:, :, thread],
            memory.racing[:, thread],
            memory.out[:, thread],
            memory.repeats_scores[:, thread],
            memory.work[:, thread],
            memory.run[:, thread],
            memory.cursor[:, thread],
        )
        order = cuda.local.array(cells, np.int64)
        many_runs(game, source, table, order, ledger, memory.n.shape[1], first, recommended, pulls)

    return runs, BLOCK


def _many_runs(policy: type[Policy], bound: Bound) -> Any:
    """Return a device function that simulates every `threads`-th run in the same ledger."""
    run_of, arm_of = _run_of(policy, bound, {}), _arm_of(bound)

    @device_jit()
    def many_runs(  # type: ignore[no-untyped-def]
        game, source, table, order, ledger, threads, first, recommended, pulls
    ):
        near = GpuRewardSource(
            source.means,
            source.kind,
            source.scales,
            source.shape,
            table,
            0.0,
            table,
            order,
            source.numbers,
        )
        for i in range(ledger.n.shape[0]):  # sums begin at 0
            for cell in range(min(2, ledger.S.shape[1])):
                ledger.S[i][cell] = 0.0
            for cell in range(min(2, ledger.Q.shape[1])):
                ledger.Q[i][cell] = 0.0
        for place in range(cuda.grid(1), recommended.shape[0], threads):
            recommended[place] = arm_of(near.order, run_of(game, ledger, near, first + place))
            for i in range(ledger.n.shape[0]):
                pulls[place, arm_of(near.order, i)] = ledger.n[i]

    return many_runs
