"""Guarantees of R-SR [Mussi24, Thm 2 (thr:ub_error_sr_general), Cor. 2 (thr:ub_error_sr)]."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.core.estimators import window_length
from latebloomer.core.moves import log_bar, phase_lengths
from latebloomer.errors import require
from latebloomer.theory import complexity as cx


@dataclass(frozen=True)
class PhaseCondition:
    """Thm 2's condition, phase by phase: the best arm's possible bias and the bias allowed.

    Attributes
    ----------
    bias : tuple[float, ...]
        For each phase, the best arm's possible bias.
    allowed : tuple[float, ...]
        For each phase, the bias allowed.
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
        """Whether Thm 2 applies."""
        return not self.failing


def phase_condition(curves: ArrayLike, budget: int, window: float) -> PhaseCondition:
    r"""Return the condition of Thm 2 on the budget [Mussi24, Eq. (timeBudgetLBSR2)].

    .. math:: T\,\gamma_{(1)}(\lceil (1-\varepsilon) N_j \rceil) \le \Delta_{(K-j+1)}(T) / 2
              \quad\text{for every phase } j .

    A phase of no pulls needs gamma(0), which curves do not tell: its bias is infinite.

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

    Recursive in T as printed (the gaps are those at T); this is the right side.

    >>> minimum_budget([0, 0.5], window=0.5, beta=2, c=0.25)  # 8/4 * 2^2 * 1 * (2 * 2^0.5)^2 = 64
    64.00000000000001
    """
    cx.need(window=window, beta=beta, c=c)
    arms = len(cx.as_gaps(gaps))
    spread = log_bar(arms) * cx.h2(gaps, 1 / beta) / (1 - window)
    return max(2.0 * arms, cx.power(2 * c * cx.power(2 * spread, beta), 1 / (beta - 1)))


def error_bound(gaps: ArrayLike, budget: int, noise: float, window: float) -> float:
    r"""Return the error probability as printed in [Mussi24, Eq. (SRErrorProb)].

    .. math:: e_T \le \frac{K(K-1)}{2} \exp\Bigl( -\frac{\varepsilon}{8\sigma^2}
              \frac{T-K}{\overline{\log}(K)\,H_2(T)} \Bigr)

    The proof supports 16 in the place of 8: its last step bounds the *difference* of two window
    means with the noise of one. `proved_error_bound` counts both.

    >>> round(error_bound([0, 0.5], budget=402, noise=0.5, window=0.25), 12)  # exp(-400/64)
    0.001930454136
    """
    cx.need(noise=noise, window=window)
    arms = len(cx.as_gaps(gaps))
    _need_phases(arms, budget)
    signal = float(cx.signal_to_noise(np.array(cx.h2(gaps) ** -0.5), noise))  # 1 / (sigma^2 H_2)
    exponent = -window / 8 * (budget - arms) / log_bar(arms) * signal
    return arms * (arms - 1) / 2 * cx.exponential(exponent)


def proved_error_bound(gaps: ArrayLike, budget: int, noise: float, window: float) -> float:
    r"""Return the error probability by the proof of Thm 2, for the noise of both whole windows.

    .. math:: e_T \le \sum_{j=1}^{K-1} \sum_{i=K+1-j}^{K}
              \exp\Bigl( -\frac{h_j \Delta_{(i)}(T)^2}{16 \sigma^2} \Bigr),
              \qquad h_j = \max(1, \lfloor \varepsilon N_j \rfloor)

    The difference of two means of h rewards is sub-Gaussian with 2 sigma^2 / h, and must exceed
    Delta/2: exp(-(Delta/2)^2 / (2 * 2 sigma^2 / h)). Holds under Thm 2's condition
    (`phase_condition`).

    >>> round(proved_error_bound([0, 0.5], budget=402, noise=0.5, window=0.25), 9)  # exp(-50 / 16)
    0.043936934
    """
    cx.need(noise=noise, window=window)
    ordered = cx.as_gaps(gaps)
    _need_phases(len(ordered), budget)
    signal = cx.signal_to_noise(ordered, noise)
    windows = [max(1, window_length(window, n)) for n in phase_lengths(len(ordered), budget)]
    return float(sum(np.sum(np.exp(-h / 16 * signal[-j:])) for j, h in enumerate(windows, 1)))


def simple_regret_bound(curves: ArrayLike, budget: int, noise: float, window: float) -> float:
    r"""Return the bound :math:`r_T \le e_T + \mu_{i^*}(T) - \mu_{i^*}(N_{K-1})` on simple regret.

    [Mussi24, Thm 2].

    With the printed error bound for e_T; for rewards in [0, 1], under `phase_condition`. What is
    left of the budget goes to the last arm here, so its last pull is the N_{K-1}-th or later.

    >>> late = [[n / (n + 3) for n in range(1, 403)], [0.5] * 402]
    >>> round(simple_regret_bound(late, 402, noise=0.0, window=0.25), 6)  # 402/405 - 200/203
    0.007371
    """
    means = cx.as_problem(curves, budget)
    _need_phases(len(means), budget)
    best = means[cx.best_arm(means, budget)]
    error = error_bound(cx.gaps(means, budget), budget, noise, window)
    return error + float(best[budget - 1] - best[phase_lengths(len(means), budget)[-1] - 1])


def simple_regret_bound_polynomial(
    gaps: ArrayLike, budget: int, noise: float, window: float, beta: float, c: float
) -> float:
    r"""Return the bound :math:`r_T \le e_T + c\,4^\beta T^{1-\beta}\,\overline{\log}(K)^\beta`.

    [Mussi24, Cor. 2], for budgets of at least `minimum_budget`.

    >>> # 0.5 * 4^2 / 400
    >>> simple_regret_bound_polynomial([0, 0.5], 400, noise=0.0, window=0.25, beta=2, c=0.5)
    0.02
    """
    cx.need(beta=beta, c=c)
    arms = len(cx.as_gaps(gaps))
    late = c * cx.power(4 * log_bar(arms), beta) * cx.power(budget, 1 - beta)
    return error_bound(gaps, budget, noise, window) + late


def _need_phases(arms: int, budget: int) -> None:
    why = "its phases share out T - K"
    require(budget > arms, "budget", budget, f"above the {arms} arms", why)
