"""Kill races with few learners in memory, extensions and newcomers; they end as if undisturbed.

As in `test_kill`, a process forks a victim for each moment, which lives one life of a race and is
ended by SIGKILL at that moment.
"""

import json
import os
import random
import signal
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


class Plain:
    """Without save and load; few in memory, it is pickled."""

    def __init__(self, seed, best, slow):
        self.best, self.slow, self.n, self.rng = best, slow, 0, random.Random(seed)

    def pull(self):
        kill.reach("before the pull")
        self.n += 1
        score = self.best * self.n / (self.n + self.slow) + self.rng.gauss(0, 0.01)
        kill.reach("after the pull")
        return score


LEARNERS = {
    "saved-late": lambda seed: kill.Saved(seed, 1.0, 20.0),
    "saved-early": lambda seed: kill.Saved(seed, 0.6, 1.0),
    "plain": lambda seed: Plain(seed, 0.8, 6.0),
    "plain too": lambda seed: Plain(seed, 0.5, 1.0),
    "saved-third": lambda seed: kill.Saved(seed, 0.7, 4.0),
}
ADD = {"new": lambda seed: kill.Saved(seed, 0.9, 8.0)}
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
    if not path.exists() or not kill_began(path):
        how = LocalRunner(**runner)
        race(LEARNERS, FIRST, journal=path, progress=False, seed=5, runner=how, **settings)
    elif len(kill.told(path)) < FIRST:
        resume(path, LEARNERS, progress=False)
    return resume(path, LEARNERS, budget=LAST, progress=False, **more)


def kill_began(path):
    try:
        return bool(kill.told(path))
    except Exception:  # killed while it was made
        return False


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
    ran = subprocess.run(
        [sys.executable, "-c", VICTIM, str(tmp_path), str(seed)], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    killed = 0
    for way, k, moment, often, code in map(json.loads, ran.stdout.splitlines()):
        path, what = tmp_path / f"{way}-{k}.db", f"way {way}: {moment}, number {often}"
        assert code in (0, -signal.SIGKILL), what
        killed += code != 0
        before = kill.told(path) if kill_began(path) else []
        verdict = live(path, way)
        pulls, summary = undisturbed[way]
        after = kill.told(path)
        assert [row[0] for row in after] == list(range(1, len(pulls) + 1)), what
        assert after[: len(before)] == before, what  # nothing counted was made again
        # In which order the pulls of a phase are made is free where few are in memory.
        assert sorted(row[1:] for row in after) == pulls, what
        assert verdict.summary() == summary, what
        assert not any("unpickled" in text for text in verdict.warnings), what
    assert killed >= 8
