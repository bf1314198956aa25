"""Players on the GPU: they check a policy, copy its data to the card and launch its kernel."""

from functools import partial
from typing import Any

import numpy as np

from latebloomer._util.memory import FreeMemory, need_memory
from latebloomer.core.ledger import Ledger
from latebloomer.core.policy_moves import game_of, when_rated
from latebloomer.core.redrawn_past import is_redrawn
from latebloomer.core.run_memory import arrays_for, ledger_bytes
from latebloomer.errors import NoDevice, SettingError
from latebloomer.policies.base import Policy
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.gpu.gpu_kernels import (
    cuda,
    far_kernel,
    near_redrawing,
    near_storing,
    redrawing_kernel,
    storing_kernel,
)
from latebloomer.simulation.gpu.redrawn_history import draw_on_gpu, gpu_source_of
from latebloomer.simulation.one_run import order_of
from latebloomer.simulation.players import Player

SHARE = 0.6  # share of the card's free memory for stored prefix sums
ADVICE = "set a smaller budget or horizon, give fewer arms, or use target='cpu'"


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
    host = game_of(policy, arms, *numbers, compiled=True)
    order, draw = order_of(type(policy)), draw_on_gpu(experiment.noise)
    game, bound = to_device(host), (*when_rated(policy, host.plan), *order, *draw)
    source = gpu_source_of(experiment.noise, experiment.means.table)
    kind, source = source.kind, to_device(source)
    bends = policy.reads_bends()
    if is_redrawn(policy) and near_redrawing(arms, bends):
        device = redrawing_kernel(type(policy), bound, arms, bends, kind)
        return _launcher(device, game, source, lambda runs: (host.window, runs))
    near, longest = near_storing(type(policy), arms) > 0, experiment.most_pulls(policy)
    cells = arms if policy.treats_arms_in_order else 1  # cells for the order of arms
    make = partial(storing_kernel, arms=arms) if near else far_kernel
    device = make(type(policy), bound, cells=cells)
    return _launcher(device, game, source, lambda runs: _ledgers(policy, arms, longest, runs))


def _need_card(needed: int, what: str, advice: str = ADVICE) -> None:
    """Raise a `ChunkError` unless the card has `needed` free bytes."""
    need_memory(needed, what, advice, FreeMemory(_free_memory(), "on the GPU"))


def _launcher(device: tuple[Any, int], game: Any, source: Any, memory_for: Any) -> Player:
    """Return a player for a kernel; `memory_for` returns memory and threads for some runs."""
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

    The thread is the last index. So threads that are at the same pull of the same arm, as in
    policies with phases, read and write adjacent memory together.
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
    """Return a copy of a named tuple with its arrays on the card."""
    if isinstance(value, np.ndarray):
        return cuda.to_device(np.ascontiguousarray(value))
    if isinstance(value, tuple):
        return type(value)(*map(to_device, value))
    return value
