"""All arms' histories, and the moves of every run: which arms still race, and which arm is next.

A plan is a list of phases, "keep the best k arms and train each to n pulls"; `ANY` opens the rest
of the budget to whichever arm the policy picks. `observe` enters a reward, `advance` returns the
arm to pull next, `recommend` the arm to keep. Everything here is kernel Python, written once and
compiled for each target (`moves_of` in `moves.py`): a session holds the ledger as lists, compiled
code as arrays.
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

FAN = 16  # arms per match of the tournament: few levels, and one scan for up to 16 arms


class Plan(NamedTuple):
    """Phase j: the best `keep[j]` arms are brought to `upto[j]` pulls each."""

    keep: Ints
    upto: Ints


class Ledger(NamedTuple):
    """Row i of `S` and `Q`, and entry i of each list, belong to arm i."""

    n: Ints  # pulls
    last: Floats  # the latest reward
    rating: Floats  # what the policy ranks the arm by, made at its latest pull
    memo: Floats  # one number per arm for the policy's own use
    S: Floats  # prefix sums of rewards: S[i][m] = X_1 + ... + X_m
    Q: Floats  # and of pull number times reward: Q[i][m] = 1 X_1 + ... + m X_m (see `remember_*`)
    racing: Ints  # the racing arms in index order, the first `cursor[RACERS]` entries
    out: Ints  # the number of rewards seen when an arm was dropped; 0 while it races
    repeats_scores: Ints  # 1 for an arm that repeats rewards between steps: its noise is not read
    work: Ints  # scratch: 2 K + FAN cells, for a heap, a tournament or a ranking
    pool: Floats  # four numbers for the policy's own use
    cursor: Ints


@kernel
def reset(ledger: Ledger) -> None:
    """Begin a new run in the same memory."""
    for i in range(len(ledger.n)):
        ledger.n[i] = 0
        ledger.last[i] = 0.0
        ledger.rating[i] = inf
        ledger.memo[i] = 0.0
        ledger.racing[i] = i
        ledger.out[i] = 0
        ledger.repeats_scores[i] = 0
    for j in range(len(ledger.pool)):
        ledger.pool[j] = 0.0
    for j in range(len(ledger.work)):  # a tournament looks at winners that are not known yet
        ledger.work[j] = 0
    for j in range(CELLS):
        ledger.cursor[j] = 0
    ledger.cursor[RACERS] = len(ledger.n)


# --- memory: what a reward leaves behind (a policy picks one as its `remember`) ---


@kernel
def remember_nothing(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Keep nothing: the policy keeps what it needs in its ratings."""


@kernel
def remember_levels(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Keep what window means need."""
    ledger.S[i][n] = ledger.S[i][n - 1] + reward


@kernel
def remember_slopes(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Keep what window means and projections need."""
    ledger.S[i][n] = ledger.S[i][n - 1] + reward
    ledger.Q[i][n] = ledger.Q[i][n - 1] + n * reward


@kernel
def remember_rises(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Keep S, and Q of what rewards are above the first one, which is in `Q[i][0]`.

    Differences of that Q keep their digits however far from 0 the rewards are.
    """
    ledger.S[i][n] = ledger.S[i][n - 1] + reward
    if n == 1:
        ledger.Q[i][0] = reward
        ledger.Q[i][1] = 0.0
    else:
        ledger.Q[i][n] = ledger.Q[i][n - 1] + n * (reward - ledger.Q[i][0])


@kernel
def remember_rewards(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Keep the rewards themselves, in the place of Q."""
    ledger.Q[i][n] = reward


# --- phases: which arms stay ---


@kernel
def keep_best(ledger: Ledger, k: int) -> None:
    """Drop the worst-rated racing arms until `k` are left, in index order."""
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
    """Take the arms that are out from `racing`."""
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
    """Let the arm at `root` sink to its place in the heap."""
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
    """Return whether arm `i` is rated lower than `j`, or equal with the higher index."""
    return ledger.rating[i] < ledger.rating[j] or (ledger.rating[i] == ledger.rating[j] and i > j)


# --- tournament: the best-rated of all arms, kept up to date in O(log K) ---


@kernel
def leader(ledger: Ledger, changed: int, horizon: int) -> int:
    """Return the best-rated arm, or OVER; only `changed` has a new rating since the last call.

    Arms are compared in blocks of `FAN`, winners in blocks of `FAN` again, until one is left;
    only the blocks above `changed` are compared again. Level by level the winners are in `work`.
    An arm at the horizon has retired: its rating is minus infinity, and if all have retired, the
    result is OVER.
    """
    ratings, work, count = ledger.rating, ledger.work, len(ledger.n)
    if ledger.n[changed] >= horizon:
        ratings[changed] = -inf
    block = changed // FAN
    best = FAN * block
    top = ratings[best]
    for i in range(best + 1, min(best + FAN, count)):
        rating = ratings[i]  # read once, so that compiled code has no branch to guess
        if rating > top:
            best, top = i, rating
    level = 0  # where the winners of this level begin
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
    if changed < 0:  # ANY; a sign tells the compiler more
        return fresh_leader(ledger, horizon)
    return leader(ledger, changed, horizon)


# --- moves ---


@kernel
def _unbound(*_: Any) -> Any:
    """Stand for a policy's kernel until `moves_of` replaces it."""
    raise NotImplementedError


update_rating = rate_jointly = after_sweep = _unbound
pick = final_rating = remember = _unbound


class Game(NamedTuple):
    """What stays the same in a run: the policy's numbers, its plan and the size of the problem."""

    rule: Any
    plan: Plan
    budget: int
    horizon: int
    seed: int


@kernel
def observe(game: Game, ledger: Ledger, i: int, reward: float) -> None:
    """Enter a reward of arm `i`."""
    n = ledger.n[i] + 1
    ledger.last[i] = reward
    ledger.cursor[PULLS] += 1
    remember(ledger, i, n, reward)
    ledger.n[i] = n  # last, so that compiled code still has it in a register for the rating
    update_rating(game.rule, ledger, i, game.horizon)


@kernel
def advance(game: Game, ledger: Ledger, pulled: int, run: int) -> int:
    """Return the arm of the next pull, or OVER; `pulled` is the last arm, or ANY at the start."""
    cursor, plan = ledger.cursor, game.plan
    spent = cursor[PULLS] >= game.budget
    phases = len(plan.keep)
    while cursor[PHASE] < phases:
        phase = cursor[PHASE]
        if plan.keep[phase] == ANY:
            if spent:
                return OVER
            if cursor[STALE] == 1:
                cursor[STALE] = 0
                pulled = ANY
            return pick(game.rule, ledger, pulled, game.horizon, game.seed, run)
        due = next_in_sweep(game, ledger, plan.upto[phase])
        if due != OVER:  # a budget that ends with a sweep or a phase still ends it
            return OVER if spent else due
        cursor[PHASE] = phase + 1
        cursor[PHASE_START] = cursor[SWEEPS]
        cursor[STALE] = 1
        rate_jointly(game.rule, ledger, game.horizon)
        if phase + 1 < phases and plan.keep[phase + 1] != ANY:
            keep_best(ledger, plan.keep[phase + 1])
    return OVER


@kernel
def next_in_sweep(game: Game, ledger: Ledger, upto: int) -> int:
    """Return the next racing arm without a pull in the current sweep; OVER at `upto` pulls."""
    cursor = ledger.cursor
    while cursor[SWEEPS] < upto:
        began = cursor[SWEEP_PLACE]
        while cursor[SWEEP_PLACE] < cursor[RACERS]:
            i = ledger.racing[cursor[SWEEP_PLACE]]
            if ledger.n[i] == cursor[SWEEPS]:
                return i
            cursor[SWEEP_PLACE] += 1
        cursor[SWEEP_PLACE] = 0
        cursor[SWEEPS] += 1
        if began == 0:  # no arm was due, all are ahead: go to where the next one is in one step
            cursor[SWEEPS] = fewest_pulls(ledger, upto)
        after_sweep(game.rule, ledger, game.budget, game.horizon)
    return OVER


@kernel
def fewest_pulls(ledger: Ledger, upto: int) -> int:
    """Return the pulls of the racing arm that has had the fewest, at most `upto`."""
    fewest = upto
    for place in range(ledger.cursor[RACERS]):
        fewest = min(fewest, ledger.n[ledger.racing[place]])
    return fewest


@kernel
def recommend(game: Game, ledger: Ledger) -> int:
    """Return the racing arm with the best final rating; OVER before the first pull."""
    best, top = OVER, -inf
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if ledger.n[i] > 0:
            value = final_rating(game.rule, ledger, i, game.budget, game.horizon)
            if best == OVER or value > top:
                best, top = i, value
    return best


@kernel
def replay(game: Game, ledger: Ledger, rewards: Any, run: int, path: Any) -> int:
    """Play a whole run on a table of rewards (arm, pull); `path` receives the arms."""
    reset(ledger)
    i = advance(game, ledger, ANY, run)
    while i != OVER:
        path[ledger.cursor[PULLS]] = i
        observe(game, ledger, i, rewards[i][ledger.n[i]])
        i = advance(game, ledger, i, run)
    return recommend(game, ledger)
