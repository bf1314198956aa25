"""
Give a finished race more budget
================================

A race has finished, and there is time left. ``resume`` with a larger budget makes a new plan and
reuses the recorded scores: a learner that the new plan would still include is revived, and nothing
is trained twice.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from latebloomer import LocalRunner, race, resume


class Curve:
    """A learner that can be saved: resume need not train it again."""

    def __init__(self, best, slow):
        self.best, self.slow, self.n = best, slow, 0

    def pull(self):
        self.n += 1
        return self.best * self.n / (self.n + self.slow)

    def save(self, folder):
        (Path(folder) / "n.txt").write_text(str(self.n))

    def load(self, folder):
        self.n = int((Path(folder) / "n.txt").read_text())


learners = {
    "tortoise": lambda: Curve(1.0, 60),
    "hare": lambda: Curve(0.6, 3),
    "dog": lambda: Curve(0.7, 12),
    "snail": lambda: Curve(0.4, 40),
}
folder = tempfile.TemporaryDirectory()
journal = Path(folder.name) / "race.db"
quiet = {"progress": False}
first = race(learners, budget=40, journal=journal, runner=LocalRunner(checkpoint_every=1), **quiet)
print(f"after {first.spent} pulls: keep {first.name}")
second = resume(journal, learners, budget=400, horizon=400, **quiet)
print(f"after {second.spent} pulls: keep {second.name}")

# %%

names = list(learners)
plt.figure(figsize=(6, 2.6), layout="constrained")
plt.barh(names, [second.pulls[n] for n in names], color="#c1272d", label="with 400 pulls")
plt.barh(names, [first.pulls[n] for n in names], color="#5b687a", label="with 40 pulls")
plt.xlabel("pulls")
plt.legend(frameon=False)
plt.show()
folder.cleanup()
