"""Round robin, rated by all samples: the simplest baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from latebloomer.policies.window_ratings import ByAllSamples


@dataclass(frozen=True)
class RoundRobin(ByAllSamples):
    """Pull the arms in turn to the end of the budget; recommend the largest mean of all samples.

    >>> RoundRobin().plan(arms=3, budget=10)  # the first arm gets the tenth pull
    Plan(keep=array([3]), upto=array([4]))
    """

    name: ClassVar[str] = "rr"

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, -(-budget // arms))]
