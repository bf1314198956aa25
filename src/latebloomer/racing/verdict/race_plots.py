"""A verdict drawn with matplotlib: its curves with forecasts, or how the budget was spent."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

from latebloomer._util.text import shortened
from latebloomer.errors import extra, require
from latebloomer.page.svg import has_fan
from latebloomer.racing.verdict.page_data import curves_of
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.learner_view import LearnerView, ranked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by readers who are color-blind (Okabe and Ito), and dark enough for thin lines.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B58900", "#56B4E9", "#000000", "#7A5C3E",
          "#8250A8", "#6E6B00", "#C01C28", "#55607A")  # fmt: skip
GRAY = "0.75"
COLORED, TOP = 12, 10  # as on the page: of more than 12 learners the top 10 have a color
TEXT = 9  # points: the smallest text
LINE = 1.25  # distance of two labels, in heights of their text
BARS = 3.3  # per inch of height, at most: other learners are one bar together
LETTERS = 9  # of a title, per inch of width


def plot(verdict: Verdict, kind: str, ax: Any = None) -> Figure:
    """Draw what `Verdict.plot` describes."""
    kinds = {"curves": _curves, "budget": _budget}
    require(kind in kinds, "kind", kind, "'curves' or 'budget'", "these are drawn")
    pyplot = extra("matplotlib.pyplot", "plots", "plots")
    if ax is None:
        figure, ax = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
        if "inline" in pyplot.get_backend():  # a notebook draws what is returned: once is enough
            pyplot.close(figure)
    learners = ranked(verdict.learners, verdict.history.sign > 0)
    top = learners if len(learners) <= COLORED else learners[:TOP]
    kinds[kind](verdict, learners, dict(zip((one.arm for one in top), COLORS, strict=False)), ax)
    width = LETTERS * ax.figure.get_size_inches()[0] * (1.0 if kind == "curves" else 0.7)
    ax.set_title(fill(verdict.sentence, int(width)), fontsize=TEXT + 2, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=TEXT)
    return ax.figure


def _curves(
    verdict: Verdict, learners: list[LearnerView], colors: dict[int, str], ax: Axes
) -> None:
    curves, ends = curves_of(verdict), []
    for place, one in reversed(list(enumerate(learners))):
        points = curves[one.arm].raw()
        if not points:
            continue
        color, order = colors.get(one.arm, GRAY), 3 - place / len(learners)
        pulls, scores = zip(*points, strict=True)
        width = 2.4 if one.leads else 1.3 if one.arm in colors else 0.8
        ax.plot(pulls, scores, color=color, linewidth=width, zorder=order)
        ax.plot(pulls[-1:], scores[-1:], "x" if one.left else "o", color=color, markersize=5,
                zorder=order)  # fmt: skip
        tip = (pulls[-1], scores[-1])
        if one.forecast is not None and has_fan(one) and one.arm in colors:
            tip = (one.forecast.at, one.estimate)
            ax.plot([pulls[-1], tip[0]], [scores[-1], tip[1]], ":", color=color, linewidth=1.3)
        if one.arm in colors:
            ends.append((tip[1], shortened(one.name, 28), color))
    ax.axvline(verdict.horizon, color="0.4", linewidth=0.9, zorder=0)
    ax.set(xlabel="pulls (dotted: forecast to the horizon)", ylabel="score",
           xlim=(0, verdict.horizon))  # fmt: skip
    ax.grid(True, axis="y", color="0.92", linewidth=0.6)
    _label(ends, ax)


def _label(ends: list[tuple[float, str, str]], ax: Axes) -> None:
    """Write names to the right of the axes, at the ends of lines, at least a line apart."""
    low, high = ax.get_ylim()
    inches = float(ax.figure.get_size_inches()[1])  # type: ignore[union-attr]
    gap = LINE * TEXT / 72 / (0.75 * inches)  # of the height of the axes
    spots: list[float] = []
    for score, _, _ in sorted(ends):
        wanted = (score - low) / (high - low)
        spots.append(max(wanted, spots[-1] + gap) if spots else max(0.0, wanted))
    room = 1.0
    for k in range(len(spots) - 1, -1, -1):  # and back down from the top
        spots[k] = min(spots[k], room)
        room = spots[k] - gap
    for (_, name, color), y in zip(sorted(ends), spots, strict=True):
        ax.text(1.01, y, name, color=color, fontsize=TEXT, transform=ax.transAxes, va="center")


def _budget(
    verdict: Verdict, learners: list[LearnerView], colors: dict[int, str], ax: Axes
) -> None:
    most = int(BARS * ax.figure.get_size_inches()[1])  # type: ignore[union-attr]
    shown, rest = learners[:most], learners[most:]
    bars = [(shortened(one.name, 28), one.pulls, colors.get(one.arm, GRAY), one.outcome)
            for one in shown]  # fmt: skip
    if rest:
        bars.append((f"{len(rest)} others", sum(one.pulls for one in rest), GRAY, ""))
    names, pulls, shades, outcomes = zip(*bars, strict=True)
    ax.barh(range(len(bars)), pulls, color=shades, height=0.7)
    ax.set_yticks(range(len(bars)), names)
    for place, (n, outcome) in enumerate(zip(pulls, outcomes, strict=True)):
        ax.text(n, place, f" {n:,}  {outcome}", fontsize=TEXT, va="center", color="0.25")
    ax.set(xlabel=f"pulls, of {verdict.spent:,}", ylim=(len(bars) - 0.4, -0.6))
    ax.margins(x=0.25)
