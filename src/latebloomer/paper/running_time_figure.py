"""Running time of appendix G: seconds for one run of each algorithm at T = 3200."""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

from latebloomer.paper import drawing
from latebloomer.paper.as_written import policies_of
from latebloomer.paper.experiments import SETTING_A, THEORY
from latebloomer.paper.figure import Figure, Made, Workbench
from latebloomer.policies.base import Policy
from latebloomer.simulation.simulate import simulate

BUDGET = 3200
PAPER = {"R-UCBE": 0.07, "R-SR": 0.06}  # Intel i7-9750H, Python 3.10
RUNS = {"python": 1, "cpu": 100}


class Timing(NamedTuple):
    """Seconds for one run; nan where the paper gives none."""

    algorithm: str
    T: int
    seconds: float  # compiled, one thread
    seconds_python: float  # the same rules in plain Python
    seconds_paper: float


def make(bench: Workbench) -> Made:
    """Measure each of the nine on this machine, on one thread."""
    policies = policies_of(SETTING_A, BUDGET)
    policies.pop(THEORY)
    rows = [
        Timing(
            name,
            BUDGET,
            _seconds(policy, "cpu"),
            _seconds(policy, "python"),
            PAPER.get(name, float("nan")),
        )
        for name, policy in policies.items()
    ]
    said = ", ".join(
        f"{name} {row.seconds:.2g} s compiled and {row.seconds_python:.2g} s in plain Python "
        f"against the paper's {row.seconds_paper:g} s"
        for row in rows
        for name in [row.algorithm]
        if name in PAPER
    )
    note = f"On this machine, one thread: {said}."
    return Made(rows, lambda pyplot: _draw(pyplot, rows), [note])


def _seconds(policy: Policy, target: str) -> float:
    """Seconds a run, compilation apart: a short call comes first."""
    problem, runs = SETTING_A.problem(), RUNS[target]
    simulate(problem, policy, 100, 1, target=target, method="pulls", progress=False)
    started = perf_counter()
    simulate(
        problem, policy, BUDGET, runs, target=target, method="pulls", threads=1, progress=False
    )
    return (perf_counter() - started) / runs


def _draw(pyplot: Any, rows: list[Timing]) -> Any:
    figure, ax = pyplot.subplots(figsize=(7.2, 3.6), layout="constrained")
    for place, row in enumerate(rows):
        ink = drawing.style(row.algorithm).colour
        ax.plot([row.seconds, row.seconds_python], [place] * 2, color=ink, lw=1, alpha=0.5)
        ax.plot(row.seconds, place, "o", color=ink)
        ax.plot(row.seconds_python, place, "s", color=ink, mfc="white")
        ax.plot(row.seconds_paper, place, "x", color="black")
    for marker, fill, name in (
        ("o", "0.4", "compiled"), ("s", "white", "plain Python"), ("x", "0.4", "the paper"),
    ):  # fmt: skip
        ax.plot([], [], marker, mfc=fill, mec="0.2", label=name)
    ax.set_yticks(range(len(rows)), [row.algorithm for row in rows])
    ax.set(xscale="log", xlabel=f"seconds for one run, $T = {BUDGET}$, one thread")
    ax.invert_yaxis()
    drawing.grid(ax, "x")
    drawing.legend(ax)
    return figure


FIGURE = Figure("running-time", "Seconds for one run at T = 3200 (appendix G)", make)
