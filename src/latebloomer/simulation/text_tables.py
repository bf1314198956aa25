"""Plain aligned tables of numbers with intervals."""

from __future__ import annotations

from collections.abc import Sequence


def align(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines: the first column to the left, the others to the right.

    >>> print(align([["policy", "error"], ["r-sr", "0.5"]]))
    policy  error
    r-sr      0.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def number(value: float | None) -> str:
    """Four digits; a dash where there is none.

    >>> number(0.0123456), number(3e-06), number(None)
    ('0.01235', '3e-06', '-')
    """
    return "-" if value is None else f"{value:.4g}"


def span(low: float | None, high: float | None) -> str:
    """An interval.

    >>> span(0.25, 0.5)
    '[0.25, 0.5]'
    """
    return f"[{number(low)}, {number(high)}]"
