"""Round robin, judged on all samples: the plainest baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from latebloomer.core.estimators import recent_mean
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Ledger, remember_levels
from latebloomer.policies.base import Policy


@dataclass(frozen=True)
class RoundRobin(Policy):
    """Pull the arms in turn to the end of the budget; recommend the largest mean of all samples.

    >>> RoundRobin().plan(arms=3, budget=10)  # the first arm gets the tenth pull
    Plan(keep=array([3]), upto=array([4]))
    """

    name: ClassVar[str] = "rr"
    remember = staticmethod(remember_levels)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, -(-budget // arms))]

    def span(self, n: int) -> int:
        return n

    def rolling(self) -> float:
        return 0.0

    @kernel
    def score(self, ledger: Ledger, i: int, horizon: int) -> float:
        return recent_mean(ledger, i, ledger.n[i])
