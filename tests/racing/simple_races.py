"""Learners and calls that tests of races share."""

import random
import sqlite3
from itertools import count

from latebloomer import race


def curve(slow, best, noise=0.0, end=None, fail=None):
    """A generator function whose scores rise to `best`."""

    def scores(seed):
        rng = random.Random(seed)
        for n in count(1) if end is None else range(1, end + 1):
            if n == fail:
                raise RuntimeError("boom")
            yield best * n / (n + slow) + rng.gauss(0, 1) * noise

    return scores


FIVE = {
    "late": curve(37, 1.0, 0.01),
    "second": curve(10, 0.88, 0.01),
    "early": curve(1, 0.78, 0.01),
    "weak": curve(10, 0.7, 0.01),
    "slow": curve(20, 0.5, 0.01),
}
TWO = {"a": curve(3, 0.8), "b": curve(3, 0.6)}


class Counter:
    """An object with nothing but `pull`."""

    def __init__(self, step=1.0):
        self.step, self.n = step, 0

    def pull(self):
        self.n += 1
        return self.step * self.n


def quiet(learners, budget=None, **settings):
    return race(learners, budget, **{"journal": None, "progress": False} | settings)


def rows(path, query):
    with sqlite3.connect(path) as db:
        return db.execute(query).fetchall()
