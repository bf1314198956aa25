"""Tallies and results of chosen runs, and quiet simulations, for the tests of this folder."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import reduce

from latebloomer import Problem, Results, simulate
from latebloomer.problems import Noiseless
from latebloomer.simulation import local_runs
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.mean_table import MeanTable
from latebloomer.simulation.results.tally import Tally


def tally_of(policies, means, budget, horizon=None, method="pulls"):
    """A tally without runs; `means` is the whole table of them."""
    at = horizon or budget
    table = MeanTable(Problem(means), longest=means.shape[1], horizon=at, budget=budget)
    points = [0] if method == "sums" else None
    return Tally(Experiment(policies, table, Noiseless(), budget, at, 0, breakpoints=points))


def results_of(problem, tallies, seed=0, target="cpu"):
    """What was counted in tallies, merged."""
    blank = Results.empty(problem, seed, target)
    counted = ((tally.counts()._asdict(), tally.means.changes) for tally in tallies)
    found = (replace(blank, **counts, changes=changes) for counts, changes in counted)
    return reduce(Results.merge, found, blank)


def quiet(*args, **settings):
    return simulate(*args, progress=False, **settings)


def content(results):
    """What is in a file of the results."""
    return json.dumps(results.as_document(), separators=(",", ":")).encode()


def before_chunks(monkeypatch, act):
    """Let `act(number)` be called before each chunk is played; the first is 1."""
    real, calls = local_runs.play_chunk, []

    def noted(*words):
        calls.append(words)
        act(len(calls))
        return real(*words)

    monkeypatch.setattr(local_runs, "play_chunk", noted)


def failing_at(chunk, error):
    def act(number):
        if number == chunk:
            raise error

    return act


def under_the_simulator(code):
    """What code prints, as JSON; in a process of its own: numba is told when it is imported."""
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
