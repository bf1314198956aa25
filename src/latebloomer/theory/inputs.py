"""What the functions of this package accept, checked in one place.

Curves are an array of shape (K, L): ``curves[i, n - 1]`` is mu_i(n), the mean of the n-th pull of
arm i, n = 1, ..., L. Gaps are an array of length K with the best arm's 0 in it.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latebloomer.errors import BudgetError, CurveError, SettingError, need_number, require

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


def as_curves(curves: ArrayLike, pulls: int = 1) -> Floats:
    """Return curves as float64, known to be finite and to reach pull number `pulls`."""
    array = np.asarray(curves, dtype=np.float64)
    if array.ndim != 2 or array.size == 0:
        raise CurveError(
            f"curves have shape {array.shape}, but (arms, pulls) is needed: "
            "curves[i, n - 1] is the mean of the n-th pull of arm i"
        )
    if not np.isfinite(array).all():
        arm, index = np.argwhere(~np.isfinite(array))[0]
        raise CurveError(
            f"curves[{arm}, {index}] is {array[arm, index]}, but every mean must be finite"
        )
    need_reach(array.shape[1], pulls)
    return array


def need_reach(length: int, pulls: int) -> None:
    """Raise unless curves of this length are known at pull number `pulls`."""
    if pulls > length:
        raise CurveError(
            f"curves end at pull {length}, but pull {pulls} is needed: "
            "give longer curves or a smaller budget"
        )


def as_problem(curves: ArrayLike, budget: int) -> Floats:
    """Return curves of at least two arms that reach the budget."""
    need_budget(budget)
    array = as_curves(curves, budget)
    require(len(array) >= 2, "arms", len(array), "at least 2", "the best of one arm is known")
    return array


def as_gaps(gaps: ArrayLike) -> Floats:
    """Return gaps in increasing order, Delta_(1) = 0 first."""
    array = np.asarray(gaps, dtype=np.float64)
    given = array.tolist()
    require(array.ndim == 1 and array.size >= 2, "gaps", given, "one number per arm, two or more",
            "a gap is a distance to the best of several arms")  # fmt: skip
    array = np.sort(array)
    require(
        bool(np.isfinite(array).all()) and array[0] == 0,
        "gaps",
        given,
        "finite, at least 0, and 0 for the best arm",
        "each is mu_best(T) - mu_i(T)",
    )
    return array


def need_budget(budget: int, name: str = "budget") -> None:
    """Raise unless the budget (or horizon, or length) is a whole number of pulls."""
    whole = isinstance(budget, int | np.integer) and not isinstance(budget, bool)
    if not whole or budget < 1:
        raise BudgetError(
            f"{name}={budget!r}, but {name} must be a whole number of pulls, 1 or more"
        )


def need_window(window: float, below_half: bool = False) -> None:
    """Raise unless the window is in (0, 1/2], or in (0, 1/2) where 1 - 2 eps divides."""
    if below_half:
        require(0 < window < 0.5, "window", window, "in (0, 1/2)",
                "the bound grows as (1 - 2 window)^-beta")  # fmt: skip
    require(0 < window <= 0.5, "window", window, "in (0, 1/2]",
            "an estimate looks at two windows, which must fit into the rewards")  # fmt: skip


def need_noise(noise: float) -> None:
    """Raise unless the noise level is a finite number, 0 or more."""
    need_number("noise", noise)
    require(0 <= noise < math.inf, "noise", noise, "finite and at least 0", "it is a scale, sigma")


def need_delta(delta: float) -> None:
    """Raise unless delta is a probability strictly between 0 and 1."""
    need_number("delta", delta)
    require(0 < delta < 1, "delta", delta, "in (0, 1)", "it is a probability of being wrong")


def need_share(iota: float) -> None:
    """Raise unless iota is in [0, 1]."""
    require(0 <= iota <= 1, "iota", iota, "in [0, 1]",
            "it is the share of the budget promised to the best arm")  # fmt: skip


def need_polynomial(beta: float, c: float | None = None) -> None:
    """Raise unless beta > 1 and c > 0, as Assumption 2 has it."""
    require(
        1 < beta < math.inf,
        "beta",
        beta,
        "above 1 and finite",
        "increments n^-beta that sum to infinity leave [0, 1] [Mussi24, Assumption 2]",
    )
    if c is not None:
        require(0 < c < math.inf, "c", c, "above 0 and finite", "increments are at most c n^-beta")


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


def need_exploration(exploration: float) -> None:
    """Raise unless the exploration parameter a is at least 0."""
    if math.isnan(exploration) or exploration < 0:
        raise SettingError(f"exploration={exploration!r}, but exploration must be at least 0")
