"""Small pictures as inline SVG: no script, no font, nothing to load.

A picture is as wide as its place, and its text is as large on a phone as on a desk: curves are
drawn in coordinates of their own, stretched by a view box, and all else stands at percentages of
the picture. So a curve that grows is a path to which points are added, and an axis that moves
changes one view box.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10

from latebloomer.page.race_page import Level, RacePage
from latebloomer.page.thinned_curve import Point, ThinnedCurve
from latebloomer.session.learner_view import LEADING, RACING, ForecastView, LearnerView

HEIGHT = 340  # of the curves, in pixels
LINE = 15  # pixels between two names
ROOMY = 1.6  # a view this much wider than what is in it is made narrower
MOST_LEVELS = 8
APART = 0.09  # of the picture, at least, between the words of two levels
NAME = 20  # characters of a name beside its curve
MANY = 100  # learners: with more, only those with a colour have marks at their ends


@dataclass(frozen=True)
class View:
    """The part of the plane that is seen, and the coordinates that paths are written in.

    Paths have scores as (origin - score) / unit, which never changes while a race is watched: a
    picture's own numbers have seven digits, too few for 1,000,000.01 as it is.
    """

    origin: float
    unit: float
    longest: float  # pulls at the right end
    low: float
    high: float

    def x(self, pull: float) -> float:
        """From 0 to 1."""
        return pull / self.longest

    def y(self, score: float) -> float:
        """From 0, the top, to 1."""
        return (self.high - score) / (self.high - self.low)

    def within(self, score: float) -> float:
        """The score, or the end of the view that it is beyond."""
        return min(self.high, max(self.low, score))

    def place(self, point: Point) -> str:
        """A point in the coordinates of paths."""
        return f"{point.pull:.7g} {(self.origin - point.score) / self.unit:.5g}"

    @property
    def box(self) -> str:
        """The view box of the curves."""
        top = (self.origin - self.high) / self.unit
        return f"0 {top:.7g} {self.longest:.7g} {(self.high - self.low) / self.unit:.7g}"


def view_of(page: RacePage, before: View | None = None) -> View:
    """What to show of a race; the same as before as long as that fits."""
    scores = [score for one in page.learners for score in _scores(page, one)] or [0.0, 1.0]
    low, high = min(scores), max(scores)
    longest = float(_longest(page))
    if before is not None:
        roomy = before.high - before.low > ROOMY * 1.2 * (high - low)
        if before.low <= low and high <= before.high and not roomy:
            low, high = before.low, before.high
        else:
            low, high = _padded(low, high)
        return View(before.origin, before.unit, longest, low, high)
    low, high = _padded(low, high)
    return View(low, (high - low) / 1000, longest, low, high)


def _scores(page: RacePage, one: LearnerView) -> list[float]:
    ahead = [one.forecast.score] if _has_fan(one) and one.forecast is not None else []
    return [*(page.curves[one.arm].bounds() or ()), *ahead]


def _has_fan(one: LearnerView) -> bool:
    """Return whether a forecast of the learner is drawn: it can still be trained that far."""
    seen = one.forecast
    racing = one.state in (RACING, LEADING)
    return racing and seen is not None and seen.trust > 0 and seen.at > one.pulls


def _longest(page: RacePage) -> int:
    """The next level is seen from the start; the last one when curves have come half as far."""
    longest = max([1, *(one.pulls for one in page.learners)])
    levels = [level.pulls for level in page.levels if level.pulls > longest]
    if not levels:
        return longest
    near = [pulls for pulls in levels if pulls <= 2 * longest] or levels[:1]
    return max(near)


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
    return low - pad, high + pad


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two ends.

    >>> ticks(0.03, 0.97)
    [0.2, 0.4, 0.6, 0.8]
    """
    span = high - low
    if not span > 0:
        return [low]
    raw = span / about
    power = 10.0 ** floor(log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


# --- curves ---


def draw_curves(page: RacePage, view: View, looks: dict[int, str], raw: bool) -> str:
    """Learning curves with all that belongs to them."""
    shown = [one for one in reversed(page.learners) if len(page.curves[one.arm])]
    paths = "".join(
        curve_paths(one, page.curves[one.arm], view, looks[one.arm], raw) for one in shown
    )
    label = escape(describe_curves(page))
    return (
        f'<div class="plot"><svg class="frame" role="img" aria-label="{label}">'
        f'<g id="axes">{draw_axes(view)}</g>'
        f'<svg id="curves" viewBox="{view.box}" preserveAspectRatio="none">'
        f'<g id="fans">{draw_fans(page, view, looks)}</g>{paths}</svg>'
        f'<g id="marks">{draw_marks(page, view, looks)}</g></svg></div>'
    )


def describe_curves(page: RacePage) -> str:
    """The picture in a sentence, for those who cannot see it."""
    best = "" if page.best is None else f"; {page.best} is {'kept' if page.final else 'ahead'}"
    return f"Learning curves of {len(page.learners)} learners after {page.spent:,} pulls{best}"


def curve_paths(one: LearnerView, curve: ThinnedCurve, view: View, look: str, raw: bool) -> str:
    """Draw a learner's curve, below it the scores that it is the mean of."""
    strong = f'<path d="{path_of(curve.smoothed(), view)}"/>'
    faint = f'<path class="raw" d="{path_of(curve.raw(), view)}"/>' if raw else ""
    title = f"<title>{escape(one.name)}: {escape(one.state)}</title>"
    return f'<g id="c{one.arm}" class="curve {look}">{title}{faint}{strong}</g>'


def path_of(points: Sequence[Point], view: View, more: bool = False) -> str:
    """Points as a path, or as what follows one."""
    if not points:
        return ""
    text = "L".join(view.place(point) for point in points)
    # A line of no length has round ends: a curve of one point is a dot.
    return f"L{text}" if more else f"M{text}" + ("h0" if len(points) == 1 else "")


def draw_axes(view: View) -> str:
    """Grid, ticks and their numbers."""
    shapes = []
    for value in ticks(view.low, view.high, 6):
        y = _percent(view.y(value))
        shapes.append(f'<line class="grid" x2="100%" y1="{y}" y2="{y}"/>')
        shapes.append(_text("0", y, f"{value:.6g}", "tick end", 'dx="-8" dy="4"'))
    for value in ticks(0.0, view.longest, 5):
        if value == int(value):
            at = _percent(view.x(value))
            shapes.append(_text(at, "100%", f"{value:,.0f}", "tick middle", 'dy="18"'))
    shapes.append('<line class="axis" x2="100%" y1="100%" y2="100%"/>')
    return "".join(shapes)


def draw_fans(page: RacePage, view: View, looks: dict[int, str]) -> str:
    """What is forecast, in the coordinates of paths."""
    return "".join(
        _fan(one, one.forecast, view, looks[one.arm])
        for one in _marked(page.learners, looks)
        if _has_fan(one) and one.forecast is not None
    )


def _marked(learners: Sequence[LearnerView], looks: dict[int, str]) -> list[LearnerView]:
    few = len(learners) <= MANY
    return [one for one in learners if few or "grey" not in looks[one.arm]]


def _fan(one: LearnerView, seen: ForecastView, view: View, look: str) -> str:
    level, straight, discounted = (
        view.place(Point(seen.at, score)) for score in (seen.level, seen.score, one.estimate)
    )
    origin = view.place(Point(one.pulls, seen.level))
    return (
        f'<g class="fan {look}"><path class="area" d="M{origin}L{level}L{straight}Z"/>'
        f'<path d="M{origin}L{discounted}"/></g>'
    )


def draw_marks(page: RacePage, view: View, looks: dict[int, str]) -> str:
    """Levels to come, the ends of curves, and the names of those that have a colour."""
    shapes = list(_levels(page.levels, view))
    shown = [one for one in _marked(page.learners, looks) if len(page.curves[one.arm])]
    ends = {one.arm: point for one in shown if (point := page.curves[one.arm].end) is not None}
    shapes += [_end(one, ends[one.arm], view, looks[one.arm]) for one in reversed(shown)]
    if page.trained_further and page.selected is not None and shown:
        point = page.curves[shown[0].arm].at(page.selected[1])
        if point is not None:
            at = f'cx="{_percent(view.x(point.pull))}" cy="{_at(view, point)}"'
            ring = f'<circle class="ring" {at} r="5"/>'
            shapes.append(f'<g class="{looks[shown[0].arm]}">{ring}</g>')
    named = [one for one in shown if "grey" not in looks[one.arm]]
    return "".join([*shapes, *_names(named, ends, view, looks)])


def _levels(levels: Sequence[Level], view: View) -> Iterable[str]:
    last = -1.0
    for level in [one for one in levels if one.pulls <= view.longest][:MOST_LEVELS]:
        x = view.x(level.pulls)
        at = _percent(x)
        yield f'<line class="level" x1="{at}" x2="{at}" y2="100%"/>'
        if x - last > APART:
            words = f"{level.learners} to {level.pulls:,}"
            yield _text(at, "0", words, "level end", 'dx="-4" dy="11"')
            last = x


def _end(one: LearnerView, point: Point, view: View, look: str) -> str:
    x, y = _percent(view.x(point.pull)), _at(view, point)
    if one.left:
        cross = '<path class="cross" d="M-4-4l8 8m0-8l-8 8"/>'
        return f'<svg class="{look}" x="{x}" y="{y}">{cross}</svg>'
    return f'<circle class="dot {look}" cx="{x}" cy="{y}" r="3.5"/>'


def _names(
    learners: Sequence[LearnerView], at: dict[int, Point], view: View, looks: dict[int, str]
) -> list[str]:
    """Draw names next to the ends of curves, pushed apart if they would overlap."""
    ends = [(at[one.arm], one) for one in learners]
    ends.sort(key=lambda end: (view.y(view.within(end[0].score)), end[1].arm))
    spots = _spread([HEIGHT * view.y(view.within(point.score)) for point, _ in ends])
    shapes = []
    for (point, one), spot in zip(ends, spots, strict=True):
        y, look = _percent(spot / HEIGHT), looks[one.arm]
        if view.x(point.pull) < 0.985 or abs(spot - HEIGHT * view.y(point.score)) > 4:
            x1, y1 = _percent(view.x(point.pull)), _at(view, point)
            line = f'x1="{x1}" y1="{y1}" x2="100%" y2="{y}"'
            shapes.append(f'<line class="leader {look}" {line}/>')
        shapes.append(_text("100%", y, cut(one.name), f"name {look}", 'dx="9" dy="4"'))
    return shapes


def _spread(wanted: Sequence[float]) -> list[float]:
    """Places at least a line apart, as near to those wanted as the picture allows.

    >>> _spread([10.0, 12.0, 339.0, 340.0])
    [10.0, 25.0, 325.0, 340.0]
    """
    spots: list[float] = []
    for y in wanted:
        spots.append(max(y, spots[-1] + LINE) if spots else y)
    room = float(HEIGHT)
    for k in range(len(spots) - 1, -1, -1):  # and back up from the bottom
        spots[k] = min(spots[k], room)
        room = spots[k] - LINE
    return spots


# --- intervals ---


def interval_ends(learners: Sequence[LearnerView]) -> tuple[float, float]:
    """The scores that a picture of intervals goes from and to; arrows point at what is beyond."""
    seen = [one.score for one in learners if isfinite(one.score)] or [0.0]
    reach = max(seen) - min(seen) or abs(max(seen)) or 1.0
    whole = [one for one in learners if one.lower <= one.upper]
    lows = [one.lower for one in whole if one.lower > min(seen) - 2 * reach]
    highs = [one.upper for one in whole if one.upper < max(seen) + 2 * reach]
    return _padded(min([*seen, *lows]), max([*seen, *highs]))


def draw_interval(one: LearnerView, low: float, high: float, look: str, title: str) -> str:
    """Where a learner's curve can be, and a dot at its last score."""

    def x(value: float) -> str:
        return _percent((min(high, max(low, value)) - low) / (high - low))

    shapes = []
    if isfinite(one.score) and one.lower <= one.upper:
        line = f'x1="{x(one.lower)}" x2="{x(one.upper)}" y1="50%" y2="50%"'
        shapes.append(f'<line class="span" {line}/>')
        if one.lower < low:
            shapes.append('<svg x="0" y="50%"><path class="tip" d="M6-5l-7 5l7 5"/></svg>')
        if one.upper > high:
            shapes.append('<svg x="100%" y="50%"><path class="tip" d="M-6-5l7 5l-7 5"/></svg>')
    if isfinite(one.score):
        shapes.append(f'<circle class="dot" cx="{x(one.score)}" cy="50%" r="4"/>')
    label = escape(title)
    return f'<svg class="interval {look}" role="img" aria-label="{label}">{"".join(shapes)}</svg>'


def draw_interval_axis(low: float, high: float) -> str:
    """The numbers below intervals."""
    shapes = []
    for value in ticks(low, high, 4):
        at = _percent((value - low) / (high - low))
        shapes.append(_text(at, "12", f"{value:.6g}", "tick middle"))
    return f'<svg class="interval-axis" aria-hidden="true">{"".join(shapes)}</svg>'


def _at(view: View, point: Point) -> str:
    return _percent(view.y(view.within(point.score)))


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _text(x: str, y: str, text: str, css: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" class="{css}" {more}>{escape(text)}</text>'


def cut(name: str, most: int = NAME) -> str:
    """A name that is not too long.

    >>> cut("a long name", 8)
    'a long …'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"
