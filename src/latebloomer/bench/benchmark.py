"""Policies on sets of curves, start to end: read, play, count."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from latebloomer.bench.bench_report import BenchReport, what_is_drawn
from latebloomer.bench.curve_files import read_folder
from latebloomer.bench.curve_runs import Player, costs_by_set, lines_of, play_all
from latebloomer.bench.curve_sets import GROUP_SIZE, names_of, read_sets
from latebloomer.errors import need_whole, require
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import AUTO, REGISTRY, default_or_named, is_auto, label_of
from latebloomer.simulation.local_runs import cores

BUDGETS = (1.0, 2.0, 4.0, 8.0)  # in full trainings
# The best on the public sets of the 13 settings in docs/research-log.md.
TUNED_ASHA = "asha:eta=2,grace=4,workers=1000"
VARIANTS = ("sh:judge=window", TUNED_ASHA)  # settings that people would ask for
LEFT_OUT = {  # policies that are not compared unless requested, and why
    "foresight": "it is what auto uses",
    "ucb-e": "it needs the gaps, which are not known for recorded curves",
    "etc": "its published width never decides, so that it is a round robin",
    "rest-sure": "its published width never decides, so that it is a round robin",
}
COMPARED = (AUTO, *(name for name in REGISTRY if name not in LEFT_OUT), *VARIANTS)


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
    """Compare policies on sets of recorded curves, or on your own folder of curves.

    Each problem has K arms of L recorded pulls. A budget of c full trainings is T = c L pulls, and
    arms are compared at the horizon H = L.

    Parameters
    ----------
    where : Sequence[str] | Path
        Names of sets, or a folder of curves.
    policies : Sequence[str | Policy]
        Policies or their names.
    budgets : Sequence[float]
        Budgets in full trainings.
    draws : int
        Number of draws of the noise and of the order of arms, for each problem.
    baseline : str
        Policy that the others are compared with.
    seed : int
        Random seed of the draws.
    sigma : float | None
        Standard deviation of Gaussian noise added to a folder's curves. Default: no noise.
    arms : Sequence[int]
        Numbers of arms of the problems made of TaskSet and YAHPO.
    threads : int | None
        Maximum number of threads. Default: all cores.
    shown : bool
        Whether to show progress.

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
    players = _players(policies, baseline)
    _check(budgets, draws, arms)
    start = time.perf_counter()
    if isinstance(where, Path):
        problems, skipped = read_folder(where, sigma)
    else:
        problems, skipped = read_sets(names_of(where), arms)
    played = play_all(problems, players, budgets, draws, seed, threads or cores(), shown)
    lines = lines_of(costs_by_set(problems, played), [*players], budgets, baseline)
    notes = [f"{curves.name}: {curves.note}" for curves in problems if curves.note]
    seconds, drawn = time.perf_counter() - start, what_is_drawn(problems, draws)
    return BenchReport(lines, skipped, baseline, seconds, drawn, notes)


def _players(given: Sequence[str | Policy], baseline: str) -> dict[str, Player]:
    """Return the policies by label; the baseline is always one of them."""
    players: dict[str, Player] = {}
    for policy in (*given, baseline):
        made = default_or_named(policy)
        players[str(policy) if is_auto(policy) else label_of(made)] = made
    return players


def _check(budgets: Sequence[float], draws: int, arms: Sequence[int]) -> None:
    require(need_whole("draws", draws) >= 1, "draws", draws, "at least 1", "noise is drawn")
    require(len(budgets) > 0 and all(0 < c < 1e6 for c in budgets), "budgets", list(budgets),
            "above 0 and below a million", "they count full trainings")  # fmt: skip
    twice = len(set(budgets)) < len(budgets)
    require(not twice, "budgets", list(budgets), "all different", "each has its own row")
    for size in arms:
        require(need_whole("arms", size) >= 2, "arms", size, "at least 2",
                "with one arm there is nothing to choose")  # fmt: skip
