"""Figure of appendix H: setting A at six noise levels."""

from __future__ import annotations

from typing import Any

from latebloomer.paper import drawing, series
from latebloomer.paper.experiments import AS_WRITTEN, SETTING_A, SIGMAS
from latebloomer.paper.figure import Draw, Figure, Made
from latebloomer.paper.setting_a import WHAT_A, WHAT_PUBLISHED
from latebloomer.paper.table_rows import Row, select
from latebloomer.paper.workbench import Bench


def make(bench: Bench) -> Made:
    """Six panels, two a row, in order of sigma."""
    rows = series.noise(bench, bench.mode)
    change = drawing.last_change(SETTING_A, bench.mode)
    told = "R-UCBE is told sigma, and its a, which goes as 1/sigma^2, is made of it."
    notes = [WHAT_A if bench.mode == AS_WRITTEN else WHAT_PUBLISHED, told]
    return Made(rows, _draw(rows, change), notes)


def _draw(rows: list[Row], change: int | None) -> Draw:
    def draw(pyplot: Any) -> Any:
        figure, axes = pyplot.subplots(3, 2, figsize=(10.5, 10), layout="constrained")
        for ax, sigma in zip(axes.flat, SIGMAS, strict=True):
            drawing.mark_change(ax, change)
            drawing.curves(ax, select(rows, sigma=sigma))
            ax.set_title(rf"$\sigma = {sigma:g}$", fontsize=10)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9)
        return figure

    return draw


FIGURE = Figure("noise", "Setting A at six noise levels, six panels (appendix H)", make)
