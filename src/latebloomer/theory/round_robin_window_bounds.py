"""Guarantees of RR-SW, the baseline [Mussi24, App. E, Thm thr:ub_error_us].

A bound is nan if the condition of the theorem fails, because the theorem then guarantees nothing.
"""

from collections.abc import Callable
from functools import partial
from math import nan

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.core.formulas import window_length
from latebloomer.theory import complexity as cx
from latebloomer.theory.complexity import Floats


def bias_condition(curves: cx.Curves, budget: int, window: float) -> bool:
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

    The paper uses N = T/K; if K does not divide T, check `bias_condition`.

    >>> minimum_budget([0, 0.5], window=0.5, beta=2, c=0.25)  # 2/4 * 2^2 * 2^2 / (1/2)
    16.0
    """
    cx.need(window=window, beta=beta, c=c)
    return cx.of_gaps(gaps, partial(_needed, window, beta, c))


def _needed(window: float, beta: float, c: float, rivals: Floats) -> Floats:
    """Return the right side of Eq. (us_horizon_lb) for each column of sorted gaps."""
    needed = 2 * c * cx.power((len(rivals) + 1) / (1 - window), beta) / rivals[0]
    return np.asarray(needed ** (1 / (beta - 1)))


def first_budget(
    curves: cx.Curves, window: float, beta: float, c: float, most: int = 10**6
) -> int | None:
    """Return the first T that satisfies the recursive condition; None if none up to `most`.

    [Mussi24, Eq. (us_horizon_lb)]: the gap on the right side is the one at T.

    >>> first_budget([[0.9] * 100, [0.4] * 100], window=0.5, beta=2, c=0.25, most=100)
    16
    """
    cx.need(window=window, beta=beta, c=c)
    return cx.first_budget(curves, most, partial(_needed, window, beta, c))


def error_bound(curves: cx.Curves, budget: int, noise: float, window: float) -> float:
    r"""Return the bound on the error probability as printed in [Mussi24, Thm thr:ub_error_us].

    It is nan unless the curves rise and are concave (Assumption 1) and `bias_condition` holds.
    `error_right_side` has the formula. The proof supports only a weaker bound,
    `proved_error_bound`.

    >>> late = [[n / (n + 3) for n in range(1, 401)], [0.5] * 400, [0.6] * 400]
    >>> round(error_bound(late, 400, noise=0.3, window=0.25), 6), error_bound(late, 100, 0.3, 0.25)
    (0.001595, nan)
    """
    return _where_it_applies(error_right_side, curves, budget, noise, window)


def _where_it_applies(
    right_side: Callable[[Floats, int, float, float], float],
    curves: cx.Curves,
    budget: int,
    noise: float,
    window: float,
) -> float:
    cx.need(noise=noise, window=window)
    means = cx.as_problem(curves, budget)[:, :budget]
    if not applies(means, budget, window):
        return nan
    return right_side(cx.gaps(means, budget), budget, noise, window)


def applies(curves: cx.Curves, budget: int, window: float) -> bool:
    """Return whether the theorem applies: Assumption 1 and `bias_condition` hold.

    >>> applies([[0.9] * 100, [0.4] * 100], 100, window=0.25)
    True
    """
    means = cx.as_problem(curves, budget)[:, :budget]
    return bias_condition(means, budget, window) and cx.rises_and_is_concave(means)


def error_right_side(gaps: ArrayLike, budget: int, noise: float, window: float) -> float:
    r"""Return the printed right side of [Mussi24, Thm thr:ub_error_us], whether it applies or not.

    .. math:: e_T \le (K-1) \exp\Bigl( -\frac{\varepsilon T}{8 K \sigma^2} \Delta_{(2)}(T)^2 \Bigr)

    The proof supports only 16 in place of 8, as for R-SR. If the best arm rises in a straight line
    (so that `bias_condition` holds, but Assumption 2 does not), the error can exceed this value;
    it never exceeds `proved_error_bound`.

    >>> round(error_right_side([0, 0.5], budget=400, noise=0.5, window=0.25), 12)  # exp(-100 / 16)
    0.001930454136
    """
    ordered, signal = _signals(gaps, budget, noise, window)
    exponent = -window / 8 * budget / len(ordered) * float(signal[1])
    return (len(ordered) - 1) * cx.exponential(exponent)


def proved_error_bound(curves: cx.Curves, budget: int, noise: float, window: float) -> float:
    r"""Return the bound that the proof supports, `proved_right_side`.

    It is nan unless the curves rise and are concave (Assumption 1) and `bias_condition` holds.

    >>> still = [[0.5] * 400, [0.0] * 400]
    >>> round(proved_error_bound(still, budget=400, noise=0.5, window=0.25), 9)  # exp(-50 / 16)
    0.043936934
    """
    return _where_it_applies(proved_right_side, curves, budget, noise, window)


def proved_right_side(gaps: ArrayLike, budget: int, noise: float, window: float) -> float:
    r"""Return the error bound by the paper's proof, with the noise of both windows.

    .. math:: e_T \le \sum_{i \ne i^*} \exp\Bigl( -\frac{h \Delta_i(T)^2}{16 \sigma^2} \Bigr),
              \qquad h = \max(1, \lfloor \varepsilon \lfloor T/K \rfloor \rfloor)

    It is a bound only under `bias_condition`; `rising_sr.proved_right_side` explains the 16.

    >>> round(proved_right_side([0, 0.5], budget=400, noise=0.5, window=0.25), 9)  # exp(-50 / 16)
    0.043936934
    """
    ordered, signal = _signals(gaps, budget, noise, window)
    each = budget // len(ordered)
    if each == 0:
        return float(len(ordered) - 1)  # fewer pulls than arms
    return float(np.sum(np.exp(-max(1, window_length(window, each)) / 16 * signal[1:])))


def _signals(gaps: ArrayLike, budget: int, noise: float, window: float) -> tuple[Floats, Floats]:
    cx.need(budget=budget, noise=noise, window=window)
    ordered = cx.as_gaps(gaps)
    return ordered, cx.signal_to_noise(ordered, noise)
