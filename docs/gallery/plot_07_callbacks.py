"""
Stop a race with a callback
===========================

A function receives everything that happens. It may draw, log, or end the race.
"""

import matplotlib.pyplot as plt

from latebloomer import race
from latebloomer.session.events import ScoreReported


def curve(best, slow):
    return lambda: (best * n / (n + slow) for n in range(1, 10_000))


standings = []


def watch(event, view):
    if isinstance(event, ScoreReported):
        standings.append((view.spent, event.arm, event.score))
        if event.score > 0.75:
            view.stop(f"{view.names[event.arm]} is good enough")


learners = {"quick": curve(0.7, 3), "slow": curve(1.0, 30), "slower": curve(0.9, 60)}
verdict = race(learners, budget=600, journal=None, progress=False, callbacks=[watch])
print(verdict.reason)

# %%

for arm, name in enumerate(learners):
    points = [(spent, score) for spent, pulled, score in standings if pulled == arm]
    plt.plot(*zip(*points, strict=True), label=name)
plt.axhline(0.75, color="0.4", ls=":")
plt.text(0, 0.74, "good enough", color="0.4", va="top")
plt.xlabel("pulls of the race")
plt.ylabel("score")
plt.legend(frameon=False)
plt.show()
