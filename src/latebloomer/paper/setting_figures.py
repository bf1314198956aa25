"""Settings A and B: their arms, error and simple regret, and how A takes to other a and noise.

Section 8 has setting A and the multiples of a, appendix H setting B and the noise levels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from latebloomer.paper import drawing, series
from latebloomer.paper.experiments import (
    SETTING_A,
    SETTING_B,
    SIGMAS,
    THEORY,
    Setting,
)
from latebloomer.paper.figure import Figure, Made, Row, Workbench, select
from latebloomer.paper.modes import AS_PUBLISHED
from latebloomer.problems.curves import Floats
from latebloomer.theory.rising_ucbe_bounds import error_bound

AS_WRITTEN_A = (
    "R-UCBE is played with the a of the authors' configuration, which squares the negative "
    f"bracket, without the factor 10 of the published runs; '{THEORY}' is a = 10 log(2TK/delta), "
    "the a at which the error bound, where it applies, is delta = .05."
)
AS_PUBLISHED_A = (
    "The conventions of the published runs: a with a factor 10, the n-th pull has mean "
    "mu(n-1), the window of R-SR and RR-SW keeps its first three rewards, ETC has rho = .98 "
    "in setting A."
)


def about(setting: Setting, mode: str) -> list[str]:
    """Which a R-UCBE is played with, and why not the text's."""
    return [AS_PUBLISHED_A] if mode == AS_PUBLISHED else [_no_closed_form(setting), AS_WRITTEN_A]


def _no_closed_form(setting: Setting) -> str:
    limits = setting.exploration_limits()
    arms, (first, *_, last) = setting.problem().arms, limits
    bound = error_bound(arms, last, limits[last])
    return (
        "The text sets a to a* of Corollary 1, whose closed form does not exist here at any of "
        "these budgets: its bracket is negative. Theorem 1's own a*(0) does, from "
        f"T = {first} on: {limits[first]:.3g}, and {limits[last]:.4g} at T = {last}, where its "
        f"error bound is {'above 1' if bound > 1 else f'{bound:.1g}'}."
    )


# --- expected rewards: mu_i(n) of each arm, and where the best arm changes ---


class Point(NamedTuple):
    """The mean of an arm's n-th pull."""

    arm: str
    n: int
    mean: float


def arms_figure(setting: Setting, upto: int) -> Callable[[Workbench], Made]:
    """The function that makes the figure of a setting's arms."""

    def make(bench: Workbench) -> Made:
        means = _means(setting, bench.mode, upto)
        names = [f"arm {arm + 1}" for arm in range(len(means))]
        first = 0 if bench.mode == AS_PUBLISHED else 1
        rows = [
            Point(name, first + n, float(mean))
            for name, curve in zip(names, means, strict=True)
            for n, mean in enumerate(curve)
        ]
        change = drawing.last_change(setting, bench.mode, upto)
        changes = setting.problem().changes(upto)
        best = "; ".join(f"arm {arm + 1} from T = {start}" for start, arm in changes)
        note = f"Best at the budget T: {best}."
        return Made(rows, lambda pyplot: _draw_arms(pyplot, means, names, change), [note])

    return make


def _means(setting: Setting, mode: str, upto: int) -> Floats:
    """From n = 0 on as published, where B's first arm is drawn up to 1, not to .99."""
    problem = setting.problem()
    if mode == AS_PUBLISHED:
        return np.array([curve(np.arange(upto)) for curve in problem.curves])
    return problem.means(upto)


def _draw_arms(pyplot: Any, means: Floats, names: list[str], change: int | None) -> Any:
    figure, ax = pyplot.subplots(figsize=(5.6, 3.4), layout="constrained")
    drawing.mark_change(ax, change)
    drawing.arms(ax, means, names)
    ax.set_ylim(0, 1.04)
    drawing.label_ends(ax)
    return figure


# --- error and simple regret against the budget ---


def budget_figure(setting: Setting, what: str) -> Callable[[Workbench], Made]:
    """The function that makes a figure of one setting against the budget."""

    def make(bench: Workbench) -> Made:
        rows = series.errors(bench, setting, bench.mode)
        change = drawing.last_change(setting, bench.mode)
        notes = about(setting, bench.mode)
        return Made(rows, lambda pyplot: _draw_budgets(pyplot, rows, what, change), notes)

    return make


def _draw_budgets(pyplot: Any, rows: list[Row], what: str, change: int | None) -> Any:
    figure, ax = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    drawing.mark_change(ax, change)
    drawing.curves(ax, rows, what)
    drawing.label_ends(ax)
    return figure


# --- R-UCBE at multiples of its exploration parameter ---

MULTIPLES = ("$a/50$", "$a/10$", "$a$", "$10a$", "$50a$")


def make_exploration(bench: Workbench) -> Made:
    """Both panels: around the change of the best arm, and all budgets."""
    rows = series.exploration(bench, bench.mode)
    change = drawing.last_change(SETTING_A, bench.mode)
    note = (
        "The a of the names is that of the authors' configuration in either mode; as published, "
        "the bonus has 10 times that."
    )
    return Made(rows, lambda pyplot: _draw_exploration(pyplot, rows, change), [note])


def _draw_exploration(pyplot: Any, rows: list[Row], change: int | None) -> Any:
    styles = dict(zip(series.FACTORS, drawing.ARM_STYLES, strict=False))
    figure, axes = pyplot.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
    for ax, panel in zip(axes, ("detail", "budgets"), strict=True):
        own = select(rows, panel=panel)
        drawing.mark_change(ax, change)
        drawing.curves(ax, own, "error", styles)
        ax.set_title(f"$T$ up to {own[-1].T}, {own[0].runs} runs", fontsize=10)
    drawing.label_ends(axes[-1], dict(zip(series.FACTORS, MULTIPLES, strict=True)))
    return figure


# --- six noise levels ---


def make_noise(bench: Workbench) -> Made:
    """Six panels, two a row, in order of sigma."""
    rows = series.noise(bench, bench.mode)
    change = drawing.last_change(SETTING_A, bench.mode)
    told = "R-UCBE is told sigma, and its a, which goes as 1/sigma^2, is made of it."
    notes = [*about(SETTING_A, bench.mode), told]
    return Made(rows, lambda pyplot: _draw_noise(pyplot, rows, change), notes)


def _draw_noise(pyplot: Any, rows: list[Row], change: int | None) -> Any:
    figure, axes = pyplot.subplots(3, 2, figsize=(10.5, 10), layout="constrained")
    for ax, sigma in zip(axes.flat, SIGMAS, strict=True):
        drawing.mark_change(ax, change)
        drawing.curves(ax, select(rows, sigma=sigma))
        ax.set_title(rf"$\sigma = {sigma:g}$", fontsize=10)
    drawing.shared_legend(figure, axes[0, 0], columns=5)
    return figure


A_ARMS = Figure(
    "setting-a-arms",
    "Expected rewards of the five arms of setting A (section 8)",
    arms_figure(SETTING_A, 300),
)
A_ERRORS = Figure(
    "setting-a",
    "Empirical error in setting A, nine algorithms, 22 budgets (section 8)",
    budget_figure(SETTING_A, "error"),
)
A_REGRET = Figure(
    "simple-regret",
    "Empirical simple regret in setting A, from the same runs (section 8)",
    budget_figure(SETTING_A, "regret"),
)
EXPLORATION = Figure(
    "exploration", "R-UCBE at a/50, a/10, a, 10a and 50a (section 8)", make_exploration
)
B_ARMS = Figure(
    "setting-b-arms",
    "Expected rewards of the three arms of setting B (appendix H)",
    arms_figure(SETTING_B, 500),
)
B_ERRORS = Figure(
    "setting-b",
    "Empirical error in setting B, where increments change abruptly (appendix H)",
    budget_figure(SETTING_B, "error"),
)
NOISE = Figure("noise", "Setting A at six noise levels, six panels (appendix H)", make_noise)
