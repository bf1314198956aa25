"""Properties of curves: gaps and complexity at a budget, and the paper's assumptions.

Curves are an array of shape (K, L): ``curves[i, n - 1]`` is mu_i(n), the mean of the n-th pull of
arm i, n = 1, ..., L. A function that also has a budget accepts a `Problem` in place of curves.
Gaps are an array of length K that includes the 0 of the best arm. The arguments of all functions
of this package are checked here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latebloomer.errors import BudgetError, CurveError, need_in, need_whole, require

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
TIE = 1e-12  # closer means differ only by rounding (curves are of order 1)


@runtime_checkable
class HasMeans(Protocol):
    """An object such as a `Problem`, which has the means of every arm up to a budget."""

    def means(self, budget: int) -> Floats:
        """Return the table (arms, budget) of the means of the pulls 1 to `budget`."""


Curves: TypeAlias = ArrayLike | HasMeans


def best_arm(curves: Curves, budget: int, tie: float = 0.0) -> int:
    r"""Return the best arm :math:`i^*(T) = \arg\max_i \mu_i(T)`; the lowest index wins ties.

    [Mussi24, Sec. 2].

    Means apart by no more than `tie` count as equal.

    Parameters
    ----------
    curves : ArrayLike
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull.
    budget : int
        Total number of pulls, T.
    tie : float
        Means apart by no more than this count as equal.

    Returns
    -------
    int
        The number of the best arm.

    Examples
    --------
    >>> curves = [[0.0, 0.5, 0.9], [0.4, 0.6, 0.7]]
    >>> best_arm(curves, budget=2), best_arm(curves, budget=3)
    (1, 0)
    """
    return int(best_arms(as_problem(curves, budget)[:, budget - 1 : budget], tie)[0])


def best_arms(means: Floats, tie: float = 0.0) -> Ints:
    """Return i*(T) for each column of a table of means; the columns are budgets.

    In setting A the arms 0 and 1 tie exactly at T = 188, but not necessarily in floating point.

    Parameters
    ----------
    means : Floats
        Table of means with a row per arm and a column per budget.
    tie : float
        Means apart by no more than this count as equal.

    Returns
    -------
    Ints
        The best arm for each column.

    Examples
    --------
    >>> best_arms(np.array([[0.0, 0.5, 0.9], [0.4, 0.6, 0.7]]))
    array([1, 1, 0])
    """
    return np.argmax(means >= np.max(means, axis=0) - tie, axis=0)


def gaps(curves: Curves, budget: int) -> Floats:
    r"""Return the gaps :math:`\Delta_i(T) = \mu_{i^*(T)}(T) - \mu_i(T)`, 0 for the best arm.

    [Mussi24, Sec. 2].

    Parameters
    ----------
    curves : ArrayLike
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull.
    budget : int
        Total number of pulls, T.

    Returns
    -------
    Floats
        One number per arm.

    Examples
    --------
    >>> gaps([[0.0, 0.5, 0.75], [0.25, 0.5, 0.5]], budget=3)
    array([0.  , 0.25])
    """
    return _gaps_at(curves, budget)


def _gaps_at(curves: Curves, budget: int) -> Floats:
    last = as_problem(curves, budget)[:, budget - 1]
    return np.max(last) - last


def best_increments(means: Floats, budget: int) -> Floats:
    """Return gamma_(1)(n) of the best arm for n = 0, ..., T - 1; n = 0 is unknown: infinite."""
    return np.diff(means[best_arm(means, budget), :budget], prepend=-np.inf)


def h1(gaps: ArrayLike, eta: float = 2.0) -> float:
    r"""Return the complexity :math:`H_{1,\eta}(T) = \sum_{i \ne i^*(T)} \Delta_i(T)^{-\eta}`.

    [Mussi24, Eq. (complxIndex)]. It is infinite if a second arm is as good as the best.

    Parameters
    ----------
    gaps : ArrayLike
        Gaps of the arms, 0 for the best arm.
    eta : float
        The exponent, above 0.

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

    [Mussi24, Lemma lem:lemlem]; :math:`H_2` of Thm 2 is the case eta = 2. In Thm 2 the maximum is
    over all of [K]; since Delta_(1) = 0, it must start at the second-best arm.

    The lemma's :math:`H_{2,\eta} \le H_{1,\eta} \le \overline{\log}(K) H_{2,\eta}` comes from
    Audibert et al. (2010), in whose :math:`H_1` the smallest gap counts twice. Here the sum is
    only over :math:`i \ne i^*`, so the left inequality needs a factor: :math:`H_{2,\eta} \le 2
    H_{1,\eta}` (with equality for two arms). The right inequality holds for every eta > 0, even
    with log_bar - 1/2.

    Parameters
    ----------
    gaps : ArrayLike
        Gaps of the arms, 0 for the best arm.
    eta : float
        The exponent, above 0.

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
    with np.errstate(divide="ignore", over="ignore"):  # the complexity is infinite if arms tie
        return as_gaps(gaps)[1:] ** -eta


# --- the paper's assumptions ---


@dataclass(frozen=True)
class Violation:
    """The first violation of an assumption by a curve, and its size.

    Attributes
    ----------
    arm : int
        Number of the arm.
    pull : int
        Pull n at which the violation occurs.
    amount : float
        Size of the violation.
    """

    arm: int
    pull: int
    amount: float


Found: TypeAlias = list[Violation | None]  # by arm


def increments(curves: Curves, budget: int | None = None) -> Floats:
    r"""Return the increments :math:`\gamma_i(n) = \mu_i(n+1) - \mu_i(n)`, n = 1, ..., L - 1.

    [Mussi24, Assumption 1].

    The paper also speaks of gamma_i(0). No pull shows mu_i(0), so curves do not contain it. Under
    Assumption 1, gamma_i(0) is at least gamma_i(1) and has no upper bound. Functions in this
    package that need it use infinity, which is always safe.

    Parameters
    ----------
    curves : Curves
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull; or a
        `Problem`.
    budget : int | None
        Last pull that counts; needed for a `Problem` whose curves have no end. Default: all.

    Returns
    -------
    Floats
        Table of increments, with one column less than pulls.

    Examples
    --------
    >>> increments([[0.0, 0.5, 0.75]])
    array([[0.5 , 0.25]])
    """
    return np.diff(as_curves(curves, budget)[:, :budget], axis=1)


def violations(
    curves: Curves, tolerance: float = 1e-12, budget: int | None = None
) -> tuple[Found, Found]:
    """Return, for each arm, where it first falls and first bends up [Mussi24, Assumption 1].

    Parameters
    ----------
    curves : Curves
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull; or a
        `Problem`.
    tolerance : float
        Largest violation that counts as rounding, at least 0.
    budget : int | None
        Last pull that counts; needed for a `Problem` whose curves have no end. Default: all.

    Returns
    -------
    tuple
        Two lists, with None for arms without a violation.

    Examples
    --------
    >>> falls, bends_up = violations([[0.0, 0.5, 0.75], [0.0, 0.25, 0.75]])
    >>> falls, bends_up
    ([None, None], [None, Violation(arm=1, pull=1, amount=0.25)])
    """
    need_in("tolerance", tolerance, "[0, inf)", "it is the largest violation to forgive")
    steps = increments(curves, budget)
    return _first(-steps, tolerance), _first(np.diff(steps, axis=1), tolerance)


def smallest_c(curves: Curves, beta: float, budget: int | None = None) -> float:
    r"""Return the smallest c with :math:`\gamma_i(n) \le c\,n^{-\beta}` for all arms and n >= 1.

    [Mussi24, Assumption 2].

    At n = 0 the assumption is gamma_i(0) <= infinity, which always holds. The result is for the
    pulls that the curves cover; a longer curve may need a larger c. It is 0 for curves that never
    rise.

    Parameters
    ----------
    curves : Curves
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull; or a
        `Problem`.
    beta : float
        Increments are at most c n^-beta.
    budget : int | None
        Last pull that counts; needed for a `Problem` whose curves have no end. Default: all.

    Returns
    -------
    float
        The smallest constant c.

    Examples
    --------
    >>> smallest_c([[0.0, 0.5, 0.75]], beta=2)  # max(0.5 * 1, 0.25 * 4)
    1.0
    """
    need(beta=beta)
    steps = increments(curves, budget)
    pulls = np.arange(1, steps.shape[1] + 1, dtype=np.float64)
    return float(np.max(steps * pulls**beta, initial=0.0))


def largest_beta(curves: Curves, c: float, budget: int | None = None) -> float | None:
    r"""Return the largest beta with :math:`\gamma_i(n) \le c\,n^{-\beta}` for all arms and n >= 1.

    [Mussi24, Assumption 2].

    At n = 1 the assumption is gamma_i(1) <= c for every beta; the result is None if this fails. It
    is infinite if no curve rises after its second pull. Assumption 2 requires beta > 1, so it does
    not hold with this c if the result is at most 1.

    Parameters
    ----------
    curves : Curves
        Table of means, one row per arm: `curves[i, n - 1]` is the mean of arm i's n-th pull; or a
        `Problem`.
    c : float
        Increments are at most c n^-beta.
    budget : int | None
        Last pull that counts; needed for a `Problem` whose curves have no end. Default: all.

    Returns
    -------
    float | None
        The largest beta, or None if there is none.

    Examples
    --------
    >>> largest_beta([[0.0, 0.5, 0.75]], c=1.0)  # 0.25 = 2^-2
    2.0
    >>> largest_beta([[0.0, 0.5, 0.75]], c=0.4) is None  # gamma(1) = 0.5
    True
    """
    need(c=c)
    steep = np.max(increments(curves, budget), axis=0, initial=0.0)  # steepest arm at each n
    if len(steep) and steep[0] > c:
        return None
    later = np.flatnonzero(steep[1:] > 0) + 1  # index n - 1 for n >= 2
    return float(np.min(np.log(c / steep[later]) / np.log(later + 1.0), initial=math.inf))


def _first(excess: Floats, tolerance: float) -> Found:
    """Return, for each arm, its first entry above the tolerance; column n - 1 is pull n."""
    over = excess > tolerance
    first = np.argmax(over, axis=1).tolist() if over.size else [0] * len(over)
    return [
        Violation(arm, n + 1, float(excess[arm, n])) if over[arm].any() else None
        for arm, n in enumerate(first)
    ]


def rises_and_is_concave(means: Floats) -> bool:
    """Return whether Assumption 1 holds for every arm; row by row, to save memory."""
    for row in means:
        steps = np.diff(row)
        if np.min(steps, initial=0.0) < -TIE or np.max(np.diff(steps), initial=0.0) > TIE:
            return False
    return True


def first_budget(curves: Curves, most: int, needed: Callable[[Floats], Floats]) -> int | None:
    """Return the first T from 1 to `most` with T >= needed(gaps of the other arms at T).

    `needed` gets a table of sorted gaps without the best arm's 0, with a column for each T.
    """
    means = as_problem(curves, most)[:, :most]
    rivals = np.sort(np.max(means, axis=0) - means, axis=0)[1:]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        enough = np.flatnonzero(np.arange(1, most + 1) >= needed(rivals))
    return int(enough[0]) + 1 if len(enough) else None


def of_gaps(gaps: ArrayLike, needed: Callable[[Floats], Floats]) -> float:
    """Return `needed`, a function as in `first_budget`, for the gaps at one budget."""
    rivals = as_gaps(gaps)[1:, None]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return float(needed(rivals)[0])


def as_curves(curves: Curves, pulls: int | None = None) -> Floats:
    """Return curves as float64; raise an error unless they are finite and reach pull `pulls`."""
    if isinstance(curves, HasMeans):
        pulls = getattr(curves, "length", None) if pulls is None else pulls
        if pulls is None:
            raise CurveError(
                "curves are a Problem whose curves have no end: give budget=, or the table "
                "problem.means(budget)"
            )
        curves = curves.means(pulls)
    if isinstance(curves, str):
        raise CurveError(
            f"curves={curves!r} is a name, but a Problem or a table of means is needed: write "
            f"problem({curves!r}), with `from latebloomer.problems import problem`"
        )
    array = np.asarray(curves, dtype=np.float64)
    if array.ndim != 2 or array.size == 0:
        raise CurveError(
            f"curves have shape {array.shape}, but (arms, pulls) is needed: "
            "curves[i, n - 1] is the mean of the n-th pull of arm i"
        )
    if not np.isfinite(array).all():
        arm, n = np.argwhere(~np.isfinite(array))[0]
        raise CurveError(f"curves[{arm}, {n}] is {array[arm, n]}, but means must be finite")
    if pulls is not None and pulls > array.shape[1]:
        raise CurveError(
            f"curves end at pull {array.shape[1]}, but pull {pulls} is needed: "
            "give longer curves or a smaller budget"
        )
    return array


def as_problem(curves: Curves, budget: int) -> Floats:
    """Return curves; raise an error unless they have two arms or more and reach the budget."""
    need(budget=budget)
    array = as_curves(curves, budget)
    require(len(array) >= 2, "arms", len(array), "at least 2", "the best of one arm is known")
    return array


def as_gaps(gaps: Any, budget: int | None = None) -> Floats:
    """Return gaps in rising order, Delta_(1) = 0 first; for a `Problem`, the gaps at `budget`."""
    if isinstance(gaps, HasMeans):
        if budget is None:
            raise CurveError(
                "gaps are a Problem, but its gaps depend on the budget: give problem.gaps(budget)"
            )
        gaps = _gaps_at(gaps, budget)
    array = np.asarray(gaps, dtype=np.float64)
    needed = "two or more, finite, at least 0, and 0 for the best arm"
    right = array.ndim == 1 and array.size >= 2 and np.isfinite(array).all() and min(array) == 0
    require(bool(right), "gaps", array.tolist(), needed, "each is mu_best(T) - mu_i(T)")
    return np.sort(array)


INTERVALS = {  # allowed interval of each symbol, and its reason
    "window": ("(0, 0.5]", "an estimate uses two windows, which must fit into the rewards"),
    "noise": ("[0, inf)", "it is a scale, sigma"),
    "delta": ("(0, 1)", "it is a probability of being wrong"),
    "iota": ("[0, 1]", "it is the share of the budget promised to the best arm"),
    "beta": ("(1, inf)", "else increments n^-beta add up to infinity [Mussi24, Assumption 2]"),
    "c": ("(0, inf)", "increments are at most c n^-beta"),
    "exploration": ("[0, inf]", "it scales the bonus"),
}


def need(**values: float) -> None:
    """Raise an error unless each value is in the interval of its symbol, or a number of pulls."""
    for name, value in values.items():
        if name in INTERVALS:
            need_in(name, value, *INTERVALS[name])
        elif isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise BudgetError(f"{name}={value!r}, but {name} must be an integer >= 1: it is pulls")
        else:
            need_whole(name, value)  # small enough for a double


def exponential(exponent: float) -> float:
    """Return exp, with 0 for minus infinity and infinity instead of an overflow."""
    return math.exp(exponent) if exponent < 709 else math.inf


def power(base: float, exponent: float) -> float:
    """Return base ** exponent for base >= 0, infinite if a float cannot hold it."""
    require(base >= 0, "base", base, "at least 0", "real powers of negative numbers are not real")
    try:
        return float(base**exponent)
    except (OverflowError, ZeroDivisionError):
        return math.inf


def signal_to_noise(gaps: Floats, noise: float) -> Floats:
    """Return Delta^2 / sigma^2: 0 for no gap, infinite for a gap without noise."""
    if noise == 0:
        return np.where(gaps > 0, math.inf, 0.0)
    return (gaps / noise) ** 2
