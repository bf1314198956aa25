"""The look of the paper's figures: a logarithmic budget axis, bands, names where lines end."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from latebloomer.page.figures import TEXT
from latebloomer.page.svg import spread
from latebloomer.paper import AS_PUBLISHED
from latebloomer.paper.experiments import Setting
from latebloomer.paper.workbench import Row, select
from latebloomer.simulation.plots import BAND, MORE_STYLES, STYLES, Style, plain_ticks

Looks: TypeAlias = Mapping[str, Style] | None
ARM_STYLES = tuple(STYLES.values())  # for what is not an algorithm: arms, learners, multiples
LABELS = {"error": r"$\overline{e}_T$", "regret": r"$\overline{r}_T$"}
LABEL_HEIGHT = 12.5  # points: a line of text with its distance to the next
AXES_SHARE = 0.8  # approximate share of a figure's height that its axes take


def style(series: str) -> Style:
    """Return the style of an algorithm; black for R-UCBE with the theory's exploration."""
    return STYLES.get(series.lower(), MORE_STYLES[0])


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
        budgets, middle, low, high = ([getattr(row, one) for row in own] for one in columns)
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


def grid(ax: Any, axis: str = "both") -> None:
    """Draw thin gray lines behind the curves."""
    ax.grid(True, axis=axis, color="#b0b0b0", linewidth=0.5, alpha=0.6)
    ax.set_axisbelow(True)


def mark_change(ax: Any, budget: int | None) -> None:
    """Draw a dashed vertical line at the last budget where the best arm changes."""
    if budget is not None:
        ax.axvline(budget, color=ARM_STYLES[0].color, ls="--", lw=1.0, alpha=0.5, zorder=0)


def last_change(setting: Setting, mode: str, upto: int = 3200) -> int | None:
    """Return where the paper draws its line, or where the last change really is."""
    if mode == AS_PUBLISHED:
        return setting.printed_change
    return setting.problem().changes(upto)[-1][0]


def shared_legend(figure: Any, ax: Any, columns: int) -> None:
    """Add one legend below all panels, of what `ax` shows."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=TEXT,
                  handlelength=3.2)  # fmt: skip


def label_ends(ax: Any, labels: Mapping[str, str] | None = None) -> None:
    """Write every line's name where it ends, moved up or down so that all can be read.

    A thin leader goes from the end of the line to a piece of it, and the name is next to that.
    """
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    lines.sort(key=lambda line: sum(line.get_ydata()) / len(line.get_ydata()))  # breaks ties
    to_axes = ax.transScale + ax.transLimits
    ends = [to_axes.transform(line.get_xydata()[-1]) for line in lines]
    gap = LABEL_HEIGHT / (72 * AXES_SHARE * ax.figure.get_figheight())
    for line, (x, y), at in zip(lines, ends, spread([y for _, y in ends], gap), strict=True):
        name = line.get_label()
        outside = {"transform": ax.transAxes, "clip_on": False}
        ax.plot([x, 1.02], [y, at], color=line.get_color(), linewidth=0.6, alpha=0.7, **outside)
        (piece,) = ax.plot([1.02, 1.055, 1.09], [at] * 3, **outside)
        piece.update_from(line)
        piece.set(transform=ax.transAxes, clip_on=False, markevery=[1], label="_piece")
        ax.text(1.105, at, (labels or {}).get(name, name), transform=ax.transAxes, va="center",
                fontsize=TEXT)  # fmt: skip


def side_legend(ax: Any) -> None:
    """Add a legend to the right of the axes."""
    place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    ax.legend(**place, frameon=False, fontsize=TEXT, handlelength=3.2)
