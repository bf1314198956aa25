"""Small pictures as inline SVG: no script, no font, nothing to load."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

import numpy as np

from latebloomer.page.race_page import Floats


class Curve(NamedTuple):
    """One learning curve."""

    name: str
    css: str  # classes
    pulls: Floats
    scores: Floats
    cross: bool  # at its end, instead of a dot
    title: str
    ring: int | None = None  # a pull to mark


class Interval(NamedTuple):
    """An interval and the point in it."""

    name: str
    css: str
    low: float
    high: float
    value: float
    title: str


class PlotArea(NamedTuple):
    """Maps data to the picture."""

    left: float
    right: float
    top: float
    bottom: float
    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, value: float) -> float:
        share = (value - self.x0) / ((self.x1 - self.x0) or 1.0)
        return self.left + share * (self.right - self.left)

    def y(self, value: float) -> float:
        share = (value - self.y0) / ((self.y1 - self.y0) or 1.0)
        return self.bottom - share * (self.bottom - self.top)


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


def draw_curves(curves: Sequence[Curve], x_label: str, y_label: str) -> str:
    """Learning curves, each named at its end."""
    width, height = 760, 380
    points = np.concatenate([curve.scores for curve in curves if len(curve.scores)])
    low, high = _padded(float(points.min()), float(points.max()))
    longest = max(float(curve.pulls[-1]) for curve in curves if len(curve.pulls))
    named = [curve for curve in curves if "grey" not in curve.css]
    room = 16 + 7.2 * min(22, max(len(curve.name) for curve in named))
    area = PlotArea(58, width - room, 14, height - 44, min(1.0, longest - 1), longest, low, high)
    shapes = [_axes(area, x_label, y_label)]
    shapes += [_curve(area, curve) for curve in curves]
    shapes += _labels(area, [curve for curve in named if len(curve.pulls)])
    return _picture(width, height, shapes, "learning curves")


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
    return low - pad, high + pad


def _axes(area: PlotArea, x_label: str, y_label: str) -> str:
    shapes = []
    for value in ticks(area.y0, area.y1, 7):
        y = area.y(value)
        shapes.append(f'<path class="grid" d="M{area.left:.1f} {y:.1f}H{area.right:.1f}"/>')
        shapes.append(_text(area.left - 8, y + 4, f"{value:g}", "tick end"))
    for value in ticks(area.x0, area.x1, 6):
        shapes.append(_text(area.x(value), area.bottom + 18, f"{value:g}", "tick middle"))
    middle = (area.left + area.right) / 2
    shapes.append(f'<path class="axis" d="M{area.left} {area.bottom}H{area.right:.1f}"/>')
    shapes.append(_text(middle, area.bottom + 38, x_label, "tick middle"))
    turn = f'transform="rotate(-90 14 {(area.top + area.bottom) / 2:.0f})"'
    shapes.append(_text(14, (area.top + area.bottom) / 2, y_label, "tick middle", turn))
    return "".join(shapes)


def _curve(area: PlotArea, curve: Curve) -> str:
    if not len(curve.pulls):
        return ""
    dots = [
        f"{area.x(x):.1f} {area.y(y):.1f}" for x, y in zip(curve.pulls, curve.scores, strict=True)
    ]
    x, y = area.x(float(curve.pulls[-1])), area.y(float(curve.scores[-1]))
    end = f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
    if curve.cross:
        end = f'<path class="cross" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"/>'
    if curve.ring is not None:
        y = area.y(float(np.interp(curve.ring, curve.pulls, curve.scores)))
        end += f'<circle class="ring" cx="{area.x(curve.ring):.1f}" cy="{y:.1f}" r="5"/>'
    title = f"<title>{escape(curve.title)}</title>"
    return f'<g class="curve {curve.css}">{title}<path d="M{"L".join(dots)}"/>{end}</g>'


def _labels(area: PlotArea, curves: Sequence[Curve]) -> list[str]:
    """Names beside the ends, pushed apart where they would overlap."""
    ends = sorted((area.y(float(curve.scores[-1])), curve) for curve in curves)
    placed: list[float] = []
    for y, _ in ends:
        placed.append(max(y, placed[-1] + 14) if placed else y)
    over = max(0.0, placed[-1] - area.bottom) if placed else 0.0
    shapes = []
    for (y, curve), spot in zip(ends, placed, strict=True):
        x = area.x(float(curve.pulls[-1]))
        at = spot - over
        if area.right - x > 14 or abs(at - y) > 3:
            lead = f"M{x + 6:.1f} {y:.1f}L{area.right + 2:.1f} {at:.1f}"
            shapes.append(f'<path class="lead {curve.css}" d="{lead}"/>')
        shapes.append(_text(area.right + 7, at + 4, _cut(curve.name), f"name {curve.css}"))
    return shapes


def draw_intervals(intervals: Sequence[Interval], label: str) -> str:
    """Intervals, one per line; an arrow where one goes on beyond the picture."""
    seen = [one.value for one in intervals if isfinite(one.value)]
    reach = max(seen) - min(seen) or abs(max(seen)) or 1.0
    whole = [one for one in intervals if one.low <= one.high]
    lows = [one.low for one in whole if one.low > min(seen) - 2 * reach]
    highs = [one.high for one in whole if one.high < max(seen) + 2 * reach]
    low, high = _padded(min([*seen, *lows]), max([*seen, *highs]))
    width, height = 760, 24 * len(intervals) + 54
    room = 20 + 7.2 * min(22, max(len(one.name) for one in intervals))
    area = PlotArea(room, width - 24, 8, height - 42, low, high, 0.0, 1.0)
    shapes = []
    for value in ticks(low, high, 6):
        x = area.x(value)
        shapes.append(f'<path class="grid" d="M{x:.1f} {area.top}V{area.bottom}"/>')
        shapes.append(_text(x, area.bottom + 18, f"{value:g}", "tick middle"))
    shapes += [_interval(area, one, area.top + 24 * k + 14) for k, one in enumerate(intervals)]
    shapes.append(_text((area.left + area.right) / 2, area.bottom + 36, label, "tick middle"))
    return _picture(width, height, shapes, "intervals at the horizon")


def _interval(area: PlotArea, one: Interval, y: float) -> str:
    shapes = [_text(area.left - 12, y + 4, _cut(one.name), f"name end {one.css}")]
    if isfinite(one.value) and one.low <= one.high:
        x0, x1 = area.x(max(one.low, area.x0)), area.x(min(one.high, area.x1))
        shapes.append(f'<path class="span" d="M{x0:.1f} {y:.1f}H{x1:.1f}"/>')
        if one.low < area.x0:
            shapes.append(f'<path class="tip" d="M{x0 + 6:.1f} {y - 5:.1f}l-7 5l7 5"/>')
        if one.high > area.x1:
            shapes.append(f'<path class="tip" d="M{x1 - 6:.1f} {y - 5:.1f}l7 5l-7 5"/>')
    if isfinite(one.value):
        shapes.append(f'<circle class="dot" cx="{area.x(one.value):.1f}" cy="{y:.1f}" r="4"/>')
    return f'<g class="{one.css}"><title>{escape(one.title)}</title>{"".join(shapes)}</g>'


def _text(x: float, y: float, text: str, css: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" {more}>{escape(text)}</text>'


def _cut(name: str) -> str:
    return name if len(name) <= 22 else f"{name[:21]}…"


def _picture(width: float, height: float, shapes: Sequence[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}">'
        f"{''.join(shapes)}</svg>"
    )
