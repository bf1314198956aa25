"""Figures of section 7: error and simple regret in setting A, and its five arms."""

from __future__ import annotations

from typing import Any

from latebloomer.paper import drawing, series
from latebloomer.paper.arm_curves import arms_of
from latebloomer.paper.experiments import AS_WRITTEN, SETTING_A, THEORY, Setting
from latebloomer.paper.figure import Draw, Figure, Made
from latebloomer.paper.table_rows import Row
from latebloomer.paper.workbench import Bench

WHAT_A = (
    "The text sets a to a* of Corollary 1, which does not exist here at these budgets: its "
    "bracket is negative. R-UCBE is played with the a of the authors' configuration, which "
    "squares that bracket, without the factor 10 of the published runs; "
    f"'{THEORY}' is a = 10 log(2TK/delta), the a at which the error bound, where it applies, "
    "is delta = .05."
)
WHAT_PUBLISHED = (
    "The conventions of the published runs: a with a factor 10, the n-th pull has mean mu(n-1), "
    "the window of R-SR and RR-SW keeps its first three rewards, ETC has rho = .98 in setting A."
)


def budget_figure(setting: Setting, what: str) -> Any:
    """The function that makes a figure of one setting against the budget."""

    def make(bench: Bench) -> Made:
        rows = series.errors(bench, setting, bench.mode)
        notes = [WHAT_A if bench.mode == AS_WRITTEN else WHAT_PUBLISHED]
        return Made(rows, _panel(rows, what, drawing.last_change(setting, bench.mode)), notes)

    return make


def _panel(rows: list[Row], what: str, change: int | None) -> Draw:
    def draw(pyplot: Any) -> Any:
        figure, ax = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
        drawing.mark_change(ax, change)
        drawing.curves(ax, rows, what)
        drawing.legend(ax)
        return figure

    return draw


ERRORS = Figure(
    "setting-a",
    "Empirical error in setting A, nine algorithms, 22 budgets (section 7)",
    budget_figure(SETTING_A, "error"),
)
REGRET = Figure(
    "simple-regret",
    "Empirical simple regret in setting A, from the same runs (section 7)",
    budget_figure(SETTING_A, "regret"),
)
ARMS = Figure(
    "setting-a-arms",
    "Expected rewards of the five arms of setting A (section 7)",
    arms_of(SETTING_A, 300),
)
