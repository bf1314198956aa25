"""A plain table in HTML, for notebooks: no style, so that it looks as the notebook's own do."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

MOST = 60  # rows; what is longer is cut in the middle


def html_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """A table with a title above it and sentences below; all text is escaped.

    >>> html_table("a <title>", ["arm"], [["b"]])
    '<p><b>a &lt;title&gt;</b></p><table><thead><tr><th>arm</th></tr></thead>...<td>b</td>...'
    """
    lines = [_line(row, "td") for row in rows]
    more = len(lines) - MOST
    if more > 0:
        cut = f'<tr><td colspan="{len(head)}">… {more} more …</td></tr>'
        lines = [*lines[: MOST // 2], cut, *lines[-MOST // 2 :]]
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f"<p><b>{escape(title)}</b></p><table><thead>{_line(head, 'th')}</thead>"
        f"<tbody>{''.join(lines)}</tbody></table>{below}"
    )


def _line(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
