"""The default policy against its predecessor: `python -m measurements.default_policy [ROW ...]`.

Rows: `settings` (the paper's A and B at T = H = 100 to 600), `public` (the five public sets, with
and without the score before training), `many` (16 to 128 arms), `min_pulls` (no arm dropped before
its second pull), `real` (lcdb10's own runs), `families` (random curves, 20 arms), `cuts` (the same
curves cut into 25 to 200 pulls) and `speed` (ns per pull). Without names all rows are measured;
`--draws 2` and `--runs 200` make it quick. LATEBLOOMER_DATA names the recorded curves.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from latebloomer import AdaptiveRejects, Foresight
from latebloomer.bench.costs import PULLS, Costs, by_set, lines_of
from latebloomer.bench.curve_runs import Player, play_all
from latebloomer.bench.curve_sets import lcdb10, read_sets, taskset, yahpo
from latebloomer.bench.curves import Curves
from latebloomer.bench.report import decimals, table
from latebloomer.problems import FAMILIES, problem, random_problem
from latebloomer.problems.curves import Floats
from latebloomer.simulation.players import compiled_player
from latebloomer.simulation.simulate import simulate
from measurements.simulator import cost, experiment_with

BUDGETS = (100, 150, 200, 300, 400, 600)  # of the paper's settings
TRAININGS = (1.0, 2.0, 4.0, 8.0)
MANY = (1.0, 2.0, 4.0, 8.0, 16.0)
SIZES = {"taskset": (16, 32, 64, 128), "yahpo": (16, 32, 64)}
CUTS = (25, 50, 100, 200)
HORIZONS = (100, 400, 1600)


def before(arms: int, budget: int, horizon: int) -> AdaptiveRejects:
    """Return the former default: Adaptive Rejects with power 1 up to one full training."""
    return AdaptiveRejects(power=1.0 if budget <= horizon else 1.5)


Players: TypeAlias = dict[str, Player]  # two of them
PLAYERS: Players = {"before": before, "foresight": Foresight()}
MIN_PULLS: Players = {"foresight": Foresight(), "auto": Foresight()}  # whose first drop is later


def played(
    problems: Iterable[Curves], budgets: tuple[float, ...], draws: int, players: Players = PLAYERS
) -> tuple[Costs, list[list[str]]]:
    """Return the costs of both, and rows of rank losses with the difference and its error."""
    known, (first, second) = list(problems), players
    costs = by_set(known, play_all(known, players, budgets, draws, 0, 2))
    counted = lines_of(costs, list(players), budgets, first, PULLS)
    top = counted[-1].group
    lines = {(line.policy, line.budget): line for line in counted if line.group == top}
    rows = []
    for c in (*(f"{c:g}" for c in budgets), "all"):
        old, new = lines[first, c], lines[second, c]
        more = f"{decimals(new.rank_loss_difference, 4)} ± {decimals(new.rank_loss_se, 4)}"
        rows.append([c, decimals(old.rank_loss, 4), decimals(new.rank_loss, 4), more])
    return costs, rows


def show(title: str, rows: list[list[str]], players: Players = PLAYERS) -> None:
    first, second = players
    print(
        f"\n{title}\n\n{table([['c', first, second, f'{second} - {first}'], *rows])}", flush=True
    )


def settings(draws: int, runs: int) -> None:
    for setting in ("paper-a", "paper-b"):
        rows = []
        for name in ("adaptive-rejects:power=1", "auto", "r-ucbe"):
            errors = [row["error"] for row in simulate(
                setting, name, list(BUDGETS), runs, progress=False).rows()]  # fmt: skip
            rows.append([name, *(decimals(e) for e in errors), decimals(float(np.mean(errors)))])
        print(f"\n{setting}, error, T = H\n\n{table([['', *map(str, BUDGETS), 'mean'], *rows])}")


def public(draws: int, runs: int, players: Players = PLAYERS) -> None:
    others = read_sets(["lcdb11-linear", "lcdb11-geometric", "srb-imdb"])[0]
    for first, what in ((0, "as recorded"), (1, "without the score before training")):
        problems = [*others, *taskset(first=first), *yahpo(first=first)]
        rows = played(problems, TRAININGS, draws, players)[1]
        show(f"five public sets, {what}: rank loss", rows, players)


def many(draws: int, runs: int, players: Players = PLAYERS) -> None:
    """Print means over the sets, numbers of arms and budgets that pay for a pull of each arm."""
    for first, what in ((0, "as recorded"), (1, "without the score before training")):
        groups = [
            make(arms, first)
            for name, make in (("taskset", taskset), ("yahpo", yahpo))
            for arms in SIZES[name]
        ]
        problems = [curves for group in groups for curves in group]
        costs, _ = played(problems, MANY, min(draws, 4), players)
        length = {curves.group: curves.length for curves in problems}
        means = []
        for place in range(len(players)):
            cells = [
                part[:, place, j, 0].mean()
                for group, part in costs.items()
                for j, c in enumerate(MANY)
                if c * length[group] >= int(group.rpartition("-")[2])
            ]
            means.append(float(np.mean(cells)))
        rows = [["all", *(decimals(m, 4) for m in means), decimals(means[1] - means[0], 4)]]
        show(f"16 to 128 arms, {what}: rank loss", rows, players)


def min_pulls(draws: int, runs: int) -> None:
    public(draws, runs, MIN_PULLS)
    many(draws, runs, MIN_PULLS)


def real(draws: int, runs: int) -> None:
    show("lcdb10, real runs: rank loss", played(lcdb10(), TRAININGS, draws)[1])


def families(draws: int, runs: int) -> None:
    problems = [
        Curves(f"{name}-{length}", str(seed), random_problem(name, 20, seed).means(length), 0.01)
        for name in FAMILIES
        for length in HORIZONS
        for seed in range(50)
    ]
    show("six families, 20 arms: rank loss", played(problems, (1.0, 4.0), min(draws, 3))[1])


def cut(curves: Curves, length: int) -> Curves:
    """Return the same curves in another number of pulls, interpolated; noise unchanged."""
    at = np.linspace(curves.length / length, curves.length, length)

    def stretched(part: Floats) -> Floats:
        return np.array([np.interp(at, np.arange(1, curves.length + 1), row) for row in part])

    sd = stretched(curves.sd) if np.ndim(curves.sd) == 2 else curves.sd
    return replace(curves, means=stretched(curves.means), sd=sd)


def cuts(draws: int, runs: int) -> None:
    def problems(length: int) -> Iterator[Curves]:
        for curves in read_sets(["lcdb11-linear", "taskset", "yahpo"], arms=[8, 32])[0]:
            yield cut(curves, length)

    for length in CUTS:
        rows = played(problems(length), TRAININGS, min(draws, 2))[1]
        show(f"curves of {length} pulls, 8, 26 and 32 arms: rank loss", rows)


def speed(draws: int, runs: int) -> None:
    for arms, setting in ((5, problem("paper-a")), (50, problem("random:F:K=50:seed=0"))):
        for name in ("adaptive-rejects", "foresight"):
            made = experiment_with(name, setting, 3200)
            seconds, pulls = cost(compiled_player(*made), arms, 200)
            print(f"{name}, K = {arms}, T = 3200: {1e9 * seconds / pulls:.1f} ns per pull")


ROWS: dict[str, Callable[[int, int], None]] = {
    "settings": settings, "public": public, "many": many, "min_pulls": min_pulls, "real": real,
    "families": families, "cuts": cuts, "speed": speed,
}  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--runs", type=int, default=2000)
    given = parser.parse_args()
    for row in given.rows or ROWS:
        ROWS[row](given.draws, given.runs)
