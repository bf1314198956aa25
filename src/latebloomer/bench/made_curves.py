"""Problems that are not recorded: six random families, the paper's settings, and its IMDB race."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from latebloomer.bench.curve_sets import Curves
from latebloomer.bench.public_sets import STEPS, by_pull, smoothed
from latebloomer.problems import FAMILIES, random_problem
from latebloomer.problems import problem as problem_of

ARMS, INSTANCES = (5, 10, 20), 10  # of each family
LENGTH, SIGMA = 500, 0.05
PAPER_LENGTHS, PAPER_SIGMA = (200, 400, 800, 1600, 3200), 0.01
IMDB_STEPS = (2000, 5000, 10_000, 20_000, 50_000)


def family(name: str) -> Iterator[Curves]:
    """Random instances with 5, 10 and 20 arms, 500 pulls long, Gaussian noise of sd 0.05."""
    for arms, seed in product(ARMS, range(INSTANCES)):
        means = random_problem(name, arms, seed).means(LENGTH)
        yield Curves(f"random-{name}", f"K={arms}-seed={seed}", means, SIGMA)


def paper(setting: str) -> Iterator[Curves]:
    """A setting of the paper at several horizons; its own budget is that of one full training."""
    for length in PAPER_LENGTHS:
        means = problem_of(setting).means(length)
        yield Curves(setting, f"H={length}", means, PAPER_SIGMA)


def imdb() -> Iterator[Curves]:
    """The paper's seven learners; curves smoothed, a pull is 10 right-or-wrong outcomes."""
    level = smoothed(problem_of("imdb").means(max(IMDB_STEPS)))
    for steps in IMDB_STEPS:
        yield Curves("imdb", f"H={steps}", by_pull(level, steps), outcomes=STEPS)


def families() -> list[str]:
    return list(FAMILIES)
