"""Settings as parallel coordinates in SVG, with an axis per setting and a line per learner."""

from collections.abc import Sequence
from html import escape
from math import isnan, log10

from latebloomer._util.text import shortened
from latebloomer.page.race_page import RacePage
from latebloomer.page.svg import percent, text_at

AXES = 8  # maximum settings in the picture; the table has all
DECADES = 1.5  # a setting that spans more powers of ten has a logarithmic axis
FIFTHS = 5


def draw_parallel(page: RacePage, names: Sequence[str]) -> str:
    """Draw lines for learners with a score, over axes for the first settings and the score.

    Lines are drawn in a stretched view box of 100 by 100. The color of a line shows in which fifth
    of the scores the learner is, so that the best settings are easy to see.
    """
    sign = 1 if page.higher_is_better else -1
    shown = sorted(
        (learner for learner in page.learners if not isnan(learner.score)),
        key=lambda learner: sign * learner.score,
    )  # the best learner on top
    columns = [(name, [learner.settings.get(name) for learner in shown]) for name in names[:AXES]]
    axes, points, last = [], [], len(columns)
    columns.append(("score", [learner.score for learner in shown]))
    for k, (name, values) in enumerate(columns):
        heights, ends = _heights(values)
        points.append([f"{100 * k / last:.4g},{100 - height:.4g}" for height in heights])
        axes.append(_axis(k / last, name, ends))
    lines = [
        f'<polyline class="q{FIFTHS * place // len(shown)}" data-arm="{learner.arm}" '
        f'points="{" ".join(own)}"><title>{escape(learner.name)}</title></polyline>'
        for place, (learner, own) in enumerate(zip(shown, zip(*points, strict=True), strict=True))
    ]
    return (
        f'<svg class="parallel" role="img" aria-label="Settings of {len(shown)} learners, '
        f'colored by score">{"".join(axes)}<svg viewBox="0 0 100 100" '
        f'preserveAspectRatio="none">{"".join(lines)}</svg></svg>'
    )


def _heights(values: Sequence[object]) -> tuple[list[float], tuple[str, str]]:
    """Return the place of each value on its axis, from 0 to 100, and the texts at its ends."""
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
    at = percent(x)
    texts = ((name, "-22", ""), (ends[0], "100%", 'dy="16"'), (ends[1], "0", 'dy="-6"'))
    words = [text_at(at, y, shortened(text, 18), f"tick {anchor}", dy) for text, y, dy in texts]
    return "".join([f'<line class="axis" x1="{at}" x2="{at}" y2="100%"/>', *words])
