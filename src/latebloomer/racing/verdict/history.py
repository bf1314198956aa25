"""The curves of a race, as numbers: the scores of every arm."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from latebloomer.session.session import Session

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class History:
    """Every counted pull of a race, in order; scores as the learners returned them."""

    names: tuple[str, ...]
    arms: Ints  # the arm of each pull
    scores: Floats
    sign: float  # 1 if higher is better, -1 if lower is

    @classmethod
    def of(cls, session: Session, empty: bool = False) -> History:
        """Return the scores of a session; none, if only its names and its sign are needed."""
        reported = [] if empty else session.history
        pulls = np.fromiter(reported, dtype=[("arm", np.int64), ("score", np.float64)])
        return cls(session.names, pulls["arm"], pulls["score"], 1.0 if session.maximize else -1.0)

    def upto(self, pulls: int) -> History:
        """Return the first pulls of the race."""
        return History(self.names, self.arms[:pulls], self.scores[:pulls], self.sign)

    def scores_of(self, arm: int) -> Floats:
        """Return an arm's scores, pull by pull."""
        return self._by_arm[arm]

    @cached_property
    def _by_arm(self) -> list[Floats]:
        order = np.argsort(self.arms, kind="stable")
        counts = np.bincount(self.arms, minlength=len(self.names))
        return np.split(self.scores[order], np.cumsum(counts)[:-1])

    def rewards(self) -> list[Floats]:
        """Return every arm's scores with the sign that makes higher better."""
        return [self.sign * self.scores_of(i) for i in range(len(self.names))]

    def leader_at_half(self, swept: bool, without: Collection[int] = ()) -> int | None:
        """Return the arm that led when half of the pulls were spent.

        Arms are ranked by the mean of their latest quarter; those in `without` failed and count
        for nothing. If arms are swept evenly, the pulls of each up to the level at which the half
        is reached count, so that the order within a sweep, which a parallel runner does not keep,
        makes no difference.
        """
        half, rewards = len(self.arms) // 2, self.rewards()
        if swept:
            level = _level([len(x) for x in rewards], half)
            early = [x[:level] for x in rewards]
        else:
            pulls = np.bincount(self.arms[:half], minlength=len(self.names))
            early = [x[:n] for x, n in zip(rewards, pulls, strict=True)]
        means = [-np.inf if i in without else _late_mean(x) for i, x in enumerate(early)]
        best = int(np.argmax(means))
        return None if means[best] == -np.inf else best


def _level(lengths: list[int], pulls: int) -> int:
    """Return the largest level to which all arms can be trained with that many pulls.

    >>> _level([4, 9, 9], 13)  # 4 + 4 + 4 pulls; the next level takes 14
    4
    """
    low, high = 0, max(lengths, default=0) + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = sum(min(n, middle) for n in lengths) <= pulls
        low, high = (middle, high) if fits else (low, middle)
    return low


def _late_mean(rewards: Floats) -> float:
    return float(rewards[-max(1, len(rewards) // 4) :].mean()) if len(rewards) else -np.inf
