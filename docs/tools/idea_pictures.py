"""Draws the pictures of docs/how-it-works.md: `python docs/tools/idea_pictures.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from policy_pages import BUDGET, INK, NAMES, play

from latebloomer.policies.registry import choose_policy, make_policy
from latebloomer.problems import problem


def curves() -> np.ndarray:
    return problem("paper-a").means(BUDGET)


def plain(axes: plt.Axes, **settings: object) -> None:
    axes.set(**settings)
    axes.spines[["top", "right"]].set_visible(False)


def now_and_later() -> plt.Figure:
    """The same curves with what a rule sees early, and what comes."""
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 3), sharey=True, layout="constrained")
    for axes, upto, title in zip(
        panels, (26, BUDGET), ("what halving sees when it decides", "what happens"), strict=True
    ):
        for row, name, ink in zip(curves(), NAMES, INK, strict=True):
            axes.plot(range(1, upto + 1), row[:upto], color=ink, lw=2, label=name)
        plain(axes, title=title, xlabel="steps of one learner", xlim=(0, upto), ylim=(0, 1))
    panels[0].set_ylabel("score")
    panels[1].legend(frameon=False, fontsize=8)
    return figure


def phases() -> plt.Figure:
    """How far each learner is trained, by the default and by halving."""
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 3), sharey=True, layout="constrained")
    auto = choose_policy(len(NAMES), BUDGET, BUDGET)
    rules = {"auto": auto, "sh": make_policy("sh")}
    for axes, (policy, rule) in zip(panels, rules.items(), strict=True):
        session, _, _ = play(rule, noise=0.0)
        for row, n, name, ink in zip(curves(), session.pulls, NAMES, INK, strict=True):
            axes.plot(range(1, BUDGET + 1), row, color=ink, lw=0.8, ls=":")
            axes.plot(range(1, n + 1), row[:n], color=ink, lw=2.4)
            axes.plot([n], row[n - 1], "o", color=ink, ms=5)
            axes.annotate(name, (n, row[n - 1]), xytext=(5, -9), color=ink, fontsize=8,
                          textcoords="offset points")  # fmt: skip
        keeps = session.recommend().name
        plain(axes, title=f"{policy} keeps {keeps}", xlabel="steps of one learner",
              xlim=(0, 220), ylim=(0, 1))  # fmt: skip
    panels[0].set_ylabel("score")
    return figure


def look_ahead() -> plt.Figure:
    """A forecast along an arm's own slope, and how it is tested on what has already happened."""
    row, n = curves()[0], 60
    figure, axes = plt.subplots(figsize=(7.6, 3), layout="constrained")
    pulls = np.arange(1, 241)
    axes.plot(pulls, row[:240], color=INK[0], lw=0.8, ls=":")
    axes.plot(pulls[:n], row[:n], color=INK[0], lw=2.4, label="seen so far")
    for origin, until, ink, label in (
        (30, 60, INK[1], "test: a forecast from the past, against what came"),
        (60, 240, INK[2], "the forecast that is then believed as far as the test was right"),
    ):
        a = origin // 4
        late = np.polyfit(range(2 * a), row[origin - 2 * a : origin], 1)[0]
        early = np.polyfit(range(2 * a), row[origin - 4 * a : origin - 2 * a], 1)[0]
        power = np.clip(np.log(early / late) / np.log((origin - a) / (origin - 3 * a)), 0, 4)
        steps = np.arange(origin + 1, until + 1)
        gains = np.cumsum(late * ((origin - a) / steps) ** power)
        axes.plot(steps, row[origin - 1] + gains, color=ink, lw=2, ls="--", label=label)
    plain(axes, xlabel="steps of one learner", ylabel="score", xlim=(0, 240), ylim=(0, 1))
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return figure


if __name__ == "__main__":
    for draw in (now_and_later, phases, look_ahead):
        name = draw.__name__.replace("_", "-")
        draw().savefig(Path(__file__).parents[1] / "idea" / f"{name}.png", dpi=110)
