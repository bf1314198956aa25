"""Prob-1, or P1 [AbbasiYadkori18], which is made for rewards that an adversary chooses."""

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, NamedTuple

import numpy as np

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, OVER, PULLS, Floats, Ledger
from latebloomer.core.random import POLICY_STREAM, SHUFFLE_STREAM, uniform
from latebloomer.core.run_memory import NOTHING, Memory
from latebloomer.policies.base import Policy

PROBABILITY, PLACE = range(2)  # cells of `Ledger.arm`; places count from 1, 0 is a new arm


class Numbers(NamedTuple):
    """The settings, which are `self` inside the kernels."""

    harmonic: Floats  # harmonic[r] = 1 + 1/2 + ... + 1/r


@dataclass(frozen=True)
class ProbOne(Policy):
    r"""Draw the arm that ranks r-th so far with probability proportional to 1/r.

    The ranking is by decreasing :math:`G_i = \sum X / p`, each reward divided by the probability
    :math:`p = 1 / (r\,(1 + \frac12 + \dots + \frac1K))` with which its arm was drawn. Arms that
    tie stay in their previous order; the order at the start is random, by the seed. The
    recommended arm is the arm with the largest :math:`G`.

    In the ledger, `rating` is G, and `work` is the ranking, best first. The cells of an arm are
    the probability of its latest draw and its place in the ranking.
    """

    name: ClassVar[str] = "prob-1"
    cites: ClassVar[tuple[str, ...]] = ("AbbasiYadkori18",)
    memory: ClassVar[Memory] = Memory(NOTHING, arm=("probability", "place"))

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(ANY, horizon)]

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        return Numbers(np.cumsum([0.0, *(1 / rank for rank in range(1, arms + 1))]))

    @kernel
    def pick(self: Any, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        pulls = ledger.cursor[PULLS]
        if pulls == 0:
            shuffle(ledger, seed, run)
        i, probability = draw(self, ledger, horizon, uniform(seed, run, POLICY_STREAM, pulls))
        if i != OVER:
            ledger.arm[i][PROBABILITY] = probability
        return i

    def pick_batch(
        self, settings: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Return `count` draws from the current ranking, with each arm drawn at most once."""
        drawn, pulls = list(held), ledger.cursor[PULLS]
        for ahead in range(len(held), count):
            u = uniform(game.seed, ahead, POLICY_STREAM, pulls)
            i, probability = draw(settings, ledger, game.horizon, u)
            if i not in drawn:
                ledger.arm[i][PROBABILITY] = probability
                drawn.append(i)
        return drawn

    def after_replan(self, ledger: Ledger) -> None:
        """Rank the remaining arms as before, and new arms after them."""
        arms = range(len(ledger.n))
        ranked = sorted(arms, key=lambda i: ledger.arm[i][PLACE] or inf)
        for place, i in enumerate(ranked):
            ledger.work[place], ledger.arm[i][PLACE] = i, 1.0 + place

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        before = ledger.rating[i] if ledger.n[i] > 1 else 0.0
        ledger.rating[i] = before + ledger.last[i] / ledger.arm[i][PROBABILITY]
        settle(ledger, i)


@kernel
def shuffle(ledger: Ledger, seed: int, run: int) -> None:
    """Rank the arms, which all have G = 0, in random order [Fisher-Yates]."""
    arms = len(ledger.n)
    for i in range(arms):
        ledger.rating[i] = 0.0
        ledger.work[i] = i
    for last in range(arms - 1, 0, -1):
        place = int((last + 1) * uniform(seed, run, SHUFFLE_STREAM, last))
        i = ledger.work[last]
        ledger.work[last] = ledger.work[place]
        ledger.work[place] = i
    for place in range(arms):
        ledger.arm[ledger.work[place]][PLACE] = 1.0 + place


@kernel
def draw(self: Numbers, ledger: Ledger, horizon: int, u: float) -> tuple[int, float]:
    """Return the arm at the rank that `u`, uniform in (0, 1), draws, and the rank's probability.

    If that arm is at the horizon, the result is the next arm in the ranking (after the last one
    comes the first), or OVER if all are at the horizon. In the paper the horizon is the budget, so
    this case does not occur.
    """
    arms = len(ledger.n)
    target = u * self.harmonic[arms]
    low, high = 1, arms  # the rank is the smallest r with harmonic[r] >= target
    while low < high:
        middle = (low + high) // 2
        if self.harmonic[middle] < target:
            low = middle + 1
        else:
            high = middle
    for step in range(arms):
        i = ledger.work[(low - 1 + step) % arms]
        if ledger.n[i] < horizon:
            return i, 1.0 / (low * self.harmonic[arms])
    return OVER, 0.0


@kernel
def settle(ledger: Ledger, i: int) -> None:
    """Move arm i to its place in the ranking after its G has changed."""
    arms = len(ledger.n)
    place, g = int(ledger.arm[i][PLACE]) - 1, ledger.rating[i]
    while place > 0 and ledger.rating[ledger.work[place - 1]] < g:
        hand_over(ledger, place - 1, place)
        place -= 1
    while place < arms - 1 and ledger.rating[ledger.work[place + 1]] > g:
        hand_over(ledger, place + 1, place)
        place += 1
    ledger.work[place] = i
    ledger.arm[i][PLACE] = 1.0 + place


@kernel
def hand_over(ledger: Ledger, source: int, target: int) -> None:
    """Move the arm at one place of the ranking to the neighboring one."""
    j = ledger.work[source]
    ledger.work[target] = j
    ledger.arm[j][PLACE] = 1.0 + target
