"""Rewards that are known already while a new plan is played from its beginning.

A session that is given a larger budget plans anew. Every reward it was told is spent and known;
the new plan asks for them again, arm by arm and pull by pull, and is answered from here. So arms
are compared at equal pulls, as by a session that had the larger budget from the start, and only
what is not known is asked of the outside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass
class KnownRewards:
    """Of each arm the rewards that were told and that the plan has not asked for yet."""

    of_arm: list[deque[float]]
    total: int = 0

    @classmethod
    def from_told(cls, arms: int, told: Iterable[tuple[int, float]]) -> KnownRewards:
        """All that was told, in order.

        >>> known = KnownRewards.from_told(2, [(0, 0.1), (1, 0.5), (0, 0.2)])
        >>> known.take(0, 1), known.count(0), known.total
        ([0.1], 1, 2)
        """
        known = cls([deque() for _ in range(arms)])
        for i, reward in told:
            known.add(i, reward)
        return known

    def count(self, i: int) -> int:
        """Rewards of an arm that are known."""
        return len(self.of_arm[i])

    def add(self, i: int, reward: float) -> None:
        """One more, the newest."""
        self.of_arm[i].append(reward)
        self.total += 1

    def take(self, i: int, most: int) -> list[float]:
        """The oldest rewards of an arm, `most` at most."""
        found = [self.of_arm[i].popleft() for _ in range(min(most, self.count(i)))]
        self.total -= len(found)
        return found


def share_out(had: list[int], upto: int, left: int) -> list[int]:
    """The pulls that arms come to, the fewest first, `upto` each while `left` more can be made.

    Where they end within a sweep, the first of the arms that are behind get the last ones.

    >>> share_out([5, 15, 20], upto=20, left=99), share_out([5, 15, 20], upto=20, left=12)
    ([20, 20, 20], [16, 16, 20])
    >>> share_out([3, 3, 9], upto=9, left=5)
    [6, 5, 9]
    """
    if sum(upto - n for n in had) <= left:
        return [upto] * len(had)
    low, high = min(had), upto
    while high - low > 1:
        middle = (low + high) // 2
        fits = sum(max(0, middle - n) for n in had) <= left
        low, high = (middle, high) if fits else (low, middle)
    more = left - sum(max(0, low - n) for n in had)
    targets = []
    for n in had:
        extra = n <= low and more > 0
        more -= extra
        targets.append(max(n, low) + extra)
    return targets
