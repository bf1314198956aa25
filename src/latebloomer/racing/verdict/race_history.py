"""The history of a race: every counted pull."""

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from latebloomer.session.session import Session
from latebloomer.theory.curve_tests import Floats, late


@dataclass(frozen=True, eq=False)
class History:
    """Every counted pull of a race, in order; scores as the learners returned them."""

    names: tuple[str, ...]
    arms: NDArray[np.int64]  # arm of each pull
    scores: Floats
    sign: float  # 1 if higher is better, -1 if lower is

    @classmethod
    def of(cls, session: Session, empty: bool = False) -> "History":
        """Return the history of a session; with `empty`, only its names and its sign."""
        reported = [] if empty else session.history
        pulls = np.fromiter(reported, dtype=[("arm", np.int64), ("score", np.float64)])
        return cls(session.names, pulls["arm"], pulls["score"], 1.0 if session.maximize else -1.0)

    def upto(self, pulls: int) -> "History":
        """Return the history of the first `pulls` pulls."""
        return History(self.names, self.arms[:pulls], self.scores[:pulls], self.sign)

    @cached_property
    def by_arm(self) -> list[Floats]:
        """Scores of each arm, pull by pull."""
        order = np.argsort(self.arms, kind="stable")
        counts = np.bincount(self.arms, minlength=len(self.names))
        return np.split(self.scores[order], np.cumsum(counts)[:-1])

    def rewards(self) -> list[Floats]:
        """Return every arm's rewards: scores, negated for losses."""
        return [self.sign * scores for scores in self.by_arm]

    def leader_at(self, half: int, swept: bool, without: Collection[int] = ()) -> int | None:
        """Return the arm that led after `half` pulls of the race; None if there were fewer.

        Arms are ranked by the mean of their latest quarter; arms in `without` failed and are
        ignored. If arms are swept evenly, each arm counts up to the level at which `half` pulls
        are reached. Then the order within a sweep, which varies with a parallel runner, does not
        matter.
        """
        if len(self.arms) < half:
            return None
        rewards = self.rewards()
        pulls = np.bincount(self.arms[:half], minlength=len(self.names)).tolist()
        if swept:
            pulls = [_level([len(x) for x in rewards], half)] * len(rewards)
        early = {i: x[:n] for i, (x, n) in enumerate(zip(rewards, pulls, strict=True))}
        means = {i: late(x).mean() for i, x in early.items() if len(x) and i not in without}
        return max(means, key=lambda i: means[i], default=None)


def _level(lengths: list[int], pulls: int) -> int:
    """Return the largest level to which all arms can be trained with `pulls` pulls.

    >>> _level([4, 9, 9], 13)  # 4 + 4 + 4 pulls; the next level needs 14
    4
    """
    levels = range(1, max(lengths, default=0) + 1)
    return bisect_right(levels, pulls, key=lambda n: sum(min(n, have) for have in lengths))
