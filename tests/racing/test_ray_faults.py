"""Kill actors, nodes and drivers of a race on Ray at random moments: it stays the same race."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

DEATHS = {"actors": 11, "nodes": 11, "leaving": 3, "drivers": 11}  # at random moments
SCRIPT = Path(__file__).with_name("ray_faults.py")


def pulls(path):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT arm, n, score, t FROM pulls ORDER BY arm, n").fetchall()


@pytest.mark.skipif(sys.platform != "linux", reason="the victims look for processes in /proc")
@pytest.mark.parametrize("storm", DEATHS)
def test_a_race_survives(storm, tmp_path, seed):
    command = [sys.executable, SCRIPT, storm, tmp_path, str(DEATHS[storm]), str(seed)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr[-5000:]
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["deaths"] == DEATHS[storm]
    assert told["found"] == told["calm"]  # the verdict of the race that nothing disturbed
    made, calm = pulls(tmp_path / "race.db"), pulls(tmp_path / "calm.db")
    assert sorted(t for *_, t in made) == list(range(1, len(calm) + 1))  # spent exactly, no gaps
    assert [row[:3] for row in made] == [row[:3] for row in calm]  # each pull once, same rewards
