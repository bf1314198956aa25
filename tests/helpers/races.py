"""Races without a display."""

from latebloomer import race
from tests.helpers.learners import LEARNERS


def run(path, budget=40, **settings):
    return race(LEARNERS, budget, journal=path, progress=False, **settings)


def quiet(learners, budget=None, **settings):
    return race(learners, budget, **{"journal": None, "progress": False} | settings)
