"""Draws docs/cooldown.png and checks what docs/limits.md says of it.

    LATEBLOOMER_DATA=FOLDER python docs/tools/cooldown_picture.py

The runs are of KellerJordan/modded-nanogpt @f411b3d, records/track_3_optimization/results (MIT
license), in FOLDER/data/nanogpt_optimizers. Where they are not at hand, the kept picture stays.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from latebloomer import Session

HERE = Path(__file__).parents[1]
FILE = "data/nanogpt_optimizers/nanogpt_optimizers.npz"
SWEEP = "20260508_klsoap_h_clean_tuple_sweep"
RECIPES = {"beta1 .90": (f"{SWEEP}/b1090_sh090", "#1f4e79"),
           "beta1 .95": (f"{SWEEP}/b1095_sh090", "#c1272d")}  # fmt: skip
SWAP = 2750
PULLS = (12, 15, 18, 20, 21, 22, 23, 24, 25)  # evaluations of each, 25 are the whole training
NAMED = {  # on how many of six seeds the one that ends best is named
    "auto": [0, 0, 0, 0, 0, 0, 4, 6, 6],
    "adaptive-rejects": [0, 0, 0, 0, 0, 0, 1, 6, 6],
    "sh": [0, 0, 0, 0, 0, 0, 1, 6, 6],
    "r-sr": [0] * 9,
}


def data() -> Path | None:
    file = Path(os.environ.get("LATEBLOOMER_DATA", "no such folder")) / FILE
    return file if file.is_file() else None


def read(file: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Steps and losses (runs, steps) of both recipes."""
    with np.load(file) as arrays:
        return {
            name: (arrays[f"{key}|steps"], arrays[f"{key}|val_loss"])
            for name, (key, _) in RECIPES.items()
        }


def check() -> None:
    """What the page says, where the runs are at hand: who leads until 88 %, and at the end."""
    file = data()
    if file is None:
        return
    (steps, early), (_, late) = read(file).values()
    before = (steps >= 125) & (steps <= SWAP)
    after = steps >= 3000
    said = (
        len(early) == len(late) == 6
        and np.all(early[:, before] < late[:, before])
        and np.all(early[:, after] > late[:, after])
        and f"{early[:, -1].mean():.4f}" == "3.2829"
        and f"{late[:, -1].mean():.4f}" == "3.2780"
    )
    said = said and {rule: named(rule, steps, early, late) for rule in NAMED} == NAMED
    if not said:
        raise ValueError(f"docs/limits.md is not what {file} shows")


def named(rule: str, steps: np.ndarray, early: np.ndarray, late: np.ndarray) -> list[int]:
    """On how many seeds .95 is named when both may be trained to a share of the training."""
    every = steps % 125 == 0
    counts = []
    for pulls in PULLS:
        sessions = [
            played(rule, pulls, -np.array(pair)[:, every])
            for pair in zip(early, late, strict=True)
        ]
        counts.append(sum(session.recommend().name == "late" for session in sessions))
    return counts


def played(rule: str, pulls: int, rewards: np.ndarray) -> Session:
    """A race of two in which both may have so many pulls."""
    session = Session(rule, arms=["early", "late"], budget=2 * pulls, horizon=rewards.shape[1])
    while not session.over:
        arm = session.ask()
        session.tell(arm, rewards[arm, session.pulls[arm]])
    return session


def draw() -> None:
    file = data()
    if file is None:
        raise SystemExit("LATEBLOOMER_DATA has no data/nanogpt_optimizers")
    runs = read(file)
    figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
    for name, (steps, losses) in runs.items():
        ink = RECIPES[name][1]
        shown = steps >= 125
        for run in losses:
            panels[0].plot(steps[shown], run[shown], color=ink, lw=0.6, alpha=0.6)
        panels[0].plot([], [], color=ink, label=name)
    (steps, early), (_, late) = runs.values()
    shown = steps >= 500
    for gap in (late - early)[:, shown]:
        panels[1].plot(steps[shown], gap, color="#5b687a", lw=0.8)
    panels[1].axhline(0, color="black", lw=0.8)
    panels[1].axvline(SWAP, color="#c1272d", ls=":", lw=1)
    panels[1].annotate("88 %", (SWAP, 0), xytext=(-30, 12), textcoords="offset points",
                       color="#c1272d")  # fmt: skip
    panels[0].set(xlabel="training steps", ylabel="validation loss")
    panels[1].set(xlabel="training steps", title="loss of .95 minus that of .90, six seeds")
    panels[0].legend(frameon=False)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "cooldown.png", dpi=130)


if __name__ == "__main__":
    check()
    draw()
