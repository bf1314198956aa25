"""Families of learning curves: the mean of an arm's n-th pull, for every n >= 1.

Each is a small frozen dataclass that is called with a pull count or an array of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.errors import need_number, require
from latebloomer.theory.lower_bounds import lower_bound_curve

Floats: TypeAlias = npt.NDArray[np.float64]


class Curve(ABC):
    """A mean for every pull count n = 1, 2, ..."""

    @abstractmethod
    def __call__(self, n: npt.ArrayLike) -> Floats:
        """Return the means of the pulls `n`."""


def _need(curve: Curve, *settings: str) -> None:
    """Raise a `SettingError` unless every named setting is a finite number."""
    for name in settings:
        value = getattr(curve, name)
        need_number(name, value)
        require(math.isfinite(value), name, value, "finite", "it shapes a learning curve")


def _need_rise(start: float, limit: float) -> None:
    require(limit >= start, "limit", limit, f"at least start={start!r}", "the curve rises to it")


@dataclass(frozen=True)
class PaperF(Curve):
    r"""The paper's family, from 0 up to c, with the paper's names [Mussi24, App. G].

    .. math:: f(n) = c \Bigl( 1 - \frac{b}{(b^{1/\psi} + n)^{\psi}} \Bigr)

    Rising and concave for every psi > 0; its increments fall as n^-(psi + 1). With b = 0, which
    the paper allows, it is c from the first pull on, and 0 before it, as for every other b.

    Parameters
    ----------
    b : float
        The larger, the later: at psi = 1 half of c is reached at n = b.
    c : float
        The limit.
    psi : float
        The exponent.

    Examples
    --------
    >>> PaperF(b=10, c=0.88)([10, 90])
    array([0.44 , 0.792])
    """

    b: float
    c: float
    psi: float = 1.0

    def __post_init__(self) -> None:
        _need(self, "b", "c", "psi")
        require(self.b >= 0, "b", self.b, "at least 0", "the curve rises over about b pulls")
        require(self.c >= 0, "c", self.c, "at least 0", "the curve rises to it")
        require(self.psi > 0, "psi", self.psi, "above 0", "the curve rises")

    def __call__(self, n: npt.ArrayLike) -> Floats:
        pulls = np.asarray(n, dtype=np.float64)
        if self.b == 0:
            return np.where(pulls > 0, self.c, 0.0)
        return self.c * (1 - self.b / (self.b ** (1 / self.psi) + pulls) ** self.psi)


@dataclass(frozen=True)
class Exponential(Curve):
    r"""From `start` to `limit`, a constant share of the rest at each pull.

    .. math:: \mu(n) = s + (l - s)(1 - e^{-n/\tau})

    Parameters
    ----------
    limit : float
        Limit of the curve.
    tau : float
        Pulls in which the distance to the limit shrinks to 37 %.
    start : float
        The mean before the first pull.

    Examples
    --------
    >>> Exponential(limit=0.8, tau=5)([5, 500]).round(4)
    array([0.5057, 0.8 ])
    """

    limit: float
    tau: float
    start: float = 0.0

    def __post_init__(self) -> None:
        _need(self, "limit", "tau", "start")
        require(self.tau > 0, "tau", self.tau, "above 0", "it is a number of pulls")
        _need_rise(self.start, self.limit)

    def __call__(self, n: npt.ArrayLike) -> Floats:
        pulls = np.asarray(n, dtype=np.float64)
        return self.start - (self.limit - self.start) * np.expm1(-pulls / self.tau)


@dataclass(frozen=True)
class PowerLaw(Curve):
    r"""What is missing to the limit falls as a power of the pulls.

    .. math:: \mu(n) = l - a\,n^{-\rho}

    Parameters
    ----------
    limit : float
        Limit of the curve.
    drop : float
        Distance to the limit at the first pull.
    rate : float
        The power.

    Examples
    --------
    >>> PowerLaw(limit=0.9, drop=0.4, rate=0.5)([1, 4, 100])
    array([0.5 , 0.7 , 0.86])
    """

    limit: float
    drop: float
    rate: float

    def __post_init__(self) -> None:
        _need(self, "limit", "drop", "rate")
        require(self.drop >= 0, "drop", self.drop, "at least 0", "the curve rises to its limit")
        require(self.rate > 0, "rate", self.rate, "above 0", "the curve rises")

    def __call__(self, n: npt.ArrayLike) -> Floats:
        return self.limit - self.drop * np.asarray(n, dtype=np.float64) ** -self.rate


@dataclass(frozen=True)
class PiecewiseLinear(Curve):
    """Straight between its knots (n, mean), level before the first and after the last.

    Parameters
    ----------
    knots : tuple[tuple[float, float], ...]
        Pairs (n, mean), n rising.

    Examples
    --------
    >>> PiecewiseLinear(((0, 0.0), (175, 0.7)))([1, 100, 175, 900])
    array([0.004, 0.4  , 0.7  , 0.7  ])
    """

    knots: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        pulls = [n for n, _ in self.knots]
        require(
            len(pulls) >= 1, "knots", self.knots, "at least one (n, mean)", "a curve needs one"
        )
        require(
            all(a < b for a, b in pairwise(pulls)),
            "knots", self.knots, "in order of n", "means are read between neighboring knots",
        )  # fmt: skip
        finite = all(math.isfinite(value) for knot in self.knots for value in knot)
        require(finite, "knots", self.knots, "finite", "they shape a learning curve")

    def __call__(self, n: npt.ArrayLike) -> Floats:
        pulls, values = zip(*self.knots, strict=True)
        return np.asarray(np.interp(np.asarray(n, dtype=np.float64), pulls, values))


@dataclass(frozen=True)
class Stationary(Curve):
    """The same mean at every pull: an arm of the ordinary bandit.

    Parameters
    ----------
    mean : float
        Mean of every pull.

    Examples
    --------
    >>> Stationary(0.3)([1, 2])
    array([0.3, 0.3])
    """

    mean: float

    def __post_init__(self) -> None:
        _need(self, "mean")

    def __call__(self, n: npt.ArrayLike) -> Floats:
        return np.full(np.shape(n), float(self.mean))


@dataclass(frozen=True)
class SShaped(Curve):
    r"""Slow, fast, slow (logistic): breaks the paper's concavity assumption on purpose.

    .. math:: \mu(n) = s + \frac{l - s}{1 + e^{-(n - m)/w}}

    Parameters
    ----------
    limit : float
        Limit of the curve.
    middle : float
        The pull of the steepest rise.
    width : float
        Width in pulls; most of the rise is within 4 widths of the middle.
    start : float
        The mean before the first pull.

    Examples
    --------
    >>> SShaped(limit=0.8, middle=50, width=10)(50)
    array(0.4)
    """

    limit: float
    middle: float
    width: float
    start: float = 0.0

    def __post_init__(self) -> None:
        _need(self, "limit", "middle", "width", "start")
        require(self.width > 0, "width", self.width, "above 0", "it is a number of pulls")
        _need_rise(self.start, self.limit)

    def __call__(self, n: npt.ArrayLike) -> Floats:
        z = (np.asarray(n, dtype=np.float64) - self.middle) / self.width
        # 1 / (1 + e^-z), written so that nothing overflows
        return np.asarray(self.start + (self.limit - self.start) * (1 + np.tanh(z / 2)) / 2)


@dataclass(frozen=True)
class LowerBound(Curve):
    """An arm of the instances in the proof of Thm 3: `theory.lower_bounds.lower_bound_curve`.

    With gap 0 it is the best arm; `capped=False` drops the second term, which makes this arm the
    best of all once it has been pulled often enough to tell.

    Parameters
    ----------
    beta : float
        Exponent with which increments fall.
    gap : float
        Distance below the best arm at the end.
    capped : bool
        Whether the curve stops at its gap.

    Examples
    --------
    >>> LowerBound(beta=2)([1, 2, 4]), LowerBound(beta=2, gap=0.25)([1, 2, 4])
    (array([0.   , 0.25 , 0.375]), array([0.  , 0.25, 0.25]))
    """

    beta: float
    gap: float = 0.0
    capped: bool = True

    def __post_init__(self) -> None:
        _need(self, "beta", "gap")
        require(self.beta > 1, "beta", self.beta, "above 1", "Assumption 2 asks for it")
        require(0 <= self.gap <= 0.5, "gap", self.gap, "in [0, 1/2]", "means stay in [0, 1]")

    def __call__(self, n: npt.ArrayLike) -> Floats:
        return lower_bound_curve(n, self.beta, self.gap, self.capped)
