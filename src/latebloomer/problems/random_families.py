"""Random instances: each arm's curve drawn from documented ranges of one family.

============  =================================================================================
F             b log-uniform in [1, 100], c in [0.3, 1], psi in [0.5, 2]
exponential   limit in [0.3, 1], tau log-uniform in [10, 1000], start in [0, 0.3]
power         limit in [0.5, 1], drop in [0.2, 0.5], rate in [0.2, 1]
piecewise     three straight pieces of falling slope, each 20 to 300 pulls long (log-uniform), from
              a start in [0, 0.2] at n = 1 to a limit in [0.3, 1], level from there
stationary    mean in [0.3, 0.9]
sshaped       limit in [0.5, 1], middle log-uniform in [30, 600], width 0.1 to 0.3 of the middle,
              start in [0, 0.2]; breaks the concavity of Assumption 1, as no other family does
============  =================================================================================

Uniform unless said otherwise, and independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from latebloomer.errors import require, unknown
from latebloomer.problems.curves import (
    Curve,
    Exponential,
    PaperF,
    PiecewiseLinear,
    PowerLaw,
    SShaped,
    Stationary,
)
from latebloomer.problems.noise import Noise
from latebloomer.problems.problem import Problem, need_room_for

Draw: TypeAlias = "Callable[[np.random.Generator], Curve]"  # text: np.random takes 5 ms


def random_problem(
    family: str, arms: int = 10, seed: int = 0, noise: Noise | float | None = 0.01
) -> Problem:
    """A random instance: a pure function of the family, the number of arms and the seed.

    Parameters
    ----------
    family : str
        One of `FAMILIES`.
    arms : int
        K, how many arms there are.
    seed : int
        Of the random numbers.
    noise : Noise | float | None
        As in `Problem`.

    Returns
    -------
    Problem
        The instance.

    Raises
    ------
    UnknownName
        No such family.

    Examples
    --------
    >>> random_problem("stationary", arms=2, seed=3).means(1).round(3).tolist()
    [[0.351], [0.442]]
    """
    match = {name.lower(): name for name in FAMILIES}.get(str(family).lower())
    if match is None:
        raise unknown("family of curves", str(family), FAMILIES)
    require(isinstance(arms, int) and arms >= 2, "K", arms, "a whole number from 2",
            "a problem needs arms to choose from")  # fmt: skip
    require(isinstance(seed, int) and seed >= 0, "seed", seed, "a whole number from 0",
            "it seeds NumPy's default generator")  # fmt: skip
    need_room_for(arms)
    rng = np.random.default_rng(seed)
    curves = [FAMILIES[match](rng) for _ in range(arms)]
    label = f"random:{match}:K={arms}:seed={seed}"
    return Problem(curves, noise, label=label)


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _paper_f(rng: np.random.Generator) -> Curve:
    return PaperF(b=_log_uniform(rng, 1, 100), c=rng.uniform(0.3, 1), psi=rng.uniform(0.5, 2))


def _exponential(rng: np.random.Generator) -> Curve:
    return Exponential(rng.uniform(0.3, 1), _log_uniform(rng, 10, 1000), rng.uniform(0, 0.3))


def _power(rng: np.random.Generator) -> Curve:
    return PowerLaw(rng.uniform(0.5, 1), rng.uniform(0.2, 0.5), rng.uniform(0.2, 1))


def _piecewise(rng: np.random.Generator) -> Curve:
    start, limit = rng.uniform(0, 0.2), rng.uniform(0.3, 1)
    lengths = np.array([_log_uniform(rng, 20, 300) for _ in range(3)])
    rises = np.sort(rng.uniform(0.1, 1, 3))[::-1] * lengths  # slope times length
    values = start + (limit - start) * np.cumsum(rises) / rises.sum()
    pulls = 1 + np.cumsum(lengths)
    return PiecewiseLinear(((1.0, start), *zip(pulls.tolist(), values.tolist(), strict=True)))


def _stationary(rng: np.random.Generator) -> Curve:
    return Stationary(rng.uniform(0.3, 0.9))


def _s_shaped(rng: np.random.Generator) -> Curve:
    middle = _log_uniform(rng, 30, 600)
    return SShaped(
        rng.uniform(0.5, 1), middle, middle * rng.uniform(0.1, 0.3), rng.uniform(0, 0.2)
    )


FAMILIES: dict[str, Draw] = {
    "F": _paper_f,
    "exponential": _exponential,
    "power": _power,
    "piecewise": _piecewise,
    "stationary": _stationary,
    "sshaped": _s_shaped,
}
