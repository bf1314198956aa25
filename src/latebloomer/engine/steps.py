"""The moves of every run, written once and lowered for each target.

`observe` takes a reward in, `advance` says whose turn is next, `recommend` names the arm. The
names of `Policy`'s kernels stand for the policy's own: `steps_of` binds them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf
from typing import Any, NamedTuple

from latebloomer.core.kernel import Jit, kernel, lower, plain
from latebloomer.core.ledger import (
    ANY,
    BASE,
    CREW,
    DUE,
    HEAD,
    OVER,
    PHASE,
    PULLS,
    STALE,
    Ledger,
    Plan,
    keep_best,
    reset,
)
from latebloomer.policies.base import Policy

rate, weigh, review = Policy.rate, Policy.weigh, Policy.review  # bound to the policy's own
pick, worth, remember = Policy.pick, Policy.worth, Policy.remember  # by `steps_of`


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
    ledger.n[i] = n
    ledger.last[i] = reward
    ledger.cursor[PULLS] += 1
    remember(ledger, i, n, reward)
    rate(game.rule, ledger, i, game.horizon)


@kernel
def advance(game: Game, ledger: Ledger, pulled: int, run: int) -> int:
    """The arm of the next pull, or OVER; `pulled` is the last one's arm, or ANY at the start."""
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
        cursor[BASE] = cursor[DUE]
        cursor[STALE] = 1
        weigh(game.rule, ledger, game.horizon)
        if phase + 1 < phases and plan.keep[phase + 1] != ANY:
            keep_best(ledger, plan.keep[phase + 1])
    return OVER


@kernel
def next_in_sweep(game: Game, ledger: Ledger, upto: int) -> int:
    """The next racing arm that has not had its pull of the running sweep; OVER at `upto` pulls."""
    cursor = ledger.cursor
    while cursor[DUE] < upto:
        while cursor[HEAD] < cursor[CREW]:
            i = ledger.crew[cursor[HEAD]]
            if ledger.n[i] == cursor[DUE]:
                return i
            cursor[HEAD] += 1
        cursor[HEAD] = 0
        cursor[DUE] += 1
        review(game.rule, ledger, game.budget, game.horizon)
    return OVER


@kernel
def recommend(game: Game, ledger: Ledger) -> int:
    """The racing arm that is worth most; OVER before the first pull."""
    best, top = OVER, -inf
    for place in range(ledger.cursor[CREW]):
        i = ledger.crew[place]
        if ledger.n[i] > 0:
            value = worth(game.rule, ledger, i, game.budget, game.horizon)
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


@cache
def steps_of(
    policy: type[Policy], fn: Callable[..., Any], jit: Jit = plain, **also: Callable[..., Any]
) -> Any:
    """`fn` for the target of `jit`, playing by the rules of `policy`; `also` binds more names."""
    owner = f"{policy.__module__}.{policy.__qualname__}"
    return lower(fn, jit, owner=owner, **policy.kernels(), **also)


@cache
def plain_steps(policy: type[Policy]) -> tuple[Any, Any, Any, Any]:
    """`observe`, `advance`, `recommend` and `worth` in plain Python."""
    steps = (observe, advance, recommend, policy.worth)
    return tuple(steps_of(policy, fn) for fn in steps)
