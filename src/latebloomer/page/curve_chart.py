"""Learning curves as inline SVG, which needs no fonts or other files.

A picture is as wide as the space for it, and its text has the same size on a phone and on a
desktop. For this, curves are drawn in separate coordinates that a view box stretches, and
everything else is placed at percentages of the picture. So points are added to the path of a
growing curve, a changed axis only changes one view box, and `page.js` zooms by moving the elements
with `data-at`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, inf

from latebloomer._util.text import shortened
from latebloomer.page.race_page import Point, RacePage, ThinnedCurve
from latebloomer.page.svg import Looks, padded, percent, spread, text_at, ticks
from latebloomer.session.arm_views import LearnerView
from latebloomer.session.decisions import ForecastView
from latebloomer.session.events import DROPPED

HEIGHT = 340  # height of the curves in pixels
LINE = 15  # pixels between two names
ROOMY = 1.6  # a view that is wider than its content by more than this factor is made narrower
FAR = 4  # a horizon beyond this many times the pulls made is named, but not drawn
LEVELS = 6  # maximum marked phases; of more, evenly spaced ones
LETTER = 0.021  # share of the picture's width of a letter of their text, on a phone
THIN = 0.01  # share of the height; lower areas cannot be seen
NAME = 20  # maximum characters of a name next to its curve


@dataclass(frozen=True)
class View:
    """The visible part of the plane, and the coordinates in which paths are written.

    Paths contain (origin - score) / unit instead of scores, because numbers in pictures have only
    seven digits, too few for 1,000,000.01. Origin and unit do not change while a race is watched.
    """

    origin: float
    unit: float
    longest: float  # pulls at the right end
    low: float
    high: float

    def x(self, pull: float) -> str:
        """Return the horizontal place of a pull, as a percentage."""
        return percent(min(1.0, pull / self.longest))

    def y(self, score: float) -> float:
        """Return the vertical place of a score, from 0 (top) to 1, limited to the view."""
        return (self.high - min(self.high, max(self.low, score))) / (self.high - self.low)

    def at(self, point: Point, x: str = "x", y: str = "y") -> str:
        """Return a place as attributes; `page.js` moves elements with `data-at`."""
        place = f'{x}="{self.x(point.pull)}" {y}="{percent(self.y(point.score))}"'
        return f'{place} data-at="{point.pull:g} {point.score:.7g}"'

    def place(self, point: Point) -> str:
        """Return a point in the coordinates of paths."""
        return f"{point.pull:.7g} {(self.origin - point.score) / self.unit:.5g}"

    @property
    def box(self) -> str:
        """The view box of the curves."""
        top = (self.origin - self.high) / self.unit
        return f"0 {top:.7g} {self.longest:.7g} {(self.high - self.low) / self.unit:.7g}"


def view_of(page: RacePage, before: View | None = None) -> View:
    """Return the view of a race; it stays unchanged as long as everything fits."""
    fans = [fan for learner in page.learners if (fan := fan_of(learner)) is not None]
    scores = [score for fan in fans for score in (fan.level, fan.score)]
    for curve in (
        page.curves[learner.arm] for learner in page.learners
    ):  # the first fifth of a curve may have unusual scores
        scores += [point.score for point in curve.smoothed(len(curve) // 5)]
    low, high = min(scores, default=0.0), max(scores, default=1.0)
    wide, longest = ROOMY * 1.2 * (high - low), _longest(page, [fan.at for fan in fans])
    if before is None:
        low, high = padded(low, high)
        return View(low, (high - low) / 1000, longest, low, high)
    fits = before.low <= low and high <= before.high and before.high - before.low <= wide
    low, high = (before.low, before.high) if fits else padded(low, high)
    return View(before.origin, before.unit, longest, low, high)


def fan_of(learner: LearnerView) -> ForecastView | None:
    """Return the forecast of a learner that the picture shows, if any."""
    forecast = learner.forecast
    return (
        forecast
        if forecast is not None and forecast.trust > 0 and forecast.at > learner.pulls > 0
        else None
    )


def forecast_start(learner: LearnerView, forecast: ForecastView) -> Point:
    """Return the start of a forecast: the score to which its gain is added, and its pull."""
    return Point(
        learner.pulls if learner.decision is None else learner.decision.pulls, forecast.level
    )


def _longest(page: RacePage, ahead: Sequence[float]) -> float:
    """Return the right end: the horizon or, if that is far, the end of pulls and forecasts."""
    longest = max([1, *(learner.pulls for learner in page.learners)])
    if page.horizon <= FAR * longest:
        return max(page.horizon, longest)
    levels = [pulls for _, pulls in page.levels if pulls > longest]
    near = [pulls for pulls in levels if pulls <= 2 * longest] or levels[:1]
    return max([longest, *near, *ahead])


def draw_curves(page: RacePage, view: View, looks: Looks, raw: bool) -> str:
    """Draw the learning curves with axes, forecasts, marks and names."""
    paths = "".join(
        curve_paths(learner, page.curves[learner.arm], view, looks[learner.arm], raw)
        for learner in reversed(_shown(page))
    )
    return (
        '<div class="plot"><svg class="frame" role="img" '
        f'aria-label="{escape(describe_curves(page))}"><g id="axes">{draw_axes(view)}</g>'
        f"{_titles(page.higher_is_better)}"
        f'<svg id="curves" viewBox="{view.box}" preserveAspectRatio="none" '
        f'data-origin="{view.origin!r}" data-unit="{view.unit!r}">'
        f'<g id="fans">{draw_fans(page, view, looks)}</g>{paths}</svg>'
        f'<g id="marks"><g id="crosses">{draw_crosses(page, view, looks)}</g>'
        f'<g id="ends">{draw_ends(page, view, looks)}</g></g></svg></div>'
    )


def _titles(higher_is_better: bool) -> str:
    """Return the titles of the axes; `page.js` changes the horizontal one."""
    better = "higher" if higher_is_better else "lower"
    across = text_at("50%", "100%", "pulls of each learner", "tick middle", 'id="across" dy="38"')
    return text_at("0", "0", f"score ({better} is better)", "tick", 'dx="-44" dy="-26"') + across


def _shown(page: RacePage) -> list[LearnerView]:
    return [learner for learner in page.learners if len(page.curves[learner.arm])]


def describe_curves(page: RacePage) -> str:
    """Return a sentence about the picture, for readers who cannot see it."""
    best = "" if page.best is None else f"; {page.best} is {'kept' if page.final else 'leading'}"
    return f"Learning curves of {len(page.learners)} learners after {page.spent:,} pulls{best}"


def curve_paths(
    learner: LearnerView, curve: ThinnedCurve, view: View, look: str, raw: bool
) -> str:
    """Draw a learner's smoothed curve and, below it, the individual scores."""
    strong = f'<path d="{path_of(curve.smoothed(), view)}"/>'
    faint = f'<path class="raw" d="{path_of(curve.raw(), view)}"/>' if raw else ""
    return f'<g id="c{learner.arm}" class="curve {look}">{faint}{strong}</g>'


def path_of(points: Sequence[Point], view: View, more: bool = False) -> str:
    """Return points as a path or, with `more`, as its continuation."""
    if not points:
        return ""
    text = "L".join(view.place(point) for point in points)
    # A line without length still has round ends, so a curve of one point is a dot.
    return f"L{text}" if more else f"M{text}" + ("h0" if len(points) == 1 else "")


def draw_axes(view: View) -> str:
    """Draw the grid, ticks and numbers."""
    shapes = []
    for value in ticks(view.low, view.high, 6):
        y = percent(view.y(value))
        shapes.append(f'<line class="grid" x2="100%" y1="{y}" y2="{y}"/>')
        shapes.append(text_at("0", y, f"{value:.6g}", "tick end", 'dx="-8" dy="4"'))
    for value in ticks(0.0, view.longest, 5):
        if value == int(value):
            number = f"{value:,.0f}"
            shapes.append(text_at(view.x(value), "100%", number, "tick middle", 'dy="18"'))
    return "".join([*shapes, '<line class="axis" x2="100%" y1="100%" y2="100%"/>'])


def draw_fans(page: RacePage, view: View, looks: Looks) -> str:
    """Draw the forecasts of colored learners; lines show the parts that count."""
    shapes = []
    for learner in _shown(page):
        forecast, look = fan_of(learner), looks[learner.arm]
        if forecast is None or "gray" in look:
            continue
        ahead = [Point(forecast.at, y) for y in (forecast.level, forecast.score, learner.estimate)]
        start, flat, whole, used = map(view.place, (forecast_start(learner, forecast), *ahead))
        seen = (
            learner.state != DROPPED
            and abs(view.y(forecast.level) - view.y(forecast.score)) > THIN
        )
        area = f'<path class="area" d="M{start}L{flat}L{whole}Z"/>' if seen else ""
        line = f'<path d="M{start}L{used}"/>'
        shapes.append(f'<g id="f{learner.arm}" class="fan {look}">{area}{line}</g>')
    return "".join(shapes)


def draw_crosses(page: RacePage, view: View, looks: Looks) -> str:
    """Draw crosses at drops and failures, in a separate element, because they rarely change."""
    cross = '<path class="cross" d="M-4-4l8 8m0-8l-8 8"/></svg>'
    return "".join(
        f'<svg class="mark {looks[learner.arm]}" {view.at(page.curves[learner.arm].end)} '
        f'data-arm="{learner.arm}">{cross}'
        for learner in reversed(_shown(page))
        if learner.departed
    )


def draw_ends(page: RacePage, view: View, looks: Looks) -> str:
    """Draw the horizon, coming phases, ends of curves, and names of colored learners."""
    shapes, shown = [*_uprights(page, view)], _shown(page)
    for learner in [still for still in reversed(shown) if not still.departed]:
        at = (
            f'{view.at(page.curves[learner.arm].end, "cx", "cy")} data-arm="{learner.arm}" r="3.5"'
        )
        shapes.append(f'<circle class="dot mark {looks[learner.arm]}" {at}/>')
    if page.trained_further and page.selected is not None and shown:
        arm = shown[0].arm
        at = view.at(page.curves[arm].at(page.selected[1]), "cx", "cy")
        shapes.append(f'<circle class="ring {looks[arm]}" {at} data-arm="{arm}" r="5"/>')
    tips = [  # places for names: ends of forecasts, or ends of curves without a forecast
        (
            Point(fan.at, learner.estimate)
            if (fan := fan_of(learner))
            else page.curves[learner.arm].end,
            learner,
        )
        for learner in shown
        if "gray" not in looks[learner.arm]
    ]
    return "".join([_paces(shown), *shapes, _names(tips, view, looks)])


def _paces(shown: Sequence[LearnerView]) -> str:
    """Return the mean seconds per pull of each learner, for an axis in seconds."""
    paces = " ".join(
        f"{learner.arm}:{learner.seconds / max(1, learner.pulls):.4g}" for learner in shown
    )
    return f'<g id="paces" data-paces="{paces}"></g>'


def _uprights(page: RacePage, view: View) -> Iterable[str]:
    """Draw vertical lines with texts above the plot: the horizon and coming phases."""
    far = page.horizon > view.longest
    horizon = f"compared at pull {page.horizon:,}"
    ahead = [(pulls, k) for k, pulls in page.levels if pulls <= view.longest]
    step = ceil(len(ahead) / LEVELS) or 1
    texts = [(page.horizon, f"{horizon} →" if far else horizon, "horizon")]
    texts += [(pulls, f"best {k} continue to {pulls:,}", "level") for pulls, k in ahead[::-step]]
    free = inf  # the row of texts is free up to here, as a share of the width
    for pulls, text, kind in texts:
        share, wide = min(1.0, pulls / view.longest), LETTER * len(text)
        starts = share < wide  # near the left end, there is no room before the line
        left, right = (share, share + wide) if starts else (share - wide, share)
        hidden = right > free  # `page.js` shows the texts that fit
        free = free if hidden else left
        x, at = view.x(pulls), f'data-at="{pulls}"'
        css = f"{kind} {'' if starts else 'end'}{' off' * hidden}"
        if far and kind == "horizon":
            yield text_at("100%", "0", text, css, 'dy="-6"')
            continue
        yield f'<line class="{kind}" {at} x1="{x}" x2="{x}" y2="100%"/>'
        yield text_at(x, "0", text, css, f'dy="-6" {at}')


def _names(tips: Sequence[tuple[Point, LearnerView]], view: View, looks: Looks) -> str:
    """Draw names at the right, at the heights of the ends, moved apart if they would overlap.

    The connector between a name and its height is outside the plot, because inside it would look
    like a curve.
    """
    ends = sorted(tips, key=lambda end: (view.y(end[0].score), end[1].arm))
    heights = [view.y(point.score) for point, _ in ends]
    shapes = []
    for (point, learner), y, spot in zip(
        ends, heights, spread([HEIGHT * y for y in heights], LINE, HEIGHT), strict=True
    ):
        look, arm = looks[learner.arm], f'data-arm="{learner.arm}"'
        end, at = percent(spot / HEIGHT), f'data-at="{point.pull:g} {point.score:.7g}"'
        join = f'x1="4" x2="18" y1="{percent(y)}" y2="{end}"'
        shapes.append(f'<line class="leader {look}" {arm} {at} {join}/>')
        name = shortened(learner.name, NAME)
        shapes.append(text_at("22", end, name, f"name {look}", f'{arm} dy="4"'))
    return f'<svg id="names" x="100%" width="1" height="100%">{"".join(shapes)}</svg>'
