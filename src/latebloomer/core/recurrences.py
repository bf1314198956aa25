r"""The paper's own O(1) updates of the two estimators [Mussi24, App. C].

Prefix sums (`estimators.py`) say the same in fewer words where the past is kept. These four
running sums need only the rewards that enter and leave the window, so they serve where past
rewards are cheaper to regenerate than to store, and they check the prefix sums in the tests.
"""

from __future__ import annotations

from typing import NamedTuple

from latebloomer.core.estimators import window_length
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Floats


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
    """The n-th reward is `new` and the window keeps its length h.

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
    """The n-th reward is `new` and the window grows by one; `edge` is X_{n-2h+1} of the new h.

    The window of the new h is the old one and n; the one before it is the old one and the edge.
    In the text's update of d, b is the *updated* sum (it must hold the edge already).
    """
    h, b = sums.h + 1, sums.b + edge
    return Sums(h, sums.a + new, b, sums.c + n * new, sums.d + (n - h) * edge + b)


@kernel
def recent_mean_of(sums: Sums) -> float:
    """The pessimistic estimator from the running sums."""
    return sums.a / sums.h


@kernel
def projected_mean_of(sums: Sums, horizon: int) -> float:
    """The optimistic estimator from the running sums."""
    return (sums.a + (horizon * (sums.a - sums.b) - (sums.c - sums.d)) / sums.h) / sums.h


def follow(rewards: Floats, window: float) -> Sums:
    """The running sums after all `rewards` (a plain loop, for reading and for tests)."""
    sums = Sums(0, 0.0, 0.0, 0.0, 0.0)
    for n in range(1, len(rewards) + 1):
        h = window_length(window, n)
        if h > sums.h:
            sums = grow(sums, n, rewards[n - 1], rewards[n - 2 * h])
        elif h > 0:
            sums = slide(sums, n, rewards[n - 1], rewards[n - h - 1], rewards[n - 2 * h - 1])
    return sums
