"""Draws the pictures of the README: `python docs/pictures.py`."""

from pathlib import Path

import matplotlib.pyplot as plt

from latebloomer import Results
from latebloomer.problems import problem

HERE = Path(__file__).parent
RED, GREY = "#c1272d", "#5b687a"
NAMES = ("late", "second", "early", "weak", "slow")


def late_bloomer(budget: int = 400) -> None:
    """The five curves of setting A, and where the one that wins passes the others."""
    curves = problem("paper-a").means(budget)
    pulls = range(1, budget + 1)
    figure, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    for curve, name in zip(curves, NAMES, strict=True):
        line, ink, weight = (2.6, RED, "bold") if name == "late" else (1.4, GREY, "normal")
        axes.plot(pulls, curve, lw=line, color=ink)
        end = {"xytext": (5, -3), "textcoords": "offset points"}
        axes.annotate(name, (budget, curve[-1]), color=ink, weight=weight, **end)
    axes.axvline(188, color=RED, lw=0.8, ls=":")
    axes.annotate("takes the lead at step 188", (188, 0.2), xytext=(6, 0),
                  textcoords="offset points", color=RED)  # fmt: skip
    axes.axvline(26, color=GREY, lw=0.8, ls=":")
    axes.annotate("halving decides here", (26, 0.05), xytext=(6, 0),
                  textcoords="offset points", color=GREY)  # fmt: skip
    axes.set(xlabel="training steps of one learner", ylabel="score", xlim=(0, budget), ylim=(0, 1))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "late-bloomer.png", dpi=150)
    plt.close(figure)


def million_runs() -> None:
    """The ten policies on setting A with 1000 pulls, from the results file beside this one."""
    results = Results.load(HERE / "results" / "paper-a-T1000.json.gz")
    results.plot(HERE / "paper-a-T1000.png", what="both", log=True)


if __name__ == "__main__":
    late_bloomer()
    million_runs()
