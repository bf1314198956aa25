"""
A late bloomer, and what halving does with it
=============================================

Four curves like those of the paper's first setting. The curve named "late" is the best at the end
and the last at the start.
"""

import matplotlib.pyplot as plt

from latebloomer import race

CURVES = {"late": (37, 1), "second": (10, 0.88), "early": (1, 0.78), "weak": (10, 0.7)}


def learner(b, c):
    def scores():
        for n in range(1, 10_000):
            yield c * (1 - b / (b + n))

    return scores


learners = {name: learner(*curve) for name, curve in CURVES.items()}
kept = {}
for policy in ("auto", "r-sr", "sh"):
    kept[policy] = race(learners, budget=320, policy=policy, journal=None, progress=False)
    print(f"{policy:5} keeps {kept[policy].name}")

# %%
# How far each policy trains each learner: the dotted part is not seen.

figure, panels = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
for axes, (policy, verdict) in zip(panels, kept.items(), strict=True):
    for name, (b, c) in CURVES.items():
        curve = [c * (1 - b / (b + n)) for n in range(1, 241)]
        n = verdict.pulls[name]
        (line,) = axes.plot(curve, ":", lw=0.8)
        axes.plot(curve[:n], color=line.get_color(), lw=2, label=name)
    axes.set(title=f"{policy} keeps {verdict.name}", xlabel="pulls of each learner")
panels[0].set_ylabel("score")
panels[-1].legend(frameon=False, fontsize=8)
plt.show()
