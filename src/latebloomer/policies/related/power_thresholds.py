"""PTRR, a round robin with power-law thresholds, and Hybrid, which extrapolates first [Blum25].

Both serve only for comparison.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from latebloomer.core.history import reward_at
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, OVER, PULLS, RACERS, Ledger
from latebloomer.core.random import POLICY_STREAM, uniform
from latebloomer.core.run_memory import NOTHING, REWARDS, Memory
from latebloomer.errors import need_in
from latebloomer.policies.base import Policy, open_arms
from latebloomer.policies.power_law import commit, runner_up

TURN = 0  # cell of `Ledger.arm`:
WAITING, IN_TURN, ABANDONED = 0.0, 1.0, 2.0


class Numbers(NamedTuple):
    """The settings, which are `self` inside the kernels."""

    alpha: float
    best: float
    tau: float  # number of pulls at which the threshold reaches `best`
    half: int  # number of pulls after which Hybrid uses turns


@dataclass(frozen=True)
class TurnPolicy(Policy):
    """A policy whose arms take turns; a turn lasts while the arm stays above a power law."""

    alpha: float = 1.0
    best: float = 1.0

    cites: ClassVar[tuple[str, ...]] = ("Blum25",)
    _examples = ({}, {"alpha": 0.5, "best": 0.8})

    def __post_init__(self) -> None:
        need_in("alpha", self.alpha, "(0, 1]", "the threshold is a concave power law")
        need_in("best", self.best, "(0, inf)", "the best learner is expected to end there")

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        tau = float(max(1, min(horizon, budget - arms)))
        return Numbers(float(self.alpha), float(self.best), tau, budget // 2)

    def pick_batch(
        self, settings: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Return the arms whose turn it is, then waiting arms by index."""
        able = [
            i for i in open_arms(ledger, held, game.horizon) if ledger.arm[i][TURN] != ABANDONED
        ]
        more = able[: count - len(held)]
        for i in more:
            ledger.arm[i][TURN] = IN_TURN
        return [*held, *more]


@dataclass(frozen=True)
class PTRR(TurnPolicy):
    r"""Pull arms one after the other in random order, each while it stays above a power law.

    The current arm is pulled while its latest reward

    .. math:: f(n) \ge m\,(n/\tau)^\alpha, \qquad \tau = \min(H,\, T - K),

    Then it is abandoned, and the next arm is drawn from those that have had no turn yet. If
    :math:`\alpha = 1` and m is the final value of the best arm, no randomized rule has a better
    guarantee on concave curves: a reward of order :math:`1/\sqrt K` of the best reward. The rule
    is made to collect reward, not to select the best arm, so it may end before all arms have had a
    turn.

    Only the rule was available to us, not the paper's text. So these choices are ours: m is a
    setting with default 1, as for accuracies (the paper estimates it); tau depends on the horizon;
    the arm with the best latest value is recommended, and it gets the pulls that are left over
    after all turns. Arms with rewards below 0 are abandoned immediately.

    Parameters
    ----------
    alpha : float
        Exponent of the threshold, above 0 and at most 1.
    best : float
        Value m at which the best arm is expected to end, above 0.

    Examples
    --------
    >>> PTRR().settings(arms=4, budget=100, horizon=100)
    Numbers(alpha=1.0, best=1.0, tau=96.0, half=50)
    """

    name: ClassVar[str] = "ptrr"
    memory: ClassVar[Memory] = Memory(NOTHING, arm=("turn",), kept=("turn",))

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(ANY, horizon)]

    @kernel
    def update_rating(self: Any, ledger: Ledger, i: int, horizon: int) -> None:
        ledger.rating[i] = ledger.last[i]
        abandon_if_low(self, ledger, i)

    @kernel
    def pick(self, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        return arm_in_turn(ledger, horizon, seed, run)


@kernel
def abandon_if_low(self: Numbers, ledger: Ledger, i: int) -> None:
    """End the turn of arm i if its latest reward is below the threshold."""
    threshold = self.best * (ledger.n[i] / self.tau) ** self.alpha
    if ledger.arm[i][TURN] == IN_TURN and ledger.last[i] < threshold:
        ledger.arm[i][TURN] = ABANDONED


@kernel
def arm_in_turn(ledger: Ledger, horizon: int, seed: int, run: int) -> int:
    """Return the arm whose turn it is, else the next waiting arm, else the best latest value."""
    following, lowest, best = OVER, 1.0, OVER
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if ledger.n[i] < horizon:
            if ledger.arm[i][TURN] == IN_TURN:
                return i
            if ledger.arm[i][TURN] == WAITING:
                drawn = uniform(seed, run, POLICY_STREAM, i)  # the random order of this run
                if drawn < lowest:
                    following, lowest = i, drawn
            elif best == OVER or ledger.last[i] > ledger.last[best]:
                best = i
    if following == OVER:
        return best
    ledger.arm[following][TURN] = IN_TURN
    return following


@dataclass(frozen=True)
class Hybrid(TurnPolicy):
    r"""Pull the arm with the highest linear extrapolation; after T/2 pulls, change to ptrr.

    On concave curves without noise, the final reward of an arm is between its latest reward and
    the line through its latest two rewards:

    .. math:: L = f(n), \qquad U = f(n) + (H - n)\,\max(0,\, f(n) - f(n-1)).

    After two pulls of each arm, the rule pulls the arm with the largest U, and commits to an arm
    if its L is above every other arm's U. If it has not committed after T/2 pulls, the arms take
    turns by the threshold of `PTRR`, in which earlier pulls count. The arm with the best latest
    value is recommended.

    With noise, a line through two rewards means nothing, and the rule commits too early. Only the
    rule was available to us, not the paper's text. So these choices are ours: the horizon instead
    of T, steps below 0 that count as 0, and the choices listed in `PTRR`.

    Parameters
    ----------
    alpha : float
        Exponent of PTRR's threshold, above 0 and at most 1.
    best : float
        Value at which the best arm is expected to end (m of PTRR), above 0.

    Examples
    --------
    >>> Hybrid().plan(arms=3, budget=60)
    Plan(keep=array([ 3, -1]), upto=array([ 2, 60]))
    """

    name: ClassVar[str] = "hybrid"
    memory: ClassVar[Memory] = Memory(REWARDS, arm=("turn",), kept=("turn",))

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, 2), (ANY, horizon)]

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        return 2 * arms, "two pulls of each learner, through which a line goes"

    def advised_budget(self, arms: int) -> tuple[int, str]:
        return 4 * arms, "two pulls of each learner with half of the budget"

    @kernel
    def update_rating(self: Any, ledger: Ledger, i: int, horizon: int) -> None:
        n, last = ledger.n[i], ledger.last[i]
        step = last - reward_at(ledger, i, n - 1) if n > 1 else 0.0
        ledger.rating[i] = last + (horizon - n) * max(0.0, step)
        abandon_if_low(self, ledger, i)

    @kernel
    def pick(self: Any, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        if ledger.cursor[RACERS] > 1:
            if ledger.cursor[PULLS] >= self.half:
                return arm_in_turn(ledger, horizon, seed, run)
            commit_if_sure(ledger)
        return best_racing(ledger, horizon)

    def pick_batch(
        self, settings: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Return the arms with the next largest U; after half of the budget, arms by turns."""
        turns = ledger.cursor[RACERS] > 1 and ledger.cursor[PULLS] >= settings.half
        way = TurnPolicy.pick_batch if turns else Policy.pick_batch
        return way(self, settings, ledger, held, count, game)

    @kernel
    def final_rating(self, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
        return ledger.last[i]


@kernel
def commit_if_sure(ledger: Ledger) -> None:
    """Drop all other arms if one arm's L is above the U of every other arm."""
    best = 0
    for place in range(ledger.cursor[RACERS]):
        if ledger.last[ledger.racing[place]] > ledger.last[ledger.racing[best]]:
            best = place
    if ledger.last[ledger.racing[best]] > runner_up(ledger, best):
        commit(ledger, best)


@kernel
def best_racing(ledger: Ledger, horizon: int) -> int:
    """Return the racing arm with the highest rating below the horizon, or OVER."""
    best = OVER
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if ledger.n[i] < horizon and (best == OVER or ledger.rating[i] > ledger.rating[best]):
            best = i
    return best
