"""The paper's window estimates: the effects of noise and curvature on them [Mussi24].

The pessimistic estimate is the mean of an arm's latest window. The optimistic estimate adds the
growth between two windows, extrapolated to the horizon. A width bounds the effect of noise, and a
bias bounds the effect of the curve's bend. A weight is the sum of the squared weights of the
noise.
"""

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.errors import require
from latebloomer.theory import complexity as cx
from latebloomer.theory.complexity import Floats, Ints


def pessimistic_width(noise: float, exploration: float, pulls: ArrayLike, window: float) -> Floats:
    r"""Return the width :math:`\hat\beta(n) = \sigma \sqrt{a / h(n)}` [Mussi24, Lemma 1].

    Parameters
    ----------
    noise : float
        The sub-Gaussian level sigma of the rewards.
    exploration : float
        Exploration parameter a of R-UCBE.
    pulls : ArrayLike
        Number n of pulls of the arm; a number or an array of numbers.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.

    Returns
    -------
    Floats
        One number for each pull count.

    Examples
    --------
    >>> float(pessimistic_width(noise=0.5, exploration=4, pulls=16, window=0.25))
    0.5
    """
    cx.need(noise=noise, exploration=exploration)
    h = window_lengths(pulls, window)
    return _where_seen(h, noise * np.sqrt(exploration / _at_least_one(h)))


def optimistic_width(
    noise: float, exploration: float, pulls: ArrayLike, horizon: int, window: float
) -> Floats:
    r"""Return the width :math:`\check\beta(n) = \sigma (T-n+h-1) \sqrt{a / h^3}`.

    [Mussi24, Lemma 2].

    Parameters
    ----------
    noise : float
        The sub-Gaussian level sigma of the rewards.
    exploration : float
        Exploration parameter a of R-UCBE.
    pulls : ArrayLike
        Number n of pulls of the arm; a number or an array of numbers.
    horizon : int
        Number of pulls per arm at which arms are compared.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.

    Returns
    -------
    Floats
        One number for each pull count.

    Examples
    --------
    >>> float(optimistic_width(noise=0.5, exploration=4, pulls=16, horizon=25, window=0.25))
    1.5
    """
    cx.need(noise=noise, exploration=exploration)
    n, h = _counts(pulls, horizon), window_lengths(pulls, window)
    reach = horizon - n + h - 1
    return _where_seen(h, noise * reach * np.sqrt(exploration / _at_least_one(h) ** 3))


def pessimistic_bias(curve: ArrayLike, pulls: ArrayLike, horizon: int, window: float) -> Floats:
    r"""Return the bias :math:`\hat\zeta(n) = \frac12 (2T - 2n + h - 1)\, \gamma(n - h + 1)`.

    [Mussi24, Lemma 1].

    The lemma has 2T - n, but its appendix has 2T - 2n, which is right: over the window, T - l sums
    to h (2T - 2n + h - 1) / 2. `curve` must reach pull n - h + 2.

    Parameters
    ----------
    curve : ArrayLike
        Means of one arm, by pull.
    pulls : ArrayLike
        Number n of pulls of the arm; a number or an array of numbers.
    horizon : int
        Number of pulls per arm at which arms are compared.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.

    Returns
    -------
    Floats
        One number for each pull count.

    Examples
    --------
    >>> curve = [0.0, 0.25, 0.5, 0.625, 0.75]
    >>> float(pessimistic_bias(curve, 4, horizon=8, window=0.25))  # 4 gamma(4)
    0.5
    """
    h = window_lengths(pulls, window)
    return _bias(curve, pulls, horizon, h, h)


def optimistic_bias(curve: ArrayLike, pulls: ArrayLike, horizon: int, window: float) -> Floats:
    r"""Return the bias :math:`\check\zeta(n) = \frac12 (2T - 2n + h - 1)\, \gamma(n - 2h + 1)`.

    [Mussi24, Lemma 2].

    As in `pessimistic_bias`, 2T - 2n is from the appendix; the lemma has 2T - n.

    Parameters
    ----------
    curve : ArrayLike
        Means of one arm, by pull.
    pulls : ArrayLike
        Number n of pulls of the arm; a number or an array of numbers.
    horizon : int
        Number of pulls per arm at which arms are compared.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.

    Returns
    -------
    Floats
        One number for each pull count.

    Examples
    --------
    >>> float(optimistic_bias([0.0, 0.25, 0.5, 0.625], 4, horizon=8, window=0.25))  # 4 gamma(3)
    0.5
    """
    h = window_lengths(pulls, window)
    return _bias(curve, pulls, horizon, h, 2 * h)


def pessimistic_weight(pulls: ArrayLike, window: float) -> Floats:
    """Return the sum of the squared weights of the noise in the pessimistic estimate: 1/h.

    Parameters
    ----------
    pulls : ArrayLike
        Number n of pulls of the arm; a number or an array of numbers.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.

    Returns
    -------
    Floats
        One number for each pull count.

    Examples
    --------
    >>> float(pessimistic_weight(16, window=0.25))
    0.25
    """
    h = window_lengths(pulls, window)
    return _where_seen(h, 1 / _at_least_one(h))


def optimistic_weight(pulls: ArrayLike, horizon: int, window: float) -> Floats:
    r"""Return the exact sum of the squared weights of the noise in the optimistic estimate.

    X_l has weight (1 + (T-l)/h)/h and X_{l-h} has -(T-l)/h^2, l = n-h+1, ..., n. (The proof of
    Lemma 2 has 1 - (T-l)/h, with a wrong sign; its bound 5 (T-n+h-1)^2 / h^3 holds only for n <
    T.) With d = T - n and the sums S_1, S_2 of T-l and (T-l)^2 over the window,

    .. math:: \frac{1}{h} + \frac{2 S_1}{h^3} + \frac{2 S_2}{h^4}, \qquad
              S_1 = h d + \tfrac{h(h-1)}{2}, \quad
              S_2 = h d^2 + d\,h(h-1) + \tfrac{(h-1)h(2h-1)}{6} .

    Parameters
    ----------
    pulls : ArrayLike
        Number n of pulls of the arm; a number or an array of numbers.
    horizon : int
        Number of pulls per arm at which arms are compared.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.

    Returns
    -------
    Floats
        One number for each pull count.

    Examples
    --------
    >>> float(optimistic_weight(4, horizon=6, window=0.25))  # h = 1, T-l = 2: (1+2)^2 + 2^2
    13.0
    """
    counts, d = window_lengths(pulls, window), horizon - _counts(pulls, horizon)
    h = _at_least_one(counts)
    first = d + (h - 1) / 2
    second = d**2 + d * (h - 1) + (h - 1) * (2 * h - 1) / 6
    return _where_seen(counts, 1 / h + 2 * first / h**2 + 2 * second / h**3)


def window_lengths(pulls: ArrayLike, window: float) -> Ints:
    """Return h(n) = floor(eps n) for each count: the `window_length`.

    >>> window_lengths([3, 4, 11], window=0.25)
    array([0, 1, 2])
    """
    cx.need(window=window)
    return np.floor(window * np.asarray(pulls)).astype(np.int64)


def _counts(pulls: ArrayLike, horizon: int) -> Floats:
    cx.need(horizon=horizon)
    n = np.asarray(pulls, dtype=np.float64)
    require(
        bool(np.all((n >= 0) & (n <= horizon))),
        "pulls",
        n.tolist(),
        f"in [0, {horizon}]",
        "an estimate at the horizon uses rewards up to the horizon",
    )
    return n


def _at_least_one(h: Ints) -> Floats:
    return np.maximum(h, 1).astype(np.float64)


def _where_seen(h: Ints, value: Floats) -> Floats:
    """Return the values, with infinity for each empty window."""
    return np.where(h > 0, value, np.inf)


def _bias(curve: ArrayLike, pulls: ArrayLike, horizon: int, h: Ints, back: Ints) -> Floats:
    """Return (2T - 2n + h - 1)/2 times gamma(n - back + 1)."""
    n = _counts(pulls, horizon)
    at = np.where(h > 0, n - back + 1, 1).astype(np.int64)
    means = cx.as_curves(np.asarray(curve, dtype=np.float64)[None], int(np.max(at)) + 1)[0]
    return _where_seen(h, (2 * horizon - 2 * n + h - 1) / 2 * np.diff(means)[at - 1])
