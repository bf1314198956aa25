"""Formulas without rewards: the window, the bonus, prefix sums of a term."""

from collections.abc import Callable
from math import ceil, sqrt
from typing import Any

import numpy as np

from latebloomer.core.kernel import kernel


@kernel
def window_length(window: float, n: int) -> int:
    """Return the window of the paper, h(n) = floor(eps n) [Mussi24, Sec. 3].

    >>> [window_length(0.25, n) for n in (3, 4, 7, 8)]
    [0, 1, 1, 2]
    """
    return int(window * n)


def first_full(window: float) -> int:
    """Return the first pull count n at which the window is not empty: floor(eps n) >= 1.

    >>> first_full(0.25), first_full(1 / 161)  # (1 / 161) * 161 rounds to less than 1
    (4, 162)
    """
    pulls = ceil(1 / window)
    return pulls if window_length(window, pulls) >= 1 else pulls + 1


@kernel
def exploration_bonus(n: int, h: int, horizon: int, exploration: float) -> float:
    r"""Return R-UCBE's bonus per unit of noise [Mussi24, Lemma 2 and Alg. 1].

    .. math:: \check\beta^H(n) / \sigma = (H - n + h - 1) \sqrt{a / h^3}

    >>> exploration_bonus(n=8, h=2, horizon=100, exploration=8.0)
    93.0
    """
    return (horizon - n + h - 1) * sqrt(exploration / (1.0 * h * h * h))


# --- prefix sums of a formula ---

FIRST_BLOCK = 1024  # sums computed at first; each further block doubles their number


class PrefixSums(dict[int, float]):
    """The sums term(1) + ... + term(m) for m from 0 to `last`.

    Plain Python reads `sums[m]`; the cost depends only on the largest m that was read, not on
    `last`. Compiled code gets all sums as `array()`.

    >>> halves = PrefixSums(lambda m: 0.5**m, last=10**15)
    >>> halves[0], halves[1], halves[2]
    (0.0, 0.5, 0.75)
    """

    def __init__(self, terms: Callable[[Any], Any], last: int) -> None:
        super().__init__({0: 0.0})
        self._terms, self.last = terms, last

    def __missing__(self, m: int) -> float:
        if not 0 <= m <= self.last:
            raise IndexError(f"sum {m}, but there are sums 0 to {self.last}")
        while m not in self:
            done = len(self) - 1
            end = min(self.last, 2 * done + FIRST_BLOCK)
            self.update(enumerate(self._sums(done, end).tolist(), start=done))
        return self[m]

    def _sums(self, done: int, end: int) -> Any:
        """Return the sums `done` to `end`, added in the same order as if from the beginning."""
        terms = self._terms(np.arange(done + 1.0, end + 1))
        return np.cumsum(np.concatenate([[self[done]], terms]))

    def array(self) -> Any:
        """Return all sums."""
        return self._sums(0, self.last)
