"""Runs of policies on recorded curves with budgets in pulls: compiled, in threads."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from latebloomer.bench.costs import Cost, cost
from latebloomer.bench.curves import Curves, Ints
from latebloomer.core.kernel import cpu_jit, kernel
from latebloomer.core.ledger import PULLS, Game, Ledger
from latebloomer.core.moves import replay
from latebloomer.core.policy_moves import game_of, key, moves_of
from latebloomer.core.run_memory import arrays_for
from latebloomer.policies.base import Policy
from latebloomer.problems.curves import Floats
from latebloomer.racing.request import usual_min_pulls

# A policy, or a function that returns the policy for K, T and H.
Player: TypeAlias = Policy | Callable[[int, int, int], Policy]


class Played(NamedTuple):
    """The results of one policy on one problem at one budget, for each draw."""

    picks: Ints
    trained: Ints  # pulls of the pick
    spent: Ints  # pulls of all arms
    left_out: int = 0  # number of arms left out because the budget was below the policy's minimum


@kernel
def play_tables(
    game: Game, ledger: Ledger, tables: Any, picks: Any, trained: Any, spent: Any, path: Any
) -> None:
    """Run the policy once on each table of rewards; a single table is used for all runs."""
    for run in range(len(picks)):
        picks[run] = replay(game, ledger, tables[run % len(tables)], run, path)
        trained[run] = ledger.n[picks[run]]
        spent[run] = ledger.cursor[PULLS]


def play(
    policy: Policy, tables: Floats, budget: int, draws: int, seed: int, min_pulls: int = 1
) -> Played:
    """Run a policy on rewards (draws or 1, arms, pulls); no arm is dropped before `min_pulls`.

    If the budget is below the policy's minimum, each draw has a random subset with as many arms as
    the budget allows, as the error message advises. If it does not allow two arms, the pick is
    random.
    """
    arms, whole = playable(policy, tables.shape[1], budget), tables.shape[1]
    if arms == whole:
        return _run(policy, tables, budget, draws, seed, min_pulls)
    if arms == 0:
        picks = np.random.default_rng([seed, whole]).integers(whole, size=draws)
        nothing = np.zeros(draws, np.int64)
        return Played(picks, nothing, nothing, whole)
    rng = np.random.default_rng([seed, whole, arms])
    results = np.zeros((3, draws), np.int64)
    for draw in range(draws):
        subset = np.sort(rng.choice(whole, arms, replace=False))
        table = tables[draw % len(tables)][None, subset]
        alone = _run(policy, table, budget, 1, seed + draw)
        results[:, draw] = subset[alone.picks[0]], alone.trained[0], alone.spent[0]
    picks, trained, spent = results
    return Played(picks, trained, spent, whole - arms)


def playable(policy: Policy, arms: int, budget: int) -> int:
    """Return the largest number of arms, up to `arms`, that the budget allows the policy."""
    while arms > 1 and policy.smallest_budget(arms)[0] > budget:
        arms -= 1
    return arms if arms > 1 else 0


def _run(
    policy: Policy, tables: Floats, budget: int, draws: int, seed: int, min_pulls: int = 1
) -> Played:
    _, arms, horizon = tables.shape
    game = game_of(policy, arms, budget, horizon, key(seed), min_pulls, compiled=True)
    ledger = arrays_for(policy, arms, min(budget, horizon))
    picks, trained, spent, path = (np.zeros(n, np.int64) for n in (draws, draws, draws, budget))
    run_all = moves_of(type(policy), play_tables, cpu_jit())
    run_all(game, ledger, tables, picks, trained, spent, path)
    return Played(picks, trained, spent)


def shuffled(curves: Curves, draws: int, seed: int) -> tuple[Floats, Ints]:
    """Return rewards with the arms of each draw in a random order, and that order.

    The lowest index wins ties, and ASHA and Hyperband depend on indices. So the order of learners
    in a set must not matter.
    """
    tables = curves.tables(draws, seed)
    rng = np.random.default_rng([seed, curves.arms, curves.length])
    order = rng.permuted(np.tile(np.arange(curves.arms), (draws, 1)), axis=1)
    return np.stack([tables[draw % len(tables)][order[draw]] for draw in range(draws)]), order


def play_problem(
    curves: Curves, policies: Mapping[str, Player], budgets: Sequence[float], draws: int, seed: int
) -> Floats:
    """Return the mean costs (policy, budget, measure) of a problem; budgets in full trainings.

    All policies get the same random rewards. The policy called "auto" has the same `min_pulls` as
    in a race.
    """
    tables, order = shuffled(curves, draws, seed)
    runs, every = curves.runs_shown(draws, seed), np.arange(draws)
    ends = np.empty((draws, curves.arms))  # ends of the drawn curves, in the order of the set
    ends[every[:, None], order] = tables[:, :, -curves.last :].mean(axis=2)
    costs = np.empty((len(policies), len(budgets), len(Cost._fields)))
    for row, (label, player) in enumerate(policies.items()):
        for column, trainings in enumerate(budgets):
            budget = curves.pulls_of(trainings)
            size = (curves.arms, budget, curves.length)
            policy = player if isinstance(player, Policy) else player(*size)
            min_pulls = usual_min_pulls(label, curves.arms, budget)
            played = play(policy, tables, budget, draws, seed, min_pulls)
            picks, left_out = order[every, played.picks], played.left_out / curves.arms
            draw_by_draw = [
                cost(
                    curves, runs[k], ends[k], picks[k], played.trained[k], spent / budget, left_out
                )
                for k, spent in enumerate(played.spent)
            ]
            costs[row, column] = np.mean(draw_by_draw, axis=0)
    return costs


def play_all(
    problems: Sequence[Curves],
    policies: Mapping[str, Player],
    budgets: Sequence[float],
    draws: int,
    seed: int,
    threads: int,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Floats]:
    """Return the result of `play_problem` for each problem."""

    def play_one(curves: Curves) -> Floats:
        played = play_problem(curves, policies, budgets, draws, seed)
        advance(1)
        return played

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(play_one, problems))  # an error cancels waiting problems
