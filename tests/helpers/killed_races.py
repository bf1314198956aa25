"""Races in a process that is killed; as a program, the race of a test module until its end."""

import os
import signal
import sqlite3
import subprocess
import sys
from importlib import import_module

from latebloomer import LocalRunner, race, resume

BUDGET = 14  # pulls of a race that is killed
SETTINGS = {"policy": "r-sr", "progress": False, "seed": 5}
RUNNER = LocalRunner(checkpoint_every=2)


def ends_as_if_never_killed(module, learners, folder, *words, pulls=9):
    """Race `learners(*words)`, kill the same race after 9 pulls, resume it, compare all of it."""
    whole = race(learners(*words), BUDGET, journal=folder / "whole.db", runner=RUNNER, **SETTINGS)
    path = folder / "killed.db"
    script = [sys.executable, "-m", __name__, module, str(path), str(pulls), *words]
    ran = subprocess.run(script, capture_output=True)
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()[-2000:]
    assert len(told(path)) == pulls
    verdict = resume(path, learners(*words), progress=False)
    assert told(path) == told(folder / "whole.db")
    assert verdict.summary() == whole.summary()
    assert not [note for note in verdict.summary().get("notes", []) if "deterministic" in note]
    return verdict


def told(path):
    with sqlite3.connect(path) as db:
        return db.execute("SELECT t, arm, n, score FROM pulls ORDER BY t").fetchall()


def kill_after(pulls):
    """A callback that ends the process after a given number of pulls."""

    def kill(event, view):
        if view.spent >= int(pulls):
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


if __name__ == "__main__":
    module, path, pulls, *words = sys.argv[1:]
    learners = import_module(module).learners(*words)
    callbacks = [kill_after(pulls)]
    race(learners, BUDGET, journal=path, callbacks=callbacks, runner=RUNNER, **SETTINGS)
