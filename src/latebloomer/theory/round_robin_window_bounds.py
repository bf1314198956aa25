"""Guarantees of RR-SW, the baseline [Mussi24, App. E, Thm thr:ub_error_us]."""

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.core.estimators import window_length
from latebloomer.theory import complexity as cx
from latebloomer.theory.complexity import Floats


def bias_condition(curves: ArrayLike, budget: int, window: float) -> bool:
    r"""Return whether :math:`T\,\gamma_{(1)}(\lceil(1-\varepsilon)N\rceil) \le \Delta_{(2)}(T)/2`.

    [Mussi24, Lemma thr:lb_horizon_us], with the N = floor(T/K) pulls that each arm really gets.

    >>> late = [[n / (n + 3) for n in range(1, 401)], [0.5] * 400, [0.6] * 400]
    >>> bias_condition(late, 100, window=0.25), bias_condition(late, 400, window=0.25)
    (False, True)
    """
    cx.need(window=window)
    means = cx.as_problem(curves, budget)
    each = budget // len(means)
    bias = budget * cx.best_increments(means, budget)[each - window_length(window, each)]
    return bool(bias <= np.sort(cx.gaps(means, budget))[1] / 2)


def minimum_budget(gaps: ArrayLike, window: float, beta: float, c: float) -> float:
    r"""Return the budget from which the bias is small enough under Assumption 2.

    [Mussi24, Eq. (us_horizon_lb)].

    .. math:: T \ge \bigl( 2 c\, (1-\varepsilon)^{-\beta} K^{\beta} / \Delta_{(2)}(T)
              \bigr)^{1/(\beta-1)}

    The paper takes N = T/K; where K does not divide T, check `bias_condition`.

    >>> minimum_budget([0, 0.5], window=0.5, beta=2, c=0.25)  # 2/4 * 2^2 * 2^2 / (1/2)
    16.0
    """
    cx.need(window=window, beta=beta, c=c)
    ordered = cx.as_gaps(gaps)
    if ordered[1] == 0:
        return float("inf")
    needed = 2 * c * cx.power(len(ordered) / (1 - window), beta) / float(ordered[1])
    return cx.power(needed, 1 / (beta - 1))


def error_bound(gaps: ArrayLike, budget: int, noise: float, window: float) -> float:
    r"""Return the error probability as printed in [Mussi24, Thm thr:ub_error_us].

    .. math:: e_T \le (K-1) \exp\Bigl( -\frac{\varepsilon T}{8 K \sigma^2} \Delta_{(2)}(T)^2 \Bigr)

    The proof supports 16 in the place of 8, as for R-SR. Where the best arm rises in a straight
    line (`bias_condition` holds, Assumption 2 does not) the error can exceed this; it never
    exceeds `proved_error_bound`.

    >>> round(error_bound([0, 0.5], budget=400, noise=0.5, window=0.25), 12)  # exp(-100 / 16)
    0.001930454136
    """
    ordered, signal = _signals(gaps, budget, noise, window)
    exponent = -window / 8 * budget / len(ordered) * float(signal[1])
    return (len(ordered) - 1) * cx.exponential(exponent)


def proved_error_bound(gaps: ArrayLike, budget: int, noise: float, window: float) -> float:
    r"""Return the error probability by the same proof, for the noise of both whole windows.

    .. math:: e_T \le \sum_{i \ne i^*} \exp\Bigl( -\frac{h \Delta_i(T)^2}{16 \sigma^2} \Bigr),
              \qquad h = \max(1, \lfloor \varepsilon \lfloor T/K \rfloor \rfloor)

    Holds under `bias_condition`; see `rising_sr.proved_error_bound` for the 16.

    >>> round(proved_error_bound([0, 0.5], budget=400, noise=0.5, window=0.25), 9)  # exp(-50 / 16)
    0.043936934
    """
    ordered, signal = _signals(gaps, budget, noise, window)
    each = budget // len(ordered)
    if each == 0:
        return float(len(ordered) - 1)  # not one pull each
    return float(np.sum(np.exp(-max(1, window_length(window, each)) / 16 * signal[1:])))


def _signals(gaps: ArrayLike, budget: int, noise: float, window: float) -> tuple[Floats, Floats]:
    cx.need(budget=budget, noise=noise, window=window)
    ordered = cx.as_gaps(gaps)
    return ordered, cx.signal_to_noise(ordered, noise)
