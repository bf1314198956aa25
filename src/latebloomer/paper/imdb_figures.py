"""Table 2 and the figure of appendix H: seven learners on IMDB, by their recorded curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.statistics import pooled_noise
from latebloomer.paper import drawing, series
from latebloomer.paper.evidence import short
from latebloomer.paper.experiments import IMDB, IMDB_BUDGETS, THEORY
from latebloomer.paper.figure import Figure, Made, Row, Workbench, select
from latebloomer.paper.modes import AS_PUBLISHED
from latebloomer.problems.curves import Floats

ORDER = ("R-UCBE", "R-SR", "RR", "RR-SW", "SR", "UCB-E", "Prob-1", "ETC", "Rest-Sure", THEORY)
RIGHT, WRONG, HEAD = "#d8f0dc", "#ffffff", "#eef1f4"
SMOOTH = 101  # steps
EVERY = 50


def make_table(bench: Workbench) -> Made:
    """Recommended arms at 11 budgets, and at how many they are right."""
    rows = series.imdb(bench, bench.mode)
    sigma = pooled_noise(list(IMDB.problem().means(IMDB_BUDGETS[-1])))
    printed = bench.mode == AS_PUBLISHED
    optimal = [
        IMDB.scored(budget) if printed and IMDB.scored else select(rows, T=budget)[0].best
        for budget in IMDB_BUDGETS
    ]
    notes = [
        "Arms from 0: NN112, NN1, NN2, NN22, NN222, OGD, LR. The paper's row of optimal arms "
        "(5, 5, 2, 2, ...) is fixed by hand; the recorded curves give 5, 5, 5, 5, 2, ... As "
        "published, success is counted against the paper's row, as written against the curves.",
        f"Right at how many of {len(IMDB_BUDGETS)} budgets: "
        + ", ".join(
            f"{name} {short(count.value, 2)}" for name, count in series.successes(rows).items()
        )
        + ". Prob-1 draws its pulls: its cells show the arm recommended most often, and its count "
        "is a mean over runs" + (", as is Rest-Sure's." if printed else "."),
        f"sigma = {IMDB.sigma} as in the paper; the pooled second differences of the curves give "
        f"{sigma:.4f}.",
    ]
    return Made(rows, lambda pyplot: _draw_table(pyplot, rows, optimal), notes)


def _draw_table(pyplot: Any, rows: Sequence[Row], optimal: Sequence[int]) -> Any:
    names = [name for name in ORDER if select(rows, algorithm=name)]
    figure, ax = pyplot.subplots(figsize=(9.6, 0.36 * (len(names) + 3)), layout="constrained")
    ax.set_axis_off()
    head = ["$T$", *map(str, IMDB_BUDGETS), "right"]
    text = [head, ["optimal arm", *map(str, optimal), ""]]
    tint = [[HEAD] * len(head), [HEAD] * len(head)]
    for name in names:
        own = select(rows, algorithm=name)
        wins = [row.recommended == best for row, best in zip(own, optimal, strict=True)]
        rate = f"{short(sum(1 - row.error for row in own), 1)}/{len(own)}"
        text.append([name, *(str(row.recommended) for row in own), rate])
        tint.append([WRONG, *(RIGHT if win else WRONG for win in wins), WRONG])
    table = ax.table(text, tint, loc="center", cellLoc="center", bbox=(0, 0, 1, 1),
                     colWidths=[0.19, *[0.066] * len(IMDB_BUDGETS), 0.085])  # fmt: skip
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    for cell in table.get_celld().values():
        cell.set_edgecolor("#c8ced4")
    return figure


class Point(NamedTuple):
    """The recorded accuracy of a learner at a step, and its mean over the steps around it."""

    arm: str
    n: int
    mean: float
    smoothed: float


def make_arms(bench: Workbench) -> Made:
    """The seven recorded curves."""
    problem, upto = IMDB.problem(), IMDB_BUDGETS[-1]
    raw = problem.means(upto)
    smooth = np.array([_smooth(curve) for curve in raw])
    rows = [
        Point(name, n + 1, float(raw[arm, n]), float(smooth[arm, n]))
        for arm, name in enumerate(problem.names)
        for n in range(0, upto, EVERY)
    ]
    note = (
        f"Means of about 1000 right-or-wrong outcomes, drawn as means over {SMOOTH} steps; the "
        f"file has every {EVERY}th step."
    )
    return Made(rows, lambda pyplot: _draw_arms(pyplot, smooth, problem.names), [note])


def _smooth(curve: Floats) -> Floats:
    ones = np.ones(SMOOTH)
    return np.asarray(
        np.convolve(curve, ones, "same") / np.convolve(np.ones(len(curve)), ones, "same")
    )


def _draw_arms(pyplot: Any, means: Floats, names: Sequence[str]) -> Any:
    figure, ax = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    drawing.arms(ax, means, [f"{arm} {name}" for arm, name in enumerate(names)])
    ax.set_ylabel("accuracy")
    drawing.label_ends(ax)
    return figure


TABLE = Figure(
    "imdb", "Table 2: recommendations on IMDB by the recorded curves (appendix H)", make_table
)
ARMS = Figure("imdb-arms", "Rewards of the seven IMDB learners (appendix H)", make_arms)
