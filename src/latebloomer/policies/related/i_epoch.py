"""i-Epoch [Egele24], for comparison: everybody for a moment, then the one who leads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

from latebloomer.errors import need_whole, require
from latebloomer.policies.window_ratings import ByWindow


class Numbers(NamedTuple):
    """What `self` is inside the kernels."""

    window: float  # 0: only the latest value counts


@dataclass(frozen=True)
class IEpoch(ByWindow):
    """Pull every arm i times, then only the best by its latest value, as far as the budget goes.

    The plainest rule that looks at all: its authors find that halving and models of learning
    curves add little to it, so no table should be without it. There an arm is a new configuration
    and the best i-epoch value so far is kept; here the arms are given, so all of them are brought
    to i pulls, and what is left is the leader's. The form for a fixed budget is ours.

    Parameters
    ----------
    i : int
        Pulls that every arm gets.

    Examples
    --------
    >>> IEpoch(i=2).plan(arms=4, budget=20)
    Plan(keep=array([4, 1]), upto=array([ 2, 20]))
    """

    i: int = 1

    name: ClassVar[str] = "i-epoch"
    cites: ClassVar[tuple[str, ...]] = ("Egele24",)

    def __post_init__(self) -> None:
        require(need_whole("i", self.i) >= 1, "i", self.i, "at least 1",
                "arms are compared on rewards")  # fmt: skip

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, self.i), (1, budget)]

    def share(self) -> float:
        return 0.0

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        return Numbers(self.share())

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        return arms * self.i, f"each arm is pulled {self.i} times before one is chosen"

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(), cls(i=3)]
