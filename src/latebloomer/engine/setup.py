"""The memory and the constants that a run needs, for each target."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from latebloomer.core.ledger import (
    CELLS,
    CREW,
    FAN,
    Ledger,
    Plan,
    remember_levels,
    remember_nothing,
)
from latebloomer.engine.steps import Game
from latebloomer.policies.base import Policy

POOL = 4  # cells of Ledger.pool


def game_arrays(policy: Policy, arms: int, budget: int, horizon: int, seed: int) -> Game:
    """What stays the same in a run, with arrays, as compiled code takes it."""
    plan = policy.plan(arms, budget, horizon)
    return Game(policy.settings(arms, budget, horizon), plan, budget, horizon, seed)


def game_of(policy: Policy, arms: int, budget: int, horizon: int, seed: int) -> Game:
    """What stays the same in a run, with lists, which plain Python indexes fastest."""
    game = game_arrays(policy, arms, budget, horizon, seed)
    rule = type(game.rule)(*map(_listed, game.rule))
    return game._replace(rule=rule, plan=Plan(*map(_listed, game.plan)))


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def lists_for(arms: int) -> Ledger:
    """An empty ledger whose rows grow with the pulls."""
    cursor = [0] * CELLS
    cursor[CREW] = arms
    return Ledger(
        n=[0] * arms,
        last=[0.0] * arms,
        score=[inf] * arms,
        memo=[0.0] * arms,
        S=[[0.0] for _ in range(arms)],
        Q=[[0.0] for _ in range(arms)],
        crew=list(range(arms)),
        out=[0] * arms,
        work=[0] * (2 * arms + FAN),
        pool=[0.0] * POOL,
        cursor=cursor,
    )


def rows_in_use(policy: Policy, ledger: Ledger) -> tuple[Any, ...]:
    """The prefix sums that the policy's `remember` fills."""
    light = {remember_nothing: (), remember_levels: (ledger.S,)}
    return light.get(policy.remember, (ledger.S, ledger.Q))


def arrays_for(policy: Policy, arms: int, longest: int) -> Ledger:
    """A ledger of arrays for arms that are pulled up to `longest` times; `reset` begins a run."""
    levels = policy.remember is not remember_nothing
    slopes = levels and policy.remember is not remember_levels
    return Ledger(
        n=np.zeros(arms, np.int64),
        last=np.zeros(arms),
        score=np.zeros(arms),
        memo=np.zeros(arms),
        S=np.zeros((arms, longest + 1 if levels else 1)),
        Q=np.zeros((arms, longest + 1 if slopes else 1)),
        crew=np.zeros(arms, np.int64),
        out=np.zeros(arms, np.int64),
        work=np.zeros(2 * arms + FAN, np.int64),
        pool=np.zeros(POOL),
        cursor=np.zeros(CELLS, np.int64),
    )
