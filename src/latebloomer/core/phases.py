"""Phases of successive rejects: the pulls of each remaining arm when a phase ends."""

import math
from functools import lru_cache

from latebloomer.errors import BudgetError, require


def log_bar(arms: int) -> float:
    r"""Return the constant :math:`\overline{\log}(K) = \frac12 + \sum_{i=2}^K \frac1i`.

    It sets the lengths of the phases of successive rejects [Mussi24, below Eq.
    (chosen_values_nj)].

    Parameters
    ----------
    arms : int
        K, the number of arms.

    Returns
    -------
    float
        The constant.

    Examples
    --------
    >>> log_bar(3)  # 1/2 + 1/2 + 1/3
    1.3333333333333333
    """
    require(arms >= 1, "arms", arms, "at least 1", "the sum runs over the arms")
    return math.fsum([0.5, *(1 / i for i in range(2, arms + 1))])


def phase_lengths(arms: int, budget: int) -> list[int]:
    r"""Return the pulls :math:`N_1 \le \dots \le N_{K-1}` of each remaining arm after phase j.

    .. math:: N_j = \Bigl\lceil \frac{T - K}{\overline{\log}(K)\,(K + 1 - j)} \Bigr\rceil
              \qquad \text{[Mussi24, Eq. (chosen_values_nj)]}

    The ceiling is exact: if the quotient is an integer, rounding does not add one.

    Parameters
    ----------
    arms : int
        K, the number of arms.
    budget : int
        T, the total number of pulls.

    Returns
    -------
    list[int]
        Number of pulls for each phase.

    Examples
    --------
    >>> phase_lengths(arms=3, budget=12)  # log_bar = 4/3: ceil(9 / 4), ceil(27 / 8)
    [3, 4]
    """
    require(arms >= 2, "arms", arms, "at least 2", "there is nothing to reject from one arm")
    if budget < arms:
        raise BudgetError(
            f"budget={budget} for {arms} arms, but successive rejects needs {arms}: "
            "its phases divide the pulls that remain after one pull of each arm"
        )
    spare, approximate = budget - arms, log_bar(arms)
    return [_phase_length(arms, spare, approximate, k) for k in range(arms, 1, -1)]


def _phase_length(arms: int, spare: int, approximate: float, survivors: int) -> int:
    quotient = spare / (approximate * survivors)
    # The float has a relative error of a few 10^-16. Only so near to an integer can the ceiling be
    # wrong, and only then is exact arithmetic with long integers worth its cost.
    if abs(quotient - round(quotient)) > 1e-12 * (1 + quotient):
        return math.ceil(quotient)
    top, bottom = _log_bar_exact(arms)
    return -(-spare * bottom // (top * survivors))


@lru_cache(maxsize=8)
def _log_bar_exact(arms: int) -> tuple[int, int]:
    """Return the numerator and the denominator of log_bar(arms), not reduced."""
    top, bottom = _harmonic(1, arms + 1)
    return 2 * top - bottom, 2 * bottom  # 1/2 + (1/2 + ... + 1/K) = H_K - 1/2


def _harmonic(first: int, end: int) -> tuple[int, int]:
    """Return 1/first + ... + 1/(end - 1) as a fraction, by halves to keep integers small."""
    if end - first == 1:
        return 1, first
    middle = (first + end) // 2
    (p, q), (r, s) = _harmonic(first, middle), _harmonic(middle, end)
    return p * s + r * q, q * s
