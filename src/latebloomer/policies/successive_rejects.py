"""Successive Rejects [Audibert10], made for arms that do not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from latebloomer.core.moves import phase_lengths
from latebloomer.policies.window_ratings import ByAllSamples


@dataclass(frozen=True)
class SuccessiveRejects(ByAllSamples):
    """Use the phases of `RisingSR`, but drop the worst mean over *all* samples.

    >>> SuccessiveRejects().plan(arms=3, budget=12)
    Plan(keep=array([3, 2, 1]), upto=array([ 3,  4, 12]))
    """

    name: ClassVar[str] = "sr"
    cites: ClassVar[tuple[str, ...]] = ("Audibert10",)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        ends = phase_lengths(arms, budget)
        return [*zip(range(arms, 1, -1), ends, strict=True), (1, budget)]

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        return arms + 1, "with fewer pulls its first phase is empty"
