"""The moves of every run: enter a reward, find the arm to pull next, recommend one.

`observe` enters a reward, `advance` returns the arm to pull next, `recommend` the arm to keep.
They are kernel Python, written once and compiled for each target. The first functions of this file
are placeholders for a policy's own kernels, which `policy_moves.py` binds.
"""

from math import inf
from typing import Any

from latebloomer.core.history import forget
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import (
    ANY,
    OVER,
    PHASE,
    PHASE_START,
    PULLS,
    RACERS,
    STALE,
    SWEEP_PLACE,
    SWEEPS,
    Game,
    Ledger,
    reset,
)
from latebloomer.core.ranking import keep_best

# --- placeholders for kernels of the policy; `Policy` documents what they do ---


@kernel
def remember(ledger: Ledger, i: int, n: int, reward: float, window: float) -> None:
    """Store the n-th reward of arm `i`; bound to a `remember_*` of `history.py`."""
    raise NotImplementedError


@kernel
def rating(settings: Any, ledger: Ledger, i: int, horizon: int) -> float:
    """Return the rating of arm `i`."""
    raise NotImplementedError


@kernel
def update_rating(settings: Any, ledger: Ledger, i: int, horizon: int) -> None:
    """Update the rating of arm `i` from its rewards so far."""
    raise NotImplementedError


@kernel
def rate_jointly(settings: Any, ledger: Ledger, horizon: int) -> None:
    """Rate the racing arms together, at the end of a phase."""
    raise NotImplementedError


@kernel
def after_sweep(settings: Any, ledger: Ledger, budget: int, horizon: int) -> None:
    """Drop arms after a sweep."""
    raise NotImplementedError


@kernel
def pick(settings: Any, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
    """Return the arm to pull next in a phase of ANY arm."""
    raise NotImplementedError


@kernel
def final_rating(settings: Any, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
    """Return the rating of arm `i` for the recommendation."""
    raise NotImplementedError


# --- the time of ratings: after each pull, or only before a decision ---


@kernel
def rate_pulled(settings: Any, ledger: Ledger, i: int, horizon: int) -> None:
    """Rate the pulled arm; bound to `update_rating` or `rate_pulled_later`."""
    raise NotImplementedError


@kernel
def rate_before_decision(settings: Any, ledger: Ledger, horizon: int) -> None:
    """Rate arms not rated when pulled; bound to `rate_racing` or `rate_none`."""
    raise NotImplementedError


@kernel
def rate_pulled_later(settings: Any, ledger: Ledger, i: int, horizon: int) -> None:
    """Do nothing: the arm is rated before the next decision."""


@kernel
def rate_racing(settings: Any, ledger: Ledger, horizon: int) -> None:
    """Rate the racing arms that were pulled in this phase."""
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if ledger.n[i] > ledger.cursor[PHASE_START]:
            update_rating(settings, ledger, i, horizon)


@kernel
def rate_none(settings: Any, ledger: Ledger, horizon: int) -> None:
    """Do nothing: ratings are up to date."""


# --- moves ---


@kernel
def begin(ledger: Ledger) -> None:
    """Begin a new run in the same memory."""
    reset(ledger)
    forget(ledger)


@kernel
def observe(game: Game, ledger: Ledger, i: int, reward: float) -> None:
    """Enter a reward of arm `i`."""
    n = ledger.n[i] + 1
    ledger.last[i] = reward
    ledger.cursor[PULLS] += 1
    remember(ledger, i, n, reward, game.window)
    ledger.n[i] = n  # last, so that it is still in a register when the rating needs it
    rate_pulled(game.settings, ledger, i, game.horizon)


@kernel
def advance(game: Game, ledger: Ledger, pulled: int, run: int) -> int:
    """Return the arm to pull next, or OVER; `pulled` is the latest arm, or ANY at the start."""
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
            return pick(game.settings, ledger, pulled, game.horizon, game.seed, run)
        due = next_in_sweep(game, ledger, plan.upto[phase])
        if due != OVER:  # if the budget ends with a sweep or a phase, these are still completed
            return OVER if spent else due
        rate_before_decision(game.settings, ledger, game.horizon)
        cursor[PHASE] = phase + 1
        cursor[PHASE_START] = cursor[SWEEPS]
        cursor[STALE] = 1
        rate_jointly(game.settings, ledger, game.horizon)
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
        if began == 0:  # no arm was due, because all are ahead: jump to the sweep of the next one
            cursor[SWEEPS] = fewest_pulls(ledger, upto)
        after_sweep(game.settings, ledger, game.budget, game.horizon)
    return OVER


@kernel
def fewest_pulls(ledger: Ledger, upto: int) -> int:
    """Return the fewest pulls of any racing arm, at most `upto`."""
    fewest = upto
    for place in range(ledger.cursor[RACERS]):
        fewest = min(fewest, ledger.n[ledger.racing[place]])
    return fewest


@kernel
def recommend(game: Game, ledger: Ledger) -> int:
    """Return the racing arm with the best final rating; OVER before the first pull."""
    best, top = OVER, -inf
    rate_before_decision(game.settings, ledger, game.horizon)
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if ledger.n[i] > 0:
            value = final_rating(game.settings, ledger, i, game.budget, game.horizon)
            if best == OVER or value > top:
                best, top = i, value
    return best


@kernel
def replay(game: Game, ledger: Ledger, rewards: Any, run: int, path: Any) -> int:
    """Play a whole run on a table of rewards (arm, pull); write the pulled arms to `path`."""
    begin(ledger)
    i = advance(game, ledger, ANY, run)
    while i != OVER:
        path[ledger.cursor[PULLS]] = i
        observe(game, ledger, i, rewards[i][ledger.n[i]])
        i = advance(game, ledger, i, run)
    return recommend(game, ledger)
