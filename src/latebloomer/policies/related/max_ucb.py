"""MaxUCB [Balef25], for comparison: a bandit that looks for the largest reward."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, Self

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, OVER, PULLS, RACERS, Ledger, remember_nothing
from latebloomer.policies.base import Policy, check_not_negative

SMALLEST, LARGEST = 0, 1  # cells of Ledger.pool: rewards of the race so far


@dataclass(frozen=True)
class MaxUCB(Policy):
    r"""Pull the arm with the largest maximum plus bonus; recommend the largest maximum.

    Before pull t, after one pull of each arm,

    .. math:: B_i = \max_{s \le n_i} X_{i,s} + \Bigl(\frac{\alpha \log t}{n_i}\Bigr)^2,

    with rewards scaled so that the smallest of the race so far is 0 and the largest 1 (the
    authors' code scales to [.01, .99]). It was made to distribute a tuner's trials over classes of
    models, whose rewards have a bound near which most of them lie. It does not extrapolate, and
    with noise a maximum favors arms that were pulled often. The index and alpha are from the
    authors' public code; the recommendation is ours: there the best trial counts, not an arm.

    Parameters
    ----------
    alpha : float
        Weight of the exploration bonus.

    Examples
    --------
    >>> MaxUCB().plan(arms=3, budget=100)
    Plan(keep=array([ 3, -1]), upto=array([  1, 100]))
    """

    alpha: float = 0.5

    name: ClassVar[str] = "max-ucb"
    cites: ClassVar[tuple[str, ...]] = ("Balef25",)
    remember = staticmethod(remember_nothing)

    def __post_init__(self) -> None:
        check_not_negative("alpha", self.alpha, "the bonus grows with it")

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, 1), (ANY, horizon)]

    def running_window(self) -> tuple[float, bool]:
        return 0.0, False

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(), cls(alpha=2.0)]

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        reward, pool = ledger.last[i], ledger.pool
        first = ledger.cursor[PULLS] == 1
        pool[SMALLEST] = reward if first else min(pool[SMALLEST], reward)
        pool[LARGEST] = reward if first else max(pool[LARGEST], reward)
        ledger.memo[i] = reward if ledger.n[i] == 1 else max(ledger.memo[i], reward)
        ledger.rating[i] = ledger.memo[i]

    @kernel
    def pick(self: Any, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        """Return the arm with the largest index; all indices change with every pull."""
        best = OVER
        for place in range(ledger.cursor[RACERS]):
            i = ledger.racing[place]
            if ledger.n[i] < horizon:
                ledger.rating[i] = index_of(self, ledger, i)
                if best == OVER or ledger.rating[i] > ledger.rating[best]:
                    best = i
        return best

    @kernel
    def final_rating(self, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
        return ledger.memo[i]


@kernel
def index_of(self: Any, ledger: Ledger, i: int) -> float:
    """Return B_i for the next pull."""
    low, spread = ledger.pool[SMALLEST], ledger.pool[LARGEST] - ledger.pool[SMALLEST]
    level = (ledger.memo[i] - low) / spread if spread > 0.0 else 0.0
    bonus = self.alpha * log(ledger.cursor[PULLS] + 1.0) / ledger.n[i]
    return level + bonus * bonus
