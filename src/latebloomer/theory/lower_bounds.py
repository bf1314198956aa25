"""Lower bounds: limits for all algorithms.

They are from [Mussi24, Thm 3 (thr:lb_minimumT), Thm 4 (thr:lb_error_prob) and App. F on
concavity].
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

    It holds under Assumptions 1 and 2 with c = beta - 1, for at least `arms_needed(beta)` arms,
    and even without noise.

    Departure from the paper: Thm 3 states that every algorithm has an error of 1 - 1/K, like a
    random guess, on some instance. Its proof shows less: some arm i is pulled fewer than n_i*
    times on nu, so nu and nu' (`problems.lower_bound`) cannot be distinguished, and no algorithm
    is right on both. But an algorithm that draws its arms at random reaches n_i* pulls with some
    probability. The proof bounds this probability only through the sum of the n_i*, where n_i* =
    ((1/2 + Delta_i) / (2 Delta_i))^(1/(beta-1)). So for some i

    .. math:: e_T(\nu) + e_T(\nu') \ge 1 - T / \sum_i n_i^* .

    For example, with 33 arms and T = 890, a rule that tests arms drawn at random has an error of
    at most .53; a random guess has .97 (tests/paper/test_paper.py).

    >>> minimum_budget([0, 0.0625, 0.03125], beta=2)  # 16/8 + 32/8
    6.0
    """
    cx.need(beta=beta)
    exponent = 1 / (beta - 1)
    return cx.power(1 / 8, exponent) * cx.h1(gaps, exponent)


def arms_needed(beta: float) -> float:
    r"""Return :math:`1 + 8^{1/(\beta-1)}`, the minimum number of arms of Thm 3's instances.

    [Mussi24, Thm 3].

    Thm 4 needs one arm less.

    >>> arms_needed(beta=2)
    9.0
    """
    cx.need(beta=beta)
    return 1 + cx.power(8, 1 / (beta - 1))


def error_lower_bound(budget: int, noise: float, complexity: float) -> float:
    r"""Return an error of every algorithm on some instance with :math:`H_{1,2} \le \overline H`.

    .. math:: \sup e_T \ge \tfrac14 \exp\bigl(-8T / (\sigma^2 \overline H)\bigr)
              \qquad \text{[Mussi24, Thm 4, first statement]}

    >>> round(error_lower_bound(budget=100, noise=1.0, complexity=400), 6)  # e^-2 / 4
    0.033834
    """
    return _quarter(8 * budget, budget, noise, complexity)


def error_lower_bound_many_arms(budget: int, noise: float, complexity: float, arms: int) -> float:
    r"""Return an error that every algorithm has on some instance of a set with many arms.

    .. math:: e_T \ge \tfrac14 \exp\bigl(-32T / (\sigma^2 \log(K)\, H_{1,2})\bigr)
              \qquad \text{[Mussi24, Thm 4, second statement]}

    `complexity` is H_{1,2} of that instance. It is below 16 K^2 in the set of the proof.

    >>> round(error_lower_bound_many_arms(100, 1.0, complexity=1600 / math.log(10), arms=10), 6)
    0.033834
    """
    require(arms >= 2, "arms", arms, "at least 2", "log K divides")
    return _quarter(32 * budget, budget, noise, complexity * math.log(arms))


def concavity_lower_bound(noise: float = 1.0) -> float:
    r"""Return an error that every algorithm has without concavity, whatever the budget.

    .. math:: e_T \ge \tfrac14 e^{-1/(8\sigma^2)} \qquad \text{[Mussi24, App. F]}

    In the paper sigma is 1. The means of the instances differ by 1/2, so KL = (1/2)^2 / (2
    sigma^2).

    >>> round(concavity_lower_bound(), 4)
    0.2206
    """
    return _quarter(1.0, 1, noise, 8.0)


def concavity_instances(budget: int) -> tuple[Floats, Floats]:
    """Return two problems that differ only in a convex last step [Mussi24, App. F].

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
        return 0.0  # one pull distinguishes the instances
    return cx.exponential(-information / (noise**2 * complexity)) / 4
