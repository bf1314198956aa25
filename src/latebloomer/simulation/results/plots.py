"""Plots of results, in the look of a race's plots and the styles of the paper's figures."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from itertools import cycle
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

from latebloomer._util.atomic_files import File, write_file
from latebloomer.errors import extra, require
from latebloomer.page.figures import COLORS, TEXT, finish, in_lines, label_ends
from latebloomer.policies.registry import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from latebloomer.simulation.results.results import Results


class Style(NamedTuple):
    """The look of a policy's line; markers and dashes distinguish lines if colors do not.

    Use filled markers; "v" and "<" are reserved for upper bounds.
    """

    color: str
    marker: str
    dashes: Any = "-"  # a style name of matplotlib, or (offset, (on, off, ...)) in line widths
    width: float = 1.4

    def line(self, place: int = 0, of: int = 1, points: int = 0) -> dict[str, Any]:
        """Return arguments of matplotlib's `plot`, for line `place` of `of` lines.

        Lines may overlap, so each line has its markers at other points than the next line. Wide
        lines are drawn below narrow ones.
        """
        every = max(1, min(of, points // 2))
        return {
            "color": self.color, "marker": self.marker, "linestyle": self.dashes,
            "linewidth": self.width, "markersize": 7, "markeredgecolor": "white",
            "markeredgewidth": 0.6, "markevery": (place % every, every),
            "zorder": 3 - self.width / 10, "solid_capstyle": "butt",
        }  # fmt: skip


DASHED, DOTTED, MIXED, LONG = (0, (4, 2)), (0, (1.2, 1.6)), (0, (5, 1.5, 1.2, 1.5)), (0, (8, 2))
# The nine policies of the paper have the colors of its figures; our own policy has the tenth color
# of that set. ETC and Rest-Sure often have equal curves, so one line is wide, and the other is
# dashed above it.
STYLES = {
    "rr": Style("#1f77b4", "o", MIXED),
    "rr-sw": Style("#ff7f0e", "s", DASHED),
    "ucb-e": Style("#2ca02c", "^", DOTTED, 1.8),
    "r-ucbe": Style("#d62728", "D", "-", 1.8),
    "sr": Style("#9467bd", "p", LONG),
    "r-sr": Style("#8c564b", "X", "-", 1.8),
    "prob-1": Style("#e377c2", "P", DOTTED, 1.8),
    "etc": Style("#7f7f7f", "8", "-", 4.5),
    "rest-sure": Style("#bcbd22", ">", DASHED, 1.8),
    "sh": Style("#17becf", "*"),
}
# Styles for a second setting of a policy, and for policies that are not part of this library.
MORE_STYLES = (
    Style("#000000", "h", LONG),
    Style("#0a4f8f", "d"),
    Style("#f4a300", "H", DASHED),
    Style("#00785a", "h", MIXED),
    Style("#6a00a8", "d", LONG),
    Style("#ff4fa0", "H"),
    Style("#5b3a00", "h"),
    Style("#a01c1c", "s", MIXED),
    Style("#5f8a00", "o", DASHED),
    Style("#00a39a", "D", LONG),
    Style("#7a5cff", "^", "-"),
    Style("#4d4d4d", "P", DASHED),
    Style("#c46a00", "p", DOTTED, 1.8),
    Style("#b0007a", "X", MIXED),
)
BAND = 0.15  # opacity of the bands of intervals
# Maximum number of vertical lines where the best arm changes; else only the last ones.
MOST_CHANGES = 8
YLABELS = {
    "error": "error probability", "regret": "simple regret",
    "learning_regret": "regret while learning",
}  # fmt: skip


def plot(
    results: Results, path: File | None, what: str, log: bool, ax: Any
) -> Axes | tuple[Axes, ...]:
    """Draw the plot that `Results.plot` describes."""
    known = "'error', 'regret', 'learning_regret', 'pulls' or 'both'"
    require(what in (*YLABELS, "pulls", "both"), "what", what, known, "these are drawn")
    require(bool(results.cells), "results", results.cells, "of at least one run", "there are none")
    pyplot = extra("matplotlib.pyplot", "plots", "plots")
    panels = ["error", "regret"] if what == "both" else [what]
    if what == "pulls":
        panels = results.policies
    figure = None
    if ax is None:
        size = (6.4 * len(panels), 4.2)
        figure, ax = pyplot.subplots(1, len(panels), figsize=size, layout="constrained")
    axes = [ax] if hasattr(ax, "plot") else ax
    require(len(axes) == len(panels), "ax", ax, f"{len(panels)} axes", "one for each panel")
    for panel, axis in zip(panels, axes, strict=True):
        if what == "pulls":
            _draw_pulls(results, panel, axis)
        else:
            _draw(results, panel, log and panel == "error", axis)
    if path is not None:
        write_figure(axes[-1].figure, path, dpi=150, bbox_inches="tight")
        if figure is not None:
            pyplot.close(figure)
    return tuple(axes) if what in ("both", "pulls") else axes[0]


def write_figure(figure: Any, path: File, **options: Any) -> None:
    """Write a matplotlib figure in the format of the file's name, PNG if it has none.

    It is like `savefig`, but an old file stays until the new file is complete.
    """
    root, end = os.path.splitext(os.fspath(path))
    known, usual = figure.canvas.get_supported_filetypes(), figure.canvas.get_default_filetype()
    kind = end[1:].lower() or usual
    name = os.fspath(path) if end[1:] else f"{root}.{kind}"
    require(kind in known, "path", name, f"a file of {', '.join(known)}", "these can be drawn")
    data = io.BytesIO()
    figure.savefig(data, format=kind, **options)
    write_file(name, data.getvalue())


def styles_of(labels: Sequence[str]) -> dict[str, Style]:
    """Return a style for each label; only the first label of a policy has the policy's style."""
    others, styles = cycle(MORE_STYLES), dict[str, Style]()
    for label in labels:
        usual = STYLES.get(label.partition(":")[0])
        styles[label] = next(others) if usual is None or usual in styles.values() else usual
    return styles


def _draw(results: Results, what: str, log: bool, ax: Axes) -> None:
    """Draw one panel: curves against the budget, or points if there is only one budget."""
    single, heading = len(results.budgets) == 1, results.origin.problem
    if log:
        (ax.set_xscale if single else ax.set_yscale)("log")
    (_points if single else _curves)(results, what, log, ax)
    ax.grid(True, axis="x" if single else "y", color="0.92", linewidth=0.6)
    finish(ax, f"{heading}, T = {results.budgets[0]}" if single else heading)


def _draw_pulls(results: Results, policy: str, ax: Axes) -> None:
    """Draw the mean pulls of each arm against the budget, or as bars if there is one budget."""
    rows = [row for row in results.rows() if row["policy"] == policy]
    names, budgets = results.origin.arms, [row["budget"] for row in rows]
    if len(budgets) == 1:
        ax.barh(range(len(names)), rows[0]["pulls"], color=COLORS[0])
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set(xlabel="pulls")
    else:
        ends = []
        for arm, (name, color) in enumerate(zip(names, cycle(COLORS), strict=False)):
            pulls = [row["pulls"][arm] for row in rows]
            ax.plot(budgets, pulls, color=color, marker="o", markersize=4)
            ends.append((pulls[-1], name, color))
        ax.set_xscale("log")
        ax.set(xlabel="budget T", ylabel="pulls")
        plain_ticks(budgets, ax)
        label_ends(ax, ends)
    ax.grid(True, axis="x" if len(budgets) == 1 else "y", color="0.92", linewidth=0.6)
    finish(ax, title(policy), 1 / len(results.policies))


def _curves(results: Results, what: str, log: bool, ax: Axes) -> None:
    """Draw lines with bands; on a log axis, an open marker and a gap in place of each 0."""
    ax.set_xscale("log")
    ax.set(xlabel="budget T", ylabel=YLABELS[what])
    every, styles = results.rows(), styles_of(results.policies)
    ends: list[tuple[float, str, str]] = []
    for (label, style), color in zip(styles.items(), cycle(COLORS), strict=False):
        rows = [row for row in every if row["policy"] == label]
        budgets = [row["budget"] for row in rows]
        seen = [not log or row[what] > 0 for row in rows]
        value, low, high = (
            [row[name] if known and row[name] is not None else nan
             for row, known in zip(rows, seen, strict=True)]
            for name in (what, f"{what}_low", f"{what}_high")
        )  # fmt: skip
        line = style._replace(color=color).line(len(ends), len(styles), len(rows))
        ax.plot(budgets, value, label=title(label), **line)
        ax.fill_between(budgets, low, high, color=color, alpha=BAND, linewidth=0)
        unseen = [row for row, known in zip(rows, seen, strict=True) if not known]
        bounds = [row[f"{what}_high"] for row in unseen]
        _bounds([row["budget"] for row in unseen], bounds, color, ax)
        ends.append((value[-1] if seen[-1] else bounds[-1], title(label), color))
    within = [at for at, _ in results.changes if results.budgets[0] <= at <= results.budgets[-1]]
    if within:
        ax.set(xlabel="budget T (dashed: the best arm changes)")
    for at in within if len(within) <= MOST_CHANGES else within[-1:]:
        ax.axvline(at, color="0.4", linestyle="--", linewidth=0.9, zorder=0)
    plain_ticks(results.budgets, ax)
    label_ends(ax, ends)


def _bounds(x: list[float], y: list[float], color: str, ax: Axes, marker: str = "v") -> None:
    """Draw open markers for upper bounds, and a text that explains them."""
    if x:
        ax.plot(x, y, marker, markersize=5, markerfacecolor="none", markeredgecolor=color)
        say_in_corner(ax, "open: none seen, at the end of the 95 % interval")


def say_in_corner(ax: Axes, text: str) -> None:
    """Write a text at the bottom left of the axes, unless it is already there."""
    lines = in_lines(ax, text)
    if lines not in (text.get_text() for text in ax.texts):
        ax.text(0.01, 0.015, lines, transform=ax.transAxes, fontsize=TEXT, color="0.25")


def plain_ticks(budgets: Sequence[int], ax: Axes) -> None:
    """Show budgets as plain numbers, at 1, 2 and 5 times powers of ten."""
    ticker = extra("matplotlib.ticker", "plots", "plots")
    wide = budgets[-1] >= 2000 * budgets[0]
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda budget, _: f"{budget:g}"))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())


def _points(results: Results, what: str, log: bool, ax: Axes) -> None:
    """Draw one line for each policy, the first on top, with its interval."""
    rows, styles = results.rows(), styles_of(results.policies)
    for place, (row, color) in enumerate(zip(rows, cycle(COLORS), strict=False)):
        value, low, high = row[what], row[f"{what}_low"], row[f"{what}_high"]
        if log and value <= 0:
            _bounds([high], [place], color, ax, marker="<")
            continue
        ends = None if low is None else [[value - low], [high - value]]
        ax.errorbar([value], [place], xerr=ends, color=color, capsize=3, markersize=6,
                    marker=styles[row["policy"]].marker)  # fmt: skip
    ax.set_yticks(range(len(rows)), [title(row["policy"]) for row in rows])
    ax.set_ylim(len(rows) - (0.1 if ax.texts else 0.5), -0.5)  # the text has a separate line
    ax.set(xlabel=YLABELS[what])
