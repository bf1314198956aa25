"""The moves of every run, written once and compiled for each target, and the memory they need.

`observe` enters a reward, `advance` returns the arm to pull next, `recommend` the arm to keep. If
a move names one of a policy's kernels, `moves_of` binds it to the policy's own. A session uses
lists, which plain Python indexes fastest; compiled code uses arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from latebloomer.core.estimators import PrefixSums
from latebloomer.core.kernel import Jit, kernel, lower, plain
from latebloomer.core.ledger import (
    ANY,
    CELLS,
    FAN,
    OVER,
    PHASE,
    PHASE_START,
    PULLS,
    RACERS,
    STALE,
    SWEEP_PLACE,
    SWEEPS,
    Ledger,
    Plan,
    keep_best,
    remember_levels,
    remember_nothing,
    reset,
)
from latebloomer.errors import require

POOL = 4  # cells of Ledger.pool


class Rules(Protocol):
    """What the moves need of a policy; `policies.base.Policy` is one."""

    remember: ClassVar[Callable[..., None]]

    def plan(self, arms: int, budget: int, horizon: int, min_pulls: int = 1) -> Plan: ...

    def settings(self, arms: int, budget: int, horizon: int) -> Any: ...


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


# The kernels that a policy may define; the moves call them by these names.
HOOKS = (
    "rating", "final_rating", "update_rating", "rate_jointly", "after_sweep", "pick", "remember",
)  # fmt: skip


def kernels_of(policy: Any) -> dict[str, Callable[..., Any]]:
    """Return a policy's kernels by the names by which the moves call them."""
    return {hook: getattr(policy, hook) for hook in HOOKS}


@cache
def moves_of(
    policy: Any, fn: Callable[..., Any], jit: Jit = plain, **also: Callable[..., Any]
) -> Any:
    """Return `fn` for the target of `jit`, by a policy's rules; `also` binds more names."""
    # A cache file refers to the type that `settings` returns, and cannot be read without it.
    made_by = policy.settings
    numbers = (
        f"{made_by.__module__}.{made_by.__qualname__} {made_by.__annotations__.get('return')}"
    )
    owner = f"{policy.__module__}.{policy.__qualname__} {numbers}"
    return lower(fn, jit, owner=owner, **kernels_of(policy), **also)


@cache
def plain_moves(policy: Any) -> tuple[Any, Any, Any, Any]:
    """Return `observe`, `advance`, `recommend` and `final_rating` in plain Python."""
    moves = (observe, advance, recommend, policy.final_rating)
    return tuple(moves_of(policy, fn) for fn in moves)


@cache
def plain_intake(policy: Any) -> tuple[Any, Any]:
    """Return `observe` without the rating, and `update_rating`, in plain Python."""
    unrated = lower(observe, plain, remember=policy.remember, update_rating=_leave_unrated)
    return unrated, moves_of(policy, policy.update_rating)


@kernel
def _leave_unrated(*_: Any) -> None:
    """Do nothing, in the place of `update_rating`."""


# --- what stays the same in a run ---


def key(seed: int) -> int:
    """Return the seed as kernels take it: the same 64 bits as a signed number.

    >>> key(7), key(2**64 - 1)
    (7, -1)
    """
    require(
        isinstance(seed, int | np.integer) and 0 <= seed < 2**64,
        "seed", seed, "an integer in [0, 2^64)", "it is the key of a counter-based generator",
    )  # fmt: skip
    return int(seed) - (2**64 if seed >= 2**63 else 0)


def game_arrays(
    policy: Rules, arms: int, budget: int, horizon: int, seed: int, min_pulls: int = 1
) -> Game:
    """Return what stays the same in a run, with arrays, as compiled code takes it."""
    game = _game(policy, arms, budget, horizon, seed, min_pulls)
    return game._replace(rule=type(game.rule)(*map(_whole, game.rule)))


def game_of(
    policy: Rules, arms: int, budget: int, horizon: int, seed: int, min_pulls: int = 1
) -> Game:
    """Return what stays the same in a run, with lists, which plain Python indexes fastest."""
    game = _game(policy, arms, budget, horizon, seed, min_pulls)
    rule = type(game.rule)(*map(_listed, game.rule))
    return game._replace(rule=rule, plan=Plan(*map(_listed, game.plan)))


def _game(policy: Rules, arms: int, budget: int, horizon: int, seed: int, min_pulls: int) -> Game:
    plan = policy.plan(arms, budget, horizon, min_pulls)
    return Game(policy.settings(arms, budget, horizon), plan, budget, horizon, seed)


def _whole(value: Any) -> Any:
    return value.array() if isinstance(value, PrefixSums) else value


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


# --- memory ---


def lists_for(arms: int, past: tuple[int, int] = (1, 1)) -> Ledger:
    """Return an empty ledger of lists; a row of `S` and of `Q` has `past` entries and can grow."""
    ledger = _ledger(arms, past, _listed_zeros)
    reset(ledger)
    return ledger


def _listed_zeros(shape: tuple[int, ...], kind: type) -> list[Any]:
    if len(shape) == 2:
        return [_listed_zeros(shape[1:], kind) for _ in range(shape[0])]
    return [0.0 if kind is np.float64 else 0] * shape[0]


def rows_in_use(policy: Rules, ledger: Ledger) -> tuple[Any, ...]:
    """Return the prefix sums that the policy's `remember` fills."""
    light = {remember_nothing: (), remember_levels: (ledger.S,)}
    return light.get(policy.remember, (ledger.S, ledger.Q))


def past_lengths(policy: Rules, longest: int) -> tuple[int, int]:
    """Return the entries of a row of `S` and of `Q` if arms are pulled up to `longest` times."""
    levels = policy.remember is not remember_nothing
    slopes = levels and policy.remember is not remember_levels
    return longest + 1 if levels else 1, longest + 1 if slopes else 1


def keeps_levels(policy: Rules) -> bool:
    """Return whether `remember` leaves in `S` the prefix sums that window means are made of."""
    ledger = arrays_for(policy, 1, 2)
    for n, reward in ((1, 1.0), (2, 2.0)):
        policy.remember(ledger, 0, n, reward)
    return bool(ledger.S[0].tolist() == [0.0, 1.0, 3.0])


def ledger_bytes(policy: Rules, arms: int, longest: int) -> int:
    """Return the bytes of the ledger of `arrays_for`: every entry has 8."""
    return 8 * (arms * (sum(past_lengths(policy, longest)) + 9) + FAN + POOL + CELLS)


def arrays_for(
    policy: Rules, arms: int, longest: int, zeros: Callable[..., Any] = np.zeros
) -> Ledger:
    """Return a ledger of arrays for arms with up to `longest` pulls; `reset` starts a run."""
    return _ledger(arms, past_lengths(policy, longest), zeros)


def _ledger(arms: int, past: tuple[int, int], zeros: Callable[..., Any]) -> Ledger:
    """Return a ledger whose parts `zeros` makes, given their shape and type."""
    return Ledger(
        n=zeros((arms,), np.int64),
        last=zeros((arms,), np.float64),
        rating=zeros((arms,), np.float64),
        memo=zeros((arms,), np.float64),
        S=zeros((arms, past[0]), np.float64),
        Q=zeros((arms, past[1]), np.float64),
        racing=zeros((arms,), np.int64),
        out=zeros((arms,), np.int64),
        repeats_scores=zeros((arms,), np.int64),
        work=zeros((2 * arms + FAN,), np.int64),
        pool=zeros((POOL,), np.float64),
        cursor=zeros((CELLS,), np.int64),
    )
