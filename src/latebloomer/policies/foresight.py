"""Foresight: rank arms by forecasts, as far as earlier forecasts in this race were right."""

from dataclasses import dataclass
from math import log, log2
from typing import ClassVar

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import RACERS, SWEEPS, Ledger
from latebloomer.core.run_memory import SLOPES, Memory
from latebloomer.errors import need_in
from latebloomer.policies.base import Forecast, Policy
from latebloomer.policies.forecast_trust import EIGHTHS, REACH, TESTED, TRUST, reach, retest
from latebloomer.policies.late_window import WINDOW, best_window, late_mean, late_noise
from latebloomer.policies.power_levels import STEEP, budget_for_noise, power_plan
from latebloomer.policies.slope_forecast import FIRST, GAIN, forecast_gain, note_slopes, step_at


@dataclass(frozen=True)
class Foresight(Policy):
    r"""Drop the arm with the lowest recent mean plus the part of its forecast gain that counts.

    *Plan.* The plan of `AdaptiveRejects`. By default, its power q depends on K, T and H:

    .. math:: q = \min\bigl(\max(\tfrac12,\ .6 \log_2(T/K)),\
              \max(1, T/H),\ \tfrac32\bigr).

    *Rating.* :math:`\hat\mu_i + \beta(n)\,G_i(c, R(n))`: the window mean of `AdaptiveRejects`,
    plus the gain from the center of that window, :math:`c = n - (h-1)/2`, up to pull R(n), if the
    slope of arm i continues to fall as before. Forecasts reach to n times the square of the ratio
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

    *Trust.* From the origins :math:`n_0` = n/2, 5n/8 and 3n/4 pulls (at least 8), the same formula
    forecasts the change that followed. A is the actual change: the mean of the last n/8 rewards
    minus the mean of the :math:`n_0/8` rewards up to :math:`n_0`. F is the forecast change from
    the center of the earlier window to the center of the later one. Both are differences to the
    mean of the remaining arms. With sums over arms and origins,

    .. math:: \beta(n) = \min\Bigl(1 - \frac{(\sum (A - F)^2 - 2N)^+}{\sum A^2 - M},\
              2 - 2\,\frac{\sum (A - F)^2}{\sum A^2}\Bigr),

    but at least 0, and 0 if :math:`\sum A^2 \le 2M`. M and N are the amounts that noise alone adds
    to the two sums. The second term requires that forecasts were better than no forecast, however
    large the noise is. On smooth curves forecasts are right, and a late bloomer is kept. On noisy
    or irregular curves trust is 0, and Foresight equals `AdaptiveRejects`, as it does below 11
    pulls and at the horizon. An arm that repeats its reward between its steps gets no forecast and
    is left out of the sums. The docstring of `policies/forecast_trust.py` derives M and N and
    explains each constant.

    *Guarantee.* None.

    Parameters
    ----------
    power : float | None
        How steeply levels rise as arms are dropped, from 0 to 10. Default: by the rule above.

    Examples
    --------
    >>> Foresight().plan(arms=4, budget=40, horizon=20)
    Plan(keep=array([4, 3, 2, 1]), upto=array([ 5,  7, 14, 14]))
    """

    power: float | None = None

    name: ClassVar[str] = "foresight"
    memory: ClassVar[Memory] = Memory(
        SLOPES, arm=("early", "late", "gain"), run=("window", "trust", "tested", "reach")
    )
    _examples = ({}, {"power": 1.5})

    def __post_init__(self) -> None:
        if self.power is not None:
            need_in("power", self.power, "[0, 10]", STEEP)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        power = advised_power(arms, budget, horizon) if self.power is None else self.power
        return power_plan(arms, budget, horizon, power)

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        """Return the rating between decisions, with window and trusted gain of the last one.

        The trusted gain is assumed to come evenly until pull R(n). The part that has come is
        already in the mean, so only the rest is added.
        """
        gain = ledger.arm[i][GAIN] * max(0.0, ledger.run[REACH] - ledger.n[i])
        return late_mean(ledger, i, int(ledger.run[WINDOW])) + gain

    @kernel
    def rate_jointly(self, ledger: Ledger, horizon: int) -> None:
        n, run = ledger.cursor[SWEEPS], ledger.run
        if ledger.cursor[RACERS] < 2:  # the last arm is no longer compared
            return
        noise = late_noise(ledger, n)
        run[WINDOW], run[REACH] = best_window(ledger, n, noise), min(1.0 * horizon, reach(n))
        retest(ledger, n, noise)
        step, shared, near, far = 0.0, 0.0, 0.0, 0.0
        if run[TRUST] > 0.0:
            step = step_at(n)
            shared = note_slopes(ledger, n, step)
            center = n - 0.5 * (run[WINDOW] - 1.0)  # center of the window
            near, far = log(center / (n - n // 4)), log(run[REACH] / center)
        for place in range(ledger.cursor[RACERS]):
            i = ledger.racing[place]
            gain = 0.0
            if run[TRUST] > 0.0 and ledger.repeats_scores[i] == 0:
                gain = run[TRUST] * forecast_gain(ledger, i, n, step, shared, near, far)
            # Trusted gain per pull until REACH.
            ledger.arm[i][GAIN] = gain / (run[REACH] - n) if gain != 0.0 else 0.0
            ledger.rating[i] = late_mean(ledger, i, int(run[WINDOW])) + gain

    def forecast(self, ledger: Ledger, i: int) -> Forecast | None:
        trust, n, ahead = (ledger.run[cell] for cell in (TRUST, TESTED, REACH))
        if EIGHTHS[-1] * n // 8 < FIRST or ahead <= max(n, ledger.n[i]):
            return None
        origin, more = max(FIRST, int(n) // 2), ledger.arm[i][GAIN] * (ahead - ledger.n[i])
        return Forecast(trust, origin, int(n), ahead, more / trust if trust else 0.0)

    def advised_budget(self, arms: int) -> tuple[int, str]:
        # So small a budget is at most H, for which the rule gives at most 1.
        return budget_for_noise(arms, 1.0 if self.power is None else self.power)


def advised_power(arms: int, budget: int, horizon: int) -> float:
    """Return the power q: how steeply levels rise. It is lower if the budget is small.

    >>> [advised_power(8, budget, horizon=100) for budget in (8, 20, 100, 101, 400)]
    [0.5, 0.793..., 1.0, 1.01, 1.5]
    """
    return min(max(0.5, 0.6 * log2(budget / arms)), max(1.0, budget / horizon), 1.5)
