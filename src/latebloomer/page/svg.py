"""Learning curves and intervals as inline SVG: no font, nothing to load.

A picture is as wide as its place, and its text is as large on a phone as on a desk: curves are
drawn in separate coordinates, stretched by a view box, and everything else stands at percentages
of the picture. So a curve that grows is a path to which points are added, an axis that moves
changes one view box, and `page.js` zooms by placing what has a `data-at` again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10

from latebloomer._util.text import shortened
from latebloomer.page.race_page import RacePage
from latebloomer.page.thinned_curve import Point, ThinnedCurve
from latebloomer.session.learner_view import DROPPED, ForecastView, LearnerView

HEIGHT = 340  # of the curves, in pixels
LINE = 15  # pixels between two names
ROOMY = 1.6  # a view this much wider than its content is made narrower
FAR = 4  # times the pulls made: a horizon beyond that is named, but not in the picture
LEVELS = 6  # marked phases; of more, evenly chosen ones
NAME = 20  # characters of a name next to its curve
Looks = Mapping[int, str]


@dataclass(frozen=True)
class View:
    """The part of the plane that is seen, and the coordinates that paths are written in.

    Paths have scores as (origin - score) / unit, which does not change while a race is watched: a
    picture's own numbers have seven digits, too few for 1,000,000.01.
    """

    origin: float
    unit: float
    longest: float  # pulls at the right end
    low: float
    high: float

    def x(self, pull: float) -> float:
        """Return a place from 0 to 1."""
        return min(1.0, pull / self.longest)

    def y(self, score: float) -> float:
        """Return a place from 0, the top, to 1; scores beyond the view are at its edge."""
        return (self.high - min(self.high, max(self.low, score))) / (self.high - self.low)

    def place(self, point: Point) -> str:
        """Return a point in the coordinates of paths."""
        return f"{point.pull:.7g} {(self.origin - point.score) / self.unit:.5g}"

    @property
    def box(self) -> str:
        """The view box of the curves."""
        top = (self.origin - self.high) / self.unit
        return f"0 {top:.7g} {self.longest:.7g} {(self.high - self.low) / self.unit:.7g}"


def view_of(page: RacePage, before: View | None = None) -> View:
    """Return what to show of a race; the same as before as long as everything fits."""
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
    ahead = [one.forecast.score] if has_fan(one) and one.forecast is not None else []
    return [*(page.curves[one.arm].bounds() or ()), *ahead]


def has_fan(one: LearnerView) -> bool:
    """Return whether the picture has a forecast of the learner."""
    made = one.forecast
    return made is not None and made.trust > 0 and made.at > one.pulls > 0


def _longest(page: RacePage) -> int:
    """Return the horizon; if that is far, the pulls made and the levels that are near."""
    longest = max([1, *(one.pulls for one in page.learners)])
    if page.horizon <= FAR * longest:
        return max(page.horizon, longest)
    levels = [pulls for _, pulls in page.levels if pulls > longest]
    near = [pulls for pulls in levels if pulls <= 2 * longest] or levels[:1]
    return max([longest, *near])


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
    return low - pad, high + pad


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers between two ends.

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


def draw_curves(page: RacePage, view: View, looks: Looks, raw: bool) -> str:
    """Draw the learning curves with everything that belongs to them."""
    shown = [one for one in reversed(page.learners) if len(page.curves[one.arm])]
    paths = "".join(
        curve_paths(one, page.curves[one.arm], view, looks[one.arm], raw) for one in shown
    )
    label = escape(describe_curves(page))
    return (
        f'<div class="plot" tabindex="0"><svg class="frame" role="img" aria-label="{label}">'
        f'<g id="axes">{draw_axes(view)}</g>'
        f'<svg id="curves" viewBox="{view.box}" preserveAspectRatio="none" '
        f'data-origin="{view.origin!r}" data-unit="{view.unit!r}">'
        f'<g id="fans">{draw_fans(page, view, looks)}</g>{paths}</svg>'
        f'<g id="marks">{draw_marks(page, view, looks)}</g></svg></div>'
    )


def describe_curves(page: RacePage) -> str:
    """Return the picture in a sentence, for readers who cannot see it."""
    best = "" if page.best is None else f"; {page.best} is {'kept' if page.final else 'leading'}"
    return f"Learning curves of {len(page.learners)} learners after {page.spent:,} pulls{best}"


def curve_paths(one: LearnerView, curve: ThinnedCurve, view: View, look: str, raw: bool) -> str:
    """Draw a learner's curve, below it the scores that it is the mean of."""
    strong = f'<path d="{path_of(curve.smoothed(), view)}"/>'
    faint = f'<path class="raw" d="{path_of(curve.raw(), view)}"/>' if raw else ""
    return f'<g id="c{one.arm}" class="curve {look}">{faint}{strong}</g>'


def path_of(points: Sequence[Point], view: View, more: bool = False) -> str:
    """Return points as a path, or as what follows one."""
    if not points:
        return ""
    text = "L".join(view.place(point) for point in points)
    # A line of no length has round ends: a curve of one point is a dot.
    return f"L{text}" if more else f"M{text}" + ("h0" if len(points) == 1 else "")


def draw_axes(view: View) -> str:
    """Draw grid, ticks and their numbers."""
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


def draw_fans(page: RacePage, view: View, looks: Looks) -> str:
    """Draw the forecasts of colored learners, from the ends of their curves."""
    return "".join(
        _fan(one, one.forecast, page.curves[one.arm], view, looks[one.arm])
        for one in page.learners
        if "gray" not in looks[one.arm] and has_fan(one) and one.forecast is not None
    )


def _fan(one: LearnerView, made: ForecastView, curve: ThinnedCurve, view: View, look: str) -> str:
    end = curve.end
    if end is None:
        return ""
    start, flat, straight, discounted = (
        view.place(point)
        for point in (end, *(Point(made.at, y) for y in (end.score, made.score, one.estimate)))
    )
    area = f'<path class="area" d="M{start}L{flat}L{straight}Z"/>' if one.state != DROPPED else ""
    return f'<g id="f{one.arm}" class="fan {look}">{area}<path d="M{start}L{discounted}"/></g>'


def draw_marks(page: RacePage, view: View, looks: Looks) -> str:
    """Draw the horizon, phases to come, the ends of curves, and names of colored learners."""
    shapes = [*_levels(page.levels, view), _horizon(page.horizon, view)]
    ends = {one.arm: point for one in page.learners
            if (point := page.curves[one.arm].end) is not None}  # fmt: skip
    shown = [one for one in page.learners if one.arm in ends]
    shapes += [_end(one, ends[one.arm], view, looks[one.arm]) for one in reversed(shown)]
    if page.trained_further and page.selected is not None and shown:
        point = page.curves[shown[0].arm].at(page.selected[1])
        if point is not None:
            look = looks[shown[0].arm]
            shapes.append(f'<circle class="ring {look}" {_at(view, point, "cx", "cy")} r="5"/>')
    named = [one for one in shown if "gray" not in looks[one.arm]]
    tips = {one.arm: _tip(one, ends[one.arm], view.longest) for one in named}
    return "".join([*shapes, *_names(named, tips, view, looks)])


def _tip(one: LearnerView, end: Point, longest: float) -> Point:
    """Return where a learner's name belongs: the end of its forecast in sight, or of its curve."""
    made = one.forecast
    if made is None or not has_fan(one):
        return end
    at = min(made.at, longest)
    way = (at - end.pull) / (made.at - end.pull)
    return Point(at, end.score + way * (one.estimate - end.score))


def _levels(levels: Sequence[tuple[int, int]], view: View) -> Iterable[str]:
    seen = [one for one in levels if one[1] <= view.longest]
    step = ceil(len(seen) / LEVELS)
    for k, (learners, pulls) in enumerate(seen[::-step][::-1] if seen else ()):
        at, narrow = _percent(view.x(pulls)), " wide" if k % 2 else ""  # left out on a phone
        yield f'<line class="level" data-at="{pulls}" x1="{at}" x2="{at}" y2="100%"/>'
        yield _text(at, "0", f"{learners} to {pulls:,}", f"level end{narrow}",
                    f'dx="-4" dy="{11 + 13 * (k % 2)}" data-at="{pulls}"')  # fmt: skip


def _horizon(horizon: int, view: View) -> str:
    if horizon > view.longest:
        return _text("100%", "0", f"horizon {horizon:,} →", "horizon end", 'dy="-4"')
    at = _percent(view.x(horizon))
    return f'<line class="horizon" data-at="{horizon}" x1="{at}" x2="{at}" y2="100%"/>' + _text(
        at, "0", f"horizon {horizon:,}", "horizon end", f'dy="-4" data-at="{horizon}"'
    )


def _end(one: LearnerView, point: Point, view: View, look: str) -> str:
    if one.left:
        cross = '<path class="cross" d="M-4-4l8 8m0-8l-8 8"/>'
        return f'<svg class="mark {look}" {_at(view, point)} data-arm="{one.arm}">{cross}</svg>'
    place = _at(view, point, "cx", "cy")
    return f'<circle class="dot mark {look}" {place} data-arm="{one.arm}" r="3.5"/>'


def _at(view: View, point: Point, x: str = "x", y: str = "y") -> str:
    """Return a place as attributes; `page.js` moves what has `data-at`."""
    across, down = _percent(view.x(point.pull)), _percent(view.y(point.score))
    return f'{x}="{across}" {y}="{down}" data-at="{point.pull:g} {point.score:.7g}"'


def _names(
    learners: Sequence[LearnerView], at: Mapping[int, Point], view: View, looks: Looks
) -> list[str]:
    """Draw names next to the ends of curves, pushed apart if they would overlap."""
    ends = [(at[one.arm], one) for one in learners]
    ends.sort(key=lambda end: (view.y(end[0].score), end[1].arm))
    spots = _spread([HEIGHT * view.y(point.score) for point, _ in ends])
    shapes = []
    for (point, one), spot in zip(ends, spots, strict=True):
        y, look, arm = _percent(spot / HEIGHT), looks[one.arm], f'data-arm="{one.arm}"'
        start = _at(view, point, "x1", "y1")
        shapes.append(f'<line class="leader {look}" {arm} {start} x2="100%" y2="{y}"/>')
        name = shortened(one.name, NAME)
        shapes.append(_text("100%", y, name, f"name {look}", f'{arm} dx="9" dy="4"'))
    return shapes


def _spread(wanted: Sequence[float]) -> list[float]:
    """Return places at least a line apart, as near to those wanted as the picture allows.

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
    """Return the scores between which intervals are drawn; arrows point at what is beyond."""
    seen = [one.score for one in learners if isfinite(one.score)] or [0.0]
    reach = max(seen) - min(seen) or abs(max(seen)) or 1.0
    whole = [one for one in learners if one.lower <= one.upper]
    lows = [one.lower for one in whole if one.lower > min(seen) - 2 * reach]
    highs = [one.upper for one in whole if one.upper < max(seen) + 2 * reach]
    return _padded(min([*seen, *lows]), max([*seen, *highs]))


def draw_interval(one: LearnerView, low: float, high: float, look: str, title: str) -> str:
    """Draw where a learner's curve can be, and a dot at its last score."""

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
    """Draw the numbers below intervals."""
    shapes = []
    for value in ticks(low, high, 4):
        at = _percent((value - low) / (high - low))
        shapes.append(_text(at, "12", f"{value:.6g}", "tick middle"))
    return f'<svg class="interval-axis" aria-hidden="true">{"".join(shapes)}</svg>'


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _text(x: str, y: str, text: str, css: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" class="{css}" {more}>{escape(text)}</text>'
