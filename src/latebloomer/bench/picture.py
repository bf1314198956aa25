"""The bench in one picture: rank loss against the budget, set by set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latebloomer.bench.losses import ALL, Line
from latebloomer.errors import extra
from latebloomer.simulation.plots import COLOURS

OWN = "adaptive-rejects"
COLUMNS = 3
SPARE = ("#17becf", "#bcbd22", "#7f7f7f", "#e377c2", "#8c564b", "#9467bd", "#ff9896", "#98df8a")


def draw(lines: Sequence[Line], path: Path) -> None:
    """Write the picture; a panel for each set and one for all."""
    pyplot = extra("matplotlib.pyplot", "pictures", "plots")
    groups = list(dict.fromkeys(line.group for line in lines))
    rows = -(-len(groups) // COLUMNS)
    wide = min(COLUMNS, len(groups))
    figure, axes = pyplot.subplots(
        rows, wide, figsize=(4 * wide, 3 * rows), squeeze=False, layout="constrained"
    )
    for ax in axes.flat[len(groups) :]:
        ax.set_axis_off()
    for ax, group in zip(axes.flat, groups, strict=False):
        _panel(ax, [line for line in lines if line.group == group], group)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _panel(ax: Any, lines: Sequence[Line], title: str) -> None:
    tints = inks(list(dict.fromkeys(line.policy for line in lines)))
    for policy, ink in tints.items():
        own = [line for line in lines if line.policy == policy]
        own = [line for line in own if line.budget != ALL] or own
        budgets = [1.0 if line.budget == ALL else float(line.budget) for line in own]
        ax.plot(budgets, [line.rank_loss for line in own], marker=".", color=ink, label=policy,
                linestyle="--" if ":" in policy else "-",
                linewidth=2.4 if policy == OWN else 1.0)  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
    ax.set(title=title, xlabel="budget, full trainings", ylabel="rank loss", ylim=(0, None))
    ax.grid(True, color="0.9")


def inks(policies: Sequence[str]) -> dict[str, str]:
    """A colour for each policy: the library's where it has one; settings share their policy's."""
    known = dict(COLOURS) | {OWN: "black"}
    bases = list(dict.fromkeys(policy.partition(":")[0] for policy in policies))
    used = {known[base] for base in bases if base in known}
    spare = iter([ink for ink in SPARE if ink not in used] * len(policies))
    tints = {base: known[base] if base in known else next(spare) for base in bases}
    return {policy: tints[policy.partition(":")[0]] for policy in policies}
