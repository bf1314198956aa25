"""Hybrid [Blum25], for comparison: extrapolate for half of the budget, then use PTRR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, OVER, PULLS, RACERS, Ledger, remember_rewards
from latebloomer.policies.base import Policy
from latebloomer.policies.power_law import commit, runner_up
from latebloomer.policies.related.ptrr import (
    abandon_if_low,
    arm_in_turn,
    check_threshold,
    last_pull,
    open_arms,
    take_turns,
)


class Numbers(NamedTuple):
    """What `self` is inside the kernels."""

    alpha: float
    best: float
    tau: float
    half: int  # pulls after which PTRR takes over


@dataclass(frozen=True)
class Hybrid(Policy):
    r"""Follow the highest straight line until one arm clearly wins; at half-time change to PTRR.

    On concave curves without noise an arm ends between its latest reward and the line through its
    latest two:

    .. math:: L = f(n), \qquad U = f(n) + (H - n)\,\max(0,\, f(n) - f(n-1)).

    After two pulls of each arm the rule pulls the largest U, and commits to an arm whose L is
    above every other's U. If that has not happened after T/2 pulls, the arms take turns by
    `PTRR`'s threshold, their earlier pulls counted. The best latest value is recommended.

    With noise a line through two rewards means nothing, and the rule commits early. The paper's
    text was not available beyond that rule, so these are ours: the horizon instead of T, steps
    below 0 taken as 0, and the choices named at `PTRR`.

    Parameters
    ----------
    alpha : float
        Exponent of PTRR's threshold.
    best : float
        Value at which the best arm is expected to end, m of PTRR.

    Examples
    --------
    >>> Hybrid().plan(arms=3, budget=60)
    Plan(keep=array([ 3, -1]), upto=array([ 2, 60]))
    """

    alpha: float = 1.0
    best: float = 1.0

    name: ClassVar[str] = "hybrid"
    cites: ClassVar[tuple[str, ...]] = ("Blum25",)
    remember = staticmethod(remember_rewards)

    def __post_init__(self) -> None:
        check_threshold(self.alpha, self.best)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, 2), (ANY, horizon)]

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        tau = last_pull(arms, budget, horizon)
        return Numbers(float(self.alpha), float(self.best), tau, budget // 2)

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        return 2 * arms, "two pulls of each learner, through which a line goes"

    def advised_budget(self, arms: int) -> tuple[int, str]:
        return 4 * arms, "two pulls of each learner with half of the budget"

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(), cls(alpha=0.5, best=0.8)]

    @kernel
    def update_rating(self: Any, ledger: Ledger, i: int, horizon: int) -> None:
        n, last = ledger.n[i], ledger.last[i]
        step = last - ledger.Q[i][n - 1] if n > 1 else 0.0
        ledger.rating[i] = last + (horizon - n) * max(0.0, step)
        abandon_if_low(ledger, i, self.best, self.tau, self.alpha)

    @kernel
    def pick(self: Any, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        if ledger.cursor[RACERS] > 1:
            if ledger.cursor[PULLS] >= self.half:
                return arm_in_turn(ledger, horizon, seed, run)
            commit_if_sure(ledger)
        return highest_line(ledger, horizon)

    def pick_batch(
        self, rule: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Return the arms with the next largest U; by turns after half of the budget."""
        if ledger.cursor[RACERS] > 1 and ledger.cursor[PULLS] >= rule.half:
            return take_turns(ledger, held, count, game.horizon)
        able = open_arms(ledger, held, game.horizon)
        more = sorted(able, key=lambda i: (-ledger.rating[i], i))
        return [*held, *more[: count - len(held)]]

    @kernel
    def final_rating(self, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
        return ledger.last[i]


@kernel
def commit_if_sure(ledger: Ledger) -> None:
    """Drop all other arms if one's latest reward is above what any other can reach."""
    best = 0
    for place in range(ledger.cursor[RACERS]):
        if ledger.last[ledger.racing[place]] > ledger.last[ledger.racing[best]]:
            best = place
    if ledger.last[ledger.racing[best]] > runner_up(ledger, best):
        commit(ledger, best)


@kernel
def highest_line(ledger: Ledger, horizon: int) -> int:
    """Return the racing arm with the largest U below the horizon, or OVER."""
    best = OVER
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if ledger.n[i] < horizon and (best == OVER or ledger.rating[i] > ledger.rating[best]):
            best = i
    return best
