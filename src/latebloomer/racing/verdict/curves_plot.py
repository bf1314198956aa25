"""A verdict's curves with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latebloomer.errors import extra
from latebloomer.page.report import ranked
from latebloomer.page.svg import thin
from latebloomer.racing.verdict.verdict import WINNER, Verdict
from latebloomer.session.events import FAILED
from latebloomer.session.reasons import OUT

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(verdict: Verdict, ax: Any = None) -> Figure:
    """Scores against pulls; a cross marks where a learner was dropped or failed."""
    pyplot = extra("matplotlib.pyplot", "plots", "plots")
    if ax is None:
        _, ax = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    for arm in ranked(verdict):
        pulls, scores = thin(verdict.history.scores_of(verdict.history.names.index(arm.name)))
        if not len(pulls):
            continue
        width = 2.5 if arm.state == WINNER else 1.2
        (line,) = ax.plot(pulls, scores, lw=width, label=f"{arm.name} ({arm.pulls} pulls)")
        mark = "x" if arm.state in (OUT, FAILED) else "o"
        ax.plot(pulls[-1:], scores[-1:], mark, color=line.get_color())
    ax.set(xlabel="pulls of the learner", ylabel="score", title=verdict.sentence)
    ax.legend()
    return ax.figure
