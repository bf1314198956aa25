r"""Regret while learning: what the best sequence of pulls in hindsight would have earned more.

The policy regret of [Metelli22] compares the sum of the means that a run has pulled with that of
the best sequence of as many pulls. Where means never fall, the sum over an arm's first n pulls is
convex in n, so the best sequence pulls one arm only (or, with a horizon H, some arms H times and
one arm the rest). Where some fall, the best numbers of pulls are found arm by arm.
"""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from latebloomer.problems.curves import Floats
from latebloomer.theory.complexity import TIE

MOST_STEPS = 2 * 10**9  # additions, 2 s: with more, curves that fall have no regret while learning
SORTING = 30  # additions that take as long as sorting a number among many

Rows = Callable[[], Iterator[Floats]]  # the means of one arm after the other


def totals(means: Floats) -> Floats:
    """Return the sum of each arm's first 0, 1, ... means."""
    return np.cumsum(np.pad(means, [(0, 0)] * (means.ndim - 1) + [(1, 0)]), axis=-1)


def best_totals(rows: Rows, budget: int) -> Floats | None:
    """Return the largest sum of means that 0, 1, ..., `budget` pulls can have.

    An arm is pulled at most as often as it has means. None if that takes too long to find.
    Rows are read one by one, so that means that never fall take the memory of one arm.

    >>> rises, falls, same = map(np.array, ([0.1, 0.5, 0.9], [0.9, 0.1, 0.1], [0.4, 0.4, 0.4]))
    >>> best_totals(lambda: iter([rises, same]), 4)
    array([0. , 0.4, 0.8, 1.5, 1.9])
    >>> best_totals(lambda: iter([falls, same]), 4)
    array([0. , 0.9, 1.3, 1.7, 2.1])
    """
    sizes, whole, rises = [], [], True
    for row in rows():
        rises = rises and bool(np.all(np.diff(row) >= -TIE))
        sizes.append(len(row))
        whole.append(totals(row)[-1])
    arms, horizon = len(sizes), sizes[0]
    pulls = min(budget, arms * horizon)
    if rises:
        return _of_rising(rows, np.array(whole), horizon, pulls)
    return _of_any(rows, int(np.argmax(whole)), min(pulls, horizon), pulls)


def _of_any(rows: Rows, first: int, longest: int, pulls: int) -> Floats | None:
    """Return the same for any means, beginning with the arm `first`; None after too many steps."""
    best, left = np.full(pulls + 1, -np.inf), MOST_STEPS
    best[: longest + 1] = totals(next(islice(rows(), first, None)))[: longest + 1]
    for arm, row in enumerate(rows()):
        earned, longer = totals(row)[: longest + 1], best.copy()
        left -= SORTING * len(best)
        for n in _worth_trying(best, earned) if arm != first else ():
            np.maximum(longer[n:], best[:-n] + earned[n], out=longer[n:])
            left -= len(best) - n
            if left < 0:
                return None
        best = longer
    return best


def _worth_trying(best: Floats, earned: Floats) -> list[int]:
    """Return the pulls n of a further arm that may be a part of a best sequence.

    The best total gains at least the sum of its n smallest steps by any n pulls more: an arm
    whose first n means sum to no more is not worth them.
    """
    with np.errstate(invalid="ignore"):  # the difference of totals that no sequence has
        steps = np.nan_to_num(np.diff(best), nan=-np.inf, neginf=-np.inf)
    least = np.cumsum(np.sort(steps))[: len(earned) - 1]
    pulls: list[int] = (np.flatnonzero(earned[1:] > least) + 1).tolist()
    return pulls


def _of_rising(rows: Rows, whole: Floats, horizon: int, pulls: int) -> Floats:
    """Return the same for means that never fall: some arms to the end, one arm the rest."""
    order = np.argsort(-whole, kind="stable")
    place_of, largest = np.argsort(order), np.concatenate([[0.0], np.cumsum(whole[order])])
    best = np.full(pulls + 1, -np.inf)
    for arm, row in enumerate(rows()):
        earned = totals(row)
        for others in range(min(pulls // horizon, len(whole) - 1) + 1):  # arms to the end
            among = place_of[arm] < others  # of the largest, but itself the one arm
            to_the_end = largest[others + 1] - whole[arm] if among else largest[others]
            part = best[others * horizon : (others + 1) * horizon + 1]
            np.maximum(part, to_the_end + earned[: len(part)], out=part)
    return best
