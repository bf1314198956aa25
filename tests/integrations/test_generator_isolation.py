"""Generator learners share a process, not its random numbers nor PyTorch's modes."""

import random

import numpy as np
import pytest
from libraries import library

from latebloomer import race

torch = library("torch")


@pytest.fixture(autouse=True)
def as_before():
    torch.set_num_threads(1)
    yield
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)


def line(rate, leak):
    """A net that learns the number 3; it yields inside the context `leak`."""

    def train(seed):
        torch.manual_seed(seed)
        net = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(net.parameters(), rate)
        while True:
            loss = (net(torch.ones(1, 1)) - 3).pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with leak():
                yield -loss.item(), net

    return train


def test_a_generator_that_yields_without_gradients_leaves_them_on_for_the_others():
    learners = {"a": line(0.01, torch.no_grad), "b": line(0.1, torch.no_grad)}
    verdict = race(learners, 20, journal=None, progress=False)
    assert {row.name: row.state for row in verdict.learners}["b"] != "failed"
    assert verdict.name == "b" and torch.is_grad_enabled()


def noisy(draw):
    def train(seed):
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        while True:
            yield draw()

    return train


DRAWS = {
    "random": random.random,
    "numpy": np.random.random,
    "torch": lambda: torch.rand(1).item(),
}


@pytest.mark.parametrize("draw", DRAWS)
def test_curves_do_not_depend_on_the_order_of_learners(draw):
    learners = {name: noisy(DRAWS[draw]) for name in ("one", "two", "three")}
    there = race(learners, 15, journal=None, progress=False)
    back = race(dict(reversed(learners.items())), 15, journal=None, progress=False)
    for name in learners:
        shared = min(there.pulls[name], back.pulls[name])
        assert there.curve(name)[:shared] == back.curve(name)[:shared]
