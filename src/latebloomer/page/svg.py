"""Learning curves, intervals and settings as inline SVG: no font, nothing to load.

A picture is as wide as its place, and its text is as large on a phone as on a desk: curves are
drawn in separate coordinates, stretched by a view box, and everything else stands at percentages
of the picture. So a curve that grows is a path to which points are added, an axis that moves
changes one view box, and `page.js` zooms by placing what has a `data-at` again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, isnan, log10

from latebloomer._util.text import shortened
from latebloomer.page.race_page import Point, RacePage, ThinnedCurve
from latebloomer.session.learner_view import DROPPED, ForecastView, LearnerView

HEIGHT = 340  # of the curves, in pixels
LINE = 15  # pixels between two names
ROOMY = 1.6  # a view this much wider than its content is made narrower
FAR = 4  # times the pulls made: a horizon beyond that is named, but not in the picture
LEVELS = 6  # marked phases; of more, evenly chosen ones
LETTER = 0.021  # of the width that a letter of their text takes on a phone
THIN = 0.01  # of the height: an area that is not taller is not seen
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

    def x(self, pull: float) -> str:
        """Return a place across the picture."""
        return _percent(min(1.0, pull / self.longest))

    def y(self, score: float) -> float:
        """Return a place from 0, the top, to 1; scores beyond the view are at its edge."""
        return (self.high - min(self.high, max(self.low, score))) / (self.high - self.low)

    def at(self, point: Point, x: str = "x", y: str = "y") -> str:
        """Return a place as attributes; `page.js` moves what has `data-at`."""
        place = f'{x}="{self.x(point.pull)}" {y}="{_percent(self.y(point.score))}"'
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
    """Return what to show of a race; the same as before as long as everything fits."""
    fans = [made for one in page.learners if (made := fan_of(one)) is not None]
    scores = [score for made in fans for score in (made.level, made.score)]
    for curve in (page.curves[one.arm] for one in page.learners):  # the first fifth may be odd
        scores += [point.score for point in curve.smoothed(len(curve) // 5)]
    low, high = min(scores, default=0.0), max(scores, default=1.0)
    wide, longest = ROOMY * 1.2 * (high - low), _longest(page, [made.at for made in fans])
    if before is None:
        low, high = _padded(low, high)
        return View(low, (high - low) / 1000, longest, low, high)
    fits = before.low <= low and high <= before.high and before.high - before.low <= wide
    low, high = (before.low, before.high) if fits else _padded(low, high)
    return View(before.origin, before.unit, longest, low, high)


def fan_of(one: LearnerView) -> ForecastView | None:
    """Return the forecast of a learner that the picture has, if any."""
    made = one.forecast
    return made if made is not None and made.trust > 0 and made.at > one.pulls > 0 else None


def forecast_start(one: LearnerView, made: ForecastView) -> Point:
    """Return where a forecast starts: the score that its gain is added to, when it was made."""
    return Point(one.pulls if one.decision is None else one.decision.pulls, made.level)


def _longest(page: RacePage, ahead: Sequence[float]) -> float:
    """Return the horizon; if that is far, the pulls made, forecasts, and levels that are near."""
    longest = max([1, *(one.pulls for one in page.learners)])
    if page.horizon <= FAR * longest:
        return max(page.horizon, longest)
    levels = [pulls for _, pulls in page.levels if pulls > longest]
    near = [pulls for pulls in levels if pulls <= 2 * longest] or levels[:1]
    return max([longest, *near, *ahead])


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
    return low - pad, high + pad


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers between two ends.

    >>> ticks(0.03, 0.97)
    [0.2, 0.4, 0.6, 0.8]
    """
    raw = (high - low) / about
    power = 10.0 ** floor(log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def spread(wanted: Sequence[float], gap: float, room: float = 1.0) -> list[float]:
    """Return places up to `room`, ordered as `wanted`, at least `gap` apart and close to them.

    >>> spread([340.0, 12.0, 10.0, 339.0], 15.0, 340.0)
    [340.0, 25.0, 10.0, 325.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places, least = [*wanted], 0.0
    for i in order:
        places[i] = max(places[i], least)
        least = places[i] + gap
    for i in reversed(order):  # and back from the end
        places[i] = min(places[i], room)
        room = places[i] - gap
    return places


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _text(x: str, y: str, text: str, css: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" class="{css}" {more}>{escape(text)}</text>'


# --- curves ---


def draw_curves(page: RacePage, view: View, looks: Looks, raw: bool) -> str:
    """Draw the learning curves with everything that belongs to them."""
    paths = "".join(
        curve_paths(one, page.curves[one.arm], view, looks[one.arm], raw)
        for one in reversed(_shown(page))
    )
    return (
        '<div class="plot" tabindex="0"><svg class="frame" role="img" '
        f'aria-label="{escape(describe_curves(page))}"><g id="axes">{draw_axes(view)}</g>'
        f'<svg id="curves" viewBox="{view.box}" preserveAspectRatio="none" '
        f'data-origin="{view.origin!r}" data-unit="{view.unit!r}">'
        f'<g id="fans">{draw_fans(page, view, looks)}</g>{paths}</svg>'
        f'<g id="marks"><g id="crosses">{draw_crosses(page, view, looks)}</g>'
        f'<g id="ends">{draw_ends(page, view, looks)}</g></g></svg></div>'
    )


def _shown(page: RacePage) -> list[LearnerView]:
    return [one for one in page.learners if len(page.curves[one.arm])]


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
            shapes.append(_text(view.x(value), "100%", f"{value:,.0f}", "tick middle", 'dy="18"'))
    return "".join([*shapes, '<line class="axis" x2="100%" y1="100%" y2="100%"/>'])


def draw_fans(page: RacePage, view: View, looks: Looks) -> str:
    """Draw the forecasts of colored learners; the line is the part of them that counts."""
    shapes = []
    for one in _shown(page):
        made, look = fan_of(one), looks[one.arm]
        if made is None or "gray" in look:
            continue
        ahead = [Point(made.at, y) for y in (made.level, made.score, one.estimate)]
        start, flat, whole, used = map(view.place, (forecast_start(one, made), *ahead))
        seen = one.state != DROPPED and abs(view.y(made.level) - view.y(made.score)) > THIN
        area = f'<path class="area" d="M{start}L{flat}L{whole}Z"/>' if seen else ""
        line = f'<path d="M{start}L{used}"/>'
        shapes.append(f'<g id="f{one.arm}" class="fan {look}">{area}{line}</g>')
    return "".join(shapes)


def draw_crosses(page: RacePage, view: View, looks: Looks) -> str:
    """Draw where learners were dropped or failed. That seldom changes: it has its own place."""
    cross = '<path class="cross" d="M-4-4l8 8m0-8l-8 8"/></svg>'
    return "".join(
        f'<svg class="mark {looks[one.arm]}" {view.at(page.curves[one.arm].end)} '
        f'data-arm="{one.arm}">{cross}'
        for one in reversed(_shown(page))
        if one.left
    )


def draw_ends(page: RacePage, view: View, looks: Looks) -> str:
    """Draw the horizon, phases to come, the ends of curves, and names of colored learners."""
    shapes, shown = [*_levels(page.levels, view)], _shown(page)
    horizon = f"horizon {page.horizon:,}"
    if page.horizon > view.longest:
        shapes.append(_text("100%", "0", f"{horizon} →", "horizon end", 'dy="-4"'))
    else:
        shapes.append(_upright("horizon", page.horizon, view, horizon, 'dy="-4"'))
    for one in (one for one in reversed(shown) if not one.left):
        at = f'{view.at(page.curves[one.arm].end, "cx", "cy")} data-arm="{one.arm}" r="3.5"'
        shapes.append(f'<circle class="dot mark {looks[one.arm]}" {at}/>')
    if page.trained_further and page.selected is not None and shown:
        at = view.at(page.curves[shown[0].arm].at(page.selected[1]), "cx", "cy")
        shapes.append(f'<circle class="ring {looks[shown[0].arm]}" {at} r="5"/>')
    tips = [  # where names belong: the ends of forecasts, or of curves without one
        (Point(made.at, one.estimate) if (made := fan_of(one)) else page.curves[one.arm].end, one)
        for one in shown
        if "gray" not in looks[one.arm]
    ]
    return "".join([*shapes, *_names(tips, view, looks)])


def _levels(levels: Sequence[tuple[int, int]], view: View) -> Iterable[str]:
    seen = [one for one in levels if one[1] <= view.longest]
    step = ceil(len(seen) / LEVELS)
    rows: list[float] = []  # where the last text of each row ends, as a share of the width
    for learners, pulls in seen[::-step][::-1] if seen else ():
        text, share = f"best {learners} to {pulls:,}", pulls / view.longest
        start = share - LETTER * len(text)
        row = next((k for k, end in enumerate(rows) if end <= start), len(rows))
        rows[row : row + 1] = [share]
        yield _upright("level", pulls, view, text, f'dx="-4" dy="{11 + 13 * row}"')


def _upright(kind: str, pulls: int, view: View, text: str, offset: str) -> str:
    """Draw a vertical line with a text at its top."""
    at, moved = view.x(pulls), f'data-at="{pulls}"'
    label = _text(at, "0", text, f"{kind} end", f"{offset} {moved}")
    return f'<line class="{kind}" {moved} x1="{at}" x2="{at}" y2="100%"/>{label}'


def _names(tips: Sequence[tuple[Point, LearnerView]], view: View, looks: Looks) -> Iterable[str]:
    """Draw names next to the ends of curves, pushed apart if they would overlap."""
    ends = sorted(tips, key=lambda end: (view.y(end[0].score), end[1].arm))
    spots = spread([HEIGHT * view.y(point.score) for point, _ in ends], LINE, HEIGHT)
    for (point, one), spot in zip(ends, spots, strict=True):
        y, look, arm = _percent(spot / HEIGHT), looks[one.arm], f'data-arm="{one.arm}"'
        start = view.at(point, "x1", "y1")
        yield f'<line class="leader {look}" {arm} {start} x2="100%" y2="{y}"/>'
        name = shortened(one.name, NAME)
        yield _text("100%", y, name, f"name {look}", f'{arm} dx="9" dy="4"')


# --- intervals ---

LEFT, RIGHT = (  # arrows at what is beyond the chart
    '<svg x="0" y="50%"><path class="tip" d="M6-5l-7 5l7 5"/></svg>',
    '<svg x="100%" y="50%"><path class="tip" d="M-6-5l7 5l-7 5"/></svg>',
)


def number_text(value: float) -> str:
    """Return a score as pages print it; a dash if there is none."""
    if not isfinite(value):
        return "–" if isnan(value) else "∞" if value > 0 else "−∞"
    return f"{value:.4g}" if abs(value) < 9999 else f"{value:.6g}"


def draw_intervals(learners: Sequence[LearnerView], looks: Looks, misfit: str) -> str:
    """Draw where each learner's curve can be, a dot at its last score, and the numbers below.

    Arrows point at what is beyond the chart.
    """
    seen = [one.score for one in learners if isfinite(one.score)] or [0.0]
    reach = max(seen) - min(seen) or abs(max(seen)) or 1.0
    whole = [one for one in learners if one.lower <= one.upper]
    lows = [one.lower for one in whole if one.lower > min(seen) - 2 * reach]
    highs = [one.upper for one in whole if one.upper < max(seen) + 2 * reach]
    low, high = _padded(min([*seen, *lows]), max([*seen, *highs]))

    def x(value: float) -> str:
        return _percent((min(high, max(low, value)) - low) / (high - low))

    lines = ""
    for one in learners:
        text, look, shapes = misfit, looks[one.arm], ""
        if one.lower <= one.upper:
            text = f"{number_text(one.lower)} to {number_text(one.upper)}"
            ends = f'x1="{x(one.lower)}" x2="{x(one.upper)}" y1="50%" y2="50%"'
            arrows = LEFT * (one.lower < low) + RIGHT * (one.upper > high)
            shapes = f'<line class="span" {ends}/>{arrows}'
        shapes += f'<circle class="dot" cx="{x(one.score)}" cy="50%" r="4"/>'
        lines += f'<span class="name {look}">{escape(one.name)}</span>'
        label = escape(f"{one.name}: {text}")
        shapes = shapes if isfinite(one.score) else ""
        lines += f'<svg class="interval {look}" role="img" aria-label="{label}">{shapes}</svg>'
    numbers = "".join(_text(x(v), "12", f"{v:.6g}", "tick middle") for v in ticks(low, high, 4))
    axis = f'<span></span><svg class="interval-axis" aria-hidden="true">{numbers}</svg>'
    return f'<div class="intervals">{lines}{axis}</div>'


# --- settings as parallel coordinates: an axis per setting, a line per learner ---

AXES = 8  # settings at most; the table has all
DECADES = 1.5  # a setting over more powers of ten has a logarithmic axis
FIFTHS = 5


def varying(learners: Sequence[LearnerView]) -> list[str]:
    """Return the names of settings that all learners have, with different values."""
    first = learners[0].settings if learners else {}
    names = [name for name in first if all(name in one.settings for one in learners)]
    return [name for name in names if len({str(one.settings[name]) for one in learners}) > 1]


def draw_parallel(page: RacePage, names: Sequence[str]) -> str:
    """Draw the learners that have a score over the first settings and their score.

    Lines are drawn in a view box of 100 by 100 that is stretched; their color is the fifth of the
    scores that a learner is in, so that the best settings are seen at a glance.
    """
    sign = 1 if page.higher_is_better else -1
    shown = sorted((one for one in page.learners if not isnan(one.score)),
                   key=lambda one: sign * one.score)  # fmt: skip  # the best on top
    columns = [(name, [one.settings.get(name) for one in shown]) for name in names[:AXES]]
    axes, points, last = [], [], len(columns)
    columns.append(("score", [one.score for one in shown]))
    for k, (name, values) in enumerate(columns):
        heights, ends = _heights(values)
        points.append([f"{100 * k / last:.4g},{100 - height:.4g}" for height in heights])
        axes.append(_axis(k / last, name, ends))
    lines = [
        f'<polyline class="q{FIFTHS * place // len(shown)}" data-arm="{one.arm}" '
        f'points="{" ".join(own)}"><title>{escape(one.name)}</title></polyline>'
        for place, (one, own) in enumerate(zip(shown, zip(*points, strict=True), strict=True))
    ]
    return (
        f'<svg class="parallel" role="img" aria-label="Settings of {len(shown)} learners, '
        f'colored by score">{"".join(axes)}<svg viewBox="0 0 100 100" '
        f'preserveAspectRatio="none">{"".join(lines)}</svg></svg>'
    )


def _heights(values: Sequence[object]) -> tuple[list[float], tuple[str, str]]:
    """Return where each value is on its axis, from 0 to 100, and the words at its ends."""
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(values):
        words = sorted(set(map(str, values)))
        step = 100 / max(1, len(words) - 1)
        ends = shortened(words[0], 14), shortened(words[-1], 14)
        return [step * words.index(str(v)) for v in values], ends
    least, most = min(numbers), max(numbers)
    if least > 0 and log10(most / least) > DECADES:
        numbers = [log10(v) for v in numbers]
    low, high = min(numbers), max(numbers)
    places = [100 * (v - low) / ((high - low) or 1.0) for v in numbers]
    return places, (f"{least:.4g}", f"{most:.4g}")


def _axis(x: float, name: str, ends: tuple[str, str]) -> str:
    anchor = "" if x == 0 else "end" if x == 1 else "middle"
    at = _percent(x)
    texts = ((name, "-22", ""), (ends[0], "100%", 'dy="16"'), (ends[1], "0", 'dy="-6"'))
    words = [_text(at, y, shortened(text, 18), f"tick {anchor}", dy) for text, y, dy in texts]
    return "".join([f'<line class="axis" x1="{at}" x2="{at}" y2="100%"/>', *words])
