"""Policies on sets of curves, start to end: read, play, count, write."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from latebloomer.bench.bench_report import BenchReport, what_is_drawn
from latebloomer.bench.compared_policies import COMPARED
from latebloomer.bench.curve_files import read_folder
from latebloomer.bench.curve_runs import Player, play_all
from latebloomer.bench.curve_sets import GROUP_SIZE, Curves, Skipped, names_of, read_sets
from latebloomer.bench.losses import Losses
from latebloomer.errors import need_whole, require
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import default_or_named, is_auto, label_of
from latebloomer.simulation.local_runs import cores

BUDGETS = (1.0, 2.0, 4.0, 8.0)  # in full trainings


def bench(
    where: Sequence[str] | Path = ("public",),
    policies: Sequence[str | Policy] = COMPARED,
    budgets: Sequence[float] = BUDGETS,
    draws: int = 10,
    *,
    baseline: str = "r-sr",
    seed: int = 0,
    sigma: float | None = None,
    arms: Sequence[int] = (GROUP_SIZE,),
    threads: int | None = None,
    shown: bool = False,
) -> BenchReport:
    """Play policies on sets of curves by name, or on a folder of one's own.

    Each problem has K arms of L recorded pulls; a budget of c full trainings is T = c L pulls, and
    arms are compared at the horizon H = L. `sigma` adds Gaussian noise to a folder's curves;
    `arms` are those of each problem of TaskSet and YAHPO.

    Parameters
    ----------
    where : Sequence[str] | Path
        Names of sets, or a folder of curves.
    policies : Sequence[str | Policy]
        Policies or their names.
    budgets : Sequence[float]
        In full trainings.
    draws : int
        Of the noise and the order of arms, for each problem.
    baseline : str
        The policy that others are compared with.
    seed : int
        Of the draws.
    sigma : float | None
        Standard deviation of noise that is added; none if None.
    arms : Sequence[int]
        Of each problem of TaskSet and YAHPO.
    threads : int | None
        At most so many, all cores if None.
    shown : bool
        Whether progress is shown.

    Returns
    -------
    BenchReport
        Rank loss, regret and error; `print` it.

    Raises
    ------
    UnknownName
        No such set or policy.
    CurveError
        Nothing could be read.
    """
    players = _policies(policies, baseline)
    _check(budgets, draws)
    start = time.perf_counter()
    problems, skipped = _read(where, sigma, arms)
    played = play_all(problems, players, budgets, draws, seed, threads or cores(), shown)
    losses = Losses.of(problems, played, [*players], budgets, baseline)
    seconds = time.perf_counter() - start
    notes = [f"{curves.name}: {curves.note}" for curves in problems if curves.note]
    drawn = what_is_drawn(problems, draws)
    return BenchReport(losses.lines(), skipped, baseline, draws, seconds, drawn, notes)


def _read(
    where: Sequence[str] | Path, sigma: float | None, arms: Sequence[int]
) -> tuple[list[Curves], list[Skipped]]:
    if isinstance(where, Path):
        return read_folder(where, sigma)
    for size in arms:
        require(need_whole("arms", size) >= 2, "arms", size, "at least 2",
                "with one arm there is nothing to choose")  # fmt: skip
    return read_sets(names_of(where), arms)


def _policies(given: Sequence[str | Policy], baseline: str) -> dict[str, Player]:
    """By label; the baseline is always played."""
    players: dict[str, Player] = {}
    for policy in (*given, baseline):
        made = default_or_named(policy)
        players[str(policy) if is_auto(policy) else label_of(made)] = made
    return players


def _check(budgets: Sequence[float], draws: int) -> None:
    require(need_whole("draws", draws) >= 1, "draws", draws, "at least 1", "noise is drawn")
    require(len(budgets) > 0 and all(0 < c < 1e6 for c in budgets), "budgets", list(budgets),
            "above 0 and below a million", "they count full trainings")  # fmt: skip
    twice = len(set(budgets)) < len(budgets)
    require(not twice, "budgets", list(budgets), "all different", "each has a row of its own")
