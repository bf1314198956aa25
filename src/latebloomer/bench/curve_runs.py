"""Runs of policies on recorded curves, and what their picks cost.

Runs are compiled, problem by problem, in threads. Standard errors are over problems (each the mean
over its draws and budgets), of the difference to a baseline on the same problems and draws. Many
problems of a set share learners, tasks or data, so these standard errors are too small; they show
random variation of draws and problems, not what another kind of learner would change.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.bench.curve_sets import Curves
from latebloomer.core import moves
from latebloomer.core.kernel import cpu_jit, kernel
from latebloomer.core.ledger import PULLS, Game, Ledger, replay
from latebloomer.policies.base import Policy
from latebloomer.problems.curves import Floats
from latebloomer.simulation.local_runs import progress_bar

Ints = npt.NDArray[np.int64]
Costs: TypeAlias = dict[str, Floats]  # by set: (policies, problems, budgets, columns of `cost`)
Player: TypeAlias = Policy | Callable[[int, int, int], Policy]  # or the policy for K, T and H

ALL = "all"


class Played(NamedTuple):
    """What one policy did on one problem at one budget."""

    picks: Ints  # (draws,)
    spent: Any  # pulls, or time in pulls of average cost
    left_out: int  # arms left out because the budget was below the policy's minimum


Found: TypeAlias = Mapping[tuple[str, float], Played]  # by policy and budget in full trainings


@kernel
def play_tables(
    game: Game, ledger: Ledger, tables: Any, picks: Any, spent: Any, path: Any
) -> None:
    """Run the policy once on each table of rewards; a single table serves all runs."""
    for run in range(len(picks)):
        picks[run] = replay(game, ledger, tables[run % len(tables)], run, path)
        spent[run] = ledger.cursor[PULLS]


def play(policy: Policy, tables: Floats, budget: int, draws: int, seed: int) -> Played:
    """Run a policy on rewards (draws or 1, arms, pulls).

    If the budget is below the policy's minimum, each draw has a random subset of as many arms as
    it allows, as the error message advises; if it does not allow two, the pick is random.
    """
    arms, whole = playable(policy, tables.shape[1], budget), tables.shape[1]
    if arms == whole:
        return Played(*_run(policy, tables, budget, draws, seed), 0)
    if arms == 0:
        picks = np.random.default_rng([seed, whole]).integers(whole, size=draws)
        return Played(picks, np.zeros(draws, np.int64), whole)
    rng = np.random.default_rng([seed, whole, arms])
    picks, spent = np.zeros(draws, np.int64), np.zeros(draws, np.int64)
    for draw in range(draws):
        subset = np.sort(rng.choice(whole, arms, replace=False))
        table = tables[draw % len(tables)][None, subset]
        (pick,), spent[draw : draw + 1] = _run(policy, table, budget, 1, seed + draw)
        picks[draw] = subset[pick]
    return Played(picks, spent, whole - arms)


def playable(policy: Policy, arms: int, budget: int) -> int:
    """Return the largest number of arms, up to `arms`, that the budget allows the policy, or 0."""
    while arms > 1 and policy.smallest_budget(arms)[0] > budget:
        arms -= 1
    return arms if arms > 1 else 0


def _run(policy: Policy, tables: Floats, budget: int, draws: int, seed: int) -> tuple[Ints, Ints]:
    _, arms, horizon = tables.shape
    game = moves.game_of(policy, arms, budget, horizon, moves.key(seed), compiled=True)
    ledger = moves.arrays_for(policy, arms, min(budget, horizon))
    picks, spent, path = (np.zeros(size, np.int64) for size in (draws, draws, budget))
    moves.moves_of(type(policy), play_tables, cpu_jit())(game, ledger, tables, picks, spent, path)
    return picks, spent


def shuffled(curves: Curves, draws: int, seed: int) -> tuple[Floats, Ints]:
    """Return rewards with the arms of each draw in a random order, and that order.

    Ties go to the lowest index, and ASHA and Hyperband treat arms by it; the order in which a set
    lists its learners must not decide.
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
) -> list[Found]:
    """Return, for each problem, what was played by (policy, budget in full trainings).

    All policies see the same random rewards.
    """

    def play_one(curves: Curves) -> Found:
        tables, order = shuffled(curves, draws, seed)
        found = {}
        for label, player in policies.items():
            for trainings in budgets:
                budget = curves.pulls_of(trainings)
                size = (curves.arms, budget, curves.length)
                policy = player if isinstance(player, Policy) else player(*size)
                played = play(policy, tables, budget, draws, seed)
                picks = order[np.arange(draws), played.picks]
                found[label, trainings] = played._replace(picks=picks)
        done(1)
        return found

    bar = progress_bar(len(problems), "problems", shown)
    with bar as done, ThreadPoolExecutor(threads) as pool:
        return list(pool.map(play_one, problems))  # an error cancels those that wait


# --- what picks cost ---


class Line(NamedTuple):
    """One policy on one set (or all) at one budget (or all)."""

    group: str
    budget: str
    policy: str
    problems: int
    rank_loss: float  # share of the arms that are truly better than the pick
    rank_loss_less: float  # the baseline's minus this policy's: positive is better
    rank_loss_se: float  # standard error of that difference; nan if there is one problem
    regret: float  # as a share of the range between the problem's worst and best arm
    regret_less: float
    regret_se: float
    error: float  # share of picks that are not the best
    error_less: float
    error_se: float
    spent: float  # share of the budget
    left_out: float  # share of arms left out because the budget was below the policy's minimum


def cost(curves: Curves, played: Played, budget: float) -> Floats:
    """Return rank loss, regret, error, share of budget spent, share of arms left out: means."""
    truth = curves.truth
    got, best, spread = truth[played.picks], truth.max(), float(np.ptp(truth))
    rank = (truth[None, :] > got[:, None]).mean()
    regret = (best - got).mean() / spread if spread > 0 else 0.0
    spent = played.spent.mean() / curves.pulls_of(budget)
    return np.array([rank, regret, (got < best).mean(), spent, played.left_out / curves.arms])


def costs_by_set(problems: Sequence[Curves], played: Sequence[Found]) -> Costs:
    """Return the costs of all that was played, set by set."""
    rows: dict[str, list[Floats]] = {}
    for curves, found in zip(problems, played, strict=True):
        policies, budgets = (dict.fromkeys(part) for part in zip(*found, strict=True))
        cells = [[cost(curves, found[p, c], c) for c in budgets] for p in policies]
        rows.setdefault(curves.group, []).append(np.array(cells))
    return {group: np.stack(part, axis=1) for group, part in rows.items()}


def lines_of(
    costs: Costs, policies: Sequence[str], budgets: Sequence[float], baseline: str
) -> list[Line]:
    """Return lines per set and budget, per set, per budget and in total; sets count equally."""
    by_group = {group: [part] for group, part in costs.items()}
    if len(costs) > 1:
        by_group[ALL] = [*costs.values()]
    places = {ALL: slice(None)}  # of each budget, and of all
    if len(budgets) > 1:
        places |= {f"{c:g}": slice(place, place + 1) for place, c in enumerate(budgets)}
    lines, base = [], policies.index(baseline)
    for (group, parts), (name, at) in product(by_group.items(), places.items()):
        problems = sum(part.shape[1] for part in parts)
        for row, policy in enumerate(policies):
            lines.append(Line(group, name, policy, problems, *_measures(parts, row, base, at)))
    return lines


def _measures(parts: list[Floats], row: int, base: int, at: slice) -> list[float]:
    """Return the columns of `Line` from `rank_loss` on, by problem the mean over budgets `at`."""
    own = [part[row, :, at].mean(axis=1) for part in parts]
    less = [(part[base] - part[row])[:, at].mean(axis=1) for part in parts]
    means, gains = (np.mean([part.mean(axis=0) for part in some], axis=0) for some in (own, less))
    errors = np.sqrt(sum(_variance(part) for part in less)) / len(parts)
    return [*np.stack([means, gains, errors], axis=1)[:3].ravel().tolist(), *means[3:].tolist()]


def _variance(part: Floats) -> Floats:
    """Return the variance of the mean over problems."""
    if len(part) < 2:
        return np.full(part.shape[1], np.nan)
    return part.var(axis=0, ddof=1) / len(part)
