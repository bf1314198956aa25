"""Foresight: rank arms by forecasts, trusted only as far as they were right in this race."""

from dataclasses import dataclass
from math import exp, log, log2, sqrt
from typing import ClassVar

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import RACERS, SWEEPS, Ledger, remember_rises
from latebloomer.errors import need_in
from latebloomer.policies.adaptive_rejects import (
    NOISE_PULLS,
    STEEP,
    WINDOW,
    best_window,
    budget_for_noise,
    late_mean,
    late_noise,
    late_slope,
    power_plan,
)
from latebloomer.policies.base import Forecast, Policy

EIGHTHS = (4, 5, 6)  # tests forecast the gain until now from 4/8, 5/8 and 6/8 of an arm's pulls
FIRST = 8  # pulls needed to estimate two successive slopes (two rewards per quarter)
STEEPEST = 4.0  # exponent of a falling slope
BELIEF, TESTED, AHEAD = 1, 2, 3  # cells of `Ledger.pool`: trust, pull of its test, pull forecast


@dataclass(frozen=True)
class Foresight(Policy):
    r"""Drop the arm with the lowest late mean plus the trusted share of its forecast gain.

    *Plan.* The plan of `AdaptiveRejects`, with a power q that follows K, T and H by default:

    .. math:: q = \min\bigl(\max(\tfrac12,\ .6 \log_2(T/K)),\ 1 \text{ if } T \le H
              \text{ else } 1.5\bigr).

    *Rating.* :math:`\hat\mu_i + \beta(n)\,G_i(c, R(n))`: the window mean of `AdaptiveRejects`,
    plus the gain from the center of that window, :math:`c = n - (h-1)/2`, up to pull R(n), if the
    slope of arm i continues to fall as before. Forecasts reach as far as the square of the ratio
    over which they were tested, and no further than the horizon:

    .. math:: R(n) = \min\bigl(H,\ n\,(n/n_0)^2\bigr), \qquad
              n_0 = \max(8, \lfloor n/2 \rfloor),

    which is 1.9n at 11 pulls and about 4n from 16 pulls on. After a decision at n pulls, the
    trusted gain shrinks evenly with each further pull, to 0 at pull R(n). With
    :math:`a = \lfloor n/4 \rfloor`, let :math:`b_2` be the least-squares slope of its last 2a
    rewards, centered at :math:`c_2 = n - a`, and :math:`b_1` the slope of the 2a rewards before,
    at :math:`c_1 = n - 3a`. Then

    .. math:: \kappa_i = \mathrm{clip}\Bigl(\frac{\log(b_1/b_2)}{\log(c_2/c_1)}, 0, 4\Bigr), \qquad
              G_i(u, v) = b_2 \int_u^v (c_2/t)^{k}\,dt, \qquad k = (\kappa_i + \kappa)/2,

    :math:`\kappa` is the same exponent for the sums of all remaining arms' positive slopes, and
    G = 0 if :math:`b_2 \le 0`.

    *Belief.* From :math:`n_0` = n/2, 5n/8 and 3n/4 pulls (at least 8) the same formula forecasts
    what followed: A is the mean of the last n/8 rewards minus the mean of the :math:`n_0/8` up to
    :math:`n_0`, F the forecast from the center of the one window to the center of the other, both
    as differences to the mean of the remaining arms. Of the sums over arms and origins

    .. math:: \beta(n) = \min\Bigl(1 - \frac{(\sum (A - F)^2 - 2N)^+}{\sum A^2 - M},\
              2 - 2\,\frac{\sum (A - F)^2}{\sum A^2}\Bigr),

    at least 0, and 0 if :math:`\sum A^2 \le 2M`; M and N are what noise alone adds to the two
    sums. The second term requires that forecasts were better than none, whatever noise may
    explain. On smooth curves forecasts are right and a late bloomer is kept; on noisy or irregular
    ones belief is 0 and the rule is `AdaptiveRejects`, as it is below 11 pulls and at the horizon.
    An arm that repeats its reward between its steps gets no forecast and does not count.

    *Guarantee.* None.

    Parameters
    ----------
    power : float | None
        How steeply levels rise as arms are dropped. Default: by the rule above.

    Examples
    --------
    >>> Foresight().plan(arms=4, budget=40, horizon=20)
    Plan(keep=array([4, 3, 2, 1]), upto=array([ 5,  7, 14, 14]))
    """

    power: float | None = None

    name: ClassVar[str] = "foresight"
    remember = staticmethod(remember_rises)
    _examples = ({}, {"power": 1.5})

    def __post_init__(self) -> None:
        if self.power is not None:
            need_in("power", self.power, "[0, 10]", STEEP)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        power = advised_power(arms, budget, horizon) if self.power is None else self.power
        return power_plan(arms, budget, horizon, power)

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        """Rate an arm between decisions: by the window and the trusted gain of the last one.

        That gain comes evenly until pull R(n) of the last decision; what came is in the mean.
        """
        more = ledger.memo[i] * max(0.0, ledger.pool[AHEAD] - ledger.n[i])
        ledger.rating[i] = late_mean(ledger, i, int(ledger.pool[WINDOW])) + more

    @kernel
    def rate_jointly(self, ledger: Ledger, horizon: int) -> None:
        n, size, pool = ledger.cursor[SWEEPS], ledger.cursor[RACERS], ledger.pool
        if size < 2:  # the last arm is not compared with others any more
            return
        noise = late_noise(ledger, n) if n >= NOISE_PULLS else 0.0
        pool[WINDOW] = best_window(ledger, n, noise) if n >= NOISE_PULLS else 0
        update_belief(ledger, n, noise, min(1.0 * horizon, reach(n)))
        common, step, near, far = 0.0, 0.0, 0.0, 0.0
        if pool[BELIEF] > 0.0:
            step = step_at(n)
            common = note_slopes(ledger, n, step)
            center = n - 0.5 * (pool[WINDOW] - 1.0)  # the pull that the window mean stands for
            near, far = log(center / (n - n // 4)), log(pool[AHEAD] / center)
        for place in range(size):
            i = ledger.racing[place]
            more, each = 0.0, 0.0
            if pool[BELIEF] > 0.0 and ledger.repeats_scores[i] == 0:
                k = 0.5 * (exponent(ledger.rating[i], ledger.memo[i], step) + common)
                more = pool[BELIEF] * gain((n - n // 4) * ledger.memo[i], k, near, far)
                each = more / (pool[AHEAD] - n)
            ledger.memo[i] = each  # trusted gain per pull until AHEAD
            ledger.rating[i] = late_mean(ledger, i, int(pool[WINDOW])) + more

    def forecast(self, ledger: Ledger, i: int) -> Forecast | None:
        trust, n, ahead = (ledger.pool[cell] for cell in (BELIEF, TESTED, AHEAD))
        if EIGHTHS[-1] * n // 8 < FIRST or ahead <= max(n, ledger.n[i]):
            return None
        origin, more = max(FIRST, int(n) // 2), ledger.memo[i] * (ahead - ledger.n[i])
        return Forecast(trust, origin, int(n), ahead, more / trust if trust else 0.0)

    def advised_budget(self, arms: int) -> tuple[int, str]:
        # A budget this small is at most H, where the rule gives 1.
        return budget_for_noise(arms, 1.0 if self.power is None else self.power)


def advised_power(arms: int, budget: int, horizon: int) -> float:
    """Return how steeply levels rise: less if the budget is small, in total or for each arm.

    >>> [advised_power(8, budget, horizon=100) for budget in (8, 20, 100, 101, 400)]
    [0.5, 0.793..., 1.0, 1.5, 1.5]
    """
    steepest = 1.0 if budget <= horizon else 1.5
    return min(steepest, max(0.5, 0.6 * log2(budget / arms)))


# --- the forecast ---


@kernel
def reach(n: int) -> float:
    """Return the pull up to which gains are forecast: n (n/n0)^2, with n0 = max(8, n // 2).

    The earliest forecast that `belief` tests was made at pull n0. At 11 pulls that is pull 8, and
    a forecast to 4n would extrapolate much further than any that was tested: in a race of four
    real models it dropped a clear leader there. Rank loss with this reach minus rank loss with
    4n, paired, one to eight trainings: yahpo -.0013 +- .0005, taskset +.0003 +- .0010, lcdb10
    -.0004 +- .0003, lcdb11 and srb-imdb 0. Error on the paper's setting A, T = H = 100 to 600:
    .073 to .074; setting B unchanged.

    >>> [round(reach(n) / n, 2) for n in (8, 11, 15, 16, 100)]
    [1.0, 1.89, 3.52, 4.0, 4.0]
    """
    ratio = n / max(FIRST, n // 2)
    return n * ratio * ratio


@kernel
def exponent(early: float, late: float, step: float) -> float:
    """Return k of a slope that falls as t^-k from `early` to `late`, `step` apart in log t."""
    if late <= 0.0:
        return STEEPEST if early > 0.0 else 0.0
    if early <= late:
        return 0.0
    return min(STEEPEST, log(early / late) / step)


@kernel
def step_at(n: int) -> float:
    """Return the distance in log t between the centers of the two slopes at pull n."""
    a = n // 4
    return log((n - a) / (n - 3 * a))


@kernel
def note_slopes(ledger: Ledger, at: int, step: float) -> float:
    """Note both slopes of each arm at pull `at`; return the exponent of their sums.

    The early slope goes to `rating` and the late one to `memo`, which are computed again at the
    end of the decision: reading the sums a second time would cost as much as all the rest.
    """
    a = at // 4
    all_early, all_late = 0.0, 0.0
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if ledger.repeats_scores[i] == 0:
            early = late_slope(ledger, i, at - 2 * a, 2 * a)
            late = late_slope(ledger, i, at, 2 * a)
            ledger.rating[i], ledger.memo[i] = early, late
            all_early += max(0.0, early)
            all_late += max(0.0, late)
    return exponent(all_early, all_late, step)


@kernel
def gain(late: float, k: float, near: float, far: float) -> float:
    """Return the area under a slope that is `late` at t = 1 and falls as t^-k.

    It starts at log t = `near` and extends over `far` in log t.
    """
    if late <= 0.0:
        return 0.0
    p = k - 1.0
    if abs(p) < 1e-4:  # the difference below would lose digits; this is right to 1e-12
        return late * far * (1.0 - p * (near + 0.5 * far))
    return late * (exp(-p * near) - exp(-p * (near + far))) / p


# --- the test of forecasts ---


@kernel
def update_belief(ledger: Ledger, n: int, noise: float, ahead: float) -> None:
    """Test forecasts again if an eighth of an arm's pulls were made since the last test."""
    pool, size = ledger.pool, 0
    for place in range(ledger.cursor[RACERS]):
        size += 1 - ledger.repeats_scores[ledger.racing[place]]
    pool[AHEAD] = ahead
    if n < FIRST or ahead <= n or size < 2:
        pool[BELIEF], pool[TESTED] = 0.0, n
    elif 8 * n >= 9 * pool[TESTED]:
        pool[BELIEF], pool[TESTED] = belief(ledger, n, size, noise), n


@kernel
def belief(ledger: Ledger, n: int, size: int, noise: float) -> float:
    """Return the share of what followed that forecasts would have explained, from 0 to 1."""
    missed, moved, by_noise, still = 0.0, 0.0, 0.0, 0.0
    for eighths in EIGHTHS:
        n0 = n * eighths // 8
        if n0 < FIRST:
            continue
        a, h0, h1 = n0 // 4, n0 // 8, n // 8
        start, end, step = n0 - 0.5 * (h0 - 1), n - 0.5 * (h1 - 1), step_at(n0)
        near, far = log(start / (n0 - a)), log(end / start)  # between the centers of the means
        common = note_slopes(ledger, n0, step)
        sd = sqrt(12.0 * noise / (2.0 * a * (4.0 * a * a - 1.0)))  # of a slope
        seen, mean_gap, mean_came, unsure = 0, 0.0, 0.0, 0.0
        for place in range(ledger.cursor[RACERS]):
            i = ledger.racing[place]
            if ledger.repeats_scores[i] == 0:
                early, late = ledger.rating[i], ledger.memo[i]
                k = 0.5 * (exponent(early, late, step) + common)
                forecast = gain((n0 - a) * late, k, near, far)
                unsure += forecast * forecast * relative_variance(early, late, sd, step, far)
                S = ledger.S[i]
                came = (S[n] - S[n - h1]) / h1 - (S[n0] - S[n0 - h0]) / h0
                seen += 1
                gap, off = came - forecast - mean_gap, came - mean_came
                mean_gap += gap / seen  # Welford's sums
                mean_came += off / seen
                missed += gap * (came - forecast - mean_gap)
                moved += off * (came - mean_came)
        level = size * noise * (1.0 / h0 + 1.0 / h1)
        by_noise += (unsure + level) * (1.0 - 1.0 / size)
        still += level * (1.0 - 1.0 / size)
    if not moved > 2.0 * still:  # there is nothing to explain
        return 0.0
    beyond = 1.0 - max(0.0, missed - 2.0 * by_noise) / (moved - still)
    return max(0.0, min(beyond, 2.0 * (1.0 - missed / moved)))


@kernel
def relative_variance(early: float, late: float, sd: float, step: float, far: float) -> float:
    """Return the variance that noise with `sd` in both slopes adds to a forecast, over its square.

    It is exact to first order.
    """
    if sd == 0.0:
        return 0.0
    late, early = sd / max(sd, late), sd / max(sd, early)  # relative errors, at most 1
    bend = min(4.0, (early * early + late * late) / (step * step))  # of the exponent
    return late * late + far * far * bend / 16.0
