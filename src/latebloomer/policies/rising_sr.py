"""Rising Successive Rejects [Mussi24, Alg. 2]."""

from dataclasses import dataclass
from typing import ClassVar

from latebloomer.core.phases import phase_lengths
from latebloomer.policies.base import budget_for_window, check_choice, check_window
from latebloomer.policies.window_ratings import ByWindow


@dataclass(frozen=True)
class RisingSR(ByWindow):
    r"""Pull the remaining arms evenly; after each phase, drop the arm with the worst recent mean.

    Phase :math:`j` of :math:`K-1` ends when each of the :math:`K+1-j` remaining arms has

    .. math:: N_j = \Bigl\lceil \frac{T - K}{\overline{\log}(K)\,(K+1-j)} \Bigr\rceil, \qquad
              \overline{\log}(K) = \tfrac12 + \sum_{i=2}^{K} \tfrac1i,

    pulls [Mussi24, Eq. (chosen_values_nj)]; then the arm with the lowest :math:`\hat\mu_i(N_j)`
    [Eq. (mu_hat)] is dropped. The policy needs no knowledge of the problem, and its error has a
    proven bound (`latebloomer.theory.rising_sr`).

    Parameters
    ----------
    window : float
        Share of an arm's pulls, the latest ones, whose mean reward rates it; at most 0.5.
    leftover : str
        Use of the 1 to K pulls that the phases leave over: "survivor" gives them to the last
        remaining arm; "unspent" leaves them unused.

    Examples
    --------
    >>> RisingSR().plan(arms=3, budget=12)  # 3 arms to 3 pulls, 2 to 4, the last to the end
    Plan(keep=array([3, 2, 1]), upto=array([ 3,  4, 12]))
    """

    window: float = 0.25
    leftover: str = "survivor"

    name: ClassVar[str] = "r-sr"
    cites: ClassVar[tuple[str, ...]] = ("Mussi24",)
    _examples = ({}, {"window": 0.5, "leftover": "unspent"})

    def __post_init__(self) -> None:
        check_window(self.window)
        choices = ("survivor", "unspent")
        check_choice("leftover", self.leftover, choices, "it says what happens to the last pulls")

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        ends = phase_lengths(arms, budget)
        last = budget if self.leftover == "survivor" else ends[-1]
        return [*zip(range(arms, 1, -1), ends, strict=True), (1, last)]

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        return arms + 1, "with fewer pulls its first phase is empty"

    def advised_budget(self, arms: int) -> tuple[int, str]:
        return budget_for_window(arms, self.window)
