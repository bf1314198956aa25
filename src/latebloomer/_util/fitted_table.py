"""Tables as lines of text that fit a terminal: the least important columns are omitted first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from unicodedata import combining, east_asian_width

from latebloomer._util.text import shortened

NAME = 24  # characters to which names are cut before columns are omitted
LEAST = 8  # minimum characters of a name
GAP = "  "


@dataclass(frozen=True)
class Column:
    """A column of a table: a heading, and a cell for each row."""

    head: str
    cells: Sequence[str]
    right: bool = False  # whether cells are right-aligned
    short: tuple[str, Sequence[str]] | None = None  # heading and cells for a narrow terminal
    left_out: int = 0  # the column with the highest number is omitted first; 0: never

    @property
    def width(self) -> int:
        """Width of the widest cell."""
        return max(map(text_width, (self.head, *self.cells)))


def fitted(columns: Sequence[Column], width: int | None = None, whole: int = NAME) -> list[str]:
    r"""Return a table with its head as lines of at most `width` characters.

    If the table is too wide, first columns get their short form, then names in the first column
    are cut to `whole` characters, and then columns are omitted.

    >>> names, numbers = ["net, 3 layers and dropout", "forest"], ["0.5", "0.25"]
    >>> table = [Column("learner", names), Column("score", numbers, right=True)]
    >>> print(*fitted([*table, Column("time", ["20 s", "3 s"], left_out=1)], 30), sep="\n")
    learner                  score
    net, 3 laye…and dropout    0.5
    forest                    0.25
    """
    names, *others = columns
    if width is not None and _total([names, *others]) > width:
        others = [_in_short(column) for column in others]
        while _room(others, width) < min(whole, names.width) and any(
            other.left_out for other in others
        ):
            others.remove(max(others, key=lambda other: other.left_out))
        room = max(LEAST, _room(others, width))
        names = replace(names, cells=[_cut(name, room) for name in names.cells])
    kept = [names, *others]
    rows = zip(*([column.head, *column.cells] for column in kept), strict=True)
    return [GAP.join(map(_padded, row, kept)).rstrip() for row in rows]


def text_width(text: str) -> int:
    """Return the width of a text in a terminal; an East Asian wide letter has width 2."""
    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def _total(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + len(GAP) * (len(columns) - 1)


def _room(others: Sequence[Column], width: int) -> int:
    """Return the width that the other columns leave for the first column."""
    return width - sum(column.width + len(GAP) for column in others)


def _in_short(column: Column) -> Column:
    if column.short is None:
        return column
    head, cells = column.short
    return replace(column, head=head, cells=cells, short=None)


def _cut(name: str, room: int) -> str:
    """Return a name without its middle, so that it is at most `room` wide."""
    lengths = range(len(name), 1, -1)
    texts = (shortened(name, length) for length in lengths)
    return next((text for text in texts if text_width(text) <= room), name[:1])


def _padded(cell: str, column: Column) -> str:
    blank = " " * (column.width - text_width(cell))
    return blank + cell if column.right else cell + blank
