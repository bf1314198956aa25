"""Foresight: look ahead, but only as far as looking ahead has proved right in this very race."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, log2, sqrt
from typing import ClassVar, Self

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import RACERS, SWEEPS, Ledger, remember_rises
from latebloomer.errors import need_number, require
from latebloomer.policies.adaptive_rejects import cost, power_levels, scaled
from latebloomer.policies.adaptive_window import (
    NOISE_PULLS,
    WINDOW,
    best_window,
    complete,
    count_complete,
    late_mean,
    late_noise,
    late_slope,
)
from latebloomer.policies.base import Forecast, Policy

EIGHTHS = (4, 5, 6)  # of its pulls, from which an arm's gain until now is forecast as a test
FIRST = 8  # pulls from which a slope and the one before it can be told: two rewards a quarter
REACH = 4.0  # times its pulls, beyond which no arm's gain is forecast
STEEPEST = 4.0  # exponent of a falling slope
BELIEF, TESTED, AHEAD = 1, 2, 3  # cells of `Ledger.pool`: at the last decision, at which pull, to


@dataclass(frozen=True)
class Foresight(Policy):
    r"""Drop the survivor with the lowest late mean plus what is believed of its gain to come.

    *Plan.* That of `AdaptiveRejects`. Its power q follows K, T and H unless it is given:

    .. math:: q = \min\bigl(\max(\tfrac12,\ .6 \log_2(T/K)),\ 1 \text{ if } T \le H
              \text{ else } 1.5\bigr).

    *Rating.* :math:`\hat\mu_i + \beta(n)\,G_i(c, \min(H, 4n))`: the window mean of
    `AdaptiveRejects`, and the gain from the centre of that window, :math:`c = n - (h-1)/2`, to
    the horizon, but no further than four times as far, if the slope of arm i goes on
    falling as it has done. With :math:`a = \lfloor n/4 \rfloor`, let :math:`b_2` be
    the least-squares slope of its last 2a rewards, centred at :math:`c_2 = n - a`, and
    :math:`b_1` that of the 2a before, at :math:`c_1 = n - 3a`. Then

    .. math:: \kappa_i = \mathrm{clip}\Bigl(\frac{\log(b_1/b_2)}{\log(c_2/c_1)}, 0, 4\Bigr), \qquad
              G_i(u, v) = b_2 \int_u^v (c_2/t)^{k}\,dt, \qquad k = (\kappa_i + \kappa)/2,

    :math:`\kappa` the same of the sums of all survivors' positive slopes, and G = 0 where
    :math:`b_2 \le 0`.

    *Belief.* From :math:`n_0` = n/2, 5n/8 and 3n/4 pulls (8 at least) the same formula forecasts
    what came since: A is the mean of the last n/8 rewards minus that of the :math:`n_0/8` up to
    :math:`n_0`, F the forecast from the centre of the one window to that of the other, both as
    differences to the survivors' mean. Of the sums over survivors and origins

    .. math:: \beta(n) = \min\Bigl(1 - \frac{(\sum (A - F)^2 - 2N)^+}{\sum A^2 - M},\
              2 - 2\,\frac{\sum (A - F)^2}{\sum A^2}\Bigr),

    at least 0, and 0 where :math:`\sum A^2 \le 2M`; M and N are what noise alone adds to the two
    sums. The second term asks that forecasts were better than none, whatever noise may excuse. On
    smooth curves forecasts are right and a late bloomer is kept; on noisy or crooked ones belief
    is 0 and the rule is that of `AdaptiveRejects`, as it is below 11 pulls and at the horizon. An
    arm that has ended by itself gains no more and does not count, nor does one that repeats its
    reward between steps of its own.

    *Guarantee.* None.

    Parameters
    ----------
    power : float | None
        How steeply levels rise as arms drop out; by the rule if None.

    Examples
    --------
    >>> Foresight().plan(arms=4, budget=40, horizon=20)
    Plan(keep=array([4, 3, 2, 1]), upto=array([ 5,  7, 14, 14]))
    """

    power: float | None = None

    name: ClassVar[str] = "foresight"
    remember = staticmethod(remember_rises)

    def __post_init__(self) -> None:
        if self.power is not None:
            need_number("power", self.power)
            require(0 <= self.power <= 10, "power", self.power, "in [0, 10]",
                    "beyond, all but a few pulls go to the last two arms")  # fmt: skip

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        power = advised_power(arms, budget, horizon) if self.power is None else self.power
        upto = power_levels(arms, budget, horizon, power)
        return [*zip(range(arms, 1, -1), upto, strict=True), (1, upto[-1])]

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        """Between decisions: by the window and the believed gain of the last one."""
        ledger.rating[i] = late_mean(ledger, i, int(ledger.pool[WINDOW])) + ledger.memo[i]

    @kernel
    def rate_jointly(self, ledger: Ledger, horizon: int) -> None:
        n = ledger.cursor[SWEEPS]
        size, pool = count_complete(ledger, n), ledger.pool
        if size > 1:  # the last one keeps the rating by which it won
            noise = late_noise(ledger, n, size) if n >= NOISE_PULLS else 0.0
            pool[WINDOW] = best_window(ledger, n, size, noise) if n >= NOISE_PULLS else 0
            test(ledger, n, count_smooth(ledger, n), noise, min(1.0 * horizon, REACH * n))
        common, step, near, far = 0.0, 0.0, 0.0, 0.0
        if size > 1 and pool[BELIEF] > 0.0:
            step = step_at(n)
            common = note_slopes(ledger, n, n, step)
            centre = n - 0.5 * (pool[WINDOW] - 1.0)  # where the window mean stands
            near, far = log(centre / (n - n // 4)), log(pool[AHEAD] / centre)
        for place in range(ledger.cursor[RACERS]):
            i = ledger.racing[place]
            if not complete(ledger, i, n):  # it has ended by itself and gains no more
                ledger.rating[i] -= ledger.memo[i]
                ledger.memo[i] = 0.0
            elif size > 1:
                more = 0.0
                if pool[BELIEF] > 0.0 and ledger.repeats_scores[i] == 0:
                    k = 0.5 * (exponent(ledger.rating[i], ledger.memo[i], step) + common)
                    more = gain((n - n // 4) * ledger.memo[i], k, near, far)
                ledger.memo[i] = pool[BELIEF] * more
                ledger.rating[i] = late_mean(ledger, i, int(pool[WINDOW])) + ledger.memo[i]

    def forecast(self, ledger: Ledger, i: int) -> Forecast | None:
        trust, n, ahead = (ledger.pool[cell] for cell in (BELIEF, TESTED, AHEAD))
        if EIGHTHS[-1] * n // 8 < FIRST or ahead <= n:
            return None
        origin = max(FIRST, int(n) // 2)
        return Forecast(trust, origin, int(n), ahead, ledger.memo[i] / trust if trust else 0.0)

    def advised_budget(self, arms: int) -> tuple[int, str]:
        power = 1.0 if self.power is None else self.power  # so small a budget is at most H
        upto = [scaled(NOISE_PULLS, arms, m, power) for m in range(arms, 1, -1)]
        return cost(upto), f"{NOISE_PULLS} pulls of each arm before the first is dropped"

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(), cls(power=1.5)]


def advised_power(arms: int, budget: int, horizon: int) -> float:
    """How steeply levels rise: less where a budget is small, for one training or for each arm.

    >>> [advised_power(8, budget, horizon=100) for budget in (8, 20, 100, 101, 400)]
    [0.5, 0.793..., 1.0, 1.5, 1.5]
    """
    steepest = 1.0 if budget <= horizon else 1.5
    return min(steepest, max(0.5, 0.6 * log2(budget / arms)))


# --- the forecast ---


@kernel
def exponent(early: float, late: float, step: float) -> float:
    """k of a slope that falls as t^-k from `early` to `late`, `step` apart in log t."""
    if late <= 0.0:
        return STEEPEST if early > 0.0 else 0.0
    if early <= late:
        return 0.0
    return min(STEEPEST, log(early / late) / step)


@kernel
def is_smooth(ledger: Ledger, i: int, n: int) -> bool:
    """Whether arm i has had all n pulls of the phase, each a new measurement."""
    return complete(ledger, i, n) and ledger.repeats_scores[i] == 0


@kernel
def count_smooth(ledger: Ledger, n: int) -> int:
    """How many racing arms can be forecast."""
    size = 0
    for place in range(ledger.cursor[RACERS]):
        if is_smooth(ledger, ledger.racing[place], n):
            size += 1
    return size


@kernel
def step_at(n: int) -> float:
    """The distance in log t between the centres of the two slopes at pull n."""
    a = n // 4
    return log((n - a) / (n - 3 * a))


@kernel
def note_slopes(ledger: Ledger, n: int, at: int, step: float) -> float:
    """Note both slopes at pull `at` of each arm with n pulls; the exponent of their sums.

    The early slope stands in `rating` and the late one in `memo`, which are made anew at the end
    of the decision: a second look at the sums would cost as much as all the rest.
    """
    a = at // 4
    all_early, all_late = 0.0, 0.0
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if is_smooth(ledger, i, n):
            early = late_slope(ledger, i, at - 2 * a, 2 * a)
            late = late_slope(ledger, i, at, 2 * a)
            ledger.rating[i], ledger.memo[i] = early, late
            all_early += max(0.0, early)
            all_late += max(0.0, late)
    return exponent(all_early, all_late, step)


@kernel
def gain(late: float, k: float, near: float, far: float) -> float:
    """The area under a slope that is `late` at t = 1 and falls as t^-k, over `far` in log t.

    It begins at log t = `near`.
    """
    if late <= 0.0:
        return 0.0
    p = k - 1.0
    if abs(p) < 1e-4:  # where the difference below has lost digits; right to 1e-12
        return late * far * (1.0 - p * (near + 0.5 * far))
    return late * (exp(-p * near) - exp(-p * (near + far))) / p


# --- whether it was right so far ---


@kernel
def test(ledger: Ledger, n: int, size: int, noise: float, reach: float) -> None:
    """Make belief anew, unless fewer than an eighth of an arm's pulls have come since the last."""
    pool = ledger.pool
    pool[AHEAD] = reach
    if n < FIRST or reach <= n or size < 2:
        pool[BELIEF], pool[TESTED] = 0.0, n
    elif 8 * n >= 9 * pool[TESTED]:
        pool[BELIEF], pool[TESTED] = belief(ledger, n, size, noise), n


@kernel
def belief(ledger: Ledger, n: int, size: int, noise: float) -> float:
    """How much of what came would have been forecast, from 0 to 1."""
    missed, moved, by_noise, still = 0.0, 0.0, 0.0, 0.0
    for eighths in EIGHTHS:
        n0 = n * eighths // 8
        if n0 < FIRST:
            continue
        a, h0, h1 = n0 // 4, n0 // 8, n // 8
        start, end, step = n0 - 0.5 * (h0 - 1), n - 0.5 * (h1 - 1), step_at(n0)
        near, far = log(start / (n0 - a)), log(end / start)  # from centre to centre of the means
        common = note_slopes(ledger, n, n0, step)
        sd = sqrt(12.0 * noise / (2.0 * a * (4.0 * a * a - 1.0)))  # of a slope
        seen, mean_gap, mean_came, unsure = 0, 0.0, 0.0, 0.0
        for place in range(ledger.cursor[RACERS]):
            i = ledger.racing[place]
            if is_smooth(ledger, i, n):
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
    if not moved > 2.0 * still:  # nothing to explain
        return 0.0
    beyond = 1.0 - max(0.0, missed - 2.0 * by_noise) / (moved - still)
    return max(0.0, min(beyond, 2.0 * (1.0 - missed / moved)))


@kernel
def relative_variance(early: float, late: float, sd: float, step: float, far: float) -> float:
    """What noise with `sd` in both slopes adds to a forecast, to first order, over its square."""
    if sd == 0.0:
        return 0.0
    late, early = sd / max(sd, late), sd / max(sd, early)  # relative errors, at most 1
    bend = min(4.0, (early * early + late * late) / (step * step))  # of the exponent
    return late * late + far * far * bend / 16.0
