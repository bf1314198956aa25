"""How hard a problem is: gaps at the budget and the complexity indexes made of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.errors import require
from latebloomer.theory.inputs import Floats, Ints, as_gaps, as_problem

TIE = 1e-12  # means closer than this differ by rounding only (curves are of order 1)


def best_arm(curves: ArrayLike, budget: int, tie: float = 0.0) -> int:
    r"""Return the arm :math:`i^*(T) = \arg\max_i \mu_i(T)`, the lowest index on ties.

    [Mussi24, Sec. 2].

    Means apart by no more than `tie` count as equal.

    Parameters
    ----------
    curves : ArrayLike
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull.
    budget : int
        T, the total number of pulls.
    tie : float
        Means apart by no more than this count as equal.

    Returns
    -------
    int
        Its number.

    Examples
    --------
    >>> curves = [[0.0, 0.5, 0.9], [0.4, 0.6, 0.7]]
    >>> best_arm(curves, budget=2), best_arm(curves, budget=3)
    (1, 0)
    """
    return int(best_arms(as_problem(curves, budget)[:, budget - 1 : budget], tie)[0])


def best_arms(means: Floats, tie: float = 0.0) -> Ints:
    """Return i*(T) by column of a table of means, whose columns are budgets.

    In setting A the arms 0 and 1 tie exactly at 188; in floating point they need not.

    Parameters
    ----------
    means : Floats
        A row for each arm, a column for each budget.
    tie : float
        Means apart by no more than this count as equal.

    Returns
    -------
    Ints
        An arm for each column.

    Examples
    --------
    >>> best_arms(np.array([[0.0, 0.5, 0.9], [0.4, 0.6, 0.7]]))
    array([1, 1, 0])
    """
    return np.argmax(means >= np.max(means, axis=0) - tie, axis=0)


def gaps(curves: ArrayLike, budget: int) -> Floats:
    r"""Return the gaps :math:`\Delta_i(T) = \mu_{i^*(T)}(T) - \mu_i(T)`, 0 for the best arm.

    [Mussi24, Sec. 2].

    Parameters
    ----------
    curves : ArrayLike
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull.
    budget : int
        T, the total number of pulls.

    Returns
    -------
    Floats
        One for each arm.

    Examples
    --------
    >>> gaps([[0.0, 0.5, 0.75], [0.25, 0.5, 0.5]], budget=3)
    array([0.  , 0.25])
    """
    last = as_problem(curves, budget)[:, budget - 1]
    return np.max(last) - last


def h1(gaps: ArrayLike, eta: float = 2.0) -> float:
    r"""Return the complexity :math:`H_{1,\eta}(T) = \sum_{i \ne i^*(T)} \Delta_i(T)^{-\eta}`.

    [Mussi24, Eq. (complxIndex)]. Infinite when a second arm is as good as the best.

    Parameters
    ----------
    gaps : ArrayLike
        One for each arm, 0 for the best.
    eta : float
        The exponent.

    Returns
    -------
    float
        The complexity.

    Examples
    --------
    >>> h1([0, 0.5, 0.25])  # 2^2 + 4^2
    20.0
    """
    return float(np.sum(_inverse_powers(gaps, eta)))


def h2(gaps: ArrayLike, eta: float = 2.0) -> float:
    r"""Return :math:`H_{2,\eta}(T) = \max_{2 \le i \le K} i\,\Delta_{(i)}(T)^{-\eta}`.

    [Mussi24, Lemma lem:lemlem]; :math:`H_2` of Thm 2 is the case eta = 2. Thm 2 writes the
    maximum over all of [K], but Delta_(1) = 0: it starts at the second-best arm.

    The lemma's :math:`H_{2,\eta} \le H_{1,\eta} \le \overline{\log}(K) H_{2,\eta}` comes from
    Audibert et al. (2010), whose :math:`H_1` counts the smallest gap twice. With the sum over
    :math:`i \ne i^*` only, the left side needs a factor: :math:`H_{2,\eta} \le 2 H_{1,\eta}`
    (equality for two arms). The right side holds for every eta > 0, even with log_bar - 1/2.

    Parameters
    ----------
    gaps : ArrayLike
        One for each arm, 0 for the best.
    eta : float
        The exponent.

    Returns
    -------
    float
        The complexity.

    Examples
    --------
    >>> h2([0, 0.5, 0.25])  # max(2 * 4^2, 3 * 2^2)
    32.0
    """
    terms = _inverse_powers(gaps, eta)
    return float(np.max(np.arange(2, len(terms) + 2) * terms))


def _inverse_powers(gaps: ArrayLike, eta: float) -> Floats:
    """Return Delta_(i)^-eta for i = 2, ..., K."""
    require(eta > 0, "eta", eta, "above 0", "a smaller gap must count for more")
    with np.errstate(divide="ignore", over="ignore"):  # a tie makes the problem infinitely hard
        return as_gaps(gaps)[1:] ** -eta
