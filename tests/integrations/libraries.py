"""What tests with other libraries share; as a script, a race of a test file that is killed."""

import os
import signal
import sqlite3
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from latebloomer import LocalRunner, check_learner, race, resume

BUDGET = 14  # pulls of a race that is killed
SETTINGS = {"policy": "r-sr", "progress": False, "seed": 5}
RUNNER = LocalRunner(checkpoint_every=2)


def library(name, extra=None):
    """A library, or a skip of the whole file that says why it is not there."""
    try:
        return import_module(name)
    except OSError as error:  # it is there, but not what it needs of the system
        pytest.skip(f"{name} does not load here: {error}", allow_module_level=True)
    except ImportError:
        extra = extra or name.partition(".")[0]
        said = Path(sys.prefix) / "not-installed.txt"  # what `make test-integrations` found out
        lines = said.read_text().splitlines() if said.exists() else []
        why = next((line for line in lines if line.startswith(f"{extra}: ")), None)
        reason = why or f"{extra} is not installed: pip install 'latebloomer[{extra}]'"
        pytest.skip(reason, allow_module_level=True)


def two_classes(rows=300, columns=6):
    """Rows of two classes that are not easily told apart: (X, y) to train on, (X, y) held out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=rows) > 0).astype(np.int64)
    cut = rows * 2 // 3
    return (X[:cut], y[:cut]), (X[cut:], y[cut:])


def refuses(error, said, make, *given, **more):
    """A call raises this error, with these words if any are given."""
    with pytest.raises(error, match=said or None):
        make(*given, **more)


def is_exact(build, pulls=2):
    """A learner that is saved and restored is the same bit for bit."""
    check = check_learner(build, pulls=pulls)
    assert check.saves and check.exact, str(check)


def same_weights(one, other):
    """Two models of PyTorch or Keras have the same weights bit for bit."""
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(np.array_equal(mine.cpu(), its.cpu()) for mine, its in pairs)


def ends_as_if_never_killed(file, learners, folder, *words, pulls=9):
    """Race `learners(*words)`, kill the same race after 9 pulls, resume it, compare all of it."""
    whole = race(learners(*words), BUDGET, journal=folder / "whole.db", runner=RUNNER, **SETTINGS)
    path = folder / "killed.db"
    script = [sys.executable, __file__, Path(file).stem, str(path), str(pulls), *words]
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
