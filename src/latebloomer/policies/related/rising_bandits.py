"""Rising Bandits [LiJiang20], for comparison: drop arms by straight lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import PULLS, RACERS, SWEEPS, Ledger, close_ranks, remember_rewards
from latebloomer.errors import need_whole, require
from latebloomer.policies.base import Policy


@dataclass(frozen=True)
class RisingBandits(Policy):
    r"""Sweep over the arms; drop those that cannot catch up along their own recent slope.

    After n > C pulls of each racing arm, with its latest value :math:`y_n`,

    .. math:: l = y_n, \qquad u = y_n + (H - n)\,\frac{y_n - y_{n-C}}{C},

    and arm j is dropped when the leader's :math:`l_i \ge u_j`. The recommendation is the best
    latest value. It is made for curves that rise, are concave and have no noise: noise of size s
    moves u by about (H - n) s / C. Its authors' values are the best so far of a tuner, which never
    fall; here they are the rewards themselves. The paper's text was not available: the bounds and
    C = 7 are as others quote it, and keeping the leader among equal arms is ours.

    Parameters
    ----------
    span : int
        Number of pulls C over which the slope is taken.

    Examples
    --------
    >>> print(RisingBandits().describe(arms=3, budget=60).phases[0])
           60 pulls  train 3 learners to 20 pulls each
    """

    span: int = 7

    name: ClassVar[str] = "rising-bandits"
    cites: ClassVar[tuple[str, ...]] = ("LiJiang20",)
    remember = staticmethod(remember_rewards)

    def __post_init__(self) -> None:
        require(need_whole("span", self.span) >= 1, "span", self.span, "at least 1",
                "a slope needs two values")  # fmt: skip

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, budget)]

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        return ledger.last[i]

    @kernel
    def after_sweep(self: Any, ledger: Ledger, budget: int, horizon: int) -> None:
        if ledger.cursor[RACERS] == 1 or ledger.cursor[SWEEPS] <= self.span:
            return
        leader = ledger.racing[0]
        for place in range(ledger.cursor[RACERS]):
            if ledger.last[ledger.racing[place]] > ledger.last[leader]:
                leader = ledger.racing[place]
        for place in range(ledger.cursor[RACERS]):
            j = ledger.racing[place]
            if j != leader and ledger.last[leader] >= upper_value(ledger, j, self.span, horizon):
                ledger.out[j] = ledger.cursor[PULLS]
        close_ranks(ledger)

    def advised_budget(self, arms: int) -> tuple[int, str]:
        pulls = self.span + 1
        return arms * pulls, f"{pulls} pulls of each learner before one can be dropped"

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(), cls(span=2)]


@kernel
def upper_value(ledger: Ledger, i: int, span: int, horizon: int) -> float:
    """Return u of arm i, which has more than `span` pulls."""
    n, last = ledger.n[i], ledger.last[i]
    return last + (horizon - n) * (last - ledger.Q[i][n - span]) / span
