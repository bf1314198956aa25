"""The look of matplotlib figures: colors, text sizes, and names where lines end."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill
from typing import TYPE_CHECKING

from latebloomer._util.text import shortened
from latebloomer.page.svg import spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colors for color-blind readers (after Okabe and Ito); their contrast on white is at least 4.5 to
# 1.
COLORS = ("#0072B2", "#BF5400", "#008560", "#B04F84", "#946F00", "#1F7A8C", "#000000", "#7A5C3E",
          "#8250A8", "#1B1464", "#C01C28", "#55607A")  # fmt: skip
GRAY = "0.55"  # 3.4 to 1
TEXT = 9  # size of the smallest text, in points
LINE = 1.25  # distance between two labels, in heights of their text
LETTERS = 9  # letters of a title per inch of width


def finish(ax: Axes, title: str, room: float = 1.0) -> None:
    """Add a title at the left over a share `room` of the figure, and remove two spines."""
    ax.set_title(in_lines(ax, title, room), fontsize=TEXT + 2, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=TEXT)


def in_lines(ax: Axes, text: str, room: float = 1.0) -> str:
    """Wrap a text to lines that fit over a share `room` of the figure, or of its column."""
    # .775 is the width of axes without neighbors.
    room *= min(1.0, ax.get_position().width / 0.775)
    return fill(text, int(LETTERS * room * ax.figure.get_size_inches()[0]))  # type: ignore[union-attr]


def label_ends(ax: Axes, ends: Iterable[tuple[float, str, str]]) -> None:
    """Write names right of the axes at the ends of lines, at least one text line apart.

    `ends` has the last value, the name and the color of each line.
    """
    labels = sorted(ends)
    width, height = ax.figure.get_size_inches()  # type: ignore[union-attr]
    # Minimum distance, as a share of the height of the axes.
    gap = LINE * TEXT / 72 / (0.75 * height)
    to_axes = ax.transScale + ax.transLimits
    wanted = [float(to_axes.transform((1.0, value))[1]) for value, _, _ in labels]
    for (_, name, color), y in zip(labels, spread(wanted, gap), strict=True):
        ax.text(
            1.01,
            y,
            shortened(name, int(LETTERS * width / 2)),
            color=color,
            fontsize=TEXT,
            transform=ax.transAxes,
            va="center",
        )
