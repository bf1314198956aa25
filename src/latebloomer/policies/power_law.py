r"""What `ExploreThenCommit` and `RestSure` share: a power law fitted to losses [Cella21].

The losses 1 - X of an arm are taken to have means :math:`\mu(n) = \alpha n^{-\rho} + \beta` with
:math:`\rho` known. This is reconstructed from [Mussi24] and its authors' code.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import NamedTuple, Self

from latebloomer.core.estimators import PrefixSums
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import (
    PULLS,
    RACERS,
    SWEEPS,
    Floats,
    Ledger,
    close_ranks,
    remember_levels,
)
from latebloomer.errors import need_number, require
from latebloomer.policies.base import Policy, check_not_negative


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

    remember = staticmethod(remember_levels)

    def __post_init__(self) -> None:
        need_number("rho", self.rho)
        require(0.001 <= self.rho <= 0.999, "rho", self.rho, "in [0.001, 0.999]",
                "outside, the fit or the width divides by almost 0")  # fmt: skip
        check_not_negative("largest_alpha", self.largest_alpha, "it bounds how far losses fall")
        check_not_negative("width_scale", self.width_scale, "it multiplies the confidence width")

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, budget)]

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        # At least two racing arms are swept, so no fit reaches beyond half of the budget.
        longest, rho = min(budget // 2, horizon), float(self.rho)
        scale = 10 * (sqrt(self.largest_alpha) + 1) ** 2 / (self.rho * (1 - self.rho))
        return Numbers(
            rho,
            float(self.width_scale * scale),
            float(arms) * budget * budget,
            longest,
            PrefixSums(lambda m: m**-rho, longest),
        )

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        """Do nothing: `after_sweep` rates all arms together."""

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        return 2 * arms, "two pulls of each learner to fit its power law"

    @abstractmethod
    @kernel
    def after_sweep(self, ledger: Ledger, budget: int, horizon: int) -> None:
        """Rate the racing arms by their fits; commit to one, or drop some, if that is certain."""

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(), cls(width_scale=1e-4)]  # the published width never drops an arm


@kernel
def decay(self: Numbers, m: int) -> float:
    """Return m^-rho."""
    return (1.0 * m) ** -self.rho


@kernel
def predicted_reward(self: Numbers, ledger: Ledger, i: int, tau: int, decay_m: float) -> float:
    """Return 1 - mu_i(m) by the fit to the first `tau` rewards (tau - 1 if tau is odd).

    With first- and second-half means A, B of the losses and the half sums Ha, Hb of s^-rho:
    alpha = (tau/2)(A - B)/(Ha - Hb), beta = A - alpha Ha/(tau/2), mu(m) = beta + alpha m^-rho.
    """
    half = tau // 2
    first = 1.0 - ledger.S[i][half] / half
    second = 1.0 - (ledger.S[i][2 * half] - ledger.S[i][half]) / half
    early = self.powers[half]
    late = self.powers[2 * half] - early
    alpha = half * (first - second) / (early - late)
    beta = first - alpha * early / half
    return 1.0 - (beta + alpha * decay_m)


@kernel
def confidence_width(self: Numbers, tau: int) -> float:
    """Return CB(tau) = scale (L/tau + sqrt(L/tau)), L = log(tau K T / delta)."""
    ratio = log(tau * self.union) / tau
    return self.scale * (ratio + sqrt(ratio))


@kernel
def predict_racing(self: Numbers, ledger: Ledger, tau: int, m: int) -> int:
    """Rate the racing arms by their predicted reward at m pulls; return the best one's place."""
    best, decay_m = 0, decay(self, m)
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        ledger.rating[i] = predicted_reward(self, ledger, i, tau, decay_m)
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
        return ledger.S[i][ledger.n[i]] / ledger.n[i]
    return predicted_reward(self, ledger, i, tau, decay(self, m))
