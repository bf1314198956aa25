"""Draws docs/growth.png, how a simulated run's cost grows: `python -m measurements.growth`.

The numbers are printed too, for docs/performance.md.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

from latebloomer.page.figures import TEXT
from latebloomer.problems import problem
from latebloomer.simulation.players import compiled_player
from latebloomer.simulation.results import plots
from measurements.simulator import cost, experiment_with

INDEX = "r-ucbe:exploration=20,noise=0.01"
STYLES = {
    "R-UCBE": plots.STYLES["r-ucbe"],
    "R-SR by pulls": plots.STYLES["r-sr"],
    "R-SR by sums": plots.MORE_STYLES[1],
    "Rest-Sure": plots.STYLES["rest-sure"],
}
PICTURE = Path(__file__).parent.parent / "docs" / "growth.png"


def seconds(name: str, setting: str, budget: int, method: str = "pulls") -> float:
    """CPU seconds of one run."""
    experiment, policy = experiment_with(name, problem(setting), budget, method)
    runs = max(2, int(1_000_000 / experiment.cost_per_policy))
    return cost(compiled_player(experiment, policy), experiment.arms, runs, repeats=3)[0]


def draw_line(axes: plt.Axes, sizes: list[int], costs: list[float], label: str) -> None:
    axes.loglog(sizes, costs, label=label, **STYLES[label].line())
    print(f"{label:14}", *(f"{size}: {cost:.3g}" for size, cost in zip(sizes, costs, strict=True)))


def with_budget(axes: plt.Axes) -> None:
    budgets = [100, 300, 1000, 3000, 10_000, 30_000, 100_000]
    lines = (
        ("R-UCBE", INDEX, "pulls"),
        ("R-SR by pulls", "r-sr", "pulls"),
        ("R-SR by sums", "r-sr", "sums"),
    )
    for label, name, method in lines:
        costs = [1e6 * seconds(name, "paper-a", T, method) for T in budgets]
        draw_line(axes, budgets, costs, label)
    axes.set(xlabel="budget T (5 arms)", ylabel="microseconds per run")


def with_arms(axes: plt.Axes) -> None:
    counts = [2, 5, 16, 50, 160, 500, 1000]
    for label, name in (("R-UCBE", INDEX), ("R-SR by pulls", "r-sr"), ("Rest-Sure", "rest-sure")):
        costs = [1e9 * seconds(name, f"random:F:K={K}:seed=0", 40 * K) / (40 * K) for K in counts]
        draw_line(axes, counts, costs, label)
    axes.set(xlabel="arms K (T = 40 K)", ylabel="nanoseconds per pull", ylim=(10, 1000))


def with_runs(axes: plt.Axes) -> None:
    counts = [100, 1000, 10_000, 100_000]
    for label, name, method in (("R-UCBE", INDEX, "pulls"), ("R-SR by sums", "r-sr", "sums")):
        experiment, policy = experiment_with(name, problem("paper-a"), 400, method)
        player = compiled_player(experiment, policy)
        costs = [R * cost(player, experiment.arms, R, repeats=1)[0] for R in counts]
        draw_line(axes, counts, costs, label)
    axes.set(xlabel="runs (5 arms, T = 400)", ylabel="seconds")


if __name__ == "__main__":
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")
    for axes, draw in zip(panels, (with_budget, with_arms, with_runs), strict=True):
        draw(axes)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=TEXT)
    figure.suptitle("CPU time of one core, noise generation included", fontsize=TEXT + 1)
    figure.savefig(PICTURE, dpi=150)
