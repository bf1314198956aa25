"""A verdict to look at: as the plain data of a page, and drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latebloomer._util.text import as_sentence, shortened
from latebloomer.errors import extra, require
from latebloomer.page import race_page
from latebloomer.page.figures import COLORS, GRAY, TEXT, finish, label_ends
from latebloomer.page.race_html import COLORED, TOP
from latebloomer.page.race_page import PageEvent, RacePage, ThinnedCurve, points_for
from latebloomer.page.svg import fan_of, forecast_start, number_text
from latebloomer.racing.journal.journal import resume_call
from latebloomer.racing.verdict.history import ALARM
from latebloomer.racing.verdict.verdict import Verdict, beyond, by_rank, explanation, standing
from latebloomer.session.events import FAILED
from latebloomer.session.learner_view import LearnerView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def page_data(
    verdict: Verdict, state: str | None = None, curves: Mapping[int, ThinnedCurve] | None = None
) -> RacePage:
    """Return a race's page as plain data; curves that are known already are not made again."""
    findings, selected = set(map(str, verdict.findings)), verdict.selected
    same = ("spent", "horizon", "started", "seconds", "assessed_at", "certified", "certificate",
            "half_time", "versions")  # fmt: skip
    return RacePage(
        **{name: getattr(verdict, name) for name in same},
        state=state or (race_page.FINISHED if verdict.over else race_page.INTERRUPTED),
        best=verdict.name,
        final=selected.final,
        why=_why(verdict),
        learners=by_rank(verdict),
        curves=_curves_of(verdict) if curves is None else curves,
        budget=max(1, verdict.budget),
        higher_is_better=verdict.history.sign > 0,
        selected=(selected.estimate, selected.pulls) if selected.final else None,
        trained_further=verdict.trained.pulls_after_selection > 0,
        contradictions=[str(one) for one in verdict.findings if one.contradicts],
        plateaus=[str(one) for one in verdict.findings if not one.contradicts],
        false_alarm=ALARM,
        hindsight=list(map(str, verdict.hindsight)),
        events=_departures(verdict),
        warnings=[text for text in verdict.warnings if text not in findings],
        record=(f"{selected}.", f"{verdict.trained}.", f"{verdict.reason}."),
        settings=shown_settings(verdict.settings, verdict.policy),
        resume_code=None if verdict.journal is None else resume_code(Path(verdict.journal)),
    )


def _why(verdict: Verdict) -> str:
    """Return score and forecast of the best learner, its lead, and learners with higher scores."""
    best, sign, final = verdict[verdict.name], verdict.history.sign, verdict.selected.final
    rivals = [one for one in verdict.learners
              if not one.leads and one.state != FAILED and not isnan(one.estimate)]  # fmt: skip
    text = f"{'Selected' if final else 'Leads'} with estimate {number_text(best.estimate)}"
    if rivals:
        rival = max(rivals, key=lambda one: sign * one.estimate)
        text += f", ahead of {rival.name} with {number_text(rival.estimate)}"
    told = [as_sentence(standing(best, verdict.horizon)), f"{text}.", *beyond(verdict)]
    if not final:
        racing = sum(not one.left for one in verdict.learners)
        more = [f"{racing:,} of {len(verdict.learners):,} learners are still in the race."]
    else:
        bloom = f"Late bloomer: {verdict.half_time} led at half-time."
        more = [*([bloom] if verdict.late_bloomer else []), *explanation(verdict)]
    return " ".join([*told, *more])


def _curves_of(verdict: Verdict) -> dict[int, ThinnedCurve]:
    """Return every learner's curve in few points."""
    points, curves = points_for(len(verdict.learners)), verdict.history.by_arm
    return {arm: ThinnedCurve(points, scores.tolist()) for arm, scores in enumerate(curves)}


def _departures(verdict: Verdict) -> list[PageEvent]:
    """Return which learners left and why, the last first."""
    left = [(one.left_at, one) for one in verdict.learners if one.left_at]
    return [
        PageEvent(at, f"{one.name}: {one.why}", one.state == FAILED)
        for at, one in sorted(left, key=lambda pair: -pair[0])
    ]


def shown_settings(settings: Mapping[str, Any], policy: str) -> dict[str, str]:
    """Return the settings that were given; "auto: " before the policy if the library chose it."""
    values = {**settings, "policy": policy, "auto": None, "learner_settings": None}
    return {name: str(value) for name, value in values.items() if value is not None}


def resume_code(journal: Path) -> str:
    """Return the lines of Python that resume a race."""
    return f"from latebloomer import resume\nverdict = {resume_call(journal)}"


# --- matplotlib ---

Colors = dict[int, str]  # by arm
BARS = 3.3  # per inch of height, at most: other learners are one bar together


def plot(verdict: Verdict, kind: str, ax: Any = None) -> Figure:
    """Draw what `Verdict.plot` describes."""
    require(kind in ("curves", "budget"), "kind", kind, "'curves' or 'budget'", "these are drawn")
    pyplot = extra("matplotlib.pyplot", "plots", "plots")
    if ax is None:
        figure, ax = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
        if "inline" in pyplot.get_backend():  # a notebook draws what is returned: once is enough
            pyplot.close(figure)
    learners = by_rank(verdict)
    top = learners if len(learners) <= COLORED else learners[:TOP]
    colors = dict(zip((one.arm for one in top), COLORS, strict=False))
    draw, room = (_plot_curves, 1.0) if kind == "curves" else (_plot_budget, 0.7)
    draw(verdict, learners, colors, ax)
    finish(ax, verdict.sentence, room)
    return ax.figure


def _plot_curves(verdict: Verdict, learners: list[LearnerView], colors: Colors, ax: Axes) -> None:
    curves, ends = _curves_of(verdict), []
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
        tip, made = scores[-1], fan_of(one)
        if made is not None and one.arm in colors:
            tip, (begin, level) = one.estimate, forecast_start(one, made)
            ax.plot([begin, made.at], [level, tip], ":", color=color, linewidth=1.3)
        if one.arm in colors:
            ends.append((tip, shortened(one.name, 28), color))
    reach = max(made.at if (made := fan_of(one)) else one.pulls for one in learners)
    ax.axvline(verdict.horizon, color="0.4", linewidth=0.9, zorder=0)
    ax.set(xlabel="pulls (dotted: discounted forecast)", ylabel="score",
           xlim=(0, reach))  # fmt: skip
    ax.grid(True, axis="y", color="0.92", linewidth=0.6)
    label_ends(ax, ends)


def _plot_budget(verdict: Verdict, learners: list[LearnerView], colors: Colors, ax: Axes) -> None:
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
