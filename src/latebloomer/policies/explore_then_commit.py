"""Explore-Then-Commit [Cella21]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import RACERS, SWEEPS, Ledger
from latebloomer.policies.power_law import (
    PowerLawPolicy,
    commit,
    confidence_width,
    final_reward,
    predict_racing,
    runner_up,
)


@dataclass(frozen=True)
class ExploreThenCommit(PowerLawPolicy):
    r"""Sweep over all arms until one is clearly the best, then commit to it.

    After sweep :math:`\tau` an arm can still reach :math:`m = T - \tau(K-1)` pulls. The rule
    commits to an arm whose predicted loss at m is two widths below all others' (a fit by
    `power_law`), and recommends the smallest predicted loss at the end.

    Parameters
    ----------
    rho : float
        Exponent of the power law.
    largest_alpha : float
        Bound on every alpha, U of [Cella21].
    width_scale : float
        Factor of the confidence width, which is 24 to 257 on losses up to 1.
    """

    name: ClassVar[str] = "etc"
    cites: ClassVar[tuple[str, ...]] = ("Cella21",)

    @kernel
    def after_sweep(self: Any, ledger: Ledger, budget: int, horizon: int) -> None:
        tau = ledger.cursor[SWEEPS]
        if ledger.cursor[RACERS] == 1 or tau < 2:
            return
        best = predict_racing(self, ledger, tau, reach(ledger, budget, horizon))
        margin = ledger.rating[ledger.racing[best]] - runner_up(ledger, best)
        if margin > 2.0 * confidence_width(self, tau):
            commit(ledger, best)

    @kernel
    def final_rating(self: Any, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
        return final_reward(self, ledger, i, reach(ledger, budget, horizon))


@kernel
def reach(ledger: Ledger, budget: int, horizon: int) -> int:
    """Return the pulls of an arm that would get all pulls left after the full sweeps."""
    return min(horizon, max(1, budget - ledger.cursor[SWEEPS] * (len(ledger.n) - 1)))
