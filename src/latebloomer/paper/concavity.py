"""The proposition on concavity: two instances on which no algorithm's error falls with T."""

from __future__ import annotations

from typing import Any

from latebloomer.paper import as_written as written
from latebloomer.paper import drawing
from latebloomer.paper.experiments import AS_WRITTEN
from latebloomer.paper.figure import Draw, Figure, Made
from latebloomer.paper.lower_bound_figure import worst_of
from latebloomer.paper.table_rows import Row, select
from latebloomer.paper.workbench import Bench
from latebloomer.problems import Gaussian, Problem
from latebloomer.theory import lower_bounds

SIGMA = 1.0
BUDGETS = (10, 30, 100, 300, 1000, 3000, 10000)
INSTANCES = ("concave", "convex")  # nu, and nu' whose first arm jumps at its T-th pull


def instance(panel: str, budget: int) -> Problem:
    """One of the two instances of a budget."""
    curves = lower_bounds.concavity_instances(budget)[INSTANCES.index(panel)]
    return Problem(curves, Gaussian(SIGMA), label=f"concavity-{panel}")


def make(bench: Bench) -> Made:
    """The larger of the two errors of each algorithm."""

    def play(key: tuple[int, str]) -> list[Row]:
        budget, panel = key
        nine = written.the_nine(SIGMA, "theory")
        problem = instance(panel, budget)
        return written.rows(problem, nine, budget, bench.runs, bench.jobs, panel=panel)

    keys = [(budget, panel) for budget in BUDGETS for panel in INSTANCES]
    name = f"concavity.{AS_WRITTEN}.{bench.runs}"
    rows = bench.parts(name, keys, lambda row: (row.T, row.panel), play)
    rows += worst_of(rows)
    worst, bound = select(rows, panel="worst"), lower_bounds.concavity_lower_bound(SIGMA)
    low = min(worst, key=lambda row: row.error)
    notes = [
        "Two arms, sigma = 1: means 1/2 and 3/4, and in the second instance the first arm jumps "
        "to 1 at its T-th pull. Shown is the larger of the two errors (panel 'worst').",
        f"The proposition's bound is {bound:.4f}; the smallest measured value is {low.error:g} "
        f"({low.algorithm}, T = {low.T}).",
    ]
    return Made(rows, _draw(worst, bound), notes)


def _draw(rows: list[Row], bound: float) -> Draw:
    def draw(pyplot: Any) -> Any:
        figure, ax = pyplot.subplots(figsize=(6.8, 3.6), layout="constrained")
        drawing.curves(ax, rows)
        ax.axhline(bound, color="black", ls="--", lw=1.2)
        ax.text(rows[0].T, bound - 0.07, f"lower bound {bound:.4f}", fontsize=8)
        ax.set_ylabel("larger error of the two instances")
        drawing.legend(ax)
        return figure

    return draw


FIGURE = Figure("concavity", "Without concavity no error falls with T (appendix F)", make)
