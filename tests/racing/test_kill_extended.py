"""Kill races with few learners in memory, extensions and newcomers; they end as if undisturbed.

As in `test_kill`, a process forks a victim for each moment, which lives one life of a race and is
ended by SIGKILL at that moment.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import test_kill as kill

from latebloomer import LocalRunner, race, resume
from latebloomer.racing.journal.journal import SqliteLog
from latebloomer.session.events import Extended, Joined

# Not as a script: what it pickles is loaded here, under the name of this module.
VICTIM = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_kill_extended
test_kill_extended.victim(sys.argv[1], int(sys.argv[2]))
"""
FIRST, LAST = 60, 130  # pulls before and after the extension


class Plain(kill.Saved):
    """Without save and load; few in memory, it is pickled."""

    save = load = None


LEARNERS = {
    "saved-late": lambda: kill.Saved(1.0, 20.0),
    "saved-early": lambda: kill.Saved(0.6, 1.0),
    "plain": lambda: Plain(0.8, 6.0),
    "plain too": lambda: Plain(0.5, 1.0),
    "saved-third": lambda: kill.Saved(0.7, 4.0),
}
ADD = {"new": lambda: kill.Saved(0.9, 8.0)}
WAYS = [  # settings of the runner, of the race, and of its extension
    ({"max_in_memory": 2}, {"policy": "r-sr", "horizon": 99}, {}),
    ({"checkpoint_every": 4}, {"policy": "auto"}, {"add": ADD, "horizon": 99}),
    ({"max_in_memory": 1}, {"policy": "r-sr", "winner_share": 0.3, "horizon": 99}, {"add": ADD}),
    ({"checkpoint_every": 5}, {"policy": "r-sr", "horizon": 130}, {"revive": False}),
]
MOMENTS = (*kill.MOMENTS, "before the extension", "after the extension")


def arm_moments():
    kill.arm_moments()
    append = SqliteLog.append

    def appending(self, *events, elapsed=0.0):
        more = isinstance(events[0], Joined | Extended)
        kill.reach("before the extension" if more else "")
        append(self, *events, elapsed=elapsed)
        kill.reach("after the extension" if more else "")

    SqliteLog.append = appending


def live(path, way):
    """One life: the race, and when that is over, its extension. Repeated, it goes on."""
    runner, settings, more = WAYS[way]
    if not path.exists() or not kill.begun(path):
        how = LocalRunner(**runner)
        race(LEARNERS, FIRST, journal=path, progress=False, seed=5, runner=how, **settings)
    elif len(kill.told(path)) < FIRST:
        resume(path, LEARNERS, progress=False)
    return resume(path, LEARNERS, budget=LAST, progress=False, **more)


def calm(folder, way):
    path = folder / f"calm-{way}.db"
    verdict = live(path, way)
    return sorted(row[1:] for row in kill.told(path)), verdict.summary()


def victim(folder, seed):
    arm_moments()
    rng = random.Random(seed)
    for way in range(len(WAYS)):
        for k, moment in list(enumerate(MOMENTS))[way :: len(WAYS)]:  # the rest is `make storm`
            often = LAST if "pull" in moment or "commit" in moment else 12
            once = "naming" in moment or "extension" in moment
            kill.doomed = (moment, 0 if once else rng.randrange(often))
            path = Path(folder) / f"{way}-{k}.db"
            print(json.dumps([way, k, *kill.doomed, kill.died(live, path, way)]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_race_killed_before_in_or_after_its_extension_ends_the_same(tmp_path, seed):
    undisturbed = [calm(tmp_path, way) for way in range(len(WAYS))]
    words = [sys.executable, "-c", VICTIM, str(tmp_path), str(seed)]
    ran = subprocess.run(words, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert len(kill.check_victims(ran.stdout, tmp_path, undisturbed, live)) >= 8
