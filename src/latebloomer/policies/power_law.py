r"""Explore-Then-Commit and Rest-Sure: policies that fit a power law to losses [Cella21].

The losses 1 - X of an arm are taken to have means :math:`\mu(n) = \alpha n^{-\rho} + \beta` with
:math:`\rho` known. This is reconstructed from [Mussi24] and its authors' code.
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

NOW = 0  # cell of `Ledger.arm`: the reward that the fit predicts at the pulls made


class Numbers(NamedTuple):
    """What `self` is inside the kernels."""

    rho: float
    scale: float  # 10 (sqrt U + 1)^2 / (rho (1 - rho)), times the user's width_scale
    union: float  # K T / delta with delta = 1/T
    longest: int  # the most sweeps that a fit is made to
    powers: PrefixSums | Floats  # powers[m] = 1^-rho + ... + m^-rho, up to `longest`


@dataclass(frozen=True)
class PowerLawPolicy(Policy):
    """A policy that sweeps over arms whose losses fall like a power law; subclasses stop it."""

    rho: float = 0.8
    largest_alpha: float = 1.0  # U of [Cella21], a bound on every alpha
    width_scale: float = 1.0  # factor of the confidence width, which is 24 to 257 on losses <= 1

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
        # At least two racing arms are swept, so no fit reaches beyond half of the budget.
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
        """Rate the racing arms by their fits; commit to one, or drop some, if that is certain."""


@kernel
def decay(self: Numbers, m: int) -> float:
    """Return m^-rho."""
    return (1.0 * m) ** -self.rho


@kernel
def carried(self: Numbers, tau: int, decay_m: float) -> float:
    """Return how far the fit to `tau` pulls carries the gain of its second half on, to m pulls.

    With first- and second-half means A, B of the losses and the half sums Ha, Hb of s^-rho:
    alpha = (tau/2)(A - B)/(Ha - Hb), beta = A - alpha Ha/(tau/2), mu(m) = beta + alpha m^-rho. So
    mu(m) = A - (A - B) c for all arms, with c = (Ha - (tau/2) m^-rho)/(Ha - Hb).
    """
    half = tau // 2
    early = self.powers[half]
    late = self.powers[2 * half] - early
    return (early - half * decay_m) / (early - late)


@kernel
def predicted_reward(ledger: Ledger, i: int, tau: int, carry: float) -> float:
    """Return 1 - mu_i(m) by the fit to the first `tau` rewards (tau - 1 if tau is odd)."""
    first, second = half_means(ledger, i, tau // 2)
    return first + (second - first) * carry


@kernel
def confidence_width(self: Numbers, tau: int) -> float:
    """Return CB(tau) = scale (L/tau + sqrt(L/tau)), L = log(tau K T / delta)."""
    ratio = log(tau * self.union) / tau
    return self.scale * (ratio + sqrt(ratio))


@kernel
def predict_racing(self: Numbers, ledger: Ledger, tau: int, m: int) -> int:
    """Rate the racing arms by their predicted reward at m pulls; return the best one's place."""
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
    """Return the predicted reward at m pulls; the mean until two sweeps are complete."""
    tau = min(ledger.cursor[SWEEPS], self.longest)
    if tau < 2:
        return mean_of_first(ledger, i, ledger.n[i])
    return predicted_reward(ledger, i, tau, carried(self, tau, decay(self, m)))


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
    """Return whether an arm with the best rating and the best `NOW` of all would beat any arm.

    If it would not, no arm does, and none has to be sorted: most sweeps end here.
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
    """Compare all pairs in one walk over `work`, which has the racing arms, best rated first.

    The arms whose rating beats an arm's come before it, and they beat the ratings of all arms that
    follow: the highest `NOW` among them is all that has to be kept.
    """
    ahead, top_now = 0, -inf
    for place in range(ledger.cursor[RACERS]):
        i = ledger.work[place]
        while ledger.rating[ledger.work[ahead]] - ledger.rating[i] > sure:
            top_now = max(top_now, ledger.arm[ledger.work[ahead]][NOW])
            ahead += 1
        if top_now - ledger.arm[i][NOW] > sure:
            ledger.out[i] = ledger.cursor[PULLS]
