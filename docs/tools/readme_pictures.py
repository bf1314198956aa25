"""Draws the pictures of the README: `python docs/tools/readme_pictures.py`."""

import csv
from pathlib import Path

import matplotlib.pyplot as plt

from latebloomer import simulate
from latebloomer._util.atomic_files import write_csv
from latebloomer.bench.benchmark import TUNED_ASHA
from latebloomer.page.figures import TEXT
from latebloomer.problems import Problem, problem
from latebloomer.simulation.results.plots import MORE_STYLES, STYLES, Style

HERE = Path(__file__).parents[1]
SHARES = HERE / "results" / "kept-by-budget.csv"  # made anew where it is missing
BUDGETS = [200, 250, 300, 400, 500, 600, 700, 800, 900, 1000, 1300, 1600, 2000]
RUNS = 2000  # in each of five orders of the arms
RULES = {
    "auto": Style("#000000", "h", "-", 3.0),
    "r-sr": STYLES["r-sr"],
    "r-ucbe": STYLES["r-ucbe"],
    "sh": STYLES["sh"],
    "sh:judge=window": STYLES["rr"],
    TUNED_ASHA: MORE_STYLES[2],
    "hyperband": MORE_STYLES[3],
}
LABELS = {
    "auto": "latebloomer (auto)", "r-sr": "R-SR", "r-ucbe": "R-UCBE", "sh": "Halving",
    "sh:judge=window": "Halving by means", TUNED_ASHA: "ASHA, tuned", "hyperband": "Hyperband",
}  # fmt: skip
POLICIES = {"auto": "foresight"}
TITLE = {"fontsize": 10, "loc": "left"}
RED, GRAY = "#c1272d", "#5b687a"
NAMES = ("late", "second", "early", "weak", "slow")


def late_bloomer(budget: int = 400) -> None:
    """The five curves of setting A, and where the one that wins passes the others."""
    curves = problem("paper-a").means(budget)
    pulls = range(1, budget + 1)
    figure, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    for curve, name in zip(curves, NAMES, strict=True):
        line, ink, weight = (2.6, RED, "bold") if name == "late" else (1.4, GRAY, "normal")
        axes.plot(pulls, curve, lw=line, color=ink)
        end = {"xytext": (5, -3), "textcoords": "offset points"}
        axes.annotate(name, (budget, curve[-1]), color=ink, weight=weight, **end)
    axes.axvline(188, color=RED, lw=0.8, ls=":")
    axes.annotate("takes the lead at step 188", (188, 0.2), xytext=(6, 0),
                  textcoords="offset points", color=RED)  # fmt: skip
    axes.axvline(26, color=GRAY, lw=0.8, ls=":")
    axes.annotate("halving decides here", (26, 0.05), xytext=(6, 0),
                  textcoords="offset points", color=GRAY)  # fmt: skip
    axes.set(xlabel="training steps of one learner", ylabel="score", xlim=(0, budget), ylim=(0, 1))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "late-bloomer.png", dpi=150)
    plt.close(figure)


def kept_as_the_budget_grows() -> None:
    """What each rule keeps: of the five curves above, and of learners with recorded curves."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.9), layout="constrained")
    for place, (name, style) in enumerate(RULES.items()):
        line = style.line(place, 3, 9) | {"markersize": 11 if style.marker == "*" else 6}
        budgets, shares = zip(*shares_of_late(name), strict=True)
        left.plot(budgets, [100 * share for share in shares], label=LABELS.get(name, name), **line)
        trainings, losses = zip(*recorded_losses(name), strict=True)
        right.plot(trainings, [100 * loss for loss in losses], **line | {"markevery": 1})
    left.set(xscale="log", xlabel="pulls, for five learners together", ylim=(-4, 104))
    left.set_title("keeps the late bloomer, % of runs", **TITLE)
    right.set(xscale="log", xlabel="budget, in full trainings", ylim=(0, None))
    right.set_title("learners better than the one kept, %", **TITLE)
    for axes, ticks in ((left, (200, 400, 800, 1600)), (right, (1, 2, 4, 8))):
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="0.92", linewidth=0.6)
        axes.tick_params(labelsize=TEXT)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=TEXT + 1,
                  handlelength=3)  # fmt: skip
    figure.savefig(HERE / "kept-by-budget.png", dpi=150)
    plt.close(figure)


def shares_of_late(name: str) -> list[tuple[int, float]]:
    """How often a rule keeps the late bloomer at each budget; it is the best at all of them."""
    if not SHARES.exists():
        play()
    with SHARES.open(newline="") as file:
        found = [row for row in csv.DictReader(file) if row["policy"] == POLICIES.get(name, name)]
    return [(int(row["budget"]), int(row["kept_late"]) / int(row["runs"])) for row in found]


def play() -> None:
    """Every rule on the curves of setting A in each of five orders: some favor the first arm."""
    curves, noise = problem("paper-a").curves, problem("paper-a").noise
    counts: dict[tuple[str, int], list[int]] = {}
    for first in range(len(curves)):
        turned = Problem([*curves[first:], *curves[:first]], noise)
        results = simulate(turned, [POLICIES.get(name, name) for name in RULES], BUDGETS, RUNS,
                           seed=first)  # fmt: skip
        for row in results.rows():
            count = counts.setdefault((row["policy"], row["budget"]), [0, 0])
            count[0] += row["runs"] - round(row["error"] * row["runs"])
            count[1] += row["runs"]
    table = [[name, budget, *count] for (name, budget), count in counts.items()]
    write_csv(SHARES, [["policy", "budget", "kept_late", "runs"], *table])


def recorded_losses(name: str) -> list[tuple[int, float]]:
    """The share of learners that are truly better than what a rule keeps: `latebloomer bench`."""
    with (HERE / "results" / "policies" / "public" / "bench.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["group"] == "all"]
    return [(int(row["budget"]), float(row["rank_loss"])) for row in rows
            if row["policy"] == name and row["budget"] != "all"]  # fmt: skip


if __name__ == "__main__":
    late_bloomer()
    kept_as_the_budget_grows()
