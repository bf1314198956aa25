"""Estimates with 95 % intervals, Student's quantiles, and noise from second differences.

They need only one special function, the incomplete beta integral, and so no SciPy. Intervals are
computed from integers: numbers of trials, numbers of errors, sums and sums of squares.
"""

from collections.abc import Iterable
from functools import cache
from math import exp, expm1, inf, lgamma, log, log1p, nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.core.kernel import kernel
from latebloomer.errors import SettingError

Z = 1.959963984540054  # P(|N(0, 1)| > Z) = 0.05
TINY = 1e-300  # replaces 0 in divisions
FINE = 1e-15


class Estimate(NamedTuple):
    """A value and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def share(count: int, of: int) -> Estimate:
    r"""Estimate a probability from `count` successes in `of` trials, with Wilson's score interval.

    .. math:: \frac{\hat p + \frac{z^2}{2n} \pm z \sqrt{\frac{\hat p (1 - \hat p)}{n}
              + \frac{z^2}{4 n^2}}}{1 + z^2 / n}

    Without any success, the upper end is the exact one-sided 95 % bound :math:`1 - 0.05^{1/n}`,
    the rule of three (about 3/n). If all trials are successes, the same holds for the lower end.

    >>> share(0, 100)  # 1 - 0.05^(1/100)
    Estimate(value=0.0, low=0.0, high=0.0295...)
    >>> share(5, 100)
    Estimate(value=0.05, low=0.0215..., high=0.1117...)
    """
    if count == 0:
        return Estimate(0.0, 0.0, -expm1(log(0.05) / of))
    if count == of:
        return Estimate(1.0, 0.05 ** (1 / of), 1.0)
    p, bend = count / of, Z * Z / of
    middle = (p + bend / 2) / (1 + bend)
    half = Z * sqrt(p * (1 - p) / of + bend / (4 * of)) / (1 + bend)
    return Estimate(p, middle - half, middle + half)


def mean(total: int, squares: int, of: int) -> Estimate:
    """Estimate a mean from the sum and the sum of squares of `of` numbers, by Student's interval.

    It uses only the observed spread: it has no width if all numbers are equal, and a single number
    has no interval.

    >>> mean(6, 14, 3)  # 1, 2 and 3: 2 +- 4.3027 / sqrt(3)
    Estimate(value=2.0, low=-0.484..., high=4.484...)
    """
    if of < 2:
        return Estimate(total / of, nan, nan)
    spread = of * squares - total * total  # of (of - 1) times the sample variance
    half = student(of - 1) * sqrt(spread / (of * (of - 1)) / of)
    return Estimate(total / of, total / of - half, total / of + half)


def paired_share(only_first: int, only_second: int, of: int) -> Estimate:
    r"""Estimate the difference of two probabilities from the same `of` trials.

    It is Wald's interval after adding 1/2 to each of the four counts of the paired table (Agresti
    and Min, 2005). With :math:`n' = n + 2` and the counts b, c of the trials in which only the
    first or only the second succeeded,

    .. math:: \frac{b - c}{n'} \pm \frac{z}{n'} \sqrt{b + c + 1 - \frac{(b - c)^2}{n'}}

    >>> paired_share(12, 2, 100)
    Estimate(value=0.1, low=0.0260..., high=0.1699...)
    """
    more, n = only_first - only_second, of + 2
    half = Z / n * sqrt(only_first + only_second + 1 - more * more / n)
    return Estimate(more / of, max(-1.0, more / n - half), min(1.0, more / n + half))


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the p-value of McNemar's exact test that both are right equally often.

    It is the two-sided binomial test: twice the smaller tail of the trials in which only one was
    right, and at most 1.

    >>> round(mcnemar(1, 9), 12)  # 2 (1 + 10) / 2^10
    0.021484375
    """
    few, many = sorted((only_first, only_second))
    if few == many:
        return 1.0
    return min(1.0, 2 * beta_share(many, few + 1, 0.5))  # P(B <= few), B ~ Bin(few + many, 1/2)


@cache
def student(df: int) -> float:
    """Return the 97.5 % quantile q of Student's t: P(|t| > q) = 0.05.

    >>> round(student(10), 4)
    2.2281
    """
    if df > 200:  # the next term is below 1e-9
        return _cornish_fisher(Z, float(df), terms=3)
    low, high = 1.0, 13.0
    for _ in range(50):  # 12 / 2^50 is below 1e-14
        t = (low + high) / 2
        both_tails = beta_share(df / 2, 0.5, df / (df + t * t))
        low, high = (t, high) if both_tails > 0.05 else (low, t)
    return t


def student_tail(tail: float, freedom: float) -> float:
    """Return the value that Student's t exceeds with probability `tail`.

    The degrees of freedom may be any positive number. It uses no search, so it is less exact than
    `student`: the error is below 0.2 % for at least 10 degrees of freedom; in the far tail with 5,
    the value is 7 % too low.

    >>> [round(student_tail(*case), 2) for case in ((0.025, 10), (0.001, 30))]  # 2.228, 3.385
    [2.23, 3.39]
    """
    return _cornish_fisher(_normal_quantile(1 - tail), freedom, terms=4)


def _cornish_fisher(z: float, freedom: float, terms: int) -> float:
    """Return Student's quantile from the Gaussian quantile z (Abramowitz and Stegun 26.7.5)."""
    series = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    value = z
    for power, term in enumerate(series[:terms], start=1):
        value += term / freedom**power
    return value


def beta_share(a: float, b: float, x: float) -> float:
    r"""Return the regularized incomplete beta integral :math:`I_x(a, b)`.

    It is computed by its continued fraction, on the side of the mean where it converges fast.

    >>> round(beta_share(2, 3, 0.5), 12)  # P(B >= 2), B ~ Bin(4, 1/2) = 11/16
    0.6875
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - beta_share(b, a, 1 - x)
    front = a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)
    return exp(front) / (a * _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """Return 1 + d1/(1 + d2/(1 + ...)) of the incomplete beta integral, by Lentz's method."""
    value, c, d, m = 1.0, 1.0, 0.0, 0
    change = inf
    while abs(change - 1) > FINE:
        k = m // 2
        if m % 2 == 0:
            step = -(a + k) * (a + b + k) * x / ((a + m) * (a + m + 1))
        else:
            step = (k + 1) * (b - k - 1) * x / ((a + m) * (a + m + 1))
        d = 1 / (1 + step * d or TINY)
        c = 1 + step / c or TINY
        change, m = c * d, m + 1
        value *= change
    return value


# --- noise from second differences, on which a smooth curve has little effect ---


@kernel
def second_difference(new: float, middle: float, old: float) -> float:
    """Return the second difference of three rewards in a row.

    For independent noise its variance is (1 + 4 + 1) sigma^2.

    >>> second_difference(0.5, 0.25, 0.5)
    0.5
    """
    return new - 2.0 * middle + old


@kernel
def noise_variance(sum_of_squares: float, count: float) -> float:
    r"""Return the noise variance from m = `count` second differences :math:`d` of rewards.

    .. math:: \hat\sigma^2 = \sum d^2 / (6 m)

    >>> noise_variance(sum_of_squares=1.5, count=25)
    0.01
    """
    return sum_of_squares / (6.0 * count)


def pooled_noise(rewards: Iterable[ArrayLike]) -> float:
    """Estimate the noise level from the second differences of all arms' rewards.

    A smooth curve has almost no effect on it (the error is 1e-4 on the recorded IMDB curves).

    Parameters
    ----------
    rewards : Iterable[ArrayLike]
        Rewards of each arm, in order.

    Returns
    -------
    float
        Standard deviation of the noise.

    Examples
    --------
    >>> pooled_noise([[0.0, 1.0, 0.0], [2.0]])  # d = -2: sqrt(4 / 6)
    0.816496580927726
    """
    pieces = [np.diff(np.asarray(x, dtype=np.float64), n=2) for x in rewards]
    bends = np.concatenate([d for d in pieces if d.size] or [np.empty(0)])
    if bends.size == 0:
        raise SettingError(
            "noise=None, but noise must be a number here: no arm has the three rewards that an "
            "estimate needs"
        )
    return sqrt(noise_variance(float(np.mean(bends**2)), 1))


def noise_freedom(differences: int) -> float:
    """Return the degrees of freedom of a noise level from second differences of one arm.

    The differences overlap: their squares have the lag correlations (2/3)^2 and (1/6)^2. So k of
    them have k / (1 + 2 (4/9 + 1/36)) = 18 k / 35 degrees of freedom.
    """
    return 18 * differences / 35


def noise_margin(tail: float, bends: int) -> float:
    r"""Return a factor: an estimated noise level times it is too low with probability `tail`.

    With k second differences the variance has about f = 18 k / 35 degrees of freedom, and
    :math:`\sigma^2 \le \hat\sigma^2 f / \chi^2_{tail}(f)`. The quantile is by Wilson and Hilferty.

    >>> round(noise_margin(0.05, 35), 3)  # f = 18: sqrt(18 / 9.390)
    1.385
    """
    f = noise_freedom(bends)
    z = _normal_quantile(tail)
    quantile = f * (1 - 2 / (9 * f) + z * sqrt(2 / (9 * f))) ** 3
    return sqrt(f / quantile) if quantile > 0 else inf


def _normal_quantile(p: float) -> float:
    # Imported here, because it is slow to import and rarely needed.
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)
