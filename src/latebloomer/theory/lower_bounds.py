"""What no algorithm can do.

[Mussi24, Thm 3 (thr:lb_minimumT), Thm 4 (thr:lb_error_prob) and App. F on concavity].
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from latebloomer._util.memory import need_memory
from latebloomer.errors import require
from latebloomer.theory import complexity as cx
from latebloomer.theory.complexity import Floats


def minimum_budget(gaps: ArrayLike, beta: float) -> float:
    r"""Return the budget below which no algorithm is right on every instance with these gaps.

    .. math:: T \ge \sum_{i \ne i^*(T)} \Bigl( \frac{1}{8 \Delta_i(T)} \Bigr)^{1/(\beta-1)}
              \qquad \text{[Mussi24, Thm 3, Eq. (minTT)]}

    Under Assumptions 1 and 2 with c = beta - 1 and at least `arms_needed(beta)` arms; even
    without noise.

    Departure from the paper: Thm 3 says that some instance costs every algorithm an error of
    1 - 1/K, a random guess. Its proof shows less. Some arm i is pulled less than n_i* times on
    nu, so nu and nu' (`problems.lower_bound`) look alike and no algorithm is right on both. One
    that draws its arms reaches n_i* with some probability, which the proof bounds only through
    the sum of the n_i*, with n_i* = ((1/2 + Delta_i) / (2 Delta_i))^(1/(beta-1)): on some i

    .. math:: e_T(\nu) + e_T(\nu') \ge 1 - T / \sum_i n_i^* .

    A rule that tests arms drawn at random errs in .53 of runs at worst on 33 arms at T = 890,
    where a guess errs in .97 (tests/paper/test_paper.py).

    >>> minimum_budget([0, 0.0625, 0.03125], beta=2)  # 16/8 + 32/8
    6.0
    """
    cx.need(beta=beta)
    exponent = 1 / (beta - 1)
    return cx.power(1 / 8, exponent) * cx.h1(gaps, exponent)


def arms_needed(beta: float) -> float:
    r"""Return the arms :math:`1 + 8^{1/(\beta-1)}` from which Thm 3's instances exist.

    [Mussi24, Thm 3].

    Thm 4 asks for one arm less.

    >>> arms_needed(beta=2)
    9.0
    """
    cx.need(beta=beta)
    return 1 + cx.power(8, 1 / (beta - 1))


def error_lower_bound(budget: int, noise: float, complexity: float) -> float:
    r"""Return the error that an instance with :math:`H_{1,2} \le \overline H` costs any algorithm.

    .. math:: \sup e_T \ge \tfrac14 \exp\bigl(-8T / (\sigma^2 \overline H)\bigr)
              \qquad \text{[Mussi24, Thm 4, first statement]}

    >>> round(error_lower_bound(budget=100, noise=1.0, complexity=400), 6)  # e^-2 / 4
    0.033834
    """
    return _quarter(8 * budget, budget, noise, complexity)


def error_lower_bound_many_arms(budget: int, noise: float, complexity: float, arms: int) -> float:
    r"""Return the error that a set of instances of complexity H_{1,2} costs every algorithm.

    .. math:: e_T \ge \tfrac14 \exp\bigl(-32T / (\sigma^2 \log(K)\, H_{1,2})\bigr)
              \qquad \text{[Mussi24, Thm 4, second statement]}

    The set's bound on the complexity must be at least 16 K^2.

    >>> round(error_lower_bound_many_arms(100, 1.0, complexity=1600 / math.log(10), arms=10), 6)
    0.033834
    """
    require(arms >= 2, "arms", arms, "at least 2", "log K divides")
    return _quarter(32 * budget, budget, noise, complexity * math.log(arms))


def concavity_lower_bound(noise: float = 1.0) -> float:
    r"""Return how often every algorithm errs without concavity, whatever the budget.

    .. math:: e_T \ge \tfrac14 e^{-1/(8\sigma^2)} \qquad \text{[Mussi24, App. F]}

    The paper takes sigma = 1: the instances' means differ by 1/2, so KL = (1/2)^2 / (2 sigma^2).

    >>> round(concavity_lower_bound(), 4)
    0.2206
    """
    return _quarter(1.0, 1, noise, 8.0)


def concavity_instances(budget: int) -> tuple[Floats, Floats]:
    """Return the two problems that only a convex last step tells apart [Mussi24, App. F].

    >>> nu, other = concavity_instances(budget=3)
    >>> nu[0], other[0], nu[1]
    (array([0.5, 0.5, 0.5]), array([0.5, 0.5, 1. ]), array([0.75, 0.75, 0.75]))
    """
    cx.need(budget=budget)
    need_memory(32 * budget, f"a pair of problems of {budget} pulls", "set a smaller budget")
    nu = np.repeat([[0.5], [0.75]], budget, axis=1)
    other = nu.copy()
    other[0, -1] = 1.0
    return nu, other


def _quarter(information: float, budget: int, noise: float, complexity: float) -> float:
    """Return 1/4 exp(-information / (sigma^2 complexity)): Bretagnolle-Huber."""
    cx.need(budget=budget, noise=noise)
    require(complexity > 0, "complexity", complexity, "above 0", "it is a sum of inverse squares")
    if noise == 0:
        return 0.0  # one pull tells the instances apart
    return cx.exponential(-information / (noise**2 * complexity)) / 4
