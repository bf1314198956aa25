"""How much R-UCBE may explore: y_i(a) and a*(iota) of [Mussi24, Thm 1 and Cor. 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.theory import inputs
from latebloomer.theory.complexity import best_arm, h1
from latebloomer.theory.complexity import gaps as gaps_of
from latebloomer.theory.inputs import Floats, Ints
from latebloomer.theory.rising_ucbe_bounds import growth, minimum_budget, order
from latebloomer.theory.widths import window_lengths


@dataclass(frozen=True)
class NoExploration:
    """The answer where no a*(iota) > 0 exists: the theorem then promises nothing.

    `bracket` is what had to be positive and is not. `smallest_budget` is the first budget at
    which it would be, with the gaps held fixed; None if that is unknown.

    Attributes
    ----------
    reason : str
        Reason, as text.
    bracket : float
        What had to be positive and is not.
    smallest_budget : int | None
        First budget at which it would be; None if that is unknown.
    """

    reason: str
    bracket: float
    smallest_budget: int | None = None


def y_bound(
    exploration: float, curves: ArrayLike, budget: int, noise: float, window: float
) -> Ints:
    r"""Return for each arm the largest integer y <= T that satisfies the paper's inequality.

    [Mussi24, Eq. (implicit_NiT)]

    .. math:: T\,\gamma_i(\lfloor (1-2\varepsilon) y \rfloor)
              + 2 T \sigma \sqrt{a / \lfloor \varepsilon y \rfloor^3} \ge \Delta_i(T) .

    A suboptimal arm is pulled about that often and no more. An empty window makes the left side
    infinite, and so does gamma_i(0), which curves do not tell. T stands for "T or more" (Thm 1
    asks for a sum below T, so more is not worth knowing); it is always the best arm's value.

    The lemma behind it (lem:generic_min_pulls) writes floor(eps N_t) where the arm was chosen on
    floor(eps N_{t-1}), so its count may be one pull short for each arm.

    Parameters
    ----------
    exploration : float
        A, R-UCBE's exploration parameter.
    curves : ArrayLike
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull.
    budget : int
        T, the total number of pulls.
    noise : float
        The sub-Gaussian level sigma of the rewards.
    window : float
        Epsilon, the share of an arm's pulls that its rating uses.

    Returns
    -------
    Ints
        One for each arm.

    Examples
    --------
    >>> flat = [[0.75] * 40, [0.25] * 40]  # no growth: 80 * 0.1 * sqrt(1 / h^3) >= 1/2 up to h = 6
    >>> y_bound(1.0, flat, budget=40, noise=0.1, window=0.25)
    array([40, 27])
    """
    inputs.need_exploration(exploration)
    return np.sum(_thresholds(curves, budget, noise, window) <= exploration, axis=1)


def exploration_limit(
    curves: ArrayLike, budget: int, noise: float, window: float, iota: float = 0.0
) -> float | NoExploration:
    r"""Return the largest a with :math:`(1-\iota) T - \sum_{i \ne i^*(T)} y_i(a) > 0`.

    This is a*(iota) of [Mussi24, Thm 1, Eq. (ucb_can_be_learned)], from any curves that satisfy
    Assumption 1. Each y_i is a step function of a, so the answer is an order statistic of where
    the steps are: no search. The sum jumps *at* a step, so the largest a is the float just below
    one. Infinite if there is no noise.

    Parameters
    ----------
    curves : ArrayLike
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull.
    budget : int
        T, the total number of pulls.
    noise : float
        The sub-Gaussian level sigma of the rewards.
    window : float
        Epsilon, the share of an arm's pulls that its rating uses.
    iota : float
        The share of the budget promised to the best arm.

    Returns
    -------
    float | NoExploration
        The largest a, or why there is none.

    Examples
    --------
    >>> flat = [[0.75] * 400, [0.25] * 400]  # y = 400 is reached at a = 100^3 (0.5 / 80)^2
    >>> round(exploration_limit(flat, budget=400, noise=0.1, window=0.25), 9)
    39.0625
    """
    inputs.need_share(iota)
    steps = _thresholds(curves, budget, noise, window)
    rivals = np.delete(steps, best_arm(curves, budget), axis=0)
    room = (1 - iota) * budget
    too_many = math.ceil(room - 1e-9)  # pulls that leave none; 1e-9 forgives (1 - 0.7) * 10 > 3
    step = float(np.partition(rivals, too_many - 1, axis=None)[too_many - 1]) if too_many else 0.0
    if step > 0:
        return math.nextafter(step, 0.0) if math.isfinite(step) else math.inf
    bracket = room - int(np.sum(rivals <= 0))
    return NoExploration(
        f"even without a bonus the suboptimal arms may take {int(np.sum(rivals <= 0))} pulls, "
        f"and (1 - iota) T = {room:g} [Mussi24, Eq. (ucb_can_be_learned)]",
        min(bracket, 0.0),
    )


def exploration_limit_polynomial(
    gaps: ArrayLike,
    budget: int,
    noise: float,
    window: float,
    beta: float,
    c: float,
    iota: float = 0.0,
) -> float | NoExploration:
    r"""Return a*(iota) in closed form under Assumption 2 [Mussi24, Cor. 1, Eq. (aStar)].

    .. math:: a^*(\iota) = \frac{\varepsilon^3}{4\sigma^2} \biggl( \Bigl( \frac{(1-\iota) T^{1-1/q}
              - (K-1)}{H_{1,1/q}(T)} \Bigr)^{q} - c (1-2\varepsilon)^{-\beta} \biggr)^2,
              \qquad q = \min(\beta,\ 3/2),

    while the outer bracket is positive; `NoExploration` otherwise, never the square of a negative
    number. It is at most `exploration_limit` of curves with these gaps and increments at most
    c n^-beta, once T^(2/3) > 1 + max(1/eps, 1/(1 - 2 eps)). (The proof takes
    floor(eps y) >= eps (y - 1), which fails for many y; from that budget on the term K - 1, larger
    than the derivation needs, makes up for it.)

    Departure from the paper: where this has (1-iota) T^(1-1/q), Cor. 1 prints
    ((1-iota)^-1 T)^(1-1/q) and its proof ((1-iota) T)^(1-1/q). But the proof's line before,
    (1-iota) T - (K-1) - (...)^(1/q) H > 0, divided by T^(1/q), gives what is here, and the other
    two let the sum of y_i(a*) exceed (1-iota) T (a case is in tests/theory/test_exploration.py).
    All three agree for iota = 0.

    Parameters
    ----------
    gaps : ArrayLike
        One for each arm, 0 for the best.
    budget : int
        T, the total number of pulls.
    noise : float
        The sub-Gaussian level sigma of the rewards.
    window : float
        Epsilon, the share of an arm's pulls that its rating uses.
    beta : float
        Increments are at most c n^-beta.
    c : float
        Increments are at most c n^-beta.
    iota : float
        The share of the budget promised to the best arm.

    Returns
    -------
    float | NoExploration
        The largest a, or why there is none.

    Examples
    --------
    >>> exploration_limit_polynomial([0, 1.0], 27, noise=0.5, window=0.25, beta=2, c=0.25)
    0.05223...
    >>> exploration_limit_polynomial([0, 1.0], 8, 0.5, window=0.25, beta=2, c=0.25).smallest_budget
    9
    """
    inputs.need_budget(budget)
    inputs.need_noise(noise)
    inputs.need_share(iota)
    bracket = _bracket(gaps, budget, window, beta, c, iota)
    if bracket > 0:
        return window**3 / 4 * (bracket / noise) ** 2 if noise > 0 else math.inf
    return NoExploration(
        f"the bracket of [Mussi24, Eq. (aStar)] is {bracket:.4g} at budget={budget}: "
        "the arms may still rise too much for their gaps",
        bracket,
        _first_budget(gaps, window, beta, c, iota),
    )


def _bracket(
    gaps: ArrayLike, budget: int, window: float, beta: float, c: float, iota: float
) -> float:
    """Return the outer bracket of Eq. (aStar); its base, a number of pulls, is at least 0."""
    q = order(beta)
    room = (1 - iota) * inputs.power(budget, 1 - 1 / q) - (len(np.asarray(gaps)) - 1)
    return inputs.power(max(room, 0.0) / h1(gaps, 1 / q), q) - growth(window, beta, c)


def _first_budget(
    gaps: ArrayLike, window: float, beta: float, c: float, iota: float
) -> int | None:
    """Return the first integer budget with a positive bracket, if a float can hold it."""
    least = minimum_budget(gaps, window, beta, c, iota)
    if math.isinf(least):
        return None
    first = max(1, math.floor(least) - 1)  # rounding may put `least` on the wrong side
    while _bracket(gaps, first, window, beta, c, iota) <= 0:
        first += max(1, first // 10**12)  # a float moves no slower
    return first


def _thresholds(curves: ArrayLike, budget: int, noise: float, window: float) -> Floats:
    """Return in row i, column y - 1 the smallest a with y_i(a) >= y. Rows never decrease."""
    inputs.need_noise(noise)
    inputs.need_window(window, below_half=True)
    means = inputs.as_problem(curves, budget)[:, :budget]
    y = np.arange(1, budget + 1)
    at = np.floor((1 - 2 * window) * y).astype(np.int64)  # at most T - 1: mu(T) is enough
    gamma = np.diff(means, axis=1, prepend=-np.inf)[:, at]  # gamma(n) in column n; gamma(0) = inf
    missing = np.maximum(gaps_of(means, budget)[:, None] - budget * gamma, 0.0)
    h = window_lengths(y, window).astype(np.float64)
    alone = np.maximum(h, 1) ** 3 * _smallest_bonus(missing, 2 * budget * noise)
    alone = np.where(h == 0, 0.0, alone)  # an empty window: the left side is infinite
    return np.minimum.accumulate(alone[:, ::-1], axis=1)[:, ::-1]  # some y' >= y is enough


def _smallest_bonus(missing: Floats, scale: float) -> Floats:
    """Return (missing / scale)^2; infinite if something is missing but there is no noise."""
    if scale == 0:
        return np.where(missing > 0, np.inf, 0.0)
    return (missing / scale) ** 2
