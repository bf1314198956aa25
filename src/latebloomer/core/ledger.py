"""The data of a run: its plan, what stays the same, and the ledger of all arms.

A plan is a list of phases, "keep the best k arms and train each to n pulls"; `ANY` opens the rest
of the budget to whichever arm the policy picks. A session holds the ledger as lists, compiled code
as arrays. `history.py` reads and writes what an arm's rewards leave behind, `moves.py` the rest.
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

RUNS = 2**48  # run numbers are below this
FAN = 16  # arms per match of the tournament: few levels, and one scan for up to 16 arms


class Plan(NamedTuple):
    """Phase j: the best `keep[j]` arms are brought to `upto[j]` pulls each."""

    keep: Ints
    upto: Ints


class Game(NamedTuple):
    """What stays the same in a run: the policy's numbers, its plan and the size of the problem."""

    settings: Any
    plan: Plan
    budget: int
    horizon: int
    seed: int
    window: float = 0.0  # of running sums, where the past has some


class Ledger(NamedTuple):
    """Row i of `arm`, `S` and `Q`, and entry i of each list, belong to arm i."""

    n: Ints  # pulls
    last: Floats  # the latest reward
    rating: Floats  # what the policy ranks the arm by, made at its latest pull
    arm: Floats  # the policy's cells of each arm, by its `Memory`
    S: Floats  # what is kept of rewards, by the `Past` of the policy's `Memory`: only
    Q: Floats  # `history.py`, `running_sums.py` and `redrawn_past.py` read and write these two
    racing: Ints  # the racing arms in index order, the first `cursor[RACERS]` entries
    out: Ints  # the number of rewards seen when an arm was dropped; 0 while it races
    repeats_scores: Ints  # 1 for an arm that repeats rewards between steps: its noise is not read
    work: Ints  # scratch: 2 K + FAN cells, for a heap, a tournament or a ranking
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
    for j in range(len(ledger.work)):  # a tournament looks at winners that are not known yet
        ledger.work[j] = 0
    for j in range(CELLS):
        ledger.cursor[j] = 0
    ledger.cursor[RACERS] = len(ledger.n)
