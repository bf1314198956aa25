r"""Regret while learning: how much more the best sequence of pulls would have earned.

The policy regret of [Metelli22] is the difference between the sum of means of the best sequence of
pulls and the sum of means that a run has pulled, with equal numbers of pulls. If means never fall,
the sum over an arm's first n pulls is convex in n. Then the best sequence pulls only one arm (or,
with a horizon H, some arms H times and one arm for the rest). If some means fall, the best numbers
of pulls are computed arm by arm.
"""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from latebloomer.problems.curves import Floats
from latebloomer.theory.complexity import TIE

# Maximum additions (2 s); beyond, falling curves have no regret while learning.
MOST_STEPS = 2 * 10**9
SORTING = 30  # additions that take as long as sorting one of many numbers

Rows = Callable[[], Iterator[Floats]]  # yields the means of one arm after the other


def totals(means: Floats) -> Floats:
    """Return the sum of each arm's first 0, 1, ... means."""
    return np.cumsum(np.pad(means, [(0, 0)] * (means.ndim - 1) + [(1, 0)]), axis=-1)


def best_totals(rows: Rows, budget: int) -> Floats | None:
    """Return the largest sums of means that 0, 1, ..., `budget` pulls can have.

    An arm is pulled at most as often as it has means. The result is None if the computation would
    take too long. Rows are read one by one, so means that never fall need only the memory of one
    arm.

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
    """Return the best totals for any means, from arm `first` on; None after too many steps."""
    best, steps_left = np.full(pulls + 1, -np.inf), MOST_STEPS
    best[: longest + 1] = totals(next(islice(rows(), first, None)))[: longest + 1]
    for arm, row in enumerate(rows()):
        earned, longer = totals(row)[: longest + 1], best.copy()
        steps_left -= SORTING * len(best)
        for n in _worth_trying(best, earned) if arm != first else ():
            np.maximum(longer[n:], best[:-n] + earned[n], out=longer[n:])
            steps_left -= len(best) - n
            if steps_left < 0:
                return None
        best = longer
    return best


def _worth_trying(best: Floats, earned: Floats) -> list[int]:
    """Return the numbers of pulls of a further arm that can be part of a best sequence.

    Any n additional pulls increase the best total by at least the sum of its n smallest steps. So
    n pulls of an arm can be omitted if its first n means have no larger sum.
    """
    with np.errstate(invalid="ignore"):  # totals without a sequence are infinite
        steps = np.nan_to_num(np.diff(best), nan=-np.inf, neginf=-np.inf)
    least = np.cumsum(np.sort(steps))[: len(earned) - 1]
    pulls: list[int] = (np.flatnonzero(earned[1:] > least) + 1).tolist()
    return pulls


def _of_rising(rows: Rows, whole: Floats, horizon: int, pulls: int) -> Floats:
    """Return the best totals for means that never fall: some arms H times, one arm the rest."""
    order = np.argsort(-whole, kind="stable")
    place_of, largest = np.argsort(order), np.concatenate([[0.0], np.cumsum(whole[order])])
    best = np.full(pulls + 1, -np.inf)
    for arm, row in enumerate(rows()):
        earned = totals(row)
        # Arms pulled to the horizon.
        for others in range(min(pulls // horizon, len(whole) - 1) + 1):
            among = place_of[arm] < others  # the arm is itself among the largest
            to_the_end = largest[others + 1] - whole[arm] if among else largest[others]
            part = best[others * horizon : (others + 1) * horizon + 1]
            np.maximum(part, to_the_end + earned[: len(part)], out=part)
    return best
