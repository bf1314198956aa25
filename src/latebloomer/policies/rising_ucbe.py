"""Rising UCB for exploration, R-UCBE [Mussi24, Alg. 1]."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, NamedTuple, Self

from latebloomer.core.estimators import (
    exploration_bonus,
    first_full,
    newest_bend,
    projected_mean,
    recent_mean,
    window_length,
)
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, PULLS, STALE, Ledger, best_open
from latebloomer.core.statistics import noise_variance
from latebloomer.errors import need_number, require
from latebloomer.policies.base import Policy, check_choice, check_not_negative, check_window
from latebloomer.theory.rising_ucbe_bounds import theory_exploration

BY = ("estimate", "bound", "pulls")  # what `recommend` may be; the kernel knows it by its place
SQUARES, COUNT, SIGMA, REFRESH = 0, 1, 2, 3  # cells of Ledger.pool


class Numbers(NamedTuple):
    """What `self` is inside the kernels."""

    exploration: float
    noise: float  # negative: estimate it
    window: float
    by: int  # the place of `recommend` in `BY`


@dataclass(frozen=True)
class RisingUCBE(Policy):
    r"""Pull the arm whose extrapolation to the horizon, plus a bonus, is highest.

    .. math:: B_i(n) = \check\mu_i^H(n) + \sigma\,(H - n + h - 1)\sqrt{a/h^3}, \qquad
              h = \lfloor \varepsilon n \rfloor

    [Mussi24, Eq. (ucbebound)], after a warm-up in which every window gets its first reward.

    `exploration` is :math:`a`, or "theory": :math:`a = 10 \log(2TK/\delta)`, for which the error
    bound :math:`2TK e^{-a/10}` [Eq. (ucb_error_prob_ub)] is `delta` wherever it applies.
    `noise` is :math:`\sigma`, or None: then it is estimated from second differences pooled over
    the arms. A rating uses the estimate at that moment, and all ratings are renewed when the
    number of pulls has doubled.

    `recommend` departs from the paper by default, and the bound above is proved for the paper's
    choice only. Algorithm 1 recommends argmax B ("bound"), but
    a UCB rule equalizes its indices, so that is close to a random draw: on setting A with sigma
    .01, T = 3200 and the authors' a it errs in 44 % of runs, against none of 5000 with argmax
    of the estimate ("estimate"), which the published figures and the authors' code use too.

    Parameters
    ----------
    exploration : float | str
        The number a, or "theory".
    noise : float | None
        Standard deviation of the noise. Default: estimated.
    window : float
        Share of its pulls, the latest ones, whose mean is extrapolated; twice that is used.
    recommend : str
        Rule for the final arm: highest "estimate", highest "bound" or most "pulls".
    delta : float
        With exploration="theory": error probability that the bound allows.

    Examples
    --------
    >>> RisingUCBE().plan(arms=3, budget=100)  # 4 pulls each, then the highest bound
    Plan(keep=array([ 3, -1]), upto=array([  4, 100]))
    """

    exploration: float | str = "theory"
    noise: float | None = None
    window: float = 0.25
    recommend: str = "estimate"
    delta: float = 0.05

    name: ClassVar[str] = "r-ucbe"
    picks_by_rating: ClassVar[bool] = True
    cites: ClassVar[tuple[str, ...]] = ("Mussi24",)

    def __post_init__(self) -> None:
        check_window(self.window)
        check_choice("recommend", self.recommend, BY, "it says how the final learner is chosen")
        need_number("delta", self.delta)
        require(0 < self.delta < 1, "delta", self.delta, "in (0, 1)", "it is a probability")
        if self.exploration != "theory":
            check_not_negative(
                "exploration", self.exploration, 'the bonus grows with it; or "theory"'
            )
        if self.noise is not None:
            check_not_negative("noise", self.noise, "a standard deviation; or None to estimate it")

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, self._warm_up()), (ANY, horizon)]

    def _warm_up(self) -> int:
        """Return the pulls until the window has a reward; at least 3 if noise is estimated."""
        return max(first_full(self.window), 3 if self.noise is None else 2)

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        pulls = self._warm_up()
        return arms * pulls, f"{pulls} pulls of each learner before it can extrapolate"

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        a = self.exploration
        exploration = (
            theory_exploration(arms, budget, self.delta) if isinstance(a, str) else float(a)
        )
        noise = -1.0 if self.noise is None else float(self.noise)
        return Numbers(exploration, noise, float(self.window), BY.index(self.recommend))

    def running_window(self) -> tuple[float, bool]:
        return self.window, self.noise is None

    @classmethod
    def examples(cls) -> list[Self]:
        return [
            cls(),
            cls(exploration=2.0, noise=0.02),
            cls(exploration=2.0, noise=0.02, window=0.1, recommend="bound"),
            cls(exploration=0.0, window=0.5, recommend="pulls"),
        ]

    @kernel
    def update_rating(self: Numbers, ledger: Ledger, i: int, horizon: int) -> None:  # type: ignore[misc]
        noise = self.noise
        if noise < 0:
            noise = watch_noise(ledger, i)
        ledger.rating[i] = upper_bound(self, ledger, i, noise, horizon)

    @kernel
    def pick(  # type: ignore[misc]
        self: Numbers, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int
    ) -> int:
        if pulled == ANY and self.noise < 0:  # the warm-up has ended, or the pulls have doubled
            for i in range(len(ledger.n)):
                ledger.rating[i] = upper_bound(self, ledger, i, ledger.pool[SIGMA], horizon)
        return best_open(ledger, pulled, horizon)

    @kernel
    def final_rating(self: Numbers, ledger: Ledger, i: int, budget: int, horizon: int) -> float:  # type: ignore[misc]
        if self.by == 2:
            return 1.0 * ledger.n[i]
        if self.by == 1:
            noise = self.noise if self.noise >= 0 else ledger.pool[SIGMA]
            return upper_bound(self, ledger, i, noise, horizon)
        return upper_bound(self, ledger, i, 0.0, horizon)


@kernel
def upper_bound(self: Numbers, ledger: Ledger, i: int, noise: float, horizon: int) -> float:
    """Return B_i with this noise; the plain mean while the window is empty (warm-up only)."""
    n = ledger.n[i]
    h = window_length(self.window, n)
    if h < 1:
        return recent_mean(ledger, i, n)
    bonus = noise * exploration_bonus(n, h, horizon, self.exploration)
    return projected_mean(ledger, i, h, horizon) + bonus


@kernel
def watch_noise(ledger: Ledger, i: int) -> float:
    """Return the noise level after arm i's latest reward; renew all bounds at each doubling."""
    pool, pulls = ledger.pool, ledger.cursor[PULLS]
    if ledger.n[i] >= 3 and ledger.repeats_scores[i] == 0:
        bend = newest_bend(ledger, i)
        pool[SQUARES] += bend * bend
        pool[COUNT] += 1.0
        pool[SIGMA] = sqrt(noise_variance(pool[SQUARES], pool[COUNT]))
    if pulls >= pool[REFRESH]:
        pool[REFRESH] = 2.0 * pulls
        ledger.cursor[STALE] = 1
    return pool[SIGMA]
