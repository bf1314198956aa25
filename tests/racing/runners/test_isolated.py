"""Learners in processes of their own: one that dies takes nobody along."""

import contextlib
import faulthandler
import os
import select
import signal
import subprocess
import sys
import threading

import pytest

from latebloomer import LocalRunner, race, read_verdict
from tests.helpers.learners import acts

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

GOOD = {"a": acts(None, None), "b": acts(None, None, 0.7)}


def crash():
    """Die by a segmentation fault; pytest's own report of it would look like a failure."""
    faulthandler.disable()
    os.kill(os.getpid(), signal.SIGSEGV)


DEATHS = {
    "exits at once": (lambda: os._exit(3), "its process exited with code 3"),
    "crashes": (crash, "its process was ended by SIGSEGV"),
    "is killed": (lambda: os.kill(os.getpid(), signal.SIGKILL), "was ended by SIGKILL"),
    "exits": (lambda: sys.exit(0), "SystemExit: 0"),
    "raises": (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize("what", DEATHS)
def test_a_learner_that_dies_has_failed_and_the_race_goes_on(path, what):
    die, text = DEATHS[what]
    learners = GOOD | {"odd": acts(3, die, 0.2)}
    verdict = race(learners, 40, journal=path, progress=False, runner="isolated")
    assert verdict.spent == 40 and verdict.name == "a"
    assert verdict["odd"].state == "failed" and verdict["odd"].pulls == 2
    assert "pull 3 failed twice: " in verdict["odd"].why and text in verdict["odd"].why
    assert read_verdict(path).summary() == verdict.summary()


def test_a_pull_that_hangs_is_ended_with_its_process():
    learners = GOOD | {"odd": acts(3, threading.Event().wait, 0.2)}
    limited = LocalRunner(isolate=True, timeout=0.2, retries=0)
    verdict = race(learners, 30, journal=None, progress=False, runner=limited)
    assert verdict["odd"].why == "pull 3 failed once: a pull took longer than timeout=0.2 s"
    assert verdict.spent == 30
    assert verdict.learner == verdict.pulls["a"]  # the model that came with the newest score


KILLED = """
import os, sys
from itertools import count
from pathlib import Path
from latebloomer import race

def tells(name):
    def scores():
        for n in count(1):
            print(os.getpid(), flush=True)
            if name == "b" and n == 3:
                os.kill(os.getppid(), 9)
                while True:
                    pass  # a long pull
            yield n / (n + 3), n
    return scores

race({"a": tells("a"), "b": tells("b")}, 40, journal=None, progress=False, runner="isolated")
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
def test_processes_end_with_a_race_that_is_killed_also_within_a_pull():
    ran = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    pids = {int(line) for line in ran.stdout.split()}
    assert len(pids) == 2
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it is gone already
            assert select.select([os.pidfd_open(pid)], [], [], 30)[0]


CRASHES = """
import os
from latebloomer import race
from tests.helpers.learners import rising

def crashes():
    yield 0.1
    os._exit(1)

learners = {"a": rising(0.9), "crashes": crashes, "b": rising(0.7)}
race(learners, 30, journal="race.db", if_exists="resume")
"""


def test_after_the_third_crash_in_one_pull_the_learner_is_named(tmp_path):
    said = []
    for _ in range(5):
        ran = subprocess.run([sys.executable, "-c", CRASHES], capture_output=True, text=True,
                             cwd=tmp_path)  # fmt: skip
        assert ran.returncode == 1, ran.stderr
        said.append("crashes: the last processes of this race all ended in its pull" in ran.stderr)
    assert said == [False, False, False, True, True]
    before = read_verdict(tmp_path / "race.db")
    assert before.spent == 4 and not before.over  # nothing is dropped by itself


OPENMP = """
from itertools import count
from pathlib import Path
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from latebloomer import race

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 5))
y = X[:, 0] > 0

def boosted():
    for trees in count(1):
        yield HistGradientBoostingClassifier(max_iter=trees).fit(X, y).score(X, y), trees

next(boosted())  # this process now has OpenMP's threads
print(race({"a": boosted, "b": boosted}, 6, journal=None, progress=False, runner="isolated").spent)
"""


def test_openmp_that_has_run_here_runs_in_a_process_of_its_own_too():
    pytest.importorskip("sklearn")
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OPENMP], capture_output=True, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "2"}, timeout=120,
    )  # fmt: skip
    assert ran.stdout == "6\n", ran.stderr


def test_a_machine_that_cannot_start_a_process_says_so(monkeypatch):
    def refuse():
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    with pytest.raises(BlockingIOError, match="no more processes"):
        race(GOOD, 40, journal=None, progress=False, runner="isolated")
