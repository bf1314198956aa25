"""Tallies and results of chosen runs, for the tests of this folder."""

from dataclasses import replace
from functools import reduce

from latebloomer import Problem, Results
from latebloomer.problems import Noiseless
from latebloomer.simulation.experiment import Experiment, MeanTable
from latebloomer.simulation.tally import Tally


def tally_of(policies, means, budget, horizon=None, method="pulls"):
    """A tally without runs; `means` is the whole table of them."""
    at = horizon or budget
    table = MeanTable(Problem(means), longest=means.shape[1], horizon=at)
    points = [0] if method == "sums" else None
    return Tally(Experiment(policies, table, Noiseless(), budget, at, 0, breakpoints=points))


def results_of(problem, tallies, seed=0, target="cpu"):
    """What was counted in tallies, merged."""
    blank = Results.empty(problem, seed, target)
    found = (
        replace(blank, **tally.counts()._asdict(), changes=tally.means.changes)
        for tally in tallies
    )
    return reduce(Results.merge, found, blank)
