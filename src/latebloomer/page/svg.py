"""Small pictures as inline SVG: no script, no font, nothing to load."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

import numpy as np

from latebloomer.racing.verdict.history import Floats

POINTS = 240  # of a curve that are drawn; longer ones are averaged in bins


class Line(NamedTuple):
    """One curve: `scores` at pulls 1, 2, ..., thinned by the caller or not."""

    name: str
    css: str  # classes
    pulls: Floats
    scores: Floats
    end: str  # what ended it: "", "out" or "failed"
    title: str
    ring: int | None = None  # a pull to mark


class Frame(NamedTuple):
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


def thin(scores: Floats) -> tuple[Floats, Floats]:
    """At most `POINTS` bin means of a curve and the pulls they stand for.

    >>> thin(np.array([1.0, 3.0]))
    (array([1., 2.]), array([1., 3.]))
    """
    pulls = np.arange(1.0, len(scores) + 1)
    if len(scores) <= POINTS:
        return pulls, scores
    edges = np.linspace(0, len(scores), POINTS + 1).astype(int)
    width = np.diff(edges)
    means = [np.add.reduceat(values, edges[:-1]) / width for values in (pulls, scores)]
    return means[0], means[1]


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


def curves(lines: Sequence[Line], x_label: str, y_label: str) -> str:
    """Learning curves, each named at its end."""
    width, height = 760, 380
    points = np.concatenate([line.scores for line in lines if len(line.scores)])
    low, high = _padded(float(points.min()), float(points.max()))
    longest = max(float(line.pulls[-1]) for line in lines if len(line.pulls))
    room = 16 + 7.2 * min(22, max(len(line.name) for line in lines if "grey" not in line.css))
    frame = Frame(58, width - room, 14, height - 44, min(1.0, longest - 1), longest, low, high)
    parts = [_axes(frame, x_label, y_label)]
    parts += [_curve(frame, line) for line in lines]
    parts += _labels(frame, [line for line in lines if "grey" not in line.css and len(line.pulls)])
    return _picture(width, height, parts, "learning curves")


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
    return low - pad, high + pad


def _axes(frame: Frame, x_label: str, y_label: str) -> str:
    parts = []
    for value in ticks(frame.y0, frame.y1, 7):
        y = frame.y(value)
        parts.append(f'<path class="grid" d="M{frame.left:.1f} {y:.1f}H{frame.right:.1f}"/>')
        parts.append(_text(frame.left - 8, y + 4, f"{value:g}", "tick end"))
    for value in ticks(frame.x0, frame.x1, 6):
        parts.append(_text(frame.x(value), frame.bottom + 18, f"{value:g}", "tick middle"))
    middle = (frame.left + frame.right) / 2
    parts.append(f'<path class="axis" d="M{frame.left} {frame.bottom}H{frame.right:.1f}"/>')
    parts.append(_text(middle, frame.bottom + 38, x_label, "tick middle"))
    turn = f'transform="rotate(-90 14 {(frame.top + frame.bottom) / 2:.0f})"'
    parts.append(_text(14, (frame.top + frame.bottom) / 2, y_label, "tick middle", turn))
    return "".join(parts)


def _curve(frame: Frame, line: Line) -> str:
    if not len(line.pulls):
        return ""
    dots = [
        f"{frame.x(x):.1f} {frame.y(y):.1f}" for x, y in zip(line.pulls, line.scores, strict=True)
    ]
    x, y = frame.x(float(line.pulls[-1])), frame.y(float(line.scores[-1]))
    end = f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
    if line.end:
        end = f'<path class="cross" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"/>'
    if line.ring is not None:
        y = frame.y(float(np.interp(line.ring, line.pulls, line.scores)))
        end += f'<circle class="ring" cx="{frame.x(line.ring):.1f}" cy="{y:.1f}" r="5"/>'
    title = f"<title>{escape(line.title)}</title>"
    return f'<g class="curve {line.css}">{title}<path d="M{"L".join(dots)}"/>{end}</g>'


def _labels(frame: Frame, lines: Sequence[Line]) -> list[str]:
    """Names beside the ends, pushed apart where they would overlap."""
    ends = sorted((frame.y(float(line.scores[-1])), line) for line in lines)
    placed: list[float] = []
    for y, _ in ends:
        placed.append(max(y, placed[-1] + 14) if placed else y)
    over = max(0.0, placed[-1] - frame.bottom) if placed else 0.0
    parts = []
    for (y, line), spot in zip(ends, placed, strict=True):
        x = frame.x(float(line.pulls[-1]))
        at = spot - over
        if frame.right - x > 14 or abs(at - y) > 3:
            lead = f"M{x + 6:.1f} {y:.1f}L{frame.right + 2:.1f} {at:.1f}"
            parts.append(f'<path class="lead {line.css}" d="{lead}"/>')
        parts.append(_text(frame.right + 7, at + 4, _cut(line.name), f"name {line.css}"))
    return parts


class Span(NamedTuple):
    """An interval and the point in it."""

    name: str
    css: str
    low: float
    high: float
    value: float
    title: str


def spans(rows: Sequence[Span], label: str) -> str:
    """Intervals, one per row; an arrow where one goes on beyond the picture."""
    seen = [row.value for row in rows if isfinite(row.value)]
    reach = max(seen) - min(seen) or abs(max(seen)) or 1.0
    whole = [row for row in rows if row.low <= row.high]
    lows = [row.low for row in whole if row.low > min(seen) - 2 * reach]
    highs = [row.high for row in whole if row.high < max(seen) + 2 * reach]
    low, high = _padded(min([*seen, *lows]), max([*seen, *highs]))
    width, height = 760, 24 * len(rows) + 54
    room = 20 + 7.2 * min(22, max(len(row.name) for row in rows))
    frame = Frame(room, width - 24, 8, height - 42, low, high, 0.0, 1.0)
    parts = []
    for value in ticks(low, high, 6):
        x = frame.x(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {frame.top}V{frame.bottom}"/>')
        parts.append(_text(x, frame.bottom + 18, f"{value:g}", "tick middle"))
    parts += [_span(frame, row, frame.top + 24 * k + 14) for k, row in enumerate(rows)]
    parts.append(_text((frame.left + frame.right) / 2, frame.bottom + 36, label, "tick middle"))
    return _picture(width, height, parts, "intervals at the horizon")


def _span(frame: Frame, row: Span, y: float) -> str:
    parts = [_text(frame.left - 12, y + 4, _cut(row.name), f"name end {row.css}")]
    if isfinite(row.value) and row.low <= row.high:
        x0, x1 = frame.x(max(row.low, frame.x0)), frame.x(min(row.high, frame.x1))
        parts.append(f'<path class="span" d="M{x0:.1f} {y:.1f}H{x1:.1f}"/>')
        if row.low < frame.x0:
            parts.append(f'<path class="tip" d="M{x0 + 6:.1f} {y - 5:.1f}l-7 5l7 5"/>')
        if row.high > frame.x1:
            parts.append(f'<path class="tip" d="M{x1 - 6:.1f} {y - 5:.1f}l7 5l-7 5"/>')
    if isfinite(row.value):
        parts.append(f'<circle class="dot" cx="{frame.x(row.value):.1f}" cy="{y:.1f}" r="4"/>')
    return f'<g class="{row.css}"><title>{escape(row.title)}</title>{"".join(parts)}</g>'


def _text(x: float, y: float, text: str, css: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" {more}>{escape(text)}</text>'


def _cut(name: str) -> str:
    return name if len(name) <= 22 else f"{name[:21]}…"


def _picture(width: float, height: float, parts: Sequence[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
