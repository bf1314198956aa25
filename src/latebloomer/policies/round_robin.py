"""Round robin, rated by all samples or by the latest ones [Mussi24, App. E, Alg. 3]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from latebloomer.policies.base import check_window
from latebloomer.policies.window_ratings import ByAllSamples, ByWindow


@dataclass(frozen=True)
class RoundRobin(ByAllSamples):
    """Pull the arms in turn to the end of the budget; recommend the largest mean of all samples.

    >>> RoundRobin().plan(arms=3, budget=10)  # the first arm gets the tenth pull
    Plan(keep=array([3]), upto=array([4]))
    """

    name: ClassVar[str] = "rr"

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, -(-budget // arms))]


@dataclass(frozen=True)
class RoundRobinWindow(ByWindow):
    r"""Pull each arm equally often; recommend the best recent mean.

    Each arm gets :math:`N = \lfloor T/K \rfloor` pulls; the rest of the budget is not spent. The
    recommendation is the largest mean of the last :math:`\max(1, \lfloor\varepsilon N\rfloor)`
    rewards.

    Parameters
    ----------
    window : float
        Share of its pulls that an arm is rated by, the latest ones.

    Examples
    --------
    >>> RoundRobinWindow().plan(arms=3, budget=10)
    Plan(keep=array([3]), upto=array([3]))
    """

    window: float = 0.25

    name: ClassVar[str] = "rr-sw"
    cites: ClassVar[tuple[str, ...]] = ("Mussi24",)

    def __post_init__(self) -> None:
        check_window(self.window)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, budget // arms)]
