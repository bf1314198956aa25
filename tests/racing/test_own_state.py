"""Learners share a process, not its random numbers."""

import random

import numpy as np
import pytest

from latebloomer import LocalRunner, race

DRAWS = {
    "random": random.random,
    "gauss": lambda: random.gauss(0, 1),
    "numpy": np.random.random,
    "numpy's Gaussian, which it draws in pairs": np.random.randn,
}


def noisy(draw, seeded):
    def scores(seed):
        if seeded:
            random.seed(seed)
            np.random.seed(seed)
        while True:
            yield draw()

    return scores


def curves(learners, **settings):
    verdict = race(learners, 25, journal=None, progress=False, **settings)
    return {name: verdict.curve(name) for name in learners}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("seeded", [True, False])
def test_curves_depend_neither_on_the_order_nor_on_the_runner(draw, seeded):
    learners = {name: noisy(DRAWS[draw], seeded) for name in ("one", "two", "three")}
    ways = [
        curves(learners),
        curves(dict(reversed(learners.items()))),
        curves(learners, runner="isolated"),
        curves(learners, runner=LocalRunner(timeout=60)),
    ]
    for name in learners:
        shared = min(len(way[name]) for way in ways)
        assert shared >= 5 and len({tuple(way[name][:shared]) for way in ways}) == 1
    assert ways[0]["one"][:5] != ways[0]["two"][:5]


def test_a_learner_that_is_built_again_draws_the_same_numbers():
    failed = []

    class Fails:
        def __init__(self):
            self.n, self.first = 0, random.random()

        def pull(self):
            self.n += 1
            if self.n == 4 and not failed:
                failed.append(self.first)
                raise RuntimeError("once")
            return random.gauss(self.first, 1) + np.random.randn()

    calm = curves({"a": noisy(random.random, True), "b": Fails})  # which fails here
    again = curves({"a": noisy(random.random, True), "b": Fails})
    assert failed and calm["b"] == again["b"]


def test_the_programs_own_numbers_are_as_they_were():
    random.seed(1)
    np.random.seed(1)
    expected = random.getstate(), np.random.get_state()[1].tolist()
    curves({name: noisy(DRAWS["numpy"], True) for name in "ab"})
    assert (random.getstate(), np.random.get_state()[1].tolist()) == expected
