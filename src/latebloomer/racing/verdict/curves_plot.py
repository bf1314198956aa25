"""A verdict's curves with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latebloomer.errors import extra
from latebloomer.racing.verdict.page_data import curves_of
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.learner_view import ranked

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(verdict: Verdict, ax: Any = None) -> Figure:
    """Scores against pulls; a cross marks where a learner was dropped or failed."""
    pyplot = extra("matplotlib.pyplot", "plots", "plots")
    if ax is None:
        figure, ax = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
        if (
            "inline" in pyplot.get_backend()
        ):  # a notebook draws what is returned, and once is enough
            pyplot.close(figure)
    curves = curves_of(verdict)
    for learner in ranked(verdict.learners, verdict.history.sign > 0):
        points = curves[learner.arm].raw()
        if not points:
            continue
        pulls, scores = zip(*points, strict=True)
        width = 2.5 if learner.name == verdict.name else 1.2
        (line,) = ax.plot(pulls, scores, lw=width, label=f"{learner.name} ({learner.pulls} pulls)")
        mark = "x" if learner.left else "o"
        ax.plot(pulls[-1:], scores[-1:], mark, color=line.get_color())
    title = verdict.sentence.replace(". ", ".\n")  # in one line it may be wider than the figure
    ax.set(xlabel="pulls of the learner", ylabel="score", title=title)
    ax.legend()
    return ax.figure
