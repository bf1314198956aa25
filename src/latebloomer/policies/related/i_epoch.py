"""i-Epoch [Egele24], for comparison: a few pulls of every arm, then only the leader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from latebloomer.errors import need_whole, require
from latebloomer.policies.window_ratings import ByWindow


@dataclass(frozen=True)
class IEpoch(ByWindow):
    """Pull every arm i times, then only the one with the best latest value.

    This is the simplest rule that compares arms at all. Its authors find that halving and models
    of learning curves add little to it. There an arm is a new configuration and the best i-epoch
    value so far is kept; here the arms are given, so all of them are trained to i pulls, and the
    leader gets the rest. The form for a fixed budget is ours.

    Parameters
    ----------
    i : int
        Number of pulls that every arm gets.

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
                "learners are compared by their scores")  # fmt: skip

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, self.i), (1, budget)]

    def share(self) -> float:
        return 0.0

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        return arms * self.i, f"each learner is pulled {self.i} times before one is chosen"

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(), cls(i=3)]
