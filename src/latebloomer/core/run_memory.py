"""The memory of a run, as a policy declares it: lists for a session, arrays for compiled code.

A policy's `Memory` says how each arm's rewards are stored (a `Past`) and names the policy's own
cells: cells for each arm, in `Ledger.arm`, and cells for the run, in `Ledger.run`. Sessions, the
CPU and the GPU allocate memory by it, and a new plan copies cells by it. Cells are plain arrays
that kernels read by index, because separate types for each policy would need separate compilation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from latebloomer.core import history, running_sums
from latebloomer.core.ledger import CELLS, FAN, Ledger, reset
from latebloomer.errors import ContractError

Kernel = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Past:
    """A form in which an arm's rewards are stored: the kernel that stores one, and its readers.

    A row of `Ledger.S` has `S` fixed cells and `S_by_pull` cells per pull; the same holds for
    `Ledger.Q`. `readers` has the kernels that replace those of `history.py`, if rewards are not
    stored as prefix sums.
    """

    remember: Kernel
    S: int = 1
    Q: int = 1
    S_by_pull: int = 0
    Q_by_pull: int = 0
    readers: Mapping[Kernel, Kernel] = field(default_factory=lambda: MappingProxyType({}))


# Nothing is stored: the policy's ratings and cells contain what it needs.
NOTHING = Past(history.remember_nothing)
# The sum of all rewards; every ledger also has the latest reward.
TOTAL = Past(history.remember_total, readers={history.recent_mean: history.mean_of_all})
# The sums of the first 1, 2, ... rewards, for ratings that contain the first reward.
BEGINNINGS = Past(history.remember_beginnings, S_by_pull=1)
# Sums from which the mean of any window and any reward can be computed.
SUMS = Past(history.remember_sums, S=2, S_by_pull=2)
# The sums of SUMS, and sums from which the slope of any window can be computed.
SLOPES = Past(history.remember_slopes, S=2, Q=2, S_by_pull=2, Q_by_pull=2)
# The rewards themselves.
REWARDS = Past(
    history.remember_rewards, Q_by_pull=1, readers={history.reward_at: history.kept_reward}
)
# The rewards, and the running sums of the policy's window and of the previous window.
WINDOW = Past(
    running_sums.remember_window,
    S=running_sums.SUMS,
    Q_by_pull=1,
    readers={
        history.reward_at: history.kept_reward,
        history.recent_mean: running_sums.recent_mean_of_sums,
        history.projected_mean: running_sums.projected_mean_of_sums,
    },
)


@dataclass(frozen=True)
class Memory:
    """The memory of a policy during a run: a past, and cells by name.

    Cells are numbers that begin at 0. Kernels read them by index, for which a policy's file has
    constants, such as `EARLY, LATE = range(2)` for `arm=("early", "late")`. A new plan copies all
    cells together with the past. If the past cannot be copied, the rewards are entered again, and
    only the cells in `kept` are copied: cells that do not depend on rewards alone, such as an
    arm's turn.

    >>> Memory(SLOPES, arm=("gain",), run=("window", "trust")).run.index("trust")
    1
    """

    past: Past = SUMS
    arm: tuple[str, ...] = ()  # cells of each arm: `Ledger.arm`
    run: tuple[str, ...] = ()  # cells of the run: `Ledger.run`
    kept: tuple[str, ...] = ()  # cells in `arm` that are copied if rewards are entered again

    def __post_init__(self) -> None:
        for cells in (self.arm, self.run):
            if len(set(cells)) < len(cells):
                raise ContractError(f"{self} names a cell twice. Give each cell its own name.")
        unknown = [cell for cell in self.kept if cell not in self.arm]
        if unknown:
            raise ContractError(
                f"kept={self.kept} names {unknown[0]!r}, which is not a cell of an arm. "
                f"Name cells of arm={self.arm}."
            )

    def kept_places(self) -> list[int]:
        """Return the indices of the cells in `kept`."""
        return [self.arm.index(cell) for cell in self.kept]


def lists_for(policy: Any, arms: int, longest: int = 0) -> Ledger:
    """Return an empty ledger of lists for arms with up to `longest` pulls; rows can grow."""
    ledger = _ledger(policy.memory, arms, longest, _listed_zeros)
    reset(ledger)
    return ledger


def _listed_zeros(shape: tuple[int, ...], kind: Any) -> list[Any]:
    row = [kind(0).item()] * shape[-1]
    return row if len(shape) == 1 else [row.copy() for _ in range(shape[0])]


def arrays_for(
    policy: Any, arms: int, longest: int, zeros: Callable[..., Any] = np.zeros
) -> Ledger:
    """Return a ledger of arrays for arms with up to `longest` pulls; `begin` starts a run."""
    return _ledger(policy.memory, arms, longest, zeros)


def cells_of(memory: Memory) -> tuple[int, int]:
    """Return the numbers of allocated cells per arm and for the run, at least one of each."""
    return max(1, len(memory.arm)), max(1, len(memory.run))


def _ledger(memory: Memory, arms: int, longest: int, zeros: Callable[..., Any]) -> Ledger:
    """Return a ledger; `zeros` creates its parts from their shape and type."""
    (S, Q), (of_arm, of_run) = past_lengths(memory.past, longest), cells_of(memory)
    shapes = {
        "arm": (arms, of_arm),
        "S": (arms, S),
        "Q": (arms, Q),
        "work": (2 * arms + FAN,),
        "run": (of_run,),
        "cursor": (CELLS,),
    }
    floats = ("last", "rating", "arm", "S", "Q", "run")
    parts = (
        zeros(shapes.get(name, (arms,)), np.float64 if name in floats else np.int64)
        for name in Ledger._fields
    )
    return Ledger(*parts)


def ledger_bytes(policy: Any, arms: int, longest: int) -> int:
    """Return the size in bytes of a ledger of `arrays_for`: every entry has 8 bytes."""
    of_arm, of_run = cells_of(policy.memory)
    by_arm = sum(past_lengths(policy.memory.past, longest)) + of_arm + 8
    return 8 * (arms * by_arm + FAN + of_run + CELLS)


def growing_rows(policy: Any, ledger: Ledger) -> tuple[Any, ...]:
    """Return the rows that get entries at each pull, each as often as it gets entries."""
    past = policy.memory.past
    return (ledger.S,) * past.S_by_pull + (ledger.Q,) * past.Q_by_pull


def past_lengths(past: Past, longest: int) -> tuple[int, int]:
    """Return the lengths of rows of `S` and of `Q` for up to `longest` pulls per arm."""
    return past.S + past.S_by_pull * longest, past.Q + past.Q_by_pull * longest
