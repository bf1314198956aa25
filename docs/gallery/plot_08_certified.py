"""
Stop when the winner is certified
=================================

The certificate has an interval for every learner's score at the horizon. The intervals hold
together with 95 % probability if curves rise and are concave, and ``score_range`` limits them.
``stop="certified"`` ends the race when the winner's interval is above all others.
"""

import matplotlib.pyplot as plt
import numpy as np

from latebloomer import race


def noisy(best, slow):
    def learner(seed):
        rng = np.random.default_rng(seed)
        for n in range(1, 10_000):
            yield best * n / (n + slow) + rng.normal(0, 0.005)

    return learner


learners = {"good": noisy(0.9, 4), "fair": noisy(0.7, 4), "poor": noisy(0.5, 4)}
verdict = race(
    learners, 1500, horizon=500, score_range=(0, 1), stop="certified", journal=None, progress=False
)
print(verdict.reason)
print(verdict.unspent, "pulls were not needed")

# %%

for place, row in enumerate(verdict.learners):
    low, high = row.lower, row.upper
    plt.plot([low, high], [place, place], lw=6, solid_capstyle="butt")
    plt.text(high, place, f"  {row.name}", va="center")
plt.yticks([])
plt.gca().invert_yaxis()  # the winner is at the top
plt.xlabel("score at the horizon (intervals hold together, 95 %)")
plt.xlim(0, 1.2)
plt.show()
