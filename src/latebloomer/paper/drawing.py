"""The look of the paper's figures: a logarithmic budget axis, bands, the legend at the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from latebloomer.paper.experiments import AS_PUBLISHED, THEORY, Setting
from latebloomer.paper.figure import Row, select
from latebloomer.simulation.plots import COLOURS, MORE_COLOURS

ARM_COLOURS = tuple(COLOURS.values())  # for whatever is no algorithm: arms, learners, multiples
LABELS = {"error": r"$\overline{e}_T$", "regret": r"$\overline{r}_T$"}


def colour(series: str) -> str:
    """The paper's colour of an algorithm; black for R-UCBE with the theory's exploration."""
    return COLOURS.get(series.lower(), MORE_COLOURS[0])


def curves(
    ax: Any,
    rows: Sequence[Row],
    what: str = "error",
    colours: dict[str, str] | None = None,
) -> None:
    """A line with its band for each series, in the order of the rows."""
    for series in dict.fromkeys(row.algorithm for row in rows):
        own = select(rows, algorithm=series)
        ink = (colours or {}).get(series, colour(series))
        budgets = [row.T for row in own]
        middle, low, high = (
            [getattr(row, name) for row in own] for name in (what, f"{what}_low", f"{what}_high")
        )
        style = "--" if series == THEORY else "-"
        ax.plot(budgets, middle, style, color=ink, label=series, linewidth=1.3)
        ax.fill_between(budgets, low, high, color=ink, alpha=0.3, linewidth=0)
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
            budget, color=ARM_COLOURS[0], linestyle="--", linewidth=1.0, alpha=0.5, zorder=0
        )


def last_change(setting: Setting, mode: str, upto: int = 3200) -> int | None:
    """Where the paper draws its line, or where the last change really is."""
    if mode == AS_PUBLISHED:
        return setting.printed_change
    return setting.problem().changes(upto)[-1][0]


def legend(ax: Any, **more: Any) -> None:
    """At the right of the axes, as in the paper."""
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, **more)


def shared_legend(figure: Any, ax: Any, columns: int) -> None:
    """One legend below all panels, of what `ax` shows."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9)


def arms(ax: Any, means: Any, names: Sequence[str]) -> None:
    """Expected rewards against the number of pulls."""
    for curve, name, tint in zip(means, names, ARM_COLOURS, strict=False):
        ax.plot(range(1, len(curve) + 1), curve, color=tint, label=name, linewidth=1.3)
    ax.set(xlabel="$n$", ylabel=r"$\mu_i(n)$", xlim=(0, len(means[0])))
    grid(ax)
