"""Tables: rows as a data frame, and text as plain HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from latebloomer.errors import SettingError, extra

MOST = 60  # rows; what is longer is cut in the middle


def data_frame(rows: Sequence[Mapping[str, Any]], index: str | Sequence[str] | None = None) -> Any:
    """Return the rows as a pandas data frame; `index` names columns to find rows by.

    >>> data_frame([{"name": "a", "pulls": 3}], index="name").loc["a", "pulls"].item()
    3
    """
    pandas = extra("pandas", "data frames", "pandas")
    frame = pandas.DataFrame(list(rows))
    if index is None:
        return frame
    wanted = [index] if isinstance(index, str) else list(index)
    for name in wanted:
        if name not in frame.columns:
            raise SettingError(
                f"index={name!r}, but index must be of the columns {', '.join(frame.columns)}"
            )
    return frame.set_index(wanted[0] if isinstance(index, str) else wanted)


def html_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """Return a table with a title above it and sentences below; all text is escaped.

    >>> html_table("a <title>", ["arm"], [["b"]])
    '<p><b>a &lt;title&gt;</b></p><table><thead><tr><th ...>arm</th></tr></thead>...>b</td>...'
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
    left = 'style="text-align: left"'  # notebooks align cells to the right
    return f"<tr>{''.join(f'<{tag} {left}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
