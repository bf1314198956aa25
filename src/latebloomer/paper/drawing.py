"""The look of the paper's figures: a logarithmic budget axis, bands, names where lines end."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, TypeAlias

from latebloomer.page.figures import TEXT
from latebloomer.page.svg import spread
from latebloomer.paper import AS_PUBLISHED
from latebloomer.paper.experiments import ESTIMATE, THEORY, Setting
from latebloomer.paper.workbench import Row, select
from latebloomer.simulation.results.plots import (
    BAND,
    DASHED,
    MORE_STYLES,
    STYLES,
    Style,
    plain_ticks,
)
from latebloomer.version import __version__

Looks: TypeAlias = Mapping[str, Style] | None
ARM_STYLES = tuple(STYLES.values())  # styles for arms, learners and multiples of a
LABELS = {"error": r"$\overline{e}_T$", "regret": r"$\overline{r}_T$"}
LABEL_HEIGHT = 12.5  # points per line of text, with the distance to the next line
TITLE, LETTERS_PER_INCH = 8, 15  # size of the title in points, and letters per inch at this size
HEAD, CELL = "#eef1f4", "#ffffff"  # colors of a table's first line and of its other cells
AXES_SHARE = 0.75  # approximate share of a figure's height that its axes take


OWN_STYLES = {ESTIMATE: Style("#d62728", "d", DASHED), THEORY: MORE_STYLES[0]}
SERIES = {  # explanations below a picture's title, by series
    "R-UCBE": "R-UCBE recommends argmax B (Algorithm 1)",
    ESTIMATE: "(estimate): the same pulls, argmax of the estimate",
    THEORY: r"(theory): $a = 10 \log(2TK/\delta)$, argmax B",
}


def style(series: str) -> Style:
    """Return the style of an algorithm, or of one of the additional series of R-UCBE."""
    return OWN_STYLES.get(series) or STYLES.get(series.lower(), MORE_STYLES[0])


def explained(rows: Sequence[Any], mode: str) -> str:
    """Return text that explains the series of R-UCBE, if these rows have more than one."""
    names = {getattr(row, "algorithm", "") for row in rows}
    if mode == AS_PUBLISHED or not any(name.startswith((ESTIMATE, THEORY)) for name in names):
        return ""
    return "; ".join(
        text for series, text in SERIES.items() if any(name.startswith(series) for name in names)
    )


def entitle(figure: Any, title: str, rows: Sequence[Any], mode: str) -> None:
    """Write title, mode, number of runs, version and series above a picture."""
    counts = sorted({row.runs for row in rows if getattr(row, "runs", 0)})
    runs = " to ".join(f"{count:,}" for count in dict.fromkeys((*counts[:1], *counts[-1:])))
    origin = [
        mode,
        f"{runs} run{'s' * (runs != '1')}" if runs else "",
        f"latebloomer {__version__}",
    ]
    lines = [", ".join([title, *filter(None, origin)]), explained(rows, mode)]
    width = int(figure.get_figwidth() * LETTERS_PER_INCH)
    text = "\n".join(part for line in lines for part in wrap(line, width))
    figure.suptitle(text, fontsize=TITLE)


def budget_panels(
    pyplot: Any,
    panels: Mapping[str, Sequence[Row]],
    size: tuple[float, float],
    shape: tuple[int, int] = (1, 1),
    change: int | None = None,
    **how: Any,
) -> tuple[Any, Any]:
    """Draw a panel of `curves` for each title; return the figure and its axes."""
    figure, axes = pyplot.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
    for ax, (title, rows) in zip(axes.flat, panels.items(), strict=True):
        mark_change(ax, change)
        curves(ax, rows, **how)
        ax.set_title(title, fontsize=10)
    return figure, axes


def curves(
    ax: Any, rows: Sequence[Row], what: str = "error", styles: Looks = None, band: float = BAND
) -> None:
    """Draw a line with its band for each series, in the order of the rows."""
    names = list(dict.fromkeys(row.algorithm for row in rows))
    for place, series in enumerate(names):
        own = select(rows, algorithm=series)
        look = (styles or {}).get(series, style(series))
        columns = ("T", what, f"{what}_low", f"{what}_high")
        budgets, middle, low, high = ([getattr(row, column) for row in own] for column in columns)
        ax.plot(budgets, middle, label=series, **look.line(place, len(names), len(own)))
        ax.fill_between(budgets, low, high, color=look.color, alpha=band, linewidth=0)
    ax.set_xscale("log")
    ax.set(xlabel="$T$", ylabel=LABELS[what])
    if what == "error":
        ax.set_ylim(-0.06, 1.06)
    plain_ticks(sorted({row.T for row in rows}), ax)
    grid(ax)


def arms(ax: Any, points: Sequence[Any], value: str = "mean") -> None:
    """Draw the expected rewards of each arm against the number of pulls."""
    for place, name in enumerate(dict.fromkeys(point.arm for point in points)):
        own = select(points, arm=name)
        every = (len(own) * (place + 1) // 40, len(own) // 5)
        look = ARM_STYLES[place].line() | {"markevery": every}
        ax.plot([row.n for row in own], [getattr(row, value) for row in own], label=name, **look)
    ax.set(xlabel="$n$", ylabel=r"$\mu_i(n)$", xlim=(0, points[-1].n))
    grid(ax)


def table(
    ax: Any, text: Sequence[Sequence[str]], tint: Sequence[Sequence[str]], **how: Any
) -> None:
    """Fill the axes with a table; `tint` has the color of each cell."""
    ax.set_axis_off()
    drawn = ax.table(text, tint, loc="center", cellLoc="center", bbox=(0, 0, 1, 1), **how)
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    for cell in drawn.get_celld().values():
        cell.set_edgecolor("#c8ced4")


def grid(ax: Any, axis: str = "both") -> None:
    """Draw thin gray lines behind the curves."""
    ax.grid(True, axis=axis, color="#b0b0b0", linewidth=0.5, alpha=0.6)
    ax.set_axisbelow(True)


def mark_change(ax: Any, budget: int | None) -> None:
    """Draw a dashed vertical line at the last budget where the best arm changes."""
    if budget is not None:
        ax.axvline(budget, color=ARM_STYLES[0].color, ls="--", lw=1.0, alpha=0.5, zorder=0)


def last_change(setting: Setting, mode: str, upto: int = 3200) -> int | None:
    """Return the last change of the best arm; as published, where the paper draws its line."""
    if mode == AS_PUBLISHED:
        return setting.printed_change
    return setting.problem().changes(upto)[-1][0]


def shared_legend(figure: Any, ax: Any, columns: int) -> None:
    """Add one legend for the lines of `ax` below all panels."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, fontsize=TEXT, handlelength=3.2
    )


def label_ends(ax: Any, labels: Mapping[str, str] | None = None) -> None:
    """Write the name of each line at its end, moved up or down so that all can be read.

    A thin connector goes from the end of the line to a short piece in the line's style, and the
    name is next to this piece.
    """
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    lines.sort(key=lambda line: sum(line.get_ydata()) / len(line.get_ydata()))  # breaks ties
    to_axes = ax.transScale + ax.transLimits
    ends = [to_axes.transform(line.get_xydata()[-1]) for line in lines]
    rows = ax.get_gridspec().nrows if ax.get_gridspec() is not None else 1
    gap = LABEL_HEIGHT / (72 * AXES_SHARE * ax.figure.get_figheight() / rows)
    for line, (x, y), at in zip(lines, ends, spread([y for _, y in ends], gap), strict=True):
        name = line.get_label()
        outside = {"transform": ax.transAxes, "clip_on": False}
        ax.plot([x, 1.02], [y, at], color=line.get_color(), linewidth=0.6, alpha=0.7, **outside)
        (piece,) = ax.plot([1.02, 1.055, 1.09], [at] * 3, **outside)
        piece.update_from(line)
        piece.set(transform=ax.transAxes, clip_on=False, markevery=[1], label="_piece")
        ax.text(
            1.105,
            at,
            (labels or {}).get(name, name),
            transform=ax.transAxes,
            va="center",
            fontsize=TEXT,
        )


def side_legend(ax: Any) -> None:
    """Add a legend to the right of the axes."""
    place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    ax.legend(**place, frameon=False, fontsize=TEXT, handlelength=3.2)
