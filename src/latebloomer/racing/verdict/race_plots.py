"""Plots of a verdict with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latebloomer._util.text import shortened
from latebloomer.errors import extra, require
from latebloomer.page.curve_chart import fan_of, forecast_start
from latebloomer.page.figures import COLORS, GRAY, TEXT, finish, label_ends
from latebloomer.page.race_html import COLORED, TOP
from latebloomer.racing.verdict.page_data import curves_of
from latebloomer.racing.verdict.verdict_text import by_rank
from latebloomer.session.arm_views import LearnerView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from latebloomer.racing.verdict.verdict import Verdict

Colors = dict[int, str]  # by arm
BARS = 3.3  # maximum bars per inch of height; further learners share one bar


def plot(verdict: Verdict, kind: str, ax: Any = None) -> Figure:
    """Draw the plot that `Verdict.plot` describes."""
    require(kind in ("curves", "budget"), "kind", kind, "'curves' or 'budget'", "these are drawn")
    pyplot = extra("matplotlib.pyplot", "plots", "plots")
    if ax is None:
        figure, ax = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
        # A notebook draws the returned figure: do not draw it twice.
        if "inline" in pyplot.get_backend():
            pyplot.close(figure)
    learners = by_rank(verdict)
    top = learners if len(learners) <= COLORED else learners[:TOP]
    colors = dict(zip((view.arm for view in top), COLORS, strict=False))
    draw, room = (_plot_curves, 1.0) if kind == "curves" else (_plot_budget, 0.7)
    draw(verdict, learners, colors, ax)
    finish(ax, verdict.sentence, room)
    return ax.figure


def _plot_curves(verdict: Verdict, learners: list[LearnerView], colors: Colors, ax: Axes) -> None:
    curves, ends, forecast = curves_of(verdict), [], False
    for place, view in reversed(list(enumerate(learners))):
        points = curves[view.arm].raw()
        if not points:
            continue
        color, order = colors.get(view.arm, GRAY), 3 - place / len(learners)
        pulls, scores = zip(*points, strict=True)
        width = 2.4 if view.leads else 1.3 if view.arm in colors else 0.8
        ax.plot(pulls, scores, color=color, linewidth=width, zorder=order)
        ax.plot(
            pulls[-1:],
            scores[-1:],
            "x" if view.departed else "o",
            color=color,
            markersize=5,
            zorder=order,
        )
        tip, fan = scores[-1], fan_of(view)
        if fan is not None and view.arm in colors:
            tip, (begin, level), forecast = view.estimate, forecast_start(view, fan), True
            ax.plot([begin, fan.at], [level, tip], "--", color=color, linewidth=1.3)
        if view.arm in colors:
            ends.append((tip, shortened(view.name, 28), color))
    reach = max(fan.at if (fan := fan_of(view)) else view.pulls for view in learners)
    ax.axvline(verdict.horizon, color="0.4", linewidth=0.9, zorder=0)
    full = verdict.settings.get("pulls_per_training")
    about = [f"{full} are a full training"] if full else []
    about += ["dashed: the part of the forecast that counts"] if forecast else []
    title = "pulls of each learner" + (f" ({'; '.join(about)})" if about else "")
    ax.set(xlabel=title, ylabel="score", xlim=(0, reach))
    ax.locator_params(axis="x", integer=True)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.grid(True, axis="y", color="0.92", linewidth=0.6)
    label_ends(ax, ends)


def _plot_budget(verdict: Verdict, learners: list[LearnerView], colors: Colors, ax: Axes) -> None:
    most = int(BARS * ax.figure.get_size_inches()[1])  # type: ignore[union-attr]
    shown, rest = learners[:most], learners[most:]
    bars = [
        (shortened(view.name, 28), view.pulls, colors.get(view.arm, GRAY), view.outcome)
        for view in shown
    ]
    if rest:
        bars.append((f"{len(rest)} others", sum(view.pulls for view in rest), GRAY, ""))
    names, pulls, shades, outcomes = zip(*bars, strict=True)
    ax.barh(range(len(bars)), pulls, color=shades, height=0.7)
    ax.set_yticks(range(len(bars)), names)
    for place, (n, outcome) in enumerate(zip(pulls, outcomes, strict=True)):
        ax.text(n, place, f" {n:,}  {outcome}", fontsize=TEXT, va="center", color="0.25")
    ax.set(xlabel=f"pulls, of {verdict.spent:,}", ylim=(len(bars) - 0.4, -0.6))
    ax.margins(x=0.25)
