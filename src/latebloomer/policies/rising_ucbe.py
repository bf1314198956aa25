"""UCB for exploration: R-UCBE [Mussi24, Alg. 1], and UCB-E [Audibert10] for constant curves."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, NamedTuple

from latebloomer.core.formulas import exploration_bonus, first_full, window_length
from latebloomer.core.history import newest_bend, projected_mean, recent_mean
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, PULLS, STALE, Ledger
from latebloomer.core.ranking import best_open
from latebloomer.core.run_memory import TOTAL, WINDOW, Memory
from latebloomer.core.statistics import noise_variance
from latebloomer.errors import SettingError, need_in, require
from latebloomer.policies.base import Policy, check_choice, check_window
from latebloomer.theory.rising_ucbe_bounds import theory_exploration

BY = ("estimate", "bound", "pulls")  # values of `recommend`; kernels use their index
SQUARES, COUNT, SIGMA, REFRESH = range(4)  # cells of `Ledger.run`


class Numbers(NamedTuple):
    """The settings of `RisingUCBE`, which are `self` inside its kernels."""

    exploration: float
    noise: float  # negative: the noise is estimated
    window: float
    by: int  # index of `recommend` in `BY`


@dataclass(frozen=True)
class RisingUCBE(Policy):
    r"""Pull the arm with the highest extrapolation to the horizon plus bonus.

    .. math:: B_i(n) = \check\mu_i^H(n) + \sigma\,(H - n + h - 1)\sqrt{a/h^3}, \qquad
              h = \lfloor \varepsilon n \rfloor

    [Mussi24, Eq. (ucbebound)], after a warm-up in which every window gets its first reward.

    `exploration` is :math:`a`, or "theory" for :math:`a = 10 \log(2TK/\delta)`. With this a, the
    error bound :math:`2TK e^{-a/10}` [Eq. (ucb_error_prob_ub)] equals `delta` wherever it applies.
    `noise` is :math:`\sigma`. If it is None, it is estimated from second differences of rewards,
    pooled over the arms. A rating uses the estimate at the time of the pull, and all ratings are
    updated whenever the number of pulls has doubled.

    The default of `recommend` differs from the paper, and the bound above is proved only for the
    paper's choice. Algorithm 1 recommends argmax B ("bound"). But a UCB rule makes its indices
    equal, so this recommendation is close to a random draw: on setting A with sigma .01, T = 3200
    and the authors' a, it is wrong in 44 % of runs. The argmax of the estimate ("estimate") is
    wrong in none of 5000 runs; the published figures and the authors' code also use it.

    Parameters
    ----------
    exploration : float | str
        The number a, at least 0, or "theory".
    noise : float | None
        Standard deviation of the noise, at least 0. Default: it is estimated.
    window : float
        Share of an arm's pulls, the latest ones, whose mean reward is extrapolated. The slope uses
        twice as many pulls.
    recommend : str
        Rule that selects the final arm: the highest "estimate", the highest "bound" or the most
        "pulls".
    delta : float
        Error probability that the bound allows, above 0 and below 1; only for
        exploration="theory".

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
    memory: ClassVar[Memory] = Memory(WINDOW, run=("squares", "count", "sigma", "refresh"))
    _examples = (
        {},
        {"exploration": 2.0, "noise": 0.02},
        {"exploration": 2.0, "noise": 0.02, "window": 0.1, "recommend": "bound"},
        {"exploration": 0.0, "window": 0.5, "recommend": "pulls"},
    )

    def __post_init__(self) -> None:
        check_window(self.window)
        check_choice("recommend", self.recommend, BY, "it says how the final learner is chosen")
        need_in("delta", self.delta, "(0, 1)", "it is a probability")
        if self.exploration != "theory":
            why = 'it scales the bonus; or "theory"'
            need_in("exploration", self.exploration, "[0, inf)", why)
        check_noise(self.noise)

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
        if isinstance(a, str):
            a = theory_exploration(arms, budget, self.delta)
        noise = -1.0 if self.noise is None else float(self.noise)
        return Numbers(float(a), noise, float(self.window), BY.index(self.recommend))

    def rated_share(self) -> float:
        return self.window

    def reads_bends(self) -> bool:
        return self.noise is None

    @kernel
    def update_rating(self: Numbers, ledger: Ledger, i: int, horizon: int) -> None:  # type: ignore[misc]
        noise = self.noise
        if noise < 0:
            noise = watch_noise(ledger, i)
        ledger.rating[i] = upper_bound(self, ledger, i, noise, horizon)

    @kernel
    def pick(self: Any, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        if pulled == ANY and self.noise < 0:  # the warm-up has ended, or the pulls have doubled
            for i in range(len(ledger.n)):
                ledger.rating[i] = upper_bound(self, ledger, i, ledger.run[SIGMA], horizon)
        return best_open(ledger, pulled, horizon)

    @kernel
    def final_rating(self: Numbers, ledger: Ledger, i: int, budget: int, horizon: int) -> float:  # type: ignore[misc]
        if self.by == 2:
            return 1.0 * ledger.n[i]
        if self.by == 1:
            noise = self.noise if self.noise >= 0 else ledger.run[SIGMA]
            return upper_bound(self, ledger, i, noise, horizon)
        return upper_bound(self, ledger, i, 0.0, horizon)


@kernel
def upper_bound(self: Numbers, ledger: Ledger, i: int, noise: float, horizon: int) -> float:
    """Return B_i with this noise; in the warm-up, while the window is empty, the plain mean."""
    n = ledger.n[i]
    h = window_length(self.window, n)
    if h < 1:
        return recent_mean(ledger, i, n)
    bonus = noise * exploration_bonus(n, h, horizon, self.exploration)
    return projected_mean(ledger, i, h, horizon) + bonus


def check_noise(noise: float | None) -> None:
    """Raise an error unless a noise is a standard deviation, or None."""
    if noise is not None:
        why = "it is a standard deviation; or None to estimate it"
        need_in("noise", noise, "[0, inf)", why)


@kernel
def watch_noise(ledger: Ledger, i: int) -> float:
    """Return the noise level after arm i's latest reward; update all bounds at each doubling."""
    cells, pulls = ledger.run, ledger.cursor[PULLS]
    if ledger.n[i] >= 3 and ledger.repeats_scores[i] == 0:
        bend = newest_bend(ledger, i)
        cells[SQUARES] += bend * bend
        cells[COUNT] += 1.0
        cells[SIGMA] = sqrt(noise_variance(cells[SQUARES], cells[COUNT]))
    if pulls >= cells[REFRESH]:
        cells[REFRESH] = 2.0 * pulls
        ledger.cursor[STALE] = 1
    return cells[SIGMA]


class UCBENumbers(NamedTuple):
    """The settings of `UCBE`, which are `self` inside its kernels."""

    exploration: float


@dataclass(frozen=True)
class UCBE(Policy):
    r"""Pull the arm with the largest mean plus bonus; recommend the arm with the largest *mean*.

    .. math:: B_i = \bar X_i + \sqrt{a / n_i}, \qquad a = \frac{25 (T-K)}{36 H_1}, \qquad
              H_1 = \sum_{i \ne i^*} \Delta_i^{-2}

    The formula for :math:`a` needs the gaps at the horizon. So give either `exploration`, which is
    a number, or `gaps`, one per arm with 0 for the best arm.

    Parameters
    ----------
    exploration : float | None
        The number a, at least 0. Give either this or `gaps`.
    gaps : tuple[float, ...] | None
        Gaps of the arms at the horizon, 0 for the best arm; a is then computed by the formula.

    Examples
    --------
    >>> UCBE(gaps=(0, 0.5, 0.5)).settings(arms=3, budget=75, horizon=75)  # 25 * 72 / (36 * 8)
    UCBENumbers(exploration=6.25)
    """

    exploration: float | None = None
    gaps: tuple[float, ...] | None = None

    name: ClassVar[str] = "ucb-e"
    picks_by_rating: ClassVar[bool] = True
    cites: ClassVar[tuple[str, ...]] = ("Audibert10",)
    memory: ClassVar[Memory] = Memory(TOTAL)
    _examples = ({"exploration": 0.5},)

    def __post_init__(self) -> None:
        if self.exploration is not None:
            need_in("exploration", self.exploration, "[0, inf)", "it scales the bonus")
        if self.gaps is not None:
            object.__setattr__(self, "gaps", _gaps(self.gaps))

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, 1), (ANY, horizon)]

    def settings(self, arms: int, budget: int, horizon: int) -> UCBENumbers:
        if self.exploration is not None:
            return UCBENumbers(float(self.exploration))
        behind = [gap for gap in self.gaps or () if gap > 0]
        if self.gaps is None or len(self.gaps) != arms or not behind:
            raise SettingError(
                f"UCBE(exploration=None, gaps={self.gaps}) cannot be used with {arms} learners. "
                f"Give exploration, a number, or gaps, {arms} numbers of which some are positive: "
                "the prescribed exploration is 25 (T - K) / (36 H_1), and H_1 follows from gaps."
            )
        return UCBENumbers(25 * (budget - arms) / (36 * sum(gap**-2 for gap in behind)))

    @kernel
    def rating(self: UCBENumbers, ledger: Ledger, i: int, horizon: int) -> float:  # type: ignore[misc]
        return recent_mean(ledger, i, ledger.n[i]) + sqrt(self.exploration / ledger.n[i])

    @kernel
    def final_rating(self, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
        return recent_mean(ledger, i, ledger.n[i])


def _gaps(values: Any) -> tuple[float, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise SettingError(f"gaps={values!r} must be a sequence of numbers, one per learner.")
    gaps = tuple(values)
    for gap in gaps:
        why = "it is how far each learner is below the best, and H_1 adds inverse squares"
        need_in("gaps", gap, "[0, 1e100]", why)
        require(gap == 0 or gap > 1e-100, "gaps", gap, "0 or above 1e-100", why)
    return tuple(map(float, gaps))
