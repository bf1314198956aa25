"""
Compare with Optuna, Ray Tune and scikit-learn
==============================================

The methods of the comparison page, in their libraries' own code, on synthetic curves: 8 problems
of the paper's family with 12 arms and a little noise. Recorded curves, with the settings of each
method, are on :doc:`/comparison`.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np

from latebloomer.bench import Curves
from latebloomer.page.figures import COLORS
from latebloomer.problems import random_problem
from measurements.other_libraries import BUDGETS, PLAYERS, rows  # run from a clone's root

problems = [
    Curves("F", str(seed), random_problem("F", arms=12, seed=seed).means(100), sd=0.01)
    for seed in range(8)
]
found = list(rows(problems))
losses = {
    player: [
        np.mean([r["rank_loss"] for r in found if (r["player"], r["budget"]) == (player, budget)])
        for budget in BUDGETS["pulls"]
    ]
    for player in PLAYERS
}
for player, row in losses.items():
    print(f"{player:32}", *(f"{loss:.3f}" for loss in row))

# %%
# A color is used twice, once with solid and once with dashed lines.

looks = product(("-", "--"), COLORS)
for (player, row), (dashes, color) in zip(losses.items(), looks, strict=False):
    width = 3 if player.startswith("late") else 1.2
    plt.plot(BUDGETS["pulls"], row, dashes, marker="o", color=color, lw=width, label=player)
plt.xscale("log", base=2)
plt.xticks(BUDGETS["pulls"], BUDGETS["pulls"])
plt.xlabel("budget, in full trainings")
plt.ylabel("rank loss (0 is best)")
plt.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.tight_layout()
plt.show()
