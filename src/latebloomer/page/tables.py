"""The tables of a page as HTML: the learners, and the settings in which they differ."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from math import inf

from latebloomer._util.text import as_sentence, score_text, short_seconds
from latebloomer.session.arm_views import LearnerView
from latebloomer.session.events import FAILED, FINISHED

SWATCH = '<svg class="swatch {look}" aria-hidden="true"><line x2="100%" y1="50%" y2="50%"/></svg>'
WHOLE = 24  # maximum characters of a word that fits everywhere
# Places between parts of an identifier where a longer word may be broken, in addition to hyphens.
JOINTS = re.compile(r"(?<=[_/\\=,:;(\[{])(?=\S)|(?<=\.)(?=[^\d\s.])|(?<=[a-z]{3})(?=[A-Z][a-z])")


def breakable(text: str, whole: int = WHOLE) -> str:
    """Return a text as HTML in which long words can be broken between parts of a name.

    >>> breakable("RandomForest(n_estimators=300) & max_depth=5")
    'Random<wbr>Forest(<wbr>n_<wbr>estimators=<wbr>300) &amp; max_depth=5'
    """
    parts = (
        JOINTS.split(word) if len(word) > whole else [word] for word in re.split(r"(\s+)", text)
    )
    return "".join("<wbr>".join(map(escape, part)) for part in parts)


def sentences(texts: Iterable[str]) -> str:
    """Return sentences as an HTML list."""
    return "<ul>" + "".join(f"<li>{breakable(as_sentence(text))}</li>" for text in texts) + "</ul>"


def sortable(css: str, head: Iterable[tuple[str, str]], rows: str, body: str = "") -> str:
    """Return a table that `page.js` sorts; `head` has titles and classes, and rows are HTML."""
    cells = "".join(f'<th scope="col" class="{kind}">{escape(text)}</th>' for text, kind in head)
    top = f'<table class="{css}sortable"><thead><tr>{cells}</tr></thead>'
    return f"{top}<tbody{body}>{rows}</tbody></table>"


# --- learners ---


def learner_table(rows: dict[int, list[str]], rule: str, body: str = "") -> str:
    """Return a table of learners from their cells; `rule` is the policy that ranks them."""
    numbers = ("score", "trained", "forecast (trust)", f"estimate ({rule})", "time")
    head = [("learner", ""), *((text, "num") for text in numbers), ("when and why", "")]
    lines = "".join(f'<tr id="r{arm}">{"".join(cells)}</tr>' for arm, cells in rows.items())
    return sortable("learners ", head, lines, body)


def learner_cells(learner: LearnerView, look: str, most: int) -> list[str]:
    """Return the cells of a learner; `most` is the number of pulls of a full bar."""
    # Rounded to the nearest 5 %.
    share = 5 * round(20 * learner.pulls / (learner.full_pulls or most))
    bar = f'<progress class="bar" max="100" value="{share}" aria-hidden="true"></progress>'
    forecast, trust, ahead = learner.forecast, "", ""
    if forecast is not None and forecast.trust:
        trust = f' <span class="soft">({100 * forecast.trust:.0f} %)</span>'
        ahead = "data-forecast "
    return [
        f'<th scope="row" class="name {look}">{_name(learner, look)}</th>',
        f'<td class="num" data-is="score">{score_text(learner.score)}</td>',
        f'<td class="num" data-is="trained" data-sort="{learner.pulls}">{escape(learner.trained)}'
        f'<span class="{look}">{bar}</span></td>',
        f'<td class="num" {ahead}data-is="forecast">'
        f"{score_text(learner.forecast_score)}{trust}</td>",
        f'<td class="num" data-is="estimate">{score_text(learner.estimate)}</td>',
        f'<td class="num" data-is="time" data-sort="{learner.seconds:.6g}">'
        f"{escape(short_seconds(learner.seconds))} s</td>",
        f'<td class="why{" bad" * (learner.state == FAILED)}">{_reason(learner)}</td>',
    ]


def _name(learner: LearnerView, look: str) -> str:
    mark = ' <span class="state">finished</span>' if learner.state == FINISHED else ""
    name = f'<span class="who">{breakable(learner.name)}</span>'
    return f'<span class="full">{SWATCH.format(look=look)}{name}{mark}</span>'


def _reason(learner: LearnerView) -> str:
    """Return the reason of a learner's state, in one line that opens to show details."""
    texts = [learner.remark] if learner.remark else []
    if learner.pulls:
        texts.append(f"{learner.pulls:,} pulls, {learner.seconds / learner.pulls:.2g} s each")
    if learner.steps is not None:
        texts.append(f"{learner.steps:,} of its own training steps")
    if -inf < learner.lower <= learner.upper < inf:
        ends = " and ".join(map(score_text, (learner.lower, learner.upper)))
        texts.append(f"at the horizon between {ends}")
    texts += learner.failures
    summary = f"<summary>{breakable(learner.why)}</summary>"
    return f'<details data-key="why {learner.arm}">{summary}{sentences(texts)}</details>'


# --- settings ---


def settings_table(
    learners: Sequence[LearnerView], names: Sequence[str], first: str = "learner"
) -> str:
    """Return a sortable table of some settings and the score of learners."""
    rows = "".join(
        f'<tr data-row="{learner.arm}"><th scope="row" class="name">'
        f'<span class="full"><span class="who">{breakable(learner.name)}</span></span></th>'
        + "".join(f"<td>{breakable(_setting(learner, name))}</td>" for name in names)
        + f'<td class="num">{score_text(learner.score)}</td></tr>'
        for learner in learners
    )
    head = [*((text, "") for text in (first, *names)), ("score", "num")]
    return f'<div class="wide">{sortable("", head, rows)}</div>'


def _setting(learner: LearnerView, name: str) -> str:
    value = learner.settings.get(name, "")
    return f"{value:.4g}" if isinstance(value, float) else str(value)
