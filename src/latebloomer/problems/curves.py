"""Families of learning curves: the mean reward of an arm's n-th pull, for every n >= 1.

Each family is a frozen dataclass. Call it with a pull count or an array of pull counts.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.errors import need_in, require

Floats: TypeAlias = npt.NDArray[np.float64]
FINITE, FROM_0, ABOVE_0 = "(-inf, inf)", "[0, inf)", "(0, inf)"


class Curve(ABC):
    """A function that returns the mean reward for every pull count n = 1, 2, ..."""

    needs: ClassVar[dict[str, str]] = {}  # allowed interval of each setting

    def __post_init__(self) -> None:
        for name, interval in self.needs.items():
            need_in(name, getattr(self, name), interval, "it shapes a learning curve")
        if "start" in self.needs:
            start, limit = vars(self)["start"], vars(self)["limit"]
            need = f"at least start={start!r}"
            require(limit >= start, "limit", limit, need, "the curve rises to it")

    @abstractmethod
    def __call__(self, n: npt.ArrayLike) -> Floats:
        """Return the means of the pulls `n`."""


@dataclass(frozen=True)
class PaperF(Curve):
    r"""The paper's family of curves, from 0 up to c, in its notation [Mussi24, App. G].

    .. math:: f(n) = c \Bigl( 1 - \frac{b}{(b^{1/\psi} + n)^{\psi}} \Bigr)

    The curve rises and is concave for every psi > 0, and its increments fall like n^-(psi + 1).
    With b = 0, which the paper allows, it is c from the first pull on and 0 before the first pull,
    as for every other b.

    Parameters
    ----------
    b : float
        The larger b is, the later the curve rises: for psi = 1, it reaches half of c at n = b.
    c : float
        The limit of the curve.
    psi : float
        The exponent of the distance to the limit.

    Examples
    --------
    >>> PaperF(b=10, c=0.88)([10, 90])
    array([0.44 , 0.792])
    """

    b: float
    c: float
    psi: float = 1.0
    needs: ClassVar = {"b": FROM_0, "c": FROM_0, "psi": ABOVE_0}

    def __call__(self, n: npt.ArrayLike) -> Floats:
        pulls = np.asarray(n, dtype=np.float64)
        if self.b == 0:
            return np.where(pulls > 0, self.c, 0.0)
        return self.c * (1 - self.b / (self.b ** (1 / self.psi) + pulls) ** self.psi)


@dataclass(frozen=True)
class Exponential(Curve):
    r"""A curve from `start` to `limit` that gains a constant share of the rest at each pull.

    .. math:: \mu(n) = s + (l - s)(1 - e^{-n/\tau})

    Parameters
    ----------
    limit : float
        Limit of the curve.
    tau : float
        Number of pulls in which the distance to the limit shrinks to 37 %.
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
    needs: ClassVar = {"limit": FINITE, "tau": ABOVE_0, "start": FINITE}

    def __call__(self, n: npt.ArrayLike) -> Floats:
        pulls = np.asarray(n, dtype=np.float64)
        return self.start - (self.limit - self.start) * np.expm1(-pulls / self.tau)


@dataclass(frozen=True)
class PowerLaw(Curve):
    r"""A curve whose distance to its limit falls as a power of the number of pulls.

    .. math:: \mu(n) = l - a\,n^{-\rho}

    Parameters
    ----------
    limit : float
        Limit of the curve.
    drop : float
        Distance to the limit at the first pull.
    rate : float
        The power with which the distance to the limit falls.

    Examples
    --------
    >>> PowerLaw(limit=0.9, drop=0.4, rate=0.5)([1, 4, 100])
    array([0.5 , 0.7 , 0.86])
    """

    limit: float
    drop: float
    rate: float
    needs: ClassVar = {"limit": FINITE, "drop": FROM_0, "rate": ABOVE_0}

    def __call__(self, n: npt.ArrayLike) -> Floats:
        return self.limit - self.drop * np.asarray(n, dtype=np.float64) ** -self.rate


@dataclass(frozen=True)
class PiecewiseLinear(Curve):
    """A curve that is linear between its knots, and constant before the first and after the last.

    Parameters
    ----------
    knots : tuple[tuple[float, float], ...]
        Pairs (n, mean) in rising order of n.

    Examples
    --------
    >>> PiecewiseLinear(((0, 0.0), (175, 0.7)))([1, 100, 175, 900])
    array([0.004, 0.4  , 0.7  , 0.7  ])
    """

    knots: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        pulls = [n for n, _ in self.knots]
        finite = all(math.isfinite(value) for knot in self.knots for value in knot)
        rising = len(pulls) > 0 and all(a < b for a, b in pairwise(pulls))
        require(
            finite and rising,
            "knots",
            self.knots,
            "one or more finite (n, mean) in order of n",
            "means are read between neighboring knots",
        )

    def __call__(self, n: npt.ArrayLike) -> Floats:
        pulls, values = zip(*self.knots, strict=True)
        return np.asarray(np.interp(np.asarray(n, dtype=np.float64), pulls, values))


@dataclass(frozen=True)
class Stationary(Curve):
    """A constant curve: an arm of the ordinary bandit.

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
    needs: ClassVar = {"mean": FINITE}

    def __call__(self, n: npt.ArrayLike) -> Floats:
        return np.full(np.shape(n), float(self.mean))


@dataclass(frozen=True)
class SShaped(Curve):
    r"""A logistic curve (slow, fast, slow), which violates the paper's assumption of concavity.

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
    needs: ClassVar = {"limit": FINITE, "middle": FINITE, "width": ABOVE_0, "start": FINITE}

    def __call__(self, n: npt.ArrayLike) -> Floats:
        z = (np.asarray(n, dtype=np.float64) - self.middle) / self.width
        # 1 / (1 + e^-z), written so that nothing overflows
        return np.asarray(self.start + (self.limit - self.start) * (1 + np.tanh(z / 2)) / 2)


@dataclass(frozen=True)
class LowerBound(Curve):
    r"""The curve of an arm in the proofs of [Mussi24, Thm 3 and 4], for n >= 1.

    .. math:: \mu(n) = \min\bigl\{ (\tfrac12 + \Delta)(1 - n^{1-\beta}),\
              \tfrac12 - \Delta \bigr\}

    With gap 0 it is the best arm. `capped=False` omits the second term: then this arm is the best
    of all once it has been pulled often enough to show it (the instances nu' and nu^(i)).

    Parameters
    ----------
    beta : float
        Exponent with which increments fall, above 1.
    gap : float
        Final distance to the best arm, from 0 to 0.5.
    capped : bool
        Whether the curve stops rising at 1/2 - gap.

    Examples
    --------
    >>> LowerBound(beta=2)([1, 2, 4]), LowerBound(beta=2, gap=0.25)([1, 2, 4])
    (array([0.   , 0.25 , 0.375]), array([0.  , 0.25, 0.25]))
    """

    beta: float
    gap: float = 0.0
    capped: bool = True
    # Assumption 2 requires this beta; with this gap, means stay in [0, 1].
    needs: ClassVar = {"beta": "(1, inf)", "gap": "[0, 0.5]"}

    def __call__(self, n: npt.ArrayLike) -> Floats:
        free = (0.5 + self.gap) * (1 - np.asarray(n, dtype=np.float64) ** (1 - self.beta))
        return np.minimum(free, 0.5 - self.gap) if self.capped else free
