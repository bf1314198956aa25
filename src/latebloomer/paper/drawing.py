"""The look of the paper's figures: a logarithmic budget axis, bands, the legend at the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from latebloomer.paper.experiments import Setting
from latebloomer.paper.figure import Row, select
from latebloomer.paper.modes import AS_PUBLISHED
from latebloomer.simulation.plots import BAND, MORE_STYLES, STYLES, TEXT, Style

ARM_STYLES = tuple(STYLES.values())  # for whatever is no algorithm: arms, learners, multiples
LABELS = {"error": r"$\overline{e}_T$", "regret": r"$\overline{r}_T$"}
LABEL_HEIGHT = 12.5  # points, of a line of text with its distance to the next
AXES_SHARE = 0.8  # about this much of a figure's height is its axes'


def style(series: str) -> Style:
    """The style of an algorithm; black for R-UCBE with the theory's exploration."""
    return STYLES.get(series.lower(), MORE_STYLES[0])


def curves(
    ax: Any,
    rows: Sequence[Row],
    what: str = "error",
    styles: dict[str, Style] | None = None,
) -> None:
    """A line with its band for each series, in the order of the rows."""
    names = list(dict.fromkeys(row.algorithm for row in rows))
    for place, series in enumerate(names):
        own = select(rows, algorithm=series)
        look = (styles or {}).get(series, style(series))
        budgets = [row.T for row in own]
        middle, low, high = (
            [getattr(row, name) for row in own] for name in (what, f"{what}_low", f"{what}_high")
        )
        ax.plot(budgets, middle, label=series, **look.line(place, len(names), len(own)))
        ax.fill_between(budgets, low, high, color=look.colour, alpha=BAND, linewidth=0)
    ax.set_xscale("log")
    ax.set(xlabel="$T$", ylabel=LABELS[what])
    if what == "error":
        ax.set_ylim(-0.06, 1.06)
    plain_ticks(ax, [row.T for row in rows])


def plain_ticks(ax: Any, budgets: Sequence[int]) -> None:
    """Budgets as plain numbers, and the paper's grid."""
    low, high = min(budgets), max(budgets)
    ticks = [tick for tick in _ones_twos_fives(low, high) if low <= tick <= high]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)
    grid(ax)
    ax.set_axisbelow(True)


def grid(ax: Any, axis: str = "both") -> None:
    """Thin grey lines."""
    ax.grid(True, axis=axis, color="#b0b0b0", linewidth=0.5, alpha=0.6)


def _ones_twos_fives(low: float, high: float) -> list[int]:
    """1, 2 and 5 times powers of ten; fewer where the range is short or very long."""
    if high <= 3 * low:
        return list(range(int(low), int(high) + 1, 50))
    leading = (1,) if high > 2000 * low else (1, 2, 5)
    return [digit * 10**power for power in range(9) for digit in leading]


def mark_change(ax: Any, budget: int | None) -> None:
    """A dashed vertical line: from this budget on the best arm no longer changes."""
    if budget is not None:
        ax.axvline(
            budget, color=ARM_STYLES[0].colour, linestyle="--", linewidth=1.0, alpha=0.5, zorder=0
        )


def last_change(setting: Setting, mode: str, upto: int = 3200) -> int | None:
    """Where the paper draws its line, or where the last change really is."""
    if mode == AS_PUBLISHED:
        return setting.printed_change
    return setting.problem().changes(upto)[-1][0]


def legend(ax: Any, **more: Any) -> None:
    """At the right of the axes, as in the paper."""
    ax.legend(
        loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=TEXT, handlelength=3.2, **more
    )


def label_ends(ax: Any, labels: dict[str, str] | None = None) -> None:
    """Every line's name where it ends, moved up or down so that all can be read.

    A thin leader goes from the end of the line to a piece of it, beside which its name stands.
    """
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    lines.sort(key=lambda line: sum(line.get_ydata()) / len(line.get_ydata()))  # among equals
    ends = [_end_of(ax, line) for line in lines]
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


def _end_of(ax: Any, line: Any) -> tuple[float, float]:
    """Where a line ends, as shares of the axes."""
    x, y = ax.transLimits.transform(ax.transScale.transform(line.get_xydata()[-1]))
    return float(x), float(y)


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places in [0, 1] in the order of those wanted, at least `gap` apart and close to them.

    Neighbours that are too near form a block around their mean.

    >>> [round(place, 2) for place in spread([0.5, 0.5, 0.9, 0.0], 0.1)]
    [0.45, 0.55, 0.9, 0.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[list[int]] = []
    for i in order:
        blocks.append([i])
        while len(blocks) > 1 and _start(blocks[-1], wanted, gap) < (
            _start(blocks[-2], wanted, gap) + len(blocks[-2]) * gap
        ):
            last = blocks.pop()
            blocks[-1] += last
    places = [0.0] * len(wanted)
    for block in blocks:
        for rank, i in enumerate(block):
            places[i] = _start(block, wanted, gap) + rank * gap
    return places


def _start(block: Sequence[int], wanted: Sequence[float], gap: float) -> float:
    """The first place of a block, around its mean and within [0, 1]."""
    length = (len(block) - 1) * gap
    middle = sum(wanted[i] for i in block) / len(block)
    return min(max(middle - length / 2, 0.0), max(1 - length, 0.0))


def shared_legend(figure: Any, ax: Any, columns: int) -> None:
    """One legend below all panels, of what `ax` shows."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=TEXT,
                  handlelength=3.2)  # fmt: skip


def arms(ax: Any, means: Any, names: Sequence[str]) -> None:
    """Expected rewards against the number of pulls."""
    pulls = len(means[0])
    for place, (curve, name) in enumerate(zip(means, names, strict=True)):
        look = ARM_STYLES[place].line() | {"markevery": (pulls * (place + 1) // 40, pulls // 5)}
        ax.plot(range(1, pulls + 1), curve, label=name, **look)
    ax.set(xlabel="$n$", ylabel=r"$\mu_i(n)$", xlim=(0, pulls))
    grid(ax)
