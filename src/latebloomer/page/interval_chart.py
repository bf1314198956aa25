"""The intervals of a certificate as bars in SVG."""

from collections.abc import Sequence
from html import escape
from math import isfinite

from latebloomer._util.text import score_text
from latebloomer.page.svg import Looks, padded, percent, text_at, ticks
from latebloomer.page.tables import breakable
from latebloomer.session.arm_views import LearnerView

LEFT, RIGHT = (  # arrows for bars that continue beyond the chart
    '<svg x="0" y="50%"><path class="tip" d="M6-5l-7 5l7 5"/></svg>',
    '<svg x="100%" y="50%"><path class="tip" d="M-6-5l7 5l-7 5"/></svg>',
)


def draw_intervals(learners: Sequence[LearnerView], looks: Looks, misfit: str) -> str:
    """Draw a bar for each learner's interval, a dot at its last score, and numbers below.

    An arrow means that a bar continues beyond the chart.
    """
    seen = [learner.score for learner in learners if isfinite(learner.score)] or [0.0]
    reach = max(seen) - min(seen) or abs(max(seen)) or 1.0
    whole = [learner for learner in learners if learner.lower <= learner.upper]
    lows = [learner.lower for learner in whole if learner.lower > min(seen) - 2 * reach]
    highs = [learner.upper for learner in whole if learner.upper < max(seen) + 2 * reach]
    low, high = padded(min([*seen, *lows]), max([*seen, *highs]))

    def x(value: float) -> str:
        return percent((min(high, max(low, value)) - low) / (high - low))

    lines = ""
    for learner in learners:
        text, look, shapes = misfit, looks[learner.arm], ""
        if learner.lower <= learner.upper:
            text = f"{score_text(learner.lower)} to {score_text(learner.upper)}"
            ends = f'x1="{x(learner.lower)}" x2="{x(learner.upper)}" y1="50%" y2="50%"'
            arrows = LEFT * (learner.lower < low) + RIGHT * (learner.upper > high)
            shapes = f'<line class="span" {ends}/>{arrows}'
        shapes += f'<circle class="dot" cx="{x(learner.score)}" cy="50%" r="4"/>'
        lines += f'<span class="name {look}">{breakable(learner.name)}</span>'
        label = escape(f"{learner.name}: {text}")
        shapes = shapes if isfinite(learner.score) else ""
        lines += f'<svg class="interval {look}" role="img" aria-label="{label}">{shapes}</svg>'
    numbers = "".join(text_at(x(v), "12", f"{v:.6g}", "tick middle") for v in ticks(low, high, 4))
    axis = f'<span></span><svg class="interval-axis" aria-hidden="true">{numbers}</svg>'
    return f'<div class="intervals">{lines}{axis}</div>'
