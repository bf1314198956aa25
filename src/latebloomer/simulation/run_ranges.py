"""Which runs are covered: sorted, disjoint intervals [first, last) that never touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from latebloomer.errors import ResultsError

Ranges: TypeAlias = tuple[tuple[int, int], ...]


def count(ranges: Ranges) -> int:
    """How many runs there are.

    >>> count(((0, 10), (15, 20)))
    15
    """
    return sum(last - first for first, last in ranges)


def join(ours: Ranges, theirs: Ranges, what: str = "these results") -> Ranges:
    """Both, which must have no run in common.

    >>> join(((0, 10), (20, 30)), ((10, 15),))
    ((0, 15), (20, 30))
    >>> join(((0, 10),), ((5, 15),))
    Traceback (most recent call last):
    latebloomer.errors.ResultsError: these results: runs 5 to 9 are in both; ...
    """
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ours + theirs):
        if joined and first < joined[-1][1]:
            end = min(last, joined[-1][1]) - 1
            raise ResultsError(
                f"{what}: runs {first} to {end} are in both; a run counts once, so merge results "
                "of different run ranges"
            )
        if joined and first == joined[-1][1]:
            first = joined.pop()[0]
        joined.append((first, last))
    return tuple(joined)


def missing(ranges: Ranges, first: int, last: int) -> Ranges:
    """What of [first, last) is not covered.

    >>> missing(((0, 10), (20, 30)), 5, 40)
    ((10, 20), (30, 40))
    """
    starts = [first, *(b for _, b in ranges)]
    ends = [*(a for a, _ in ranges), last]
    holes = [(max(a, first), min(b, last)) for a, b in zip(starts, ends, strict=True)]
    return tuple((a, b) for a, b in holes if a < b)


def as_ranges(given: Iterable[Iterable[int]]) -> Ranges:
    """Ranges as read from a file."""
    ranges: Ranges = ()
    for first, last in given:
        ranges = join(ranges, ((int(first), int(last)),), "a results file")
    return ranges


def words(ranges: Ranges) -> str:
    """Ranges for people: the last run of each is included.

    >>> words(((0, 10), (20, 21)))
    '0-9, 20'
    """
    return ", ".join(str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in ranges)


def need_same(what: str, ours: Mapping[str, object], theirs: Mapping[str, object]) -> None:
    """Raise a `ResultsError` that names the first thing that differs."""
    for name, value in ours.items():
        if value != theirs[name]:
            raise ResultsError(
                f"{what} cannot be merged: {name} is {value!r} in one and {theirs[name]!r} in "
                "the other"
            )
