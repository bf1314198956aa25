"""Adaptive Rejects: this library's own variant of successive rejects, made for real curves."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, inf
from typing import ClassVar

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import RACERS, SWEEPS, Ledger
from latebloomer.core.run_memory import SLOPES, Memory
from latebloomer.errors import need_in
from latebloomer.policies.base import Policy
from latebloomer.policies.late_window import (
    NOISE_PULLS,
    WINDOW,
    best_window,
    late_mean,
    late_noise,
)
from latebloomer.policies.power_levels import STEEP, budget_for_noise, power_levels, power_plan


@dataclass(frozen=True)
class AdaptiveRejects(Policy):
    r"""Pull the remaining arms evenly and drop the worst by a mean whose window follows the noise.

    *Plan.* With m = K, ..., 2 remaining arms, train each to

    .. math:: l_m = \mathrm{clip}\bigl(\lfloor C\,(K/m)^q \rfloor, 1, H\bigr), \qquad q = 1.5,

    pulls, then drop the lowest rating. C is the largest value up to H with :math:`l_2 +
    \sum_{m=2}^K l_m \le T`, which is the cost of the phases; pulls that are left over raise levels
    by one, the last phase first. Three things differ from `RisingSR` (q = 1). No pull goes to the
    last remaining arm, because it could not change the verdict. No arm is planned beyond the
    horizon, and with :math:`T \ge K H` all are trained to it. And q > 1 moves pulls from the many
    arms of the first phases to the few arms of the last phases, which are harder to tell apart and
    whose curves may still cross. On recorded curves this is better for budgets of at least about
    1.5 full trainings.

    *Rating.* A mean over a window of h rewards has noise :math:`\sigma^2/h`, and it lags behind
    the latest value by half a window of slope. A lag that all arms share is harmless, but its
    spread over arms is not. So h minimizes :math:`\sigma^2/h + V h^2/4`, where V is the variance
    of the remaining arms' slopes:

    .. math:: h = \mathrm{round}\bigl((2\sigma^2/V)^{1/3}\bigr) \text{ clipped to }
              [1, \lfloor n/2 \rfloor], \qquad
              V = \max\Bigl(0,\ \mathrm{Var}_i(s_i) - \frac{12\,\sigma^2}{m'(m'^2-1)}\Bigr),

    with :math:`m' = \max(3, \lfloor n/2 \rfloor)`, :math:`s_i` the least-squares slope of arm i
    over its last m' pulls (the subtracted term is the noise of that slope) and :math:`\sigma^2`
    the mean squared second difference over 6, pooled over the arms' last m' pulls (all n if n <
    6). Below 3 pulls the rating is the plain mean. If several phases end at the same level (a
    small budget, the horizon), their arms are dropped together, on one rating.

    *Guarantee.* With `shortest` = 0 there is no guarantee: the window may shrink to one reward,
    and then a larger budget does not make an error less likely. With windows of at least
    `shortest` n rewards, the error has a bound of the same form as R-SR's, by a union over the
    windows that could be chosen (`error_bound`). For a guarantee without such a setting, use
    `RisingSR`. The evidence is `latebloomer bench` and docs/choose-a-policy.md.

    Parameters
    ----------
    power : float
        Exponent q, from 0 to 10: how steeply levels rise as arms are dropped; it is 1 in R-SR.
        Default: 1.5.
    shortest : float
        Minimum window, as a share of an arm's pulls, from 0 to 0.5. Default: 0, no minimum.

    Examples
    --------
    >>> AdaptiveRejects().plan(arms=4, budget=40, horizon=20)  # C = 5.1: 4 x 5, 3 x 2, 2 x 7
    Plan(keep=array([4, 3, 2, 1]), upto=array([ 5,  7, 14, 14]))
    """

    power: float = 1.5
    shortest: float = 0.0

    name: ClassVar[str] = "adaptive-rejects"
    memory: ClassVar[Memory] = Memory(SLOPES, run=("window",))
    _examples = ({}, {"power": 1.0, "shortest": 0.25})

    def __post_init__(self) -> None:
        need_in("power", self.power, "[0, 10]", STEEP)
        why = "a learner is rated by at most the later half of its rewards"
        need_in("shortest", self.shortest, "[0, 0.5]", why)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return power_plan(arms, budget, horizon, self.power)

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        """Return the rating between decisions, with the window of the last decision."""
        return late_mean(ledger, i, int(ledger.run[WINDOW]))

    @kernel
    def rate_jointly(self, ledger: Ledger, horizon: int) -> None:
        n = ledger.cursor[SWEEPS]
        if n >= NOISE_PULLS and ledger.cursor[RACERS] > 1:
            window = best_window(ledger, n, late_noise(ledger, n))
            ledger.run[WINDOW] = max(window, int(self.shortest * n))
        for place in range(ledger.cursor[RACERS]):
            i = ledger.racing[place]
            ledger.rating[i] = late_mean(ledger, i, int(ledger.run[WINDOW]))

    def advised_budget(self, arms: int) -> tuple[int, str]:
        return budget_for_noise(arms, self.power)

    def error_bound(self, gaps: Sequence[float], budget: int, horizon: int, noise: float) -> float:
        r"""Bound the error probability, if the best arm's curve has nearly risen when it is rated.

        .. math:: e_T \le \sum_{m=2}^K \sum_{i=m}^{K} \sum_{h}
                  \exp\Bigl(-\frac{h\,\Delta_{(i)}(H)^2}{16\,\sigma^2}\Bigr)

        The innermost sum is over the windows h that can be chosen at level :math:`l_m`. It is
        assumed that curves do not fall, that noise is sub-Gaussian with standard deviation
        `noise`, and that :math:`\mu_1(H) - \mu_1(l_m - h + 1) \le \Delta_{(m)}/2` for all m and h.
        Proof: when the best of m arms is dropped, some arm i of rank m or worse is kept, and its
        mean over the chosen window is at least the best arm's. In expectation, the two means
        differ by at least Delta_i/2, and their difference is sub-Gaussian with variance 2
        sigma^2/h. The window depends on the data, so the bounds for all windows are added up.

        >>> quarter = AdaptiveRejects(shortest=0.25)
        >>> round(quarter.error_bound([0, 0.5], 400, 400, noise=0.5), 9)  # l_2 = 200, h = 50..100
        0.695256135
        """
        ordered = sorted(gaps)
        upto = power_levels(len(ordered), budget, horizon, self.power)
        total = 0.0
        for m, level in zip(range(len(ordered), 1, -1), upto, strict=True):
            for gap in ordered[m - 1 :]:
                signal = (gap / noise) ** 2 / 16 if noise else inf
                total += sum_of_powers(signal, windows_at(level, self.shortest))
        return total


def windows_at(n: int, shortest: float) -> range:
    """Return the windows that can be chosen after n pulls."""
    if n < NOISE_PULLS:
        return range(n, n + 1)
    return range(max(1, int(shortest * n)), n // 2 + 1)


def sum_of_powers(signal: float, windows: range) -> float:
    """Return the sum of exp(-h signal) over windows h, a geometric series.

    >>> round(sum_of_powers(0.5, range(2, 5)), 12)  # e^-1 + e^-1.5 + e^-2
    0.726344884556
    """
    if signal == 0:
        return float(len(windows))
    return exp(-windows.start * signal) * expm1(-len(windows) * signal) / expm1(-signal)
