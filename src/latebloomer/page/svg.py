"""Helpers for pictures in SVG: places, texts, round numbers, and spacing of names."""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

Looks = Mapping[int, str]  # CSS classes of each learner: its color, and whether it is the best
SMALLEST = 1e-290  # parts of a smaller difference of scores would round to 0


def padded(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis with some space around its values."""
    pad = next(pad for pad in (0.05 * (high - low), 0.5 * abs(high), 0.5) if pad > SMALLEST)
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
    """Return places near `wanted`, in the same order, up to `room` and at least `gap` apart.

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


def percent(share: float) -> str:
    """Return a share of a picture's width or height as a percentage."""
    return f"{100 * share:.4g}%"


def text_at(x: str, y: str, text: str, css: str, more: str = "") -> str:
    """Return a text at a place."""
    return f'<text x="{x}" y="{y}" class="{css}" {more}>{escape(text)}</text>'
