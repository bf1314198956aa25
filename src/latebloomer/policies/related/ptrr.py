"""PTRR, the power-thresholded round robin of [Blum25], for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, OVER, RACERS, Ledger, remember_nothing
from latebloomer.core.random import POLICY_STREAM, uniform
from latebloomer.errors import need_number, require
from latebloomer.policies.base import Policy

WAITING, IN_TURN, ABANDONED = 0.0, 1.0, 2.0  # in `Ledger.memo`


class Numbers(NamedTuple):
    """What `self` is inside the kernels."""

    alpha: float
    best: float
    tau: float


@dataclass(frozen=True)
class PTRR(Policy):
    r"""Pull arms one after the other, in random order, each while it stays above a power law.

    The current arm is pulled while its latest reward

    .. math:: f(n) \ge m\,(n/\tau)^\alpha, \qquad \tau = \min(H,\, T - K),

    and then abandoned for one drawn from those that had no turn yet. With :math:`\alpha = 1` and m
    the value at which the best arm ends, no randomized rule has a better guarantee on concave
    curves: a reward of order :math:`1/\sqrt K` of the best. It was made to collect reward, not to
    select the best arm: it may end before all arms have had a turn.

    The paper's text was not available beyond the rule, so these are ours: m is a setting, 1 as for
    accuracies (the paper estimates it); tau depends on the horizon; the best latest value is
    recommended; pulls that are left after all turns go to it. Arms with rewards below 0 are
    abandoned immediately.

    Parameters
    ----------
    alpha : float
        Exponent of the threshold.
    best : float
        Value m at which the best arm is expected to end.

    Examples
    --------
    >>> PTRR().settings(arms=4, budget=100, horizon=100)
    Numbers(alpha=1.0, best=1.0, tau=96.0)
    """

    alpha: float = 1.0
    best: float = 1.0

    name: ClassVar[str] = "ptrr"
    cites: ClassVar[tuple[str, ...]] = ("Blum25",)
    remember = staticmethod(remember_nothing)

    def __post_init__(self) -> None:
        check_threshold(self.alpha, self.best)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(ANY, horizon)]

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        return Numbers(float(self.alpha), float(self.best), last_pull(arms, budget, horizon))

    def running_window(self) -> tuple[float, bool]:
        return 0.0, False

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(), cls(alpha=0.5, best=0.8)]

    @kernel
    def update_rating(self: Any, ledger: Ledger, i: int, horizon: int) -> None:
        ledger.rating[i] = ledger.last[i]
        abandon_if_low(ledger, i, self.best, self.tau, self.alpha)

    @kernel
    def pick(self, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        return arm_in_turn(ledger, horizon, seed, run)

    def pick_batch(
        self, rule: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        return take_turns(ledger, held, count, game.horizon)


def check_threshold(alpha: float, best: float) -> None:
    """Raise an error unless the settings of the threshold are valid."""
    need_number("alpha", alpha)
    require(0 < alpha <= 1, "alpha", alpha, "in (0, 1]", "the threshold is a concave power law")
    need_number("best", best)
    require(0 < best < float("inf"), "best", best, "above 0 and finite",
            "the best learner is expected to end there")  # fmt: skip


def last_pull(arms: int, budget: int, horizon: int) -> float:
    """Return tau, the pull at which the threshold reaches m."""
    return float(max(1, min(horizon, budget - arms)))


@kernel
def abandon_if_low(ledger: Ledger, i: int, best: float, tau: float, alpha: float) -> None:
    """End the turn of arm i if its latest reward is below the threshold."""
    if ledger.memo[i] == IN_TURN and ledger.last[i] < best * (ledger.n[i] / tau) ** alpha:
        ledger.memo[i] = ABANDONED


@kernel
def arm_in_turn(ledger: Ledger, horizon: int, seed: int, run: int) -> int:
    """Return the current arm, else the next that waits, else the best latest value."""
    following, lowest, best = OVER, 1.0, OVER
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if ledger.n[i] < horizon:
            if ledger.memo[i] == IN_TURN:
                return i
            if ledger.memo[i] == WAITING:
                drawn = uniform(seed, run, POLICY_STREAM, i)  # the order of the run
                if drawn < lowest:
                    following, lowest = i, drawn
            elif best == OVER or ledger.last[i] > ledger.last[best]:
                best = i
    if following == OVER:
        return best
    ledger.memo[following] = IN_TURN
    return following


def take_turns(ledger: Ledger, held: list[int], count: int, horizon: int) -> list[int]:
    """Return several arms to pull together: current ones and those that wait, by index."""
    able = [i for i in open_arms(ledger, held, horizon) if ledger.memo[i] != ABANDONED]
    more = able[: count - len(held)]
    for i in more:
        ledger.memo[i] = IN_TURN
    return [*held, *more]


def open_arms(ledger: Ledger, held: list[int], horizon: int) -> list[int]:
    """Return the racing arms below the horizon whose pulls are not under way."""
    racing = ledger.racing[: ledger.cursor[RACERS]]
    return [i for i in racing if i not in held and ledger.n[i] < horizon]
