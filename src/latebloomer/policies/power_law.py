r"""Explore-Then-Commit and Rest-Sure: policies that fit a power law to losses [Cella21].

The policies assume that the losses 1 - X of an arm have means :math:`\mu(n) = \alpha n^{-\rho} +
\beta` with known :math:`\rho`. They are reconstructed from [Mussi24] and its authors' code.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Any, ClassVar, NamedTuple

from latebloomer.core.formulas import PrefixSums
from latebloomer.core.history import half_means, mean_of_first
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import PULLS, RACERS, SWEEPS, Floats, Ledger
from latebloomer.core.ranking import close_ranks, sort_best_first
from latebloomer.core.run_memory import BEGINNINGS, Memory
from latebloomer.errors import need_in
from latebloomer.policies.base import Policy

NOW = 0  # cell of `Ledger.arm`: the reward that the fit predicts at the arm's number of pulls


class Numbers(NamedTuple):
    """The settings, which are `self` inside the kernels."""

    rho: float
    scale: float  # 10 (sqrt U + 1)^2 / (rho (1 - rho)), times width_scale
    union: float  # K T / delta with delta = 1/T
    longest: int  # maximum number of sweeps that a fit uses
    powers: PrefixSums | Floats  # powers[m] = 1^-rho + ... + m^-rho, up to `longest`


@dataclass(frozen=True)
class PowerLawPolicy(Policy):
    """Base class of policies that sweep over arms and fit power laws to their losses."""

    rho: float = 0.8
    largest_alpha: float = 1.0  # U of [Cella21], a bound on every alpha
    width_scale: float = 1.0  # factor of the width: at 1, the width is 24 to 257 on losses <= 1

    cites: ClassVar[tuple[str, ...]] = ("Cella21",)
    memory: ClassVar[Memory] = Memory(BEGINNINGS)
    _examples = ({}, {"width_scale": 1e-4})

    def __post_init__(self) -> None:
        why = "outside, the fit or the width divides by almost 0"
        need_in("rho", self.rho, "[0.001, 0.999]", why)
        need_in("largest_alpha", self.largest_alpha, "[0, inf)", "it bounds how far losses fall")
        need_in("width_scale", self.width_scale, "[0, inf)", "it multiplies the confidence width")

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, budget)]

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        # A sweep has at least two arms, so no fit needs more sweeps than half of the budget.
        longest, rho = min(budget // 2, horizon), float(self.rho)
        scale = 10 * (sqrt(self.largest_alpha) + 1) ** 2 / (self.rho * (1 - self.rho))
        powers, union = PrefixSums(lambda m: m**-rho, longest), float(arms) * budget * budget
        return Numbers(rho, float(self.width_scale * scale), union, longest, powers)

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        """Do nothing: `after_sweep` rates all arms together."""

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        return 2 * arms, "two pulls of each learner to fit its power law"

    @abstractmethod
    @kernel
    def after_sweep(self, ledger: Ledger, budget: int, horizon: int) -> None:
        """Rate the racing arms by their fits; drop arms if that is certain."""


@kernel
def decay(self: Numbers, m: int) -> float:
    """Return m^-rho."""
    return (1.0 * m) ** -self.rho


@kernel
def carried(self: Numbers, tau: int, decay_m: float) -> float:
    """Return c: how far a fit to `tau` pulls extrapolates the gain of the second half, to m pulls.

    Let A and B be the mean losses of the first and second half, and Ha and Hb the sums of s^-rho
    over them: alpha = (tau/2)(A - B)/(Ha - Hb), beta = A - alpha Ha/(tau/2), mu(m) = beta + alpha
    m^-rho. So mu(m) = A - (A - B) c for all arms, with c = (Ha - (tau/2) m^-rho)/(Ha - Hb).
    """
    half = tau // 2
    early = self.powers[half]
    late = self.powers[2 * half] - early
    return (early - half * decay_m) / (early - late)


@kernel
def predicted_reward(ledger: Ledger, i: int, tau: int, carry: float) -> float:
    """Return 1 - mu_i(m) by a fit to the first `tau` rewards (tau - 1 if tau is odd)."""
    first, second = half_means(ledger, i, tau // 2)
    return first + (second - first) * carry


@kernel
def confidence_width(self: Numbers, tau: int) -> float:
    """Return CB(tau) = scale (L/tau + sqrt(L/tau)), L = log(tau K T / delta)."""
    ratio = log(tau * self.union) / tau
    return self.scale * (ratio + sqrt(ratio))


@kernel
def predict_racing(self: Numbers, ledger: Ledger, tau: int, m: int) -> int:
    """Rate the racing arms by predicted reward at m pulls; return the place of the best arm."""
    best, carry = 0, carried(self, tau, decay(self, m))
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        ledger.rating[i] = predicted_reward(ledger, i, tau, carry)
        if ledger.rating[i] > ledger.rating[ledger.racing[best]]:
            best = place
    return best


@kernel
def runner_up(ledger: Ledger, best: int) -> float:
    """Return the highest rating of the racing arms, except the one at place `best`."""
    top = -inf
    for place in range(ledger.cursor[RACERS]):
        if place != best:
            top = max(top, ledger.rating[ledger.racing[place]])
    return top


@kernel
def commit(ledger: Ledger, best: int) -> None:
    """Drop every racing arm except the one at place `best`."""
    for place in range(ledger.cursor[RACERS]):
        if place != best:
            ledger.out[ledger.racing[place]] = ledger.cursor[PULLS]
    close_ranks(ledger)


@kernel
def final_reward(self: Numbers, ledger: Ledger, i: int, m: int) -> float:
    """Return the predicted reward at m pulls, or the mean before two sweeps are complete."""
    tau = min(ledger.cursor[SWEEPS], self.longest)
    if tau < 2:
        return mean_of_first(ledger, i, ledger.n[i])
    return predicted_reward(ledger, i, tau, carried(self, tau, decay(self, m)))


@dataclass(frozen=True)
class ExploreThenCommit(PowerLawPolicy):
    r"""Sweep over all arms until one is clearly the best, then commit to it.

    After sweep :math:`\tau` an arm can still reach :math:`m = T - \tau(K-1)` pulls. The rule
    commits to an arm if its predicted loss at m, by a power law, is two widths below the predicted
    losses of all others. At the end it recommends the arm with the smallest predicted loss.

    Parameters
    ----------
    rho : float
        Exponent of the power law, from 0.001 to 0.999.
    largest_alpha : float
        Upper bound on every alpha (U of [Cella21]), at least 0.
    width_scale : float
        Factor of the confidence width, at least 0. At 1, the width is 24 to 257 on losses up to 1.
    """

    name: ClassVar[str] = "etc"

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
    """Return the pulls of an arm that gets all pulls remaining after the full sweeps."""
    return min(horizon, max(1, budget - ledger.cursor[SWEEPS] * (len(ledger.n) - 1)))


@dataclass(frozen=True)
class RestSure(PowerLawPolicy):
    r"""Sweep over arms that may win; commit if one clearly wins, or if waiting costs too much.

    After sweep :math:`\tau` and t pulls in total, an arm of the active set A would end with
    :math:`m = T + \tau - t` pulls if the rule committed to it now. With losses predicted by power
    laws and the width CB, the rule does the following, in this order. It

    1. commits to an arm that is 2 CB below all other active arms at m;
    2. commits to the best one when :math:`\min \mu(m - |A| + 1) - 2 CB > \min \mu(m)`;
    3. drops i if for some active j :math:`\mu_i(s) - \mu_j(s) > 2 CB` for all s in
       :math:`[\tau, m]`; a difference of two such laws is monotone, so it is enough to check both
       ends.

    Parameters
    ----------
    rho : float
        Exponent of the power law, from 0.001 to 0.999.
    largest_alpha : float
        Upper bound on every alpha (U of [Cella21]), at least 0.
    width_scale : float
        Factor of the confidence width, at least 0. At 1, the width is 24 to 257 on losses up to 1.
    """

    name: ClassVar[str] = "rest-sure"
    memory: ClassVar[Memory] = Memory(BEGINNINGS, arm=("now",))

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
    """Return the best predicted reward at m - |A| + 1 pulls, as if one more sweep were made."""
    later = max(1, m - ledger.cursor[RACERS] + 1)
    best = predict_racing(self, ledger, tau, later)
    return ledger.rating[ledger.racing[best]]


@kernel
def drop_beaten(self: Numbers, ledger: Ledger, tau: int, m: int, sure: float) -> None:
    """Drop each arm that another racing arm beats by more than `sure` at both ends of [tau, m].

    `rating` holds the predicted rewards at m. The best arm at m cannot be beaten there, so at
    least one arm always stays.
    """
    size, carry = ledger.cursor[RACERS], carried(self, tau, decay(self, tau))
    for place in range(size):
        i = ledger.racing[place]
        ledger.arm[i][NOW] = predicted_reward(ledger, i, tau, carry)
    drop_dominated(ledger, sure)


@kernel
def drop_dominated(ledger: Ledger, sure: float) -> None:
    """Drop i if for some j both `rating` and `NOW` of j are more than `sure` above those of i."""
    if is_any_in_reach(ledger, sure):
        sort_best_first(ledger, ledger.cursor[RACERS])
        mark_dominated(ledger, sure)
        close_ranks(ledger)


@kernel
def is_any_in_reach(ledger: Ledger, sure: float) -> bool:
    """Return whether an arm with the best rating and the best `NOW` would beat any arm.

    If it would not, no arm is beaten, so the arms need not be sorted. Most sweeps end here.
    """
    top_rating = top_now = -inf
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        top_rating = max(top_rating, ledger.rating[i])
        top_now = max(top_now, ledger.arm[i][NOW])
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if top_rating - ledger.rating[i] > sure and top_now - ledger.arm[i][NOW] > sure:
            return True
    return False


@kernel
def mark_dominated(ledger: Ledger, sure: float) -> None:
    """Compare all pairs in one pass over `work`, which has the racing arms, best rating first.

    The arms that beat an arm's rating come before it in `work`, and they also beat the ratings of
    all arms after it. So only the highest `NOW` among them must be stored.
    """
    ahead, top_now = 0, -inf
    for place in range(ledger.cursor[RACERS]):
        i = ledger.work[place]
        while ledger.rating[ledger.work[ahead]] - ledger.rating[i] > sure:
            top_now = max(top_now, ledger.arm[ledger.work[ahead]][NOW])
            ahead += 1
        if top_now - ledger.arm[i][NOW] > sure:
            ledger.out[i] = ledger.cursor[PULLS]
