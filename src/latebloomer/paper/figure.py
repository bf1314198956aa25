"""What every figure or table is: a name, a title and a function that makes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from latebloomer.paper.workbench import Bench

Draw = Callable[[Any], Any]  # given matplotlib.pyplot, returns a matplotlib figure


class Made(NamedTuple):
    """A figure that was made: its numbers, how to draw it, and what to know about it."""

    rows: Sequence[Any]  # named tuples of one kind: the CSV file
    draw: Draw
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Figure:
    """A figure or table of the paper, or one of ours."""

    name: str
    title: str
    make: Callable[[Bench], Made]
    in_all: bool = True  # part of `reproduce all`
