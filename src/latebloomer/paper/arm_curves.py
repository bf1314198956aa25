"""Figures of expected rewards: mu_i(n) of each arm, and where the best arm changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from latebloomer.paper import drawing
from latebloomer.paper.experiments import AS_PUBLISHED, Setting
from latebloomer.paper.figure import Made
from latebloomer.paper.workbench import Bench
from latebloomer.problems.curves import Floats


class Point(NamedTuple):
    """The mean of an arm's n-th pull."""

    arm: str
    n: int
    mean: float


def arms_of(setting: Setting, upto: int) -> Callable[[Bench], Made]:
    """The function that makes the figure of a setting's arms."""

    def make(bench: Bench) -> Made:
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
        return Made(rows, _draw(means, names, change), [f"Best at the budget T: {best}."])

    return make


def _means(setting: Setting, mode: str, upto: int) -> Floats:
    """From n = 0 on as published, where B's first arm is drawn up to 1, not to .99."""
    problem = setting.problem()
    if mode == AS_PUBLISHED:
        return np.array([curve(np.arange(upto)) for curve in problem.curves])
    return problem.means(upto)


def _draw(means: Floats, names: list[str], change: int | None) -> Any:
    def draw(pyplot: Any) -> Any:
        figure, ax = pyplot.subplots(figsize=(5.6, 3.4), layout="constrained")
        drawing.mark_change(ax, change)
        drawing.arms(ax, means, names)
        ax.set_ylim(0, 1.04)
        drawing.legend(ax)
        return figure

    return draw
