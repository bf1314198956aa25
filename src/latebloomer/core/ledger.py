"""The data of a run: its plan, its constants, and the ledger of all arms.

A plan is a list of phases, "keep the best k arms and train each to n pulls"; in a phase with
`ANY`, the policy picks the arm for each remaining pull. The ledger has lists in a session and
arrays in compiled code. `history.py` reads and writes the data of rewards, and `moves.py` all
other data.
"""

from math import inf
from typing import Any, NamedTuple, TypeAlias

from latebloomer.core.kernel import kernel

Floats: TypeAlias = Any  # a float64 array when compiled, a list of floats in a session
Ints: TypeAlias = Any  # an int64 array when compiled, a list of ints in a session

ANY = -1  # a phase of the plan in which every arm competes for every pull
OVER = -1  # no arm is due: the session is over

# The cells of `Ledger.cursor`:
# PULLS        rewards so far, of all arms
# PHASE        the current phase of the plan
# RACERS       number of racing arms: the first entries of `Ledger.racing`
# PHASE_START  pulls that every racing arm had when the phase began
# SWEEPS       complete sweeps over the racing arms: each has had that many pulls
# SWEEP_PLACE  the entry of `Ledger.racing` that the current sweep has reached
# STALE        1 if ratings of other arms than the pulled one have changed
PULLS, PHASE, RACERS, PHASE_START, SWEEPS, SWEEP_PLACE, STALE = range(7)
CELLS = 7

RUNS = 2**48  # limit of run numbers
FAN = 16  # arms per match of the tournament: few levels, and a single scan for up to 16 arms


class Plan(NamedTuple):
    """The phases: in phase j, the best `keep[j]` arms are trained to `upto[j]` pulls each."""

    keep: Ints
    upto: Ints


class Game(NamedTuple):
    """The constants of a run: the policy's numbers, its plan and the size of the problem."""

    settings: Any
    plan: Plan
    budget: int
    horizon: int
    seed: int
    window: float = 0.0  # window of the running sums; 0 without them


class Ledger(NamedTuple):
    """The data of all arms: row i of `arm`, `S` and `Q`, and entry i of each list, are arm i's."""

    n: Ints  # pulls
    last: Floats  # the latest reward
    rating: Floats  # rating of the arm, computed at its latest pull
    arm: Floats  # the policy's cells for each arm, as its `Memory` declares
    S: Floats  # data of the rewards, by the `Past` of the policy's `Memory`: only
    Q: Floats  # `history.py`, `running_sums.py` and `redrawn_past.py` read and write these two
    racing: Ints  # the racing arms in index order, the first `cursor[RACERS]` entries
    out: Ints  # total number of rewards when the arm was dropped; 0 while it races
    # 1 for an arm that repeats rewards between steps: it has no noise estimate.
    repeats_scores: Ints
    work: Ints  # 2 K + FAN scratch cells, for a heap, a tournament or a ranking
    run: Floats  # the policy's cells of the run
    cursor: Ints


@kernel
def reset(ledger: Ledger) -> None:
    """Begin a new run in the same memory; `history.forget` does it for the rewards."""
    for i in range(len(ledger.n)):
        ledger.n[i] = 0
        ledger.last[i] = 0.0
        ledger.rating[i] = inf
        ledger.racing[i] = i
        ledger.out[i] = 0
        ledger.repeats_scores[i] = 0
        for cell in range(len(ledger.arm[i])):
            ledger.arm[i][cell] = 0.0
    for cell in range(len(ledger.run)):
        ledger.run[cell] = 0.0
    for j in range(len(ledger.work)):  # a tournament reads winners that are not set yet
        ledger.work[j] = 0
    for j in range(CELLS):
        ledger.cursor[j] = 0
    ledger.cursor[RACERS] = len(ledger.n)
