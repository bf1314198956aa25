"""A process that user code forks and does not end is not the race's: it stops there."""

import os
import re
import subprocess
import sys

import pytest

from latebloomer import read_verdict

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

PROGRAM = """
import os, sys
from latebloomer import race, LocalRunner

HERE = os.getpid()

def fork(where):
    if sys.argv[1] == where and os.getpid() in (HERE, os.getppid()):
        if os.fork() == 0:
            {end}
            return
        os.wait()

def learner(best, forks=False):
    def scores():
        for n in range(1, 999):
            if n == 5 and forks:
                fork("pull")
            yield best * n / (n + 5)
    return scores

class Saves:
    n = 0
    def pull(self):
        self.n += 1
        return self.n / (self.n + 9)
    def save(self, folder):
        (folder / "n").write_text(str(self.n))
        if self.n == 5:
            fork("save")
    def load(self, folder):
        self.n = int((folder / "n").read_text())

def note(event, view):
    if view.spent == 9 and not done:
        done.append(1)
        fork("callback")

done = []
runner = eval(sys.argv[2])
learners = {{"a": learner(0.9, True), "b": learner(0.7), "c": Saves}}
verdict = race(learners, 60, journal="race.db", progress=False, callbacks=[note], runner=runner)
print("after the race:", verdict.name, verdict.spent)
"""
ENDS = {
    "sys.exit(3)": "",
    "raise RuntimeError('the worker failed')": "RuntimeError: the worker failed",
    "pass": "returned into the race",
}
LOCAL = "LocalRunner(checkpoint_every=1)"


@pytest.mark.parametrize(
    ("where", "runner", "end"),
    [
        *(("pull", LOCAL, end) for end in ENDS),
        ("pull", "LocalRunner(timeout=60)", "sys.exit(3)"),
        ("save", LOCAL, "sys.exit(3)"),
        ("callback", "'isolated'", "raise RuntimeError('the worker failed')"),
    ],
)
def test_the_race_goes_on_once(tmp_path, where, runner, end):
    program = [sys.executable, "-c", PROGRAM.format(end=end), where, runner]
    ran = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.stdout == "after the race: c 60\n", ran.stderr
    assert ENDS[end] in ran.stderr
    verdict = read_verdict(tmp_path / "race.db")
    assert verdict.over and not re.search("saved|failed", str(verdict.warnings))
