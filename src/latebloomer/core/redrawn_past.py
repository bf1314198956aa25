"""Kernels for pasts that are drawn again when they are needed, instead of being stored.

On a GPU this is cheaper if a policy uses only simple parts of the past: all rewards, or one window
of the latest rewards. Then `S` has a few numbers per arm, and the kernels of `history.py` that a
policy calls are bound to the kernels here. They call `reward_at` for a reward of the past, and
`rewards_that_leave` for the two rewards that leave a window. A GPU draws these from the counters
of its random numbers; `check_policy` looks them up in a table.
"""

from typing import Any

from latebloomer.core import running_sums
from latebloomer.core.formulas import window_length
from latebloomer.core.history import (
    newest_bend,
    projected_mean,
    recent_mean,
    remember_nothing,
    reward_at,
    window_sum,
)
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Floats, Ledger
from latebloomer.core.moves import remember
from latebloomer.core.run_memory import NOTHING, SUMS, TOTAL, WINDOW, lists_for
from latebloomer.core.running_sums import (
    count_alone,
    projected_mean_of_sums,
    recent_mean_of_sums,
    update_sums,
)
from latebloomer.core.statistics import second_difference

# Indices in an arm's row of `S`, after those of `running_sums`:
BEND, NEWEST, BEFORE = range(running_sums.SUMS, running_sums.SUMS + 3)  # for the latest bend
ALL, LATEST = 0, 2  # or two sums, each followed by its rounding error
LEVEL_CELLS = 4
LOSS = 2.0**-50  # a sum below this share of a leaving reward has lost digits, even so


def is_redrawn(policy: Any) -> bool:
    """Return whether a GPU draws the past of a policy's arms again instead of storing it.

    It does if the policy uses only the total of the past, the latest reward, or its window.
    """
    past = policy.memory.past
    return past in (NOTHING, TOTAL) or (
        past in (SUMS, WINDOW) and policy.rated_share() is not None
    )


def redrawn_cells(bends: bool) -> int:
    """Return the number of cells in an arm's row of `S`, which `bends` increases."""
    return running_sums.SUMS + (3 if bends else 0)


def redrawn_kernels(policy: Any, bends: bool, draw: Any) -> dict[Any, Any]:
    """Return the replacements of the kernels for an arm's past, if `draw` draws it again."""
    past, drawn = policy.memory.past, {reward_at: draw, window_sum: drawn_sum}
    if past is NOTHING:
        return drawn | {remember: remember_nothing}
    if past is not WINDOW:
        return drawn | {remember: keep_levels, recent_mean: kept_mean}
    return drawn | {
        remember: keep_slopes_and_bend if bends else keep_slopes,
        newest_bend: kept_bend,
        recent_mean: recent_mean_of_sums,
        projected_mean: projected_mean_of_sums,
    }


def ledger_with_table(policy: Any, arms: int, rewards: Any) -> Ledger:
    """Return an empty ledger of lists; past rewards are looked up in the table `rewards`."""
    cells = redrawn_cells(policy.reads_bends())
    return lists_for(policy, arms)._replace(S=[[0.0] * cells for _ in range(arms)], Q=rewards)


# --- rewards of the past ---


@kernel
def reward_in_table(ledger: Ledger, i: int, n: int) -> float:
    """Return the n-th reward of arm `i` if `Q` is the table of all rewards."""
    return ledger.Q[i][n - 1]


@kernel
def rewards_that_leave(ledger: Ledger, i: int, n: int, h: int, before: int) -> tuple[float, float]:
    """Return the rewards n - h and n - h - before of arm `i`, at its n-th pull."""
    return reward_at(ledger, i, n - h), reward_at(ledger, i, n - h - before)


@kernel
def drawn_sum(ledger: Ledger, i: int, before: int, n: int) -> float:
    """Return the sum of rewards `before` + 1 to n."""
    total = 0.0
    for k in range(before + 1, n + 1):
        total += reward_at(ledger, i, k)
    return total


# --- all rewards, and those of a window ---


@kernel
def add_to(row: Floats, place: int, x: float) -> None:
    """Add to the sum at `place`; the next place has the sum of rounding errors."""
    before = row[place]
    total = before + x
    part = total - before
    row[place] = total
    row[place + 1] += (before - (total - part)) + (x - part)


@kernel
def keep_levels(ledger: Ledger, i: int, n: int, reward: float, window: float) -> None:
    """Store the sum of all rewards and the sum of the window."""
    row = ledger.S[i]
    if n == 1:
        for cell in range(LEVEL_CELLS):
            row[cell] = 0.0
    add_to(row, ALL, reward)
    h = window_length(window, n)
    if h > 0:
        add_to(row, LATEST, reward)
        if h == window_length(window, n - 1):
            old = reward_at(ledger, i, n - h)
            add_to(row, LATEST, -old)
            if abs(row[LATEST] + row[LATEST + 1]) < LOSS * abs(old):
                row[LATEST] = row[LATEST + 1] = 0.0
                for k in range(n - h + 1, n + 1):
                    add_to(row, LATEST, reward_at(ledger, i, k))


@kernel
def kept_mean(ledger: Ledger, i: int, h: int) -> float:
    """Return `recent_mean` for the spans of `keep_levels`: one reward, all, or the window."""
    if h == 1:
        return ledger.last[i]
    place = ALL if h == ledger.n[i] else LATEST
    return (ledger.S[i][place] + ledger.S[i][place + 1]) / h


# --- the running sums of a window and of the previous window ---


@kernel
def keep_slopes(ledger: Ledger, i: int, n: int, reward: float, window: float) -> None:
    """Store the sums of the window and of the previous window."""
    h, before = window_length(window, n), window_length(window, n - 1)
    if h == 0:
        count_alone(ledger, i, n, reward)
    else:
        middle, edge = rewards_that_leave(ledger, i, n, h, before)
        update_sums(ledger, i, n, reward, h, before, middle, edge)


@kernel
def keep_slopes_and_bend(ledger: Ledger, i: int, n: int, reward: float, window: float) -> None:
    """Store the sums of `keep_slopes` and the latest second difference."""
    row = ledger.S[i]
    if n > 2:
        row[BEND] = second_difference(reward, row[NEWEST], row[BEFORE])
    if n > 1:
        row[BEFORE] = row[NEWEST]
    row[NEWEST] = reward
    keep_slopes(ledger, i, n, reward, window)


@kernel
def kept_bend(ledger: Ledger, i: int) -> float:
    """Return the latest second difference, like `newest_bend`."""
    return ledger.S[i][BEND]
