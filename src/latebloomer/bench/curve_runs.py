"""Runs of policies on recorded curves: compiled, problem by problem, in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.bench.curve_sets import Curves
from latebloomer.core.kernel import cpu_jit, kernel
from latebloomer.core.ledger import ANY, OVER, Ledger, reset
from latebloomer.core.moves import (
    Game,
    advance,
    arrays_for,
    game_arrays,
    key,
    moves_of,
    observe,
    recommend,
)
from latebloomer.policies.base import Policy
from latebloomer.problems.curves import Floats
from latebloomer.simulation.progress_bar import Progress

Picks = npt.NDArray[np.int64]
Player: TypeAlias = Policy | Callable[[int, int, int], Policy]  # or the one for K, T and H


@kernel
def play_tables(game: Game, ledger: Ledger, tables: Any, picks: Any, spent: Any) -> None:
    """Play one run on each table of rewards (the first again where there is but one)."""
    for run in range(len(picks)):
        rewards = tables[run % len(tables)]
        reset(ledger)
        i = advance(game, ledger, ANY, run)
        while i != OVER:
            observe(game, ledger, i, rewards[i][ledger.n[i]])
            i = advance(game, ledger, i, run)
        picks[run] = recommend(game, ledger)
        for i in range(len(ledger.n)):
            spent[run] += ledger.n[i]


class Played(NamedTuple):
    """What one policy did on one problem at one budget."""

    picks: Picks  # (draws,)
    spent: Picks  # pulls
    left_out: int  # arms never looked at because the budget was too small for the policy


def play(
    policy: Policy, curves: Curves, tables: Floats, budget: int, draws: int, seed: int
) -> Played:
    """Every draw; where the budget is below the policy's least, on as many arms as it allows.

    Where it does not allow two, the pick is a random one.
    """
    arms = playable(policy, curves.arms, budget)
    if arms == 0:
        rng = np.random.default_rng([seed, curves.arms])
        nothing = np.zeros(draws, np.int64)
        return Played(rng.integers(curves.arms, size=draws), nothing, curves.arms)
    if arms < curves.arms:
        return _on_fewer(policy, curves, tables, budget, draws, seed, arms)
    return Played(*_run(policy, tables, budget, draws, seed), 0)


def playable(policy: Policy, arms: int, budget: int) -> int:
    """The largest number of arms, up to `arms`, that the policy can play with the budget; or 0."""
    while arms > 1 and policy.smallest_budget(arms)[0] > budget:
        arms -= 1
    return arms if arms > 1 else 0


def _on_fewer(
    policy: Policy, curves: Curves, tables: Floats, budget: int, draws: int, seed: int, arms: int
) -> Played:
    """A random subset for each draw: what the error message advises, 'drop arms'."""
    rng = np.random.default_rng([seed, curves.arms, arms])
    picks, spent = np.zeros(draws, np.int64), np.zeros(draws, np.int64)
    for draw in range(draws):
        subset = np.sort(rng.choice(curves.arms, arms, replace=False))
        table = tables[draw % len(tables)][None, subset]
        pick, pulls = _run(policy, table, budget, 1, seed + draw)
        picks[draw], spent[draw] = subset[pick[0]], pulls[0]
    return Played(picks, spent, curves.arms - arms)


def _run(
    policy: Policy, tables: Floats, budget: int, draws: int, seed: int
) -> tuple[Picks, Picks]:
    _, arms, horizon = tables.shape
    game = game_arrays(policy, arms, budget, horizon, key(seed))
    ledger = arrays_for(policy, arms, min(budget, horizon))
    picks, spent = np.zeros(draws, np.int64), np.zeros(draws, np.int64)
    moves_of(type(policy), play_tables, cpu_jit())(game, ledger, tables, picks, spent)
    return picks, spent


def shuffled(curves: Curves, draws: int, seed: int) -> tuple[Floats, Picks]:
    """Rewards with the arms of each draw in a random order, and which arm stands where.

    Ties go to the lowest index, and ASHA and Hyperband treat arms by it; the order in which a set
    happens to list its learners must not decide.
    """
    tables = curves.tables(draws, seed)
    rng = np.random.default_rng([seed, curves.arms, curves.length])
    order = rng.permuted(np.tile(np.arange(curves.arms), (draws, 1)), axis=1)
    return np.stack([tables[draw % len(tables)][order[draw]] for draw in range(draws)]), order


def play_all(
    problems: Sequence[Curves],
    policies: dict[str, Player],
    budgets: Sequence[float],
    draws: int,
    seed: int,
    threads: int,
    shown: bool = False,
) -> list[dict[tuple[str, float], Played]]:
    """For each problem, by (policy, budget in full trainings); policies meet the same luck."""

    def whole(curves: Curves) -> dict[tuple[str, float], Played]:
        tables, order = shuffled(curves, draws, seed)
        found = {}
        for label, player in policies.items():
            for share in budgets:
                budget = curves.pulls_of(share)
                size = (curves.arms, budget, curves.length)
                policy = player if isinstance(player, Policy) else player(*size)
                played = play(policy, curves, tables, budget, draws, seed)
                picks = order[np.arange(draws), played.picks]
                found[label, share] = played._replace(picks=picks)
        return found

    with (
        Progress(len(problems), "problems", shown=shown) as bar,
        ThreadPoolExecutor(threads) as pool,
    ):
        waiting = [pool.submit(whole, curves) for curves in problems]
        try:
            return [_counted(done.result(), bar) for done in waiting]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _counted(found: Any, bar: Progress) -> Any:
    bar.advance(1)
    return found
