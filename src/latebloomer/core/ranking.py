"""The worst arms, the best arm and the order of arms by the ratings in the ledger."""

from math import inf

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import FAN, OVER, PULLS, RACERS, Ledger

# --- phases: the arms that are kept ---


@kernel
def keep_best(ledger: Ledger, k: int) -> None:
    """Drop the worst-rated racing arms until `k` remain; `racing` stays in index order."""
    size = ledger.cursor[RACERS]
    if size <= k:
        return
    heapify_worst(ledger, size)
    for left in range(size, k, -1):
        ledger.out[ledger.work[0]] = ledger.cursor[PULLS]
        ledger.work[0] = ledger.work[left - 1]
        sift(ledger, 0, left - 1)
    close_ranks(ledger)


@kernel
def close_ranks(ledger: Ledger) -> None:
    """Remove dropped arms from `racing`."""
    racers = 0
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if ledger.out[i] == 0:
            ledger.racing[racers] = i
            racers += 1
    ledger.cursor[RACERS] = racers


@kernel
def sort_best_first(ledger: Ledger, size: int) -> None:
    """Fill `work` with the racing arms, the best-rated first."""
    heapify_worst(ledger, size)
    for left in range(size - 1, 0, -1):
        worst = ledger.work[0]
        ledger.work[0] = ledger.work[left]
        ledger.work[left] = worst
        sift(ledger, 0, left)


@kernel
def heapify_worst(ledger: Ledger, size: int) -> None:
    """Make `work` a heap of the racing arms with the worst on top."""
    for place in range(size):
        ledger.work[place] = ledger.racing[place]
    for root in range(size // 2 - 1, -1, -1):
        sift(ledger, root, size)


@kernel
def sift(ledger: Ledger, root: int, size: int) -> None:
    """Move the arm at `root` down to its place in the heap."""
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and worse(ledger, ledger.work[child + 1], ledger.work[child]):
            child += 1
        if worse(ledger, ledger.work[root], ledger.work[child]):
            return
        sinking = ledger.work[root]
        ledger.work[root] = ledger.work[child]
        ledger.work[child] = sinking
        root = child


@kernel
def worse(ledger: Ledger, i: int, j: int) -> bool:
    """Return whether arm `i` has a lower rating than `j`, or an equal one and a higher index."""
    return ledger.rating[i] < ledger.rating[j] or (ledger.rating[i] == ledger.rating[j] and i > j)


# --- tournament: the best-rated of all arms, kept up to date in O(log K) ---


@kernel
def leader(ledger: Ledger, changed: int, horizon: int) -> int:
    """Return the best-rated arm, or OVER; only `changed` has a new rating since the last call.

    Arms are compared in blocks of `FAN`, the winners again in blocks of `FAN`, and so on until one
    arm is left. Only the blocks that contain `changed` are compared again. `work` has the winners,
    level by level. An arm at the horizon has the rating minus infinity; if all arms are at the
    horizon, the result is OVER.
    """
    ratings, work, count = ledger.rating, ledger.work, len(ledger.n)
    if ledger.n[changed] >= horizon:
        ratings[changed] = -inf
    block = changed // FAN
    best = FAN * block
    top = ratings[best]
    for i in range(best + 1, min(best + FAN, count)):
        rating = ratings[i]  # read once, so that compiled code has no branch to predict
        if rating > top:
            best, top = i, rating
    level = 0  # index of the first winner of this level
    work[block] = best
    count = (count + FAN - 1) // FAN
    while count > 1:
        block = block // FAN
        first = level + FAN * block
        best = work[first]
        top = ratings[best]
        for cell in range(first + 1, min(first + FAN, level + count)):
            rating = ratings[work[cell]]
            if rating > top:
                best, top = work[cell], rating
        level += count
        count = (count + FAN - 1) // FAN
        work[level + block] = best
    return OVER if top == -inf else best


@kernel
def fresh_leader(ledger: Ledger, horizon: int) -> int:
    """Return the best-rated arm, or OVER; any rating may have changed."""
    for i in range(len(ledger.n)):
        if ledger.n[i] >= horizon:
            ledger.rating[i] = -inf
    best = 0
    for i in range(0, len(ledger.n), FAN):
        best = leader(ledger, i, horizon)
    return best


@kernel
def best_open(ledger: Ledger, changed: int, horizon: int) -> int:
    """Return the best-rated arm below the horizon, or OVER; `changed` has a new rating, or ANY."""
    if changed < 0:  # ANY; faster than a comparison with ANY
        return fresh_leader(ledger, horizon)
    return leader(ledger, changed, horizon)
