"""Guarantees of R-UCBE [Mussi24, Thm 1 (thr:ub_error), Cor. 1 (coroll:ub_error_beta)].

The theorem is about Algorithm 1 as printed, which recommends the arm with the largest bound B
(``RisingUCBE(recommend="bound")``). It does not hold if the recommendation is by the estimate. A
bound is nan if the condition of its theorem fails, because the theorem then guarantees nothing.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.errors import need_in, require
from latebloomer.theory import complexity as cx
from latebloomer.theory.complexity import Floats, Ints
from latebloomer.theory.window_estimates import window_lengths


def error_bound(
    curves: cx.Curves, budget: int, exploration: float, noise: float, window: float
) -> float:
    r"""Return the bound :math:`e_T \le 2 T K e^{-a/10}` on the error probability.

    [Mussi24, Thm 1, Eq. (ucb_error_prob_ub)]. It is nan unless the curves rise and are concave
    (Assumption 1) and a is at most a*(0) (`exploration_limit`, Eq. (ucb_can_be_learned)), which
    need not exist. A value above 1 says nothing.

    Parameters
    ----------
    curves : Curves
        Table of means, one row per arm, or a `Problem`.
    budget : int
        Total number of pulls, T.
    exploration : float
        Exploration parameter a of R-UCBE.
    noise : float
        The sub-Gaussian level sigma of the rewards.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.

    Returns
    -------
    float
        The bound, or nan.

    Examples
    --------
    >>> flat = [[0.75] * 400, [0.25] * 400]  # a*(0) = 39 at sigma = .1, 156 at sigma = .05
    >>> round(error_bound(flat, 400, exploration=150.0, noise=0.05, window=0.25), 6)
    0.000489
    >>> error_bound(flat, 400, exploration=150.0, noise=0.1, window=0.25)
    nan
    """
    return error_bound_at(0.0, curves, budget, exploration, noise, window)


def error_bound_at(
    iota: float, curves: cx.Curves, budget: int, exploration: float, noise: float, window: float
) -> float:
    """Return `error_bound`, with the condition that a is at most a*(iota).

    >>> flat = [[0.75] * 400, [0.25] * 400]
    >>> error_bound_at(0.9, flat, 400, exploration=150.0, noise=0.05, window=0.25)
    nan
    """
    cx.need(exploration=exploration)
    means = cx.as_problem(curves, budget)[:, :budget]
    limit = exploration_limit(means, budget, noise, window, iota)
    if isinstance(limit, NoExploration) or exploration > limit:
        return math.nan
    if not cx.rises_and_is_concave(means):
        return math.nan
    return error_right_side(len(means), budget, exploration)


def error_right_side(arms: int, budget: int, exploration: float) -> float:
    r"""Return :math:`2 T K e^{-a/10}`, whether or not Thm 1 applies.

    [Mussi24, Eq. (ucb_error_prob_ub)].

    >>> round(error_right_side(arms=5, budget=1000, exploration=150.0), 5)  # 10^4 e^-15
    0.00306
    """
    cx.need(budget=budget, exploration=exploration)
    return 2 * budget * arms * cx.exponential(-exploration / 10)


def theory_exploration(arms: int, budget: int, delta: float) -> float:
    r"""Return the a at which the error bound is delta: :math:`a = 10 \log(2TK/\delta)`.

    [Mussi24, Eq. (ucb_error_prob_ub)], solved for a. The bound applies only if this is at most
    a*(iota) (`exploration_limit`).

    Parameters
    ----------
    arms : int
        Number of arms, K.
    budget : int
        Total number of pulls, T.
    delta : float
        Error probability, above 0 and below 1.

    Returns
    -------
    float
        The exploration parameter a.

    Examples
    --------
    >>> a = theory_exploration(arms=5, budget=1000, delta=0.05)
    >>> round(a, 2), round(error_right_side(5, 1000, a), 12)
    (122.06, 0.05)
    """
    cx.need(budget=budget, delta=delta)
    require(arms >= 1, "arms", arms, "at least 1", "the bound is a union over the arms")
    return 10 * math.log(2 * budget * arms / delta)


def minimum_budget(
    gaps: ArrayLike, window: float, beta: float, c: float, iota: float = 0.0
) -> float:
    r"""Return the budget from which a*(iota) >= 0 exists in Cor. 1, for fixed gaps.

    .. math:: T \ge \biggl(\frac{c^{1/q} (1-2\varepsilon)^{-\beta/q} H_{1,1/q}(T) + K - 1}
              {1 - \iota}\biggr)^{q/(q-1)}, \qquad q = \min(\beta,\ 3/2)
              \qquad \text{[Mussi24, Eq. (timeBoundUCB)]}

    The paper's inequality is recursive in T, because the gaps on the right are those at T; this
    function returns the right side. The paper's two cases are q = beta and q = 3/2. The paper has
    (1 - iota)^-1 outside the power; `exploration_limit_polynomial` explains why it belongs inside.
    Both agree for iota = 0.

    >>> minimum_budget([0, 1.0], window=0.25, beta=2, c=0.25)  # c 2^2 = 1: (1 + 1)^3
    8.0
    """
    cx.need(iota=iota)
    q, rising = order(beta), growth(window, beta, c)
    return cx.of_gaps(gaps, partial(_needed, q, rising, iota))


def _needed(q: float, rising: float, iota: float, rivals: Floats) -> Floats:
    """Return the right side of Eq. (timeBoundUCB) for each column of gaps."""
    if iota == 1:  # the whole budget is reserved for the best arm
        return np.full(rivals.shape[1], math.inf)
    needed = rising ** (1 / q) * np.sum(rivals ** (-1 / q), axis=0) + len(rivals)
    return np.asarray((needed / (1 - iota)) ** (q / (q - 1)))


def first_budget(
    curves: cx.Curves,
    window: float,
    beta: float,
    c: float,
    iota: float = 0.0,
    most: int = 10**6,
) -> int | None:
    """Return the first T that satisfies Cor. 1's recursive condition; None if none up to `most`.

    [Mussi24, Remark 1, Eq. (timeBoundUCB)]: the gaps on the right side are those at T.

    >>> first_budget([[1.0] * 20, [0.0] * 20], window=0.25, beta=2, c=0.25, most=20)
    8
    """
    cx.need(iota=iota)
    needed = partial(_needed, order(beta), growth(window, beta, c), iota)
    return cx.first_budget(curves, most, needed)


def simple_regret_bound(
    curves: cx.Curves, budget: int, exploration: float, noise: float, window: float, iota: float
) -> float:
    r"""Return :math:`r_T \le e_T + \mu_{i^*}(T) - \mu_{i^*}(\lfloor \iota T \rfloor)`.

    [Mussi24, Eq. (simpleRegretUCB)], with the error bound in place of e_T. It holds for rewards in
    [0, 1]. It is nan unless the curves rise and are concave (Assumption 1) and a is at most
    a*(iota) (`exploration_limit`).

    >>> late = [[n / (n + 3) for n in range(1, 401)], [0.5] * 400]
    >>> found = simple_regret_bound(late, 400, exploration=1e9, noise=0.0, window=0.25, iota=0.5)
    >>> round(found, 6)  # 400/403 - 200/203
    0.007334
    """
    means = cx.as_problem(curves, budget)[:, :budget]
    promised = _promised_pulls(budget, iota)
    best = means[cx.best_arm(means, budget)]
    error = error_bound_at(iota, means, budget, exploration, noise, window)
    return error + float(best[budget - 1] - best[promised - 1])


def simple_regret_bound_polynomial(
    gaps: Any,
    budget: int,
    exploration: float,
    noise: float,
    window: float,
    beta: float,
    c: float,
    iota: float,
) -> float:
    r"""Return the bound :math:`r_T \le e_T + c\,2^\beta \iota^{-\beta} T^{1-\beta}` on regret.

    [Mussi24, Cor. 1]. It is nan unless a is at most the closed form's a*(iota)
    (`exploration_limit_polynomial`, Eq. (aStar)), which need not exist.

    >>> simple_regret_bound_polynomial([0, 1.0], 100, 1e9, 0.0, 0.25, beta=2, c=0.25, iota=0.5)
    0.04
    """
    _promised_pulls(budget, iota)  # the proof's floor(iota T) >= iota T / 2 needs iota T >= 1
    limit = exploration_limit_polynomial(gaps, budget, noise, window, beta, c, iota)
    if isinstance(limit, NoExploration) or exploration > limit:
        return math.nan
    late = c * cx.power(2 / iota, beta) * cx.power(budget, 1 - beta)
    arms = len(cx.as_gaps(gaps, budget))
    return error_right_side(arms, budget, exploration) + late


def order(beta: float) -> float:
    """Return q of Cor. 1: min(beta, 3/2); pulls grow like (T / Delta)^(1/q)."""
    cx.need(beta=beta)
    return min(beta, 1.5)


def growth(window: float, beta: float, c: float) -> float:
    """Return c (1 - 2 eps)^-beta, the part of the bracket in Eq. (aStar) that is due to rising."""
    need_in("window", window, "(0, 0.5)", "the bound grows as (1 - 2 window)^-beta")
    cx.need(beta=beta, c=c)
    return c * cx.power(1 / (1 - 2 * window), beta)


def _promised_pulls(budget: int, iota: float) -> int:
    """Return floor(iota T), the number of pulls guaranteed to the best arm."""
    cx.need(budget=budget, iota=iota)
    promised = math.floor(iota * budget)
    why = "the bound reads the best arm's curve at pull floor(iota T), and no curve has a pull 0"
    require(promised >= 1, "iota", iota, f"at least 1/budget = {1 / budget:.3g}", why)
    return promised


@dataclass(frozen=True)
class NoExploration:
    """The result if no a*(iota) > 0 exists; the theorem then guarantees nothing.

    `bracket` must be positive for an a*(iota), but is not. `smallest_budget` is the first budget
    at which it would be positive for the same gaps.

    Attributes
    ----------
    reason : str
        Reason, as text.
    bracket : float
        Value that must be positive, but is not.
    smallest_budget : int | None
        First budget at which `bracket` would be positive; None if that is unknown.
    """

    reason: str
    bracket: float
    smallest_budget: int | None = None


def y_bound(
    exploration: float, curves: cx.Curves, budget: int, noise: float, window: float
) -> Ints:
    r"""Return for each arm the largest integer y <= T that satisfies the paper's inequality.

    [Mussi24, Eq. (implicit_NiT)]

    .. math:: T\,\gamma_i(\lfloor (1-2\varepsilon) y \rfloor)
              + 2 T \sigma \sqrt{a / \lfloor \varepsilon y \rfloor^3} \ge \Delta_i(T) .

    A suboptimal arm is pulled about y times and no more. The left side is infinite if the window
    is empty, or if it needs gamma_i(0), which curves do not contain. A value of T means "T or
    more" (Thm 1 requires a sum below T, so larger values make no difference); the value of the
    best arm is always T.

    The lemma (lem:generic_min_pulls) uses floor(eps N_t), although the arm was chosen with
    floor(eps N_{t-1}), so its count may be one pull too low for each arm.

    Parameters
    ----------
    exploration : float
        Exploration parameter a of R-UCBE.
    curves : ArrayLike
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull.
    budget : int
        Total number of pulls, T.
    noise : float
        The sub-Gaussian level sigma of the rewards.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.

    Returns
    -------
    Ints
        One number per arm.

    Examples
    --------
    >>> flat = [[0.75] * 40, [0.25] * 40]  # no growth: 80 * 0.1 * sqrt(1 / h^3) >= 1/2 up to h = 6
    >>> y_bound(1.0, flat, budget=40, noise=0.1, window=0.25)
    array([40, 27])
    """
    cx.need(exploration=exploration)
    return np.sum(_thresholds(curves, budget, noise, window) <= exploration, axis=1)


def exploration_limit(
    curves: cx.Curves, budget: int, noise: float, window: float, iota: float = 0.0
) -> float | NoExploration:
    r"""Return the largest a with :math:`(1-\iota) T - \sum_{i \ne i^*(T)} y_i(a) > 0`.

    This is a*(iota) of [Mussi24, Thm 1, Eq. (ucb_can_be_learned)], for any curves that satisfy
    Assumption 1. Each y_i is a step function of a, so the result is an order statistic of the
    positions of the steps, without a search. The sum jumps *at* a step, so the largest a is the
    float just below the step. It is infinite if there is no noise.

    Parameters
    ----------
    curves : ArrayLike
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull.
    budget : int
        Total number of pulls, T.
    noise : float
        The sub-Gaussian level sigma of the rewards.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.
    iota : float
        Share of the budget that is reserved for the best arm, from 0 to 1.

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
    cx.need(iota=iota)
    means = cx.as_problem(curves, budget)
    steps = _thresholds(means, budget, noise, window)
    rivals = np.delete(steps, cx.best_arm(means, budget), axis=0)
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
    gaps: Any,
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

    The formula holds while the outer bracket is positive; otherwise the result is `NoExploration`
    and not the square of a negative number. If T^(2/3) > 1 + max(1/eps, 1/(1 - 2 eps)), the result
    is at most the `exploration_limit` of curves with these gaps and with increments of at most c
    n^-beta. (The proof uses floor(eps y) >= eps (y - 1), which is false for many y. For such
    budgets, the term K - 1, which is larger than the derivation needs, makes up for this.)

    Departure from the paper: in place of (1-iota) T^(1-1/q), Cor. 1 has ((1-iota)^-1 T)^(1-1/q),
    and its proof has ((1-iota) T)^(1-1/q). But the previous line of the proof, (1-iota) T - (K-1)
    - (...)^(1/q) H > 0, divided by T^(1/q), gives the formula here. With the other two formulas,
    the sum of y_i(a*) can exceed (1-iota) T (a case is in tests/theory/test_exploration.py). All
    three agree for iota = 0.

    Parameters
    ----------
    gaps : Any
        Gaps of the arms, 0 for the best arm; or a `Problem`, for its gaps at the budget.
    budget : int
        Total number of pulls, T.
    noise : float
        The sub-Gaussian level sigma of the rewards.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.
    beta : float
        Increments are at most c n^-beta.
    c : float
        Increments are at most c n^-beta.
    iota : float
        Share of the budget that is reserved for the best arm, from 0 to 1.

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
    cx.need(budget=budget, noise=noise, iota=iota)
    gaps = cx.as_gaps(gaps, budget)
    q, rising, rivals = order(beta), growth(window, beta, c), len(gaps) - 1

    def bracket_at(pulls: int) -> float:  # of Eq. (aStar); its base, in pulls, is at least 0
        room = (1 - iota) * cx.power(pulls, 1 - 1 / q) - rivals
        return cx.power(max(room, 0.0) / cx.h1(gaps, 1 / q), q) - rising

    bracket, least = bracket_at(budget), minimum_budget(gaps, window, beta, c, iota)
    if bracket > 0:
        return window**3 / 4 * (bracket / noise) ** 2 if noise > 0 else math.inf
    first = None
    if math.isfinite(least):
        first = max(1, math.floor(least) - 1)  # rounding may put `least` on the wrong side
        while bracket_at(first) <= 0:
            first += max(1, first // 10**12)  # smaller steps may not change a large float
    return NoExploration(
        f"the bracket of [Mussi24, Eq. (aStar)] is {bracket:.4g} at budget={budget}: "
        "the arms may still rise too much for their gaps",
        bracket,
        first,
    )


def _thresholds(curves: cx.Curves, budget: int, noise: float, window: float) -> Floats:
    """Return a table: row i, column y - 1 is the smallest a with y_i(a) >= y; rows never fall."""
    cx.need(noise=noise)
    need_in("window", window, "(0, 0.5)", "the bound grows as (1 - 2 window)^-beta")
    means = cx.as_problem(curves, budget)[:, :budget]
    y = np.arange(1, budget + 1)
    at = np.floor((1 - 2 * window) * y).astype(np.int64)  # at most T - 1: mu(T) is enough
    gamma = np.diff(means, axis=1, prepend=-np.inf)[:, at]  # gamma(n) in column n; gamma(0) = inf
    missing = np.maximum(cx.gaps(means, budget)[:, None] - budget * gamma, 0.0)
    h = window_lengths(y, window).astype(np.float64)
    alone = np.maximum(h, 1) ** 3 * cx.signal_to_noise(missing, 2 * budget * noise)
    alone = np.where(h == 0, 0.0, alone)  # an empty window: the left side is infinite
    return np.minimum.accumulate(alone[:, ::-1], axis=1)[:, ::-1]  # the minimum over all y' >= y
