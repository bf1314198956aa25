"""Kill a race at random moments; resumed, it is the race that was never killed."""

import json
import os
import signal
import subprocess
import sys

import pytest

from latebloomer import race, resume
from tests.helpers.kills import LEARNERS, NAMED_AT, WAYS, calm, live, told

# Not as a script: what it pickles is loaded here, under the name of its module.
VICTIM = """
import sys
from tests.helpers import kills
kills.victim(sys.argv[1], int(sys.argv[2]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_race_killed_anywhere_resumes_to_the_same_journal_and_verdict(tmp_path, seed):
    undisturbed = [calm(tmp_path / f"calm-{k}.db", way) for k, way in enumerate(WAYS)]
    words = [sys.executable, "-c", VICTIM, str(tmp_path), str(seed)]
    ran = subprocess.run(words, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    killed = []
    for way, k, moment, often, code in map(json.loads, ran.stdout.splitlines()):
        path, what = tmp_path / f"{way}-{k}.db", f"way {way}: {moment}, number {often}"
        assert code in (0, -signal.SIGKILL), what
        before = told(path)
        killed += [(way, len(before))] if code else []
        verdict, after = live(path, WAYS[way]), told(path)
        pulls, summary = undisturbed[way]
        assert [row[0] for row in after] == list(range(1, len(pulls) + 1)), what  # once each
        assert after[: len(before)] == before, what  # nothing counted was made again
        assert sorted(row[1:] for row in after) == pulls, what
        assert verdict.summary() == summary, what
        assert not any("unpickled" in text for text in verdict.warnings), what
    assert len([way for way, _ in killed if WAYS[way].more is None]) >= 25
    assert len([way for way, _ in killed if WAYS[way].more is not None]) >= 8
    assert len([way for way, pulls in killed if way == 2 and pulls >= NAMED_AT]) >= 2


def test_a_race_killed_twice_still_ends_the_same(tmp_path, cut, path):
    """A resume that is cut short is no different from a race that is."""
    whole = race(LEARNERS, 90, journal=tmp_path / "whole.db", progress=False)
    cut(20, lambda: race(LEARNERS, 90, journal=path, progress=False))
    for more in (1, 34):
        cut(more, lambda: resume(path, LEARNERS, progress=False))
    assert len(told(path)) == 55
    assert resume(path, LEARNERS, progress=False).summary() == whole.summary()
    assert told(path) == told(tmp_path / "whole.db")
