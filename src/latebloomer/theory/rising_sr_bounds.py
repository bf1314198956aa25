"""Guarantees of R-SR [Mussi24, Thm 2 (thr:ub_error_sr_general), Cor. 2 (thr:ub_error_sr)].

A bound is nan if the condition of its theorem fails, because the theorem then guarantees nothing.
The functions that end in `_right_side` are the formulas without conditions, as functions of the
gaps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.core.formulas import window_length
from latebloomer.core.phases import log_bar, phase_lengths
from latebloomer.errors import require
from latebloomer.theory import complexity as cx
from latebloomer.theory.complexity import Floats

RightSide: TypeAlias = Callable[[Floats, int, float, float], float]  # gaps, T, sigma, epsilon


@dataclass(frozen=True)
class PhaseCondition:
    """The condition of Thm 2 for each phase: the best arm's possible bias and the allowed bias.

    Attributes
    ----------
    bias : tuple[float, ...]
        For each phase, the best arm's possible bias.
    allowed : tuple[float, ...]
        For each phase, the allowed bias.
    """

    bias: tuple[float, ...]
    allowed: tuple[float, ...]

    @property
    def failing(self) -> tuple[int, ...]:
        """The phases, numbered from 1, in which the best arm might still rise too much."""
        pairs = enumerate(zip(self.bias, self.allowed, strict=True), start=1)
        return tuple(j for j, (bias, allowed) in pairs if bias > allowed)

    @property
    def holds(self) -> bool:
        """True if the condition holds in every phase."""
        return not self.failing


def phase_condition(curves: cx.Curves, budget: int, window: float) -> PhaseCondition:
    r"""Return the condition of Thm 2 on the budget [Mussi24, Eq. (timeBudgetLBSR2)].

    .. math:: T\,\gamma_{(1)}(\lceil (1-\varepsilon) N_j \rceil) \le \Delta_{(K-j+1)}(T) / 2
              \quad\text{for every phase } j .

    A phase without pulls needs gamma(0), which curves do not contain, so its bias is infinite.

    >>> late = [[n / (n + 3) for n in range(1, 401)], [0.5] * 400, [0.6] * 400]
    >>> phase_condition(late, 100, window=0.25).failing, phase_condition(late, 400, 0.25).holds
    ((1, 2), True)
    """
    cx.need(window=window)
    means = cx.as_problem(curves, budget)
    gamma, lengths = cx.best_increments(means, budget), phase_lengths(len(means), budget)
    bias = [budget * float(gamma[n - window_length(window, n)]) for n in lengths]
    allowed = np.sort(cx.gaps(means, budget))[:0:-1] / 2  # Delta_(K), ..., Delta_(2)
    return PhaseCondition(tuple(bias), tuple(allowed.tolist()))


def minimum_budget(gaps: ArrayLike, window: float, beta: float, c: float) -> float:
    r"""Return the budget from which Thm 2's condition holds under Assumption 2.

    [Mussi24, Eq. (timeBudgetLBSR)].

    .. math:: T \ge \max\Bigl\{2K,\ \Bigl( 2^{\beta+1} c\, (1-\varepsilon)^{-\beta}\,
              \overline{\log}(K)^{\beta} \bigl(\max_{2 \le i \le K} i \Delta_{(i)}(T)^{-1/\beta}
              \bigr)^{\beta} \Bigr)^{1/(\beta-1)} \Bigr\}

    The paper's condition is recursive in T, because the gaps are those at T; this function returns
    its right side.

    >>> minimum_budget([0, 0.5], window=0.5, beta=2, c=0.25)  # 8/4 * 2^2 * 1 * (2 * 2^0.5)^2 = 64
    64.00000000000001
    """
    cx.need(window=window, beta=beta, c=c)
    return float(cx.of_gaps(gaps, partial(_needed, window, beta, c)))


def _needed(window: float, beta: float, c: float, rivals: Floats) -> Floats:
    """Return the right side of Eq. (timeBudgetLBSR) for each column of sorted gaps."""
    arms = len(rivals) + 1
    terms = np.arange(2, arms + 1)[:, None] * rivals ** (-1 / beta)
    spread = log_bar(arms) * np.max(terms, axis=0) / (1 - window)
    return np.maximum(2.0 * arms, (2 * c * (2 * spread) ** beta) ** (1 / (beta - 1)))


def first_budget(
    curves: cx.Curves, window: float, beta: float, c: float, most: int = 10**6
) -> int | None:
    """Return the first T that satisfies Cor. 2's recursive condition; None if none up to `most`.

    [Mussi24, Remark 1, Eq. (timeBudgetLBSR)]: the gaps on the right side are those at T.

    >>> first_budget([[0.9] * 1000, [0.4] * 1000], window=0.5, beta=2, c=0.25, most=1000)
    65
    """
    cx.need(window=window, beta=beta, c=c)
    return cx.first_budget(curves, most, partial(_needed, window, beta, c))


def error_bound(curves: cx.Curves, budget: int, noise: float, window: float) -> float:
    r"""Return the bound on the error probability as printed in [Mussi24, Eq. (SRErrorProb)].

    It is nan unless Thm 2 applies, which means that the curves rise and are concave (Assumption
    1), and that the best arm's bias is small enough in every phase (`phase_condition`, Eq.
    (timeBudgetLBSR2)). `error_right_side` has the formula. The proof supports only a weaker bound,
    `proved_error_bound`.

    Parameters
    ----------
    curves : Curves
        Table of means, one row per arm, or a `Problem`.
    budget : int
        Total number of pulls, T.
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
    >>> late = [[n / (n + 3) for n in range(1, 401)], [0.5] * 400, [0.6] * 400]
    >>> round(error_bound(late, 400, noise=0.3, window=0.25), 6), error_bound(late, 100, 0.3, 0.25)
    (0.001041, nan)
    """
    return _where_thm_2_applies(error_right_side, curves, budget, noise, window)


def _where_thm_2_applies(
    right_side: RightSide, curves: cx.Curves, budget: int, noise: float, window: float
) -> float:
    cx.need(noise=noise, window=window)
    means = cx.as_problem(curves, budget)[:, :budget]
    _need_phases(len(means), budget)
    if not applies(means, budget, window):
        return nan
    return right_side(cx.gaps(means, budget), budget, noise, window)


def applies(curves: cx.Curves, budget: int, window: float) -> bool:
    """Return whether Thm 2 applies: Assumption 1 and its condition on the phases hold.

    >>> late = [[n / (n + 3) for n in range(1, 401)], [0.5] * 400, [0.6] * 400]
    >>> applies(late, 100, window=0.25), applies(late, 400, window=0.25)
    (False, True)
    """
    means = cx.as_problem(curves, budget)[:, :budget]
    return phase_condition(means, budget, window).holds and cx.rises_and_is_concave(means)


def error_right_side(gaps: ArrayLike, budget: int, noise: float, window: float) -> float:
    r"""Return the right side of [Mussi24, Eq. (SRErrorProb)], whether or not Thm 2 applies.

    .. math:: e_T \le \frac{K(K-1)}{2} \exp\Bigl( -\frac{\varepsilon}{8\sigma^2}
              \frac{T-K}{\overline{\log}(K)\,H_2(T)} \Bigr)

    The proof supports only 16 in place of 8, because its last step bounds the *difference* of two
    window means with the noise of one mean. `proved_right_side` counts the noise of both.

    >>> round(error_right_side([0, 0.5], budget=402, noise=0.5, window=0.25), 12)  # exp(-400/64)
    0.001930454136
    """
    cx.need(noise=noise, window=window)
    arms = len(cx.as_gaps(gaps))
    _need_phases(arms, budget)
    signal = float(cx.signal_to_noise(np.array(cx.h2(gaps) ** -0.5), noise))  # 1 / (sigma^2 H_2)
    exponent = -window / 8 * (budget - arms) / log_bar(arms) * signal
    return arms * (arms - 1) / 2 * cx.exponential(exponent)


def proved_error_bound(curves: cx.Curves, budget: int, noise: float, window: float) -> float:
    r"""Return the bound that the proof of Thm 2 supports, `proved_right_side`.

    It is nan unless the curves rise and are concave (Assumption 1) and `phase_condition` holds.

    >>> still = [[0.5] * 402, [0.0] * 402]
    >>> round(proved_error_bound(still, budget=402, noise=0.5, window=0.25), 9)  # exp(-50 / 16)
    0.043936934
    """
    return _where_thm_2_applies(proved_right_side, curves, budget, noise, window)


def proved_right_side(gaps: ArrayLike, budget: int, noise: float, window: float) -> float:
    r"""Return the error bound by the proof of Thm 2, with the noise of both windows.

    .. math:: e_T \le \sum_{j=1}^{K-1} \sum_{i=K+1-j}^{K}
              \exp\Bigl( -\frac{h_j \Delta_{(i)}(T)^2}{16 \sigma^2} \Bigr),
              \qquad h_j = \max(1, \lfloor \varepsilon N_j \rfloor)

    The difference of two means of h rewards is sub-Gaussian with variance 2 sigma^2 / h. An error
    needs a difference above Delta/2, which has probability exp(-(Delta/2)^2 / (2 * 2 sigma^2 /
    h)). This is a bound only under Thm 2's condition (`phase_condition`).

    >>> round(proved_right_side([0, 0.5], budget=402, noise=0.5, window=0.25), 9)  # exp(-50 / 16)
    0.043936934
    """
    cx.need(noise=noise, window=window)
    ordered = cx.as_gaps(gaps)
    _need_phases(len(ordered), budget)
    signal = cx.signal_to_noise(ordered, noise)
    windows = [max(1, window_length(window, n)) for n in phase_lengths(len(ordered), budget)]
    return float(sum(np.sum(np.exp(-h / 16 * signal[-j:])) for j, h in enumerate(windows, 1)))


def simple_regret_bound(curves: cx.Curves, budget: int, noise: float, window: float) -> float:
    r"""Return the bound :math:`r_T \le e_T + \mu_{i^*}(T) - \mu_{i^*}(N_{K-1})` on simple regret.

    [Mussi24, Thm 2].

    It uses the printed error bound for e_T and holds for rewards in [0, 1]. It is nan unless the
    curves rise and are concave (Assumption 1) and `phase_condition` holds. Here the pulls that are
    left over go to the last arm, so it has N_{K-1} pulls or more.

    >>> late = [[n / (n + 3) for n in range(1, 403)], [0.5] * 402]
    >>> round(simple_regret_bound(late, 402, noise=0.0, window=0.25), 6)  # 402/405 - 200/203
    0.007371
    """
    means = cx.as_problem(curves, budget)[:, :budget]
    error = error_bound(means, budget, noise, window)
    best = means[cx.best_arm(means, budget)]
    return error + float(best[budget - 1] - best[phase_lengths(len(means), budget)[-1] - 1])


def simple_regret_bound_polynomial(
    gaps: ArrayLike, budget: int, noise: float, window: float, beta: float, c: float
) -> float:
    r"""Return the bound :math:`r_T \le e_T + c\,4^\beta T^{1-\beta}\,\overline{\log}(K)^\beta`.

    [Mussi24, Cor. 2]. It is nan for budgets below `minimum_budget`, Eq. (timeBudgetLBSR).

    >>> # 0.5 * 4^2 / 400
    >>> simple_regret_bound_polynomial([0, 0.5], 400, noise=0.0, window=0.25, beta=2, c=0.5)
    0.02
    >>> simple_regret_bound_polynomial([0, 0.5], 40, noise=0.0, window=0.25, beta=2, c=0.5)
    nan
    """
    cx.need(beta=beta, c=c)
    gaps = cx.as_gaps(gaps, budget)
    if budget < minimum_budget(gaps, window, beta, c):
        return nan
    late = c * cx.power(4 * log_bar(len(gaps)), beta) * cx.power(budget, 1 - beta)
    return error_right_side(gaps, budget, noise, window) + late


def _need_phases(arms: int, budget: int) -> None:
    why = "its phases divide T - K pulls"
    require(budget > arms, "budget", budget, f"above the {arms} arms", why)
