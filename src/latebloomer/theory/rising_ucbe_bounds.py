"""Guarantees of R-UCBE [Mussi24, Thm 1 (thr:ub_error), Cor. 1 (coroll:ub_error_beta)].

The theorem is about Algorithm 1 as printed, which recommends the arm of the largest bound B
(``RisingUCBE(recommend="bound")``); it does not cover recommending by the estimate alone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.errors import require
from latebloomer.theory import inputs
from latebloomer.theory.complexity import best_arm, h1


def error_bound(arms: int, budget: int, exploration: float) -> float:
    r"""Return the bound :math:`e_T \le 2 T K e^{-a/10}` on the error probability.

    [Mussi24, Eq. (ucb_error_prob_ub)].

    It holds for a up to a*(iota) (`exploration_limit`); a value above 1 says nothing.

    >>> round(error_bound(arms=5, budget=1000, exploration=150.0), 5)  # 10^4 e^-15
    0.00306
    """
    inputs.need_budget(budget)
    inputs.need_exploration(exploration)
    return 2 * budget * arms * inputs.exponential(-exploration / 10)


def theory_exploration(arms: int, budget: int, delta: float) -> float:
    r"""Return the a at which the error bound is delta: :math:`a = 10 \log(2TK/\delta)`.

    [Mussi24, Eq. (ucb_error_prob_ub)], solved for a. The bound applies if this is at most
    a*(iota).

    Parameters
    ----------
    arms : int
        K, the number of arms.
    budget : int
        T, the total number of pulls.
    delta : float
        The probability of being wrong.

    Returns
    -------
    float
        A.

    Examples
    --------
    >>> a = theory_exploration(arms=5, budget=1000, delta=0.05)
    >>> round(a, 2), round(error_bound(5, 1000, a), 12)
    (122.06, 0.05)
    """
    inputs.need_budget(budget)
    inputs.need_delta(delta)
    require(arms >= 1, "arms", arms, "at least 1", "the bound is a union over the arms")
    return 10 * math.log(2 * budget * arms / delta)


def minimum_budget(
    gaps: ArrayLike, window: float, beta: float, c: float, iota: float = 0.0
) -> float:
    r"""Return the budget from which Cor. 1 has an a*(iota) >= 0, at the given gaps.

    .. math:: T \ge \biggl(\frac{c^{1/q} (1-2\varepsilon)^{-\beta/q} H_{1,1/q}(T) + K - 1}
              {1 - \iota}\biggr)^{q/(q-1)}, \qquad q = \min(\beta,\ 3/2)
              \qquad \text{[Mussi24, Eq. (timeBoundUCB)]}

    The paper's inequality is recursive in T, whose gaps are on the right; this is its right side.
    The paper's two cases are q = beta and q = 3/2. It has (1 - iota)^-1 outside the power; see
    `exploration_limit_polynomial` for why it belongs inside. Equal for iota = 0.

    >>> minimum_budget([0, 1.0], window=0.25, beta=2, c=0.25)  # c 2^2 = 1: (1 + 1)^3
    8.0
    """
    inputs.need_share(iota)
    q, rising = order(beta), growth(window, beta, c)
    if iota == 1:
        return math.inf  # all of the budget promised to the best arm, none left to explore
    needed = inputs.power(rising, 1 / q) * h1(gaps, 1 / q) + len(np.asarray(gaps)) - 1
    return inputs.power(needed / (1 - iota), q / (q - 1))


def simple_regret_bound(curves: ArrayLike, budget: int, exploration: float, iota: float) -> float:
    r"""Return :math:`r_T \le e_T + \mu_{i^*}(T) - \mu_{i^*}(\lfloor \iota T \rfloor)`.

    [Mussi24, Eq. (simpleRegretUCB)], with the error bound in the place of e_T; for rewards in
    [0, 1]. It holds for a up to a*(iota).

    >>> simple_regret_bound([[0.0, 0.5, 0.75, 0.75], [0.2] * 4], 4, exploration=1e9, iota=0.5)
    0.25
    """
    means = inputs.as_problem(curves, budget)
    promised = _promised_pulls(budget, iota)
    best = means[best_arm(means, budget)]
    error = error_bound(len(means), budget, exploration)
    return error + float(best[budget - 1] - best[promised - 1])


def simple_regret_bound_polynomial(
    arms: int, budget: int, exploration: float, beta: float, c: float, iota: float
) -> float:
    r"""Return the bound :math:`r_T \le e_T + c\,2^\beta \iota^{-\beta} T^{1-\beta}` on regret.

    [Mussi24, Cor. 1].

    >>> simple_regret_bound_polynomial(2, 100, exploration=1e9, beta=2, c=0.5, iota=0.5)  # 8/100
    0.08
    """
    inputs.need_polynomial(beta, c)
    _promised_pulls(budget, iota)  # the proof's floor(iota T) >= iota T / 2 needs iota T >= 1
    late = c * inputs.power(2 / iota, beta) * inputs.power(budget, 1 - beta)
    return error_bound(arms, budget, exploration) + late


def order(beta: float) -> float:
    """Return q of Cor. 1: pulls grow as (T / Delta)^(1/q), by the bias or by the noise (3/2)."""
    inputs.need_polynomial(beta)
    return min(beta, 1.5)


def growth(window: float, beta: float, c: float) -> float:
    """Return c (1 - 2 eps)^-beta, the part of the bracket in Eq. (aStar) due to rising."""
    inputs.need_window(window, below_half=True)
    inputs.need_polynomial(beta, c)
    return c * inputs.power(1 / (1 - 2 * window), beta)


def _promised_pulls(budget: int, iota: float) -> int:
    """Return floor(iota T), the pulls that the best arm surely gets."""
    inputs.need_budget(budget)
    inputs.need_share(iota)
    promised = math.floor(iota * budget)
    require(
        promised >= 1,
        "iota",
        iota,
        f"at least 1/budget = {1 / budget:.3g}",
        "the bound reads the best arm's curve at pull floor(iota T), and no curve has a pull 0",
    )
    return promised
