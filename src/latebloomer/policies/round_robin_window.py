"""Round robin, judged on the newest samples [Mussi24, App. E, Alg. 3]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from latebloomer.core.estimators import recent_mean, window_length
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Ledger, remember_levels
from latebloomer.policies.base import Policy, check_window


@dataclass(frozen=True)
class RoundRobinWindow(Policy):
    r"""Pull each arm :math:`N = \lfloor T/K \rfloor` times; recommend the best of late.

    The recommendation is the largest mean of the last :math:`\max(1, \lfloor\varepsilon N\rfloor)`
    rewards. What is left of the budget after N pulls each is not spent.

    >>> RoundRobinWindow().plan(arms=3, budget=10)
    Plan(keep=array([3]), upto=array([3]))
    """

    window: float = 0.25  # share of its pulls that an arm is judged on

    name: ClassVar[str] = "rr-sw"
    cites: ClassVar[tuple[str, ...]] = ("Mussi24",)
    remember = staticmethod(remember_levels)

    def __post_init__(self) -> None:
        check_window(self.window)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, budget // arms)]

    def span(self, n: int) -> int:
        return max(1, window_length(self.window, n))

    def rolling(self) -> float:
        return self.window

    @kernel
    def score(self, ledger: Ledger, i: int, horizon: int) -> float:
        return recent_mean(ledger, i, max(1, window_length(self.window, ledger.n[i])))
