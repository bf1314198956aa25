"""Runs on this machine, in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from time import monotonic

from latebloomer.simulation.progress_bar import Progress
from latebloomer.simulation.rounds import How, Leg, Part, part_of

PART = 10.0  # seconds of work that are handed on together, so that they can be kept in a file


def local_parts(legs: Sequence[Leg], how: How, bar: Progress) -> Iterator[Part]:
    """Play all legs, one after the other, chunk by chunk; parts come as they are ready.

    Whatever ends a chunk early, Ctrl-C or an error, the chunks before it are handed on first.
    """
    for leg in legs:
        yield from _leg_parts(leg, how, bar)


def _leg_parts(leg: Leg, how: How, bar: Progress) -> Iterator[Part]:
    players = leg.round.players(how.target, how.threads or cores())
    tally, began = leg.round.tally(), monotonic()
    for start, count in leg.round.chunks(leg.first, leg.last, how):
        try:
            played = leg.round.play(players, start, count)
        except BaseException:
            yield part_of(leg, tally)
            raise
        tally.add(start, *played)
        bar.advance(leg.round.cost * count)
        if monotonic() - began > PART:
            yield part_of(leg, tally)
            tally, began = leg.round.tally(), monotonic()
    yield part_of(leg, tally)


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
