"""Kill a race at random moments; resumed, it is the race that was never killed.

Run as a script, this file is the victim: it forks one process per moment, each of which races and
is ended by SIGKILL at that moment, so that no Python start-up is paid for any of them.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from latebloomer import LocalRunner, resume
from latebloomer.racing import api as races
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.journal.journal import SqliteLog
from latebloomer.racing.runners.runner_contract import Rising
from latebloomer.session.events import Saved as SavedEvent
from latebloomer.session.events import ScoreReported, WinnerSelected

BUDGET = 90
MOMENTS = (
    "before the pull", "after the pull", "before the commit", "after the commit", "in a save",
    "before the rename", "before the checkpoint is entered", "before the old one is removed",
    "before the naming", "after the naming",
)  # fmt: skip


class Saved(Rising):
    """Deterministic, with state that only a checkpoint carries."""

    def pull(self):
        reach("before the pull")
        score = super().pull()
        reach("after the pull")
        return score

    def save(self, folder):
        (folder / "state.json").write_text("[")
        reach("in a save")
        super().save(folder)


def stream(best, slow, last=10**9):
    """Without save and load; ends by itself after `last` pulls."""

    def scores(seed):
        rng = random.Random(seed)
        for n in range(1, last + 1):
            reach("before the pull")
            yield best * n / (n + slow) + rng.gauss(0, 0.01)

    return scores


def moody(seed):
    """Fails for good at its fifth pull."""
    rng = random.Random(seed)
    for n in range(1, 5):
        yield 0.1 * n + rng.gauss(0, 0.01)
    raise RuntimeError("no fifth pull")


LEARNERS = {
    "saved-late": lambda: Saved(1.0, 20.0),
    "saved-early": lambda: Saved(0.6, 1.0),
    "stream": stream(0.8, 6.0),
    "ends": stream(0.55, 1.0, last=7),
    "moody": moody,
}
WAYS = [
    {"policy": "r-sr", "runner": LocalRunner(checkpoint_every=3)},
    {"policy": "r-ucbe", "runner": LocalRunner(checkpoint_every=4), "maximize": False},
    {"policy": "auto", "runner": LocalRunner(checkpoint_every=3), "winner_share": 0.5},
    {  # pulls that are shares of a full training: two steps, one, one or two, none
        "full_steps": {"saved-late": 90, "saved-early": 45, "stream": 60, "ends": 45, "moody": 10},
        "pulls_per_training": 45, "runner": LocalRunner(checkpoint_every=3),
    },
]  # fmt: skip
NAMED_AT = 45  # pulls of the way that delivers, when it names the best

# --- the moment ---

doomed = None  # (moment, how many times it is still passed unharmed)


def reach(moment):
    global doomed
    if doomed is None or doomed[0] != moment:
        return
    if doomed[1] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    doomed = (moment, doomed[1] - 1)


BEFORE = {
    ScoreReported: "before the commit",
    WinnerSelected: "before the naming",
    SavedEvent: "before the checkpoint is entered",
}
AFTER = {ScoreReported: "after the commit", WinnerSelected: "after the naming"}


def arm_moments():
    append, drop, rename = SqliteLog.append, SavedStates.drop_older, Path.rename

    def appending(self, *events, elapsed=0.0):
        reach(BEFORE.get(type(events[0]), ""))
        append(self, *events, elapsed=elapsed)
        reach(AFTER.get(type(events[0]), ""))

    def dropping(self, *args):
        reach("before the old one is removed")
        drop(self, *args)

    def renaming(self, target):
        reach("before the rename")
        return rename(self, target)

    SqliteLog.append, SavedStates.drop_older, Path.rename = appending, dropping, renaming


def victim(folder, seed):
    """Race until each moment, in a process of its own; what became of them goes to stdout."""
    global doomed
    arm_moments()
    rng = random.Random(seed)
    for way, settings in enumerate(WAYS):
        for k, moment in enumerate(MOMENTS):  # more of them: `make storm`
            often = BUDGET if "pull" in moment or "commit" in moment else 12
            doomed = (moment, 0 if "naming" in moment else rng.randrange(often))
            code = died(race_in_child, f"{folder}/{way}-{k}.db", settings)
            print(json.dumps([way, k, *doomed, code]))


def race_in_child(path, settings):
    races.race(LEARNERS, BUDGET, journal=path, progress=False, seed=5, **settings)


def died(function, *args):
    child = os.fork()
    if child == 0:
        function(*args)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# --- the proof ---


def told(path):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT t, arm, n, score FROM pulls ORDER BY t").fetchall()


def check_victims(lines, folder, undisturbed, live):
    """Let every victim live on to its end and compare; return what each had when it was killed."""
    killed = []
    for way, k, moment, often, code in map(json.loads, lines.splitlines()):
        path, what = folder / f"{way}-{k}.db", f"way {way}: {moment}, number {often}"
        assert code in (0, -signal.SIGKILL), what
        before = told(path) if begun(path) else []
        killed += [(way, len(before))] if code else []
        verdict, after = live(path, way), told(path)
        pulls, summary = undisturbed[way]
        assert [row[0] for row in after] == list(range(1, len(pulls) + 1)), what  # once each
        assert after[: len(before)] == before, what  # nothing counted was made again
        # In which order the pulls of a phase are made is free where few are in memory.
        assert sorted(row[1:] for row in after) == pulls, what
        assert verdict.summary() == summary, what
        assert not any("unpickled" in text for text in verdict.warnings), what
    return killed


def begun(path):
    try:
        return bool(told(path))
    except sqlite3.Error:  # killed while it was made
        return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_race_killed_anywhere_resumes_to_the_same_journal_and_verdict(tmp_path, seed):
    undisturbed = []
    for way, settings in enumerate(WAYS):
        path = tmp_path / f"undisturbed-{way}.db"
        verdict = races.race(LEARNERS, BUDGET, journal=path, progress=False, seed=5, **settings)
        undisturbed.append((sorted(row[1:] for row in told(path)), verdict.summary()))
    words = [sys.executable, __file__, str(tmp_path), str(seed)]
    ran = subprocess.run(words, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    killed = check_victims(
        ran.stdout, tmp_path, undisturbed, lambda path, way: resume(path, LEARNERS, progress=False)
    )
    late = [way for way, pulls in killed if "winner_share" in WAYS[way] and pulls >= NAMED_AT]
    assert len(killed) >= 25 and len(late) >= 2


def test_a_race_killed_twice_still_ends_the_same(tmp_path, cut):
    """A resume that is cut short is no different from a race that is."""
    path = tmp_path / "race.db"
    whole = races.race(LEARNERS, BUDGET, journal=tmp_path / "whole.db", progress=False)
    cut(20, lambda: races.race(LEARNERS, BUDGET, journal=path, progress=False))
    for more in (1, 34):
        cut(more, lambda: resume(path, LEARNERS, progress=False))
    assert len(told(path)) == 55
    assert resume(path, LEARNERS, progress=False).summary() == whole.summary()
    assert told(path) == told(tmp_path / "whole.db")


if __name__ == "__main__":
    victim(sys.argv[1], int(sys.argv[2]))
