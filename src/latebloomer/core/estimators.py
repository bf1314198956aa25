r"""What an arm's rewards so far say of its level, now and at the horizon [Mussi24, Sec. 3].

All estimators are differences of two prefix sums, :math:`S_m = \sum_{l \le m} X_l` and
:math:`Q_m = \sum_{l \le m} l\,X_l`, so each costs O(1) however long the window is. They equal the
paper's definitions and its own O(1) updates (App. C), the running sums below, which need only the
rewards that enter and leave the window: they serve where past rewards are cheaper to draw again
than to store. The tests prove both.
"""

from collections.abc import Callable
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Floats, Ledger
from latebloomer.core.statistics import second_difference


@kernel
def window_length(window: float, n: int) -> int:
    """Return the window of the paper, h(n) = floor(eps n) [Mussi24, Sec. 3].

    >>> [window_length(0.25, n) for n in (3, 4, 7, 8)]
    [0, 1, 1, 2]
    """
    return int(window * n)


def first_full(window: float) -> int:
    """Return the first pull count at which the window holds a reward: floor(eps n) >= 1.

    >>> first_full(0.25), first_full(1 / 161)  # (1 / 161) * 161 rounds to less than 1
    (4, 162)
    """
    pulls = ceil(1 / window)
    return pulls if window_length(window, pulls) >= 1 else pulls + 1


@kernel
def recent_mean(ledger: Ledger, i: int, h: int) -> float:
    r"""Return the mean of arm `i`'s last `h` rewards: the pessimistic estimator.

    [Mussi24, Eq. (mu_hat)].

    .. math:: \hat\mu(n) = \frac1h \sum_{l=n-h+1}^{n} X_l
    """
    if h == 1:  # exactly the reward, so that equal rewards tie
        return ledger.last[i]
    n, S = ledger.n[i], ledger.S[i]
    return (S[n] - S[n - h]) / h


@kernel
def projected_mean(ledger: Ledger, i: int, h: int, horizon: int) -> float:
    r"""Return the mean of arm `i`'s last `h` rewards, each carried to the horizon by its slope.

    The optimistic estimator [Mussi24, Eq. (mu_check)], for :math:`1 \le h \le n/2`:

    .. math:: \check\mu^H(n) = \frac1h \sum_{l=n-h+1}^{n}
              \Bigl(X_l + (H-l)\,\frac{X_l - X_{l-h}}{h}\Bigr)
    """
    n, S, Q = ledger.n[i], ledger.S[i], ledger.Q[i]
    m, k = n - h, n - 2 * h
    new, old = S[n] - S[m], S[m] - S[k]
    # sum of l X_l over the window, and of l X_{l-h} = (l-h) X_{l-h} + h X_{l-h}
    new_l, old_l = Q[n] - Q[m], Q[m] - Q[k] + h * old
    return (new + (horizon * (new - old) - (new_l - old_l)) / h) / h


@kernel
def exploration_bonus(n: int, h: int, horizon: int, exploration: float) -> float:
    r"""Return R-UCBE's bonus per unit of noise [Mussi24, Lemma 2 and Alg. 1].

    .. math:: \check\beta^H(n) / \sigma = (H - n + h - 1) \sqrt{a / h^3}

    >>> exploration_bonus(n=8, h=2, horizon=100, exploration=8.0)
    93.0
    """
    return (horizon - n + h - 1) * sqrt(exploration / (1.0 * h * h * h))


@kernel
def newest_bend(ledger: Ledger, i: int) -> float:
    """Return the second difference X_n - 2 X_{n-1} + X_{n-2} of arm `i`, for n >= 3."""
    n, S = ledger.n[i], ledger.S[i]
    return second_difference(ledger.last[i], S[n - 1] - S[n - 2], S[n - 2] - S[n - 3])


# --- the same from running sums ---


class Sums(NamedTuple):
    r"""Sums over the window :math:`W = (n-h, n]` and the one before it.

    a: of X_l, b: of X_{l-h}, c: of l X_l, d: of l X_{l-h}, each over l in W.
    """

    h: int
    a: float
    b: float
    c: float
    d: float


@kernel
def slide(sums: Sums, n: int, new: float, middle: float, old: float) -> Sums:
    """Update the sums: the n-th reward is `new` and the window keeps its length h.

    `middle` is X_{n-h}, which passes from the window to the one before; `old` is X_{n-2h}, which
    leaves that one.
    """
    h = sums.h
    return Sums(
        h,
        sums.a + new - middle,
        sums.b + middle - old,
        sums.c + n * new - (n - h) * middle,
        sums.d + n * middle - (n - h) * old,
    )


@kernel
def grow(sums: Sums, n: int, new: float, edge: float) -> Sums:
    """Update the sums: the n-th reward is `new` and the window grows by one.

    `edge` is X_{n-2h+1} of the new h.

    The window of the new h is the old one and n; the one before it is the old one and the edge.
    In the text's update of d, b is the *updated* sum (it must hold the edge already).
    """
    h, b = sums.h + 1, sums.b + edge
    return Sums(h, sums.a + new, b, sums.c + n * new, sums.d + (n - h) * edge + b)


@kernel
def projected_mean_of(sums: Sums, horizon: int) -> float:
    """Return the optimistic estimator from the running sums."""
    return (sums.a + (horizon * (sums.a - sums.b) - (sums.c - sums.d)) / sums.h) / sums.h


def follow(rewards: Floats, window: float) -> Sums:
    """Return the running sums after all `rewards`, by a plain loop."""
    sums = Sums(0, 0.0, 0.0, 0.0, 0.0)
    for n in range(1, len(rewards) + 1):
        h = window_length(window, n)
        if h > sums.h:
            sums = grow(sums, n, rewards[n - 1], rewards[n - 2 * h])
        elif h > 0:
            sums = slide(sums, n, rewards[n - 1], rewards[n - h - 1], rewards[n - 2 * h - 1])
    return sums


# --- prefix sums of a formula ---

FIRST_BLOCK = 1024  # sums made at first; each block after it doubles what is there


class PrefixSums(dict[int, float]):
    """The sums term(1) + ... + term(m) for m from 0 to `last`.

    Plain Python reads `sums[m]`, which costs no more than the largest m that was ever read,
    whatever `last` is. Compiled code takes them all at once, as `array()`.

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
        """Return the sums `done` to `end`, added in the same order as from the beginning."""
        terms = self._terms(np.arange(done + 1.0, end + 1))
        return np.cumsum(np.concatenate([[self[done]], terms]))

    def array(self) -> Any:
        """Return all sums."""
        return self._sums(0, self.last)
