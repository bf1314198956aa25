"""Commands run in an empty folder with a module of learners, each as a process would run it."""

import sys

import pytest
from typer.testing import CliRunner

from latebloomer.cli import app

MODULE = '''
"""Learners."""
import os, signal
from pathlib import Path

class Counter:
    def __init__(self, step, fails=0):
        self.step, self.n, self.fails = step, 0, fails
    def pull(self):
        self.n += 1
        if self.n == self.fails:
            raise ValueError("no")
        if self.n == 7 and Path("interrupt").exists():
            os.kill(os.getpid(), signal.SIGINT)
        return self.step * self.n / (self.n + 3)

class Kept(Counter):
    def save(self, folder):
        (folder / "n").write_text(str(self.n))
    def load(self, folder):
        self.n = int((folder / "n").read_text())

class Unpicklable(Counter):
    def __reduce__(self):
        raise TypeError("never")

def learners():
    return {"slow": lambda: Counter(1.0), "quick": lambda: Counter(2.0)}

def kept():
    return {"slow": lambda: Kept(1.0), "quick": lambda: Kept(2.0)}

def failing():
    return kept() | {"fails": lambda: Kept(3.0, fails=3)}

def more():
    return learners() | {"new": lambda: Counter(3.0)}

def unpicklable():
    return {"slow": lambda: Counter(1.0), "quick": lambda: Unpicklable(2.0)}

def nothing():
    return 3

def asks(seed):
    return {}

NUMBER = 3
LEARNERS = learners()
'''


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs a command in a folder with `mine.py`.

    Races are recorded in race.db, unless a test says where.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MODULE)

    def invoke(*words):
        if words[0] == "race" and "--journal" not in words:
            words = (*words, "--journal", "race.db")
        forget_modules(tmp_path)
        with monkeypatch.context() as process:
            process.setattr(sys, "path", list(sys.path))
            process.syspath_prepend(tmp_path / "no-caches")  # files of this moment are seen
            return CliRunner().invoke(app, [str(word) for word in words])

    yield invoke
    forget_modules(tmp_path)


def forget_modules(folder):
    for name, module in list(sys.modules.items()):
        if str(folder) in str(getattr(module, "__file__", "")):
            del sys.modules[name]
