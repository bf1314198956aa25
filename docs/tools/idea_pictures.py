"""Draws the pictures of docs/start.md: `python docs/tools/idea_pictures.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from policy_pages import BUDGET, INK, NAMES, play

from latebloomer import Session
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
    """A forecast, its test on what has already happened, and the part of it that counts."""
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 3.4), sharey=True, layout="constrained")
    now, end = 60, 240
    for axes, noise, kind in zip(panels, (0.0, 0.03), ("smooth", "noisy"), strict=True):
        scores = curves() + np.random.default_rng(0).normal(0, noise, (len(NAMES), BUDGET))
        session = Session("foresight", arms=list(NAMES), budget=750, horizon=end)
        while session.spent < now * len(NAMES):  # then it drops the first learner
            arm = session.ask()
            session.tell(arm, scores[arm, session.pulls[arm]])
        late = next(one for one in session.standings() if one.name == NAMES[0])
        made = late.forecast
        assert made is not None
        axes.plot(range(1, end + 1), curves()[0, :end], color=INK[0], lw=1.2, ls=":",
                  label="what happened")  # fmt: skip
        axes.plot(range(1, now + 1), scores[0, :now], color=INK[0], lw=1.8, label="scores so far")
        steps, gains = forecast(scores, made.origin, now)
        quarter = range(made.origin * 3 // 4, made.origin)
        slope, offset = np.polyfit(quarter, scores[0, quarter], 1)
        start = offset + slope * quarter[-1]
        axes.plot(steps, start + gains, color=INK[1], lw=2, ls="--",
                  label="test: forecast from half of the scores")  # fmt: skip
        steps, gains = forecast(scores, now, end)
        gains *= (made.score - made.level) / gains[-1]  # as the policy has it
        for share, look, label in (
            (1.0, "--", "forecast to the end"), (made.trust, "-", "the part of it that counts")
        ):  # fmt: skip
            axes.plot(steps, made.level + share * gains, color=INK[2], lw=2, ls=look, label=label)
        plain(axes, title=f"{kind} scores: {100 * made.trust:.0f} % of the gain counts",
              xlabel="steps of one learner", xlim=(0, end), ylim=(0, 1))  # fmt: skip
    panels[0].set_ylabel("score")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, loc="outside lower center", ncols=3)
    return figure


def forecast(scores: np.ndarray, origin: int, until: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps after `origin`, and the gain of the first learner up to each, by `Foresight`."""
    a = origin // 4
    late = np.polyfit(range(2 * a), scores[:, origin - 2 * a : origin].T, 1)[0]
    early = np.polyfit(range(2 * a), scores[:, origin - 4 * a : origin - 2 * a].T, 1)[0]
    ratio = np.log((origin - a) / (origin - 3 * a))
    own, common = np.log(early[0] / late[0]), np.log(early.clip(0).sum() / late.clip(0).sum())
    power = np.clip(np.array([own, common]) / ratio, 0, 4).mean()
    steps = np.arange(origin + 1, until + 1)
    return steps, np.cumsum(late[0] * ((origin - a) / steps) ** power)


if __name__ == "__main__":
    for draw in (now_and_later, phases, look_ahead):
        name = draw.__name__.replace("_", "-")
        draw().savefig(Path(__file__).parents[1] / "idea" / f"{name}.png", dpi=110)
