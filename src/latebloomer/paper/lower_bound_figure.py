"""The instances of Theorem 3: no algorithm beats a guess below a budget, even without noise."""

from __future__ import annotations

from typing import Any

from latebloomer.paper import as_written as written
from latebloomer.paper import drawing
from latebloomer.paper.experiments import AS_WRITTEN
from latebloomer.paper.figure import Draw, Figure, Made
from latebloomer.paper.table_rows import Row, select
from latebloomer.paper.workbench import Bench
from latebloomer.problems import Problem, lower_bound
from latebloomer.theory import lower_bounds

ARMS, BETA, GAP, SIGMA = 33, 2.0, 0.005, 1e-4
BUDGETS = (200, 300, 450, 600, 800, 1000, 1400, 2000, 3000, 5000, 10000, 20000)
WINNERS = (None, 1, ARMS // 2, ARMS - 1)  # nu, and nu^(i) for three arms i


def instance(winner: int | None) -> Problem:
    """nu, or nu^(i) where arm i goes on rising; arms 1, 2, ... are alike but for their number."""
    return lower_bound([GAP] * (ARMS - 1), BETA, winner, SIGMA)


def smallest_budget() -> int:
    """The first T with T >= sum (1 / (8 Delta_i(T)))^(1/(beta-1)), the gaps those of nu at T."""
    nu, budget = instance(None), round(1 / GAP) + 1  # arm 0 is best from 1/(2 Delta) on
    while budget < lower_bounds.minimum_budget(nu.gaps(budget), BETA):
        budget += 1
    return budget


def measure(bench: Bench, budgets: tuple[int, ...] = BUDGETS) -> list[Row]:
    """Every algorithm on four instances, and on the worst of them (panel "worst")."""

    def play(key: tuple[int, str]) -> list[Row]:
        budget, panel = key
        winner = WINNERS[[f"{w}" for w in WINNERS].index(panel)]
        nine = written.the_nine(SIGMA, "theory")
        return written.rows(instance(winner), nine, budget, bench.runs, bench.jobs, panel=panel)

    keys = [(budget, f"{winner}") for budget in budgets for winner in WINNERS]
    name = f"lower-bound.{AS_WRITTEN}.{bench.runs}"
    rows = bench.parts(name, keys, lambda row: (row.T, row.panel), play)
    return rows + worst_of(rows)


def make(bench: Bench) -> Made:
    """The error of each algorithm on the worst of four instances."""
    rows = measure(bench)
    least, guess = smallest_budget(), 1 - 1 / ARMS
    early = [row for row in select(rows, panel="worst") if least > row.T]
    low = min(early, key=lambda row: row.error_high)
    notes = [
        f"{ARMS} arms, beta = {BETA:g}, all gaps {GAP:g} in the limit, sigma = {SIGMA:g}. Below "
        f"T = {least} Theorem 3 gives, for every algorithm, an instance with error at least "
        f"1 - 1/K = {guess:.3f}. Shown: the largest error over nu and nu^(i), i in "
        f"{WINNERS[1:]} (panel 'worst' of the file).",
        f"Smallest such error below T = {least}: {low.error:g} ({low.algorithm}, T = {low.T}, "
        f"95 % interval {low.error_low:.3f} to {low.error_high:.3f}).",
    ]
    return Made(rows, _draw(select(rows, panel="worst"), least, guess), notes)


def worst_of(rows: list[Row]) -> list[Row]:
    """For each algorithm and budget the row of the instance with the largest error."""
    cells = dict.fromkeys((row.algorithm, row.T) for row in rows)
    return [
        max(select(rows, algorithm=name, T=budget), key=lambda row: row.error)._replace(
            panel="worst"
        )
        for name, budget in cells
    ]


def _draw(rows: list[Row], least: int, guess: float) -> Draw:
    def draw(pyplot: Any) -> Any:
        figure, ax = pyplot.subplots(figsize=(6.8, 3.6), layout="constrained")
        ax.axvspan(rows[0].T * 0.9, least, color="0.9", lw=0, zorder=0)
        ax.axhline(guess, color="0.3", ls=":", lw=1)
        drawing.curves(ax, sorted(rows, key=lambda row: row.T))
        drawing.mark_change(ax, least)
        ax.text(least * 0.98, 0.06, f"a guess, $T < {least}$", ha="right", fontsize=8)
        ax.set_xlim(rows[0].T * 0.9, None)
        ax.set_ylabel("largest error over instances")
        drawing.legend(ax)
        return figure

    return draw


FIGURE = Figure("lower-bound", "Theorem 3: the budget below which all algorithms guess", make)
