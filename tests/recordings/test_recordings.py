"""Moves of code change no decision: sessions, simulated runs and races are as recorded."""

import json

import pytest

from tests.helpers import recorded_decisions as recordings

KEPT = json.loads(recordings.FILE.read_text())


def kept(name):
    slow = name.startswith("simulation") and "r-sr" not in name and "foresight" not in name
    return pytest.param(name, marks=pytest.mark.slow if slow else [])


def test_each_policy_is_recorded():
    assert sorted(KEPT) == sorted(recordings.names()), "python -m tools.record_decisions"


@pytest.mark.parametrize("name", [kept(name) for name in recordings.names()])
def test_decisions_are_as_recorded(name):
    assert recordings.record(name) == KEPT[name]
