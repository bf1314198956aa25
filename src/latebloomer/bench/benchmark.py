"""Policies on sets of curves, start to end: read, play, count, write."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from latebloomer.bench import bench_report as report
from latebloomer.bench.catalogue import names_of, read_sets
from latebloomer.bench.curve_files import Skipped, read_folder
from latebloomer.bench.curve_sets import Curves
from latebloomer.bench.losses import Line, Losses
from latebloomer.bench.picture import draw
from latebloomer.bench.playing import Player, play_all
from latebloomer.errors import need_whole, require
from latebloomer.paper.table_rows import write_rows
from latebloomer.policies import Policy, make_policy
from latebloomer.policies.registry import favoured, is_auto, label_of
from latebloomer.simulation.local_runs import cores

# The best on the public sets of the 13 settings in docs/research-log.md.
TUNED_ASHA = "asha:eta=2,grace=4,workers=1000"
TWELVE = (
    "adaptive-rejects", "r-sr", "r-ucbe", "sr", "rr", "rr-sw", "prob-1", "sh", "sh:judge=window",
    "asha", TUNED_ASHA, "hyperband",
)  # fmt: skip
BUDGETS = (1.0, 2.0, 4.0, 8.0)  # in full trainings


@dataclass(frozen=True)
class Bench:
    """What a bench found."""

    lines: list[Line]
    skipped: list[Skipped]
    baseline: str
    draws: int
    seconds: float

    def __str__(self) -> str:
        return report.markdown(self.lines, self.skipped, self.baseline, self.draws, self.seconds)

    def loss(self, policy: str, group: str | None = None) -> float:
        """The mean rank loss of a policy over all budgets, of one set or of all."""
        group = self.lines[-1].group if group is None else group
        found = {line.policy: line.rank_loss for line in report.ranked(self.lines, group)}
        return found[policy]

    def write(self, folder: Path) -> list[Path]:
        """bench.md, bench.csv and bench.png."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"bench.{kind}" for kind in ("md", "csv", "png")]
        paths[0].write_text(str(self), encoding="utf-8")
        write_rows(paths[1], self.lines)
        draw(self.lines, paths[2])
        return paths


def bench(
    where: Sequence[str] | Path = ("public",),
    policies: Sequence[str | Policy] = TWELVE,
    budgets: Sequence[float] = BUDGETS,
    draws: int = 10,
    *,
    baseline: str = "r-sr",
    seed: int = 0,
    sigma: float | None = None,
    threads: int | None = None,
    shown: bool = False,
) -> Bench:
    """Play policies on sets of curves by name, or on a folder of one's own.

    Each problem has K arms of L recorded pulls; a budget of c full trainings is T = c L pulls, and
    arms are compared at the horizon H = L. `sigma` adds Gaussian noise to a folder's curves.
    """
    players = _policies(policies, baseline)
    _check(budgets, draws)
    start = time.perf_counter()
    problems, skipped = _read(where, sigma)
    played = play_all(problems, players, budgets, draws, seed, threads or cores(), shown)
    losses = Losses.of(problems, played, [*players], budgets, baseline)
    return Bench(losses.lines(), skipped, baseline, draws, time.perf_counter() - start)


def _read(where: Sequence[str] | Path, sigma: float | None) -> tuple[list[Curves], list[Skipped]]:
    return read_folder(where, sigma) if isinstance(where, Path) else read_sets(names_of(where))


def _policies(given: Sequence[str | Policy], baseline: str) -> dict[str, Player]:
    """By label; the baseline is always played, and "auto" is chosen for each problem."""
    players: dict[str, Player] = {}
    for policy in (*given, baseline):
        if is_auto(policy):
            players[str(policy)] = favoured
        else:
            made = make_policy(policy)
            players[label_of(made)] = made
    return players


def _check(budgets: Sequence[float], draws: int) -> None:
    require(need_whole("draws", draws) >= 1, "draws", draws, "at least 1", "noise is drawn")
    require(len(budgets) > 0 and all(0 < c < 1e6 for c in budgets), "budgets", list(budgets),
            "above 0 and below a million", "they count full trainings")  # fmt: skip
    twice = len(set(budgets)) < len(budgets)
    require(not twice, "budgets", list(budgets), "all different", "each has a row of its own")
