"""Beyond the paper: error and regret on random instances of six families of curves."""

from __future__ import annotations

from math import nan, sqrt
from typing import Any

from latebloomer.core.statistics import student
from latebloomer.paper import as_written as written
from latebloomer.paper import drawing
from latebloomer.paper.figure import Figure, Made, Row, Workbench, select
from latebloomer.paper.modes import AS_WRITTEN
from latebloomer.policies.successive_halving import SuccessiveHalving
from latebloomer.problems import FAMILIES, random_problem

ARMS, SIGMA, INSTANCES = 10, 0.01, 12
BUDGETS = (200, 500, 1000, 2000, 5000)


def make(bench: Workbench) -> Made:
    """Six families, each a mean over random instances; `runs` are shared out over these."""
    each = max(1, bench.runs // INSTANCES)
    keys = [(family, budget) for family in FAMILIES for budget in BUDGETS]

    def play(key: tuple[str, int]) -> list[Row]:
        return _pooled(*key, each, bench.jobs)

    name = f"families.{AS_WRITTEN}.{each}"
    rows = bench.parts(name, keys, lambda row: (row.panel, row.T), play)
    ranks = [
        sorted(select(rows, panel=family, T=budget), key=lambda row: row.regret)[0].algorithm
        for family, budget in keys
    ]
    won = {name: ranks.count(name) for name in dict.fromkeys(ranks)}
    ahead = sum(
        select(rows, panel=family, T=budget, algorithm="R-SR")[0].error
        < select(rows, panel=family, T=budget, algorithm="R-UCBE")[0].error
        for family, budget in keys
    )
    notes = [
        f"{INSTANCES} random instances of each family, {ARMS} arms, sigma = {SIGMA:g}, {each} "
        "runs each; intervals are Student's over instances, which are what differs most. R-UCBE "
        "has the theory's exploration; UCB-E is told the gaps; SH is Successive Halving.",
        f"R-SR's error is below R-UCBE's in {ahead} of {len(keys)} cells. Smallest mean regret: "
        + ", ".join(f"{name} in {count}" for name, count in won.items())
        + ".",
    ]
    return Made(rows, lambda pyplot: _draw(pyplot, rows), notes)


def _pooled(family: str, budget: int, runs: int, jobs: int) -> list[Row]:
    """One row for each algorithm: means over the instances, intervals between them."""
    policies = written.the_nine(SIGMA, "theory") | {"SH": SuccessiveHalving()}
    played = [
        written.rows(random_problem(family, ARMS, seed, SIGMA), policies, budget, runs, jobs)
        for seed in range(INSTANCES)
    ]
    return [_over_instances([part[i] for part in played], family) for i in range(len(policies))]


def _over_instances(rows: list[Row], family: str) -> Row:
    error, regret = (_mean([getattr(row, what) for row in rows]) for what in ("error", "regret"))
    first, runs = rows[0], sum(row.runs for row in rows)
    pulls = sum(row.pulls_best for row in rows) / len(rows)
    return first._replace(
        error=error[0], error_low=max(0.0, error[1]), error_high=min(1.0, error[2]),
        regret=regret[0], regret_low=max(0.0, regret[1]), regret_high=regret[2],
        runs=runs, pulls_best=pulls, best=-1, recommended=-1, panel=family, pulls_low=nan,
        pulls_high=nan,
    )  # fmt: skip


def _mean(values: list[float]) -> tuple[float, float, float]:
    n = len(values)
    middle = sum(values) / n
    spread = sqrt(sum((value - middle) ** 2 for value in values) / (n - 1))
    half = student(n - 1) * spread / sqrt(n)
    return middle, middle - half, middle + half


def _draw(pyplot: Any, rows: list[Row]) -> Any:
    figure, axes = pyplot.subplots(
        2, len(FAMILIES), figsize=(15, 5.6), sharey="row", sharex=True, layout="constrained"
    )
    for column, family in enumerate(FAMILIES):
        for ax, what in zip(axes[:, column], ("error", "regret"), strict=True):
            _lines(ax, select(rows, panel=family), what)
            ax.set(xlabel="$T$" if what == "regret" else "")
        axes[0, column].set_title(family, fontsize=10)
    axes[0, 0].set_ylabel("mean error")
    axes[1, 0].set_ylabel("mean simple regret")
    drawing.shared_legend(figure, axes[0, 0], columns=10)
    return figure


def _lines(ax: Any, rows: list[Row], what: str) -> None:
    for name in dict.fromkeys(row.algorithm for row in rows):
        own = select(rows, algorithm=name)
        line = drawing.style(name).line()
        ax.plot([row.T for row in own], [getattr(row, what) for row in own], label=name, **line)
    ax.set_xscale("log")
    drawing.plain_ticks(ax, BUDGETS)


FIGURE = Figure("families", "Error and regret on random instances of six families (ours)", make)
