"""Figure of section 7: R-UCBE at multiples of its exploration parameter."""

from __future__ import annotations

from typing import Any

from latebloomer.paper import drawing, series
from latebloomer.paper.experiments import SETTING_A
from latebloomer.paper.figure import Draw, Figure, Made
from latebloomer.paper.table_rows import Row, select
from latebloomer.paper.workbench import Bench

TITLES = {"detail": "1000 runs", "budgets": "22 budgets"}
TINTS = dict(zip(series.FACTORS, drawing.TABLEAU, strict=False))
NAMES = ("$a/50$", "$a/10$", "$a$", "$10a$", "$50a$")


def make(bench: Bench) -> Made:
    """Both panels: around the change of the best arm, and all budgets."""
    rows = series.exploration(bench, bench.mode)
    note = (
        "The legend's a is the a of the authors' configuration in either mode; as published, the "
        "bonus has 10 times that."
    )
    return Made(rows, _draw(rows, drawing.last_change(SETTING_A, bench.mode)), [note])


def _draw(rows: list[Row], change: int | None) -> Draw:
    def draw(pyplot: Any) -> Any:
        figure, axes = pyplot.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
        for ax, (panel, title) in zip(axes, TITLES.items(), strict=True):
            drawing.mark_change(ax, change)
            drawing.curves(ax, select(rows, panel=panel), "error", TINTS)
            ax.set_title(title, fontsize=9)
        drawing.legend(axes[-1], labels=NAMES, handles=axes[-1].lines[1:])
        return figure

    return draw


FIGURE = Figure(
    "exploration",
    "R-UCBE at a/50, a/10, a, 10a and 50a (section 7)",
    make,
)
