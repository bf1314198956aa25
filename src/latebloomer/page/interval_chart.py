"""Where each learner's curve can be, as bars in SVG."""

from collections.abc import Sequence
from html import escape
from math import isfinite

from latebloomer._util.text import score_text
from latebloomer.page.svg import Looks, padded, percent, text_at, ticks
from latebloomer.page.tables import breakable
from latebloomer.session.arm_views import LearnerView

LEFT, RIGHT = (  # arrows at what is beyond the chart
    '<svg x="0" y="50%"><path class="tip" d="M6-5l-7 5l7 5"/></svg>',
    '<svg x="100%" y="50%"><path class="tip" d="M-6-5l7 5l-7 5"/></svg>',
)


def draw_intervals(learners: Sequence[LearnerView], looks: Looks, misfit: str) -> str:
    """Draw where each learner's curve can be, a dot at its last score, and the numbers below.

    Arrows point at what is beyond the chart.
    """
    seen = [one.score for one in learners if isfinite(one.score)] or [0.0]
    reach = max(seen) - min(seen) or abs(max(seen)) or 1.0
    whole = [one for one in learners if one.lower <= one.upper]
    lows = [one.lower for one in whole if one.lower > min(seen) - 2 * reach]
    highs = [one.upper for one in whole if one.upper < max(seen) + 2 * reach]
    low, high = padded(min([*seen, *lows]), max([*seen, *highs]))

    def x(value: float) -> str:
        return percent((min(high, max(low, value)) - low) / (high - low))

    lines = ""
    for one in learners:
        text, look, shapes = misfit, looks[one.arm], ""
        if one.lower <= one.upper:
            text = f"{score_text(one.lower)} to {score_text(one.upper)}"
            ends = f'x1="{x(one.lower)}" x2="{x(one.upper)}" y1="50%" y2="50%"'
            arrows = LEFT * (one.lower < low) + RIGHT * (one.upper > high)
            shapes = f'<line class="span" {ends}/>{arrows}'
        shapes += f'<circle class="dot" cx="{x(one.score)}" cy="50%" r="4"/>'
        lines += f'<span class="name {look}">{breakable(one.name)}</span>'
        label = escape(f"{one.name}: {text}")
        shapes = shapes if isfinite(one.score) else ""
        lines += f'<svg class="interval {look}" role="img" aria-label="{label}">{shapes}</svg>'
    numbers = "".join(text_at(x(v), "12", f"{v:.6g}", "tick middle") for v in ticks(low, high, 4))
    axis = f'<span></span><svg class="interval-axis" aria-hidden="true">{numbers}</svg>'
    return f'<div class="intervals">{lines}{axis}</div>'
