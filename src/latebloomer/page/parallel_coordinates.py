"""Settings of candidates as parallel coordinates: an axis per setting, a line per candidate.

Lines are drawn in a view box of 100 by 100 that is stretched; their color is the fifth of the
scores that a candidate is in, so that the best settings are seen at a glance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import isnan, log10

from latebloomer._util.text import shortened
from latebloomer.page.race_page import RacePage
from latebloomer.session.learner_view import LearnerView

AXES = 8  # settings at most; the table has all
DECADES = 1.5  # a setting over more powers of ten has a logarithmic axis
FIFTHS = 5


def varying(learners: Sequence[LearnerView]) -> list[str]:
    """Return the names of settings that all learners have, with different values."""
    first = learners[0].settings if learners else {}
    names = [name for name in first if all(name in one.settings for one in learners)]
    return [name for name in names if len({str(one.settings[name]) for one in learners}) > 1]


def draw_parallel(page: RacePage, names: Sequence[str]) -> str:
    """Draw the candidates that have a score over the first settings and their score."""
    shown = [one for one in page.learners if not isnan(one.score)]
    columns: list[tuple[str, dict[int, object]]] = [
        (name, {one.arm: one.settings.get(name) for one in shown}) for name in names[:AXES]
    ]
    columns.append(("score", {one.arm: one.score for one in shown}))
    axes = [_heights(values) for _, values in columns]
    sign = 1 if page.higher_is_better else -1
    ranked = sorted(shown, key=lambda one: sign * one.score)  # the best on top
    lines = []
    for place, one in enumerate(ranked):
        points = " ".join(
            f"{100 * k / (len(axes) - 1):.4g},{100 - heights[one.arm]:.4g}"
            for k, (heights, _) in enumerate(axes)
        )
        fifth = FIFTHS * place // len(ranked)
        lines.append(
            f'<polyline class="q{fifth}" data-arm="{one.arm}" points="{points}">'
            f"<title>{escape(one.name)}</title></polyline>"
        )
    texts = [_axis(k / (len(axes) - 1), name, ends) for k, ((name, _), (_, ends)) in
             enumerate(zip(columns, axes, strict=True))]  # fmt: skip
    return (
        f'<svg class="parallel" role="img" aria-label="Settings of {len(shown)} candidates, '
        f'colored by score">{"".join(texts)}<svg viewBox="0 0 100 100" '
        f'preserveAspectRatio="none">{"".join(lines)}</svg></svg>'
    )


def _heights(values: Mapping[int, object]) -> tuple[dict[int, float], tuple[str, str]]:
    """Return where each value is on its axis, from 0 to 100, and the words at its ends."""
    numbers = {k: float(v) for k, v in values.items()
               if isinstance(v, int | float) and not isinstance(v, bool)}  # fmt: skip
    if len(numbers) == len(values):
        least, most = min(numbers.values()), max(numbers.values())
        if least > 0 and log10(most / least) > DECADES:
            numbers = {k: log10(v) for k, v in numbers.items()}
        low, high = min(numbers.values()), max(numbers.values())
        spots = {k: 100 * (v - low) / ((high - low) or 1.0) for k, v in numbers.items()}
        return spots, (f"{least:.4g}", f"{most:.4g}")
    words = sorted(set(map(str, values.values())))
    step = 100 / max(1, len(words) - 1)
    return {k: step * words.index(str(v)) for k, v in values.items()}, (words[0], words[-1])


def _axis(x: float, name: str, ends: tuple[str, str]) -> str:
    anchor = "" if x == 0 else "end" if x == 1 else "middle"
    at = f"{100 * x:.4g}%"
    texts = zip((shortened(name, 18), *(shortened(end, 14) for end in ends)),
                ("-22", "100%", "0"), ("", "16", "-6"), strict=True)  # fmt: skip
    return f'<line class="axis" x1="{at}" x2="{at}" y2="100%"/>' + "".join(
        f'<text x="{at}" y="{y}" dy="{dy}" class="tick {anchor}">{escape(text)}</text>'
        for text, y, dy in texts
    )
