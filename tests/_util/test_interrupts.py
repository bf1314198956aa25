"""Blocks of code whose time is limited."""

import sys
from itertools import count

import pytest

from latebloomer._util.interrupts import TimeIsOver, interrupted_after


def test_a_block_without_end_is_interrupted_and_a_short_one_is_not():
    with pytest.raises(TimeIsOver), interrupted_after(0.01):
        for _ in count():
            pass
    for seconds in (None, 1000):
        with interrupted_after(seconds):
            done = sum(range(100))
        assert done == 4950


def test_errors_of_the_block_come_through():
    with pytest.raises(ZeroDivisionError), interrupted_after(1000):
        raise ZeroDivisionError


def test_an_interrupt_stays_inside_its_block():
    """Many blocks that end at about the time of their limit: none is interrupted afterwards."""
    ends = []
    for _ in range(300):
        try:
            with interrupted_after(1e-4):
                sum(range(2000))
            ends.append("in time")
        except TimeIsOver:
            ends.append("interrupted")
    assert len(ends) == 300


def test_programs_can_be_profiled_afterwards():
    with interrupted_after(1000):
        pass
    calls = []
    sys.setprofile(lambda frame, what, _: calls.append(what))
    try:
        sorted([2, 1], key=lambda x: x)
    finally:
        sys.setprofile(None)
    assert "call" in calls
