"""
Simulate forty thousand races
=============================

The simulator runs policies on noisy curves, tens of millions of pulls per second. How often do
they select the wrong arm of the paper's setting A?
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

from latebloomer import simulate

budgets = [100, 200, 400, 800, 1600]
policies = ["auto", "r-ucbe:noise=0.01", "r-sr", "sh"]
results = simulate("paper-a", policies, budgets, runs=2000)
print(results)

# %%
# ``Results.plot`` draws errors with their intervals.

with TemporaryDirectory() as folder:
    results.plot(Path(folder) / "errors.png")
    plt.figure(figsize=(7, 4.5), layout="constrained")
    plt.imshow(plt.imread(Path(folder) / "errors.png"))
    plt.axis("off")
plt.show()
