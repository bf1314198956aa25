"""Rest-Sure [Cella21]."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import PULLS, RACERS, SWEEPS, Ledger, close_ranks, sort_best_first
from latebloomer.policies.power_law import (
    Numbers,
    PowerLawPolicy,
    commit,
    confidence_width,
    decay,
    final_reward,
    predict_racing,
    predicted_reward,
    runner_up,
)


@dataclass(frozen=True)
class RestSure(PowerLawPolicy):
    r"""Sweep over the arms that may win; commit when one clearly does, or when waiting costs more.

    After sweep :math:`\tau` and t pulls in total, an arm of the active set A would end with
    :math:`m = T + \tau - t` pulls if committed to now. With losses predicted by `power_law` and
    the width CB the rule, in this order,

    1. commits to an arm that is 2 CB below all other active arms at m;
    2. commits to the best one when :math:`\min \mu(m - |A| + 1) - 2 CB > \min \mu(m)`;
    3. drops i if for some active j :math:`\mu_i(s) - \mu_j(s) > 2 CB` for all s in
       :math:`[\tau, m]`; a difference of two such laws is monotone, so its ends decide.

    Parameters
    ----------
    rho : float
        Exponent of the power law.
    largest_alpha : float
        Bound on every alpha, U of [Cella21].
    width_scale : float
        Factor of the confidence width, which is 24 to 257 on losses up to 1.
    """

    name: ClassVar[str] = "rest-sure"
    cites: ClassVar[tuple[str, ...]] = ("Cella21",)

    @kernel
    def after_sweep(self: Any, ledger: Ledger, budget: int, horizon: int) -> None:
        tau = ledger.cursor[SWEEPS]
        if ledger.cursor[RACERS] == 1 or tau < 2:
            return
        sure = 2.0 * confidence_width(self, tau)
        m = end(ledger, budget, horizon)
        best_later = later_best(self, ledger, tau, m)
        best = predict_racing(self, ledger, tau, m)
        now = ledger.rating[ledger.racing[best]]
        if now - runner_up(ledger, best) > sure or now - best_later > sure:
            commit(ledger, best)
        else:
            drop_beaten(self, ledger, tau, m, sure)

    @kernel
    def final_rating(self: Any, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
        return final_reward(self, ledger, i, end(ledger, budget, horizon))


@kernel
def end(ledger: Ledger, budget: int, horizon: int) -> int:
    """Return m = T + tau - t, at most the horizon."""
    return min(horizon, max(1, budget + ledger.cursor[SWEEPS] - ledger.cursor[PULLS]))


@kernel
def later_best(self: Numbers, ledger: Ledger, tau: int, m: int) -> float:
    """Return the best predicted reward after one more sweep: at m - |A| + 1 pulls."""
    later = max(1, m - ledger.cursor[RACERS] + 1)
    best = predict_racing(self, ledger, tau, later)
    return ledger.rating[ledger.racing[best]]


@kernel
def drop_beaten(self: Numbers, ledger: Ledger, tau: int, m: int, sure: float) -> None:
    """Drop each arm that some racing arm beats by more than `sure` at both ends of [tau, m].

    `rating` holds the predicted rewards at m; the best of them cannot be beaten there, so one
    arm always stays.
    """
    size, decay_tau = ledger.cursor[RACERS], decay(self, tau)
    for place in range(size):
        i = ledger.racing[place]
        ledger.memo[i] = predicted_reward(self, ledger, i, tau, decay_tau)
    drop_dominated(ledger, sure)


@kernel
def drop_dominated(ledger: Ledger, sure: float) -> None:
    """Drop i if for some j both `rating` and `memo` of j are more than `sure` above those of i."""
    if is_any_in_reach(ledger, sure):
        sort_best_first(ledger, ledger.cursor[RACERS])
        mark_dominated(ledger, sure)
        close_ranks(ledger)


@kernel
def is_any_in_reach(ledger: Ledger, sure: float) -> bool:
    """Return whether an arm with the best rating and the best memo of all would beat any arm.

    If it would not, no arm does, and none has to be sorted: most sweeps end here.
    """
    top_rating = top_memo = -inf
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        top_rating = max(top_rating, ledger.rating[i])
        top_memo = max(top_memo, ledger.memo[i])
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if top_rating - ledger.rating[i] > sure and top_memo - ledger.memo[i] > sure:
            return True
    return False


@kernel
def mark_dominated(ledger: Ledger, sure: float) -> None:
    """Compare all pairs in one walk over `work`, which has the racing arms, best rated first.

    The arms whose rating beats an arm's come before it, and they beat the ratings of all arms that
    follow: the highest `memo` among them is all that has to be kept.
    """
    ahead, top_memo = 0, -inf
    for place in range(ledger.cursor[RACERS]):
        i = ledger.work[place]
        while ledger.rating[ledger.work[ahead]] - ledger.rating[i] > sure:
            top_memo = max(top_memo, ledger.memo[ledger.work[ahead]])
            ahead += 1
        if top_memo - ledger.memo[i] > sure:
            ledger.out[i] = ledger.cursor[PULLS]
