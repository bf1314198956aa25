r"""The trust in forecasts: they count as far as earlier forecasts in the same race were right.

The docstring of `Foresight` has the formula. With :math:`h_0 = \lfloor n_0/8 \rfloor` and
:math:`h_1 = \lfloor n/8 \rfloor`, A is a difference of means of :math:`h_1` and :math:`h_0`
rewards.

**What noise alone adds.** A difference of two means has variance :math:`\sigma^2 (1/h_0 + 1/h_1)`,
and a sum of squared differences to the mean of m arms has m - 1 times this variance: M. N is M
plus the variance that noise adds to forecasts.

- *A slope.* A least-squares slope of m rewards has variance :math:`12 \sigma^2 / (m (m^2 - 1))`.
  With m = 2a that is :math:`s^2 = 12 \sigma^2 / (2a (4a^2 - 1))`.
- *An exponent.* The two slopes share no reward. To first order
  :math:`\kappa_i = \log(b_1/b_2) / \log(c_2/c_1)` has variance :math:`v = (s^2/b_1^2 + s^2/b_2^2)
  / \log^2(c_2/c_1)`. It lies in [0, 4], where no variance exceeds :math:`(4/2)^2 = 4`, so v is
  limited to 4. A slope below its noise counts as equal to its noise.
- *A forecast* (delta method). G is :math:`b_2` times an integral, and the derivative of log G with
  respect to k is minus the mean of :math:`\log(t/c_2)` over the forecast. Over a stretch of
  :math:`f = \log(v/u)`, this mean is f/2 from the beginning of the stretch; :math:`\kappa_i` has
  weight 1/2 in k. So G has the relative variance :math:`s^2/b_2^2 + (f/2)^2 (v/4) = s^2/b_2^2 +
  f^2 v/16`.

This formula understates the variance. It assumes that the stretch begins at :math:`c_2` (it begins
.23 later in log t), that :math:`b_2` and the exponent are independent (a high :math:`b_2` lowers
the exponent, so both errors raise G), and that :math:`\kappa` is exact. In simulations with small
noise on n/(n + c), the relative variance is 1.35 to 1.58 times the formula.

**Why 2N and 2M.** 2N covers that understatement. Sums of squares over few arms also vary, over m
arms by a factor with standard deviation :math:`\sqrt{2/(m-1)}`. So with M alone, noise would count
as change half of the time. The second term of the minimum needs no estimate of noise: trust is at
most twice the share of the change that forecasts explained, so forecasts that are no better than
no forecast get no trust. Without this term, trust was sometimes 1 on pure noise.

**When.** Two slopes need 8 pulls, so the first test, from :math:`n_0 = 8`, is at 11 pulls (3n/4 is
8.25). Forecasts are tested again after an eighth more pulls, when all :math:`h_1` rewards at the
end of A are new. `docs/research-log.md` has measurements of other constants, under "Constants of
Foresight".
"""

from math import log, sqrt

from latebloomer.core.history import mean_up_to
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import RACERS, Ledger
from latebloomer.policies.slope_forecast import (
    EARLY,
    FIRST,
    LATE,
    forecast_gain,
    note_slopes,
    step_at,
)

EIGHTHS = (4, 5, 6)  # a test forecasts the gain until now from 4/8, 5/8 and 6/8 of an arm's pulls
# Cells of `Ledger.run`: the trust, the pull of its test, the forecast pull.
TRUST, TESTED, REACH = 1, 2, 3


@kernel
def reach(n: int) -> float:
    """Return the pull up to which gains are forecast: n (n/n0)^2, with n0 = max(8, n // 2).

    The earliest forecast that `trust` tests was made at pull n0. At 11 pulls, n0 is pull 8, and a
    forecast to 4n would extrapolate much further than any tested forecast: in a race of four real
    models, such a forecast dropped a clear leader. Rank loss with this reach minus rank loss with
    4n, paired, for budgets of one to eight trainings: yahpo -.0013 +- .0005, taskset +.0003 +-
    .0010, lcdb10 -.0004 +- .0003, lcdb11 and srb-imdb 0. The error on the paper's setting A, T = H
    = 100 to 600, rises from .073 to .074; on setting B it is unchanged.

    >>> [round(reach(n) / n, 2) for n in (8, 11, 15, 16, 100)]
    [1.0, 1.89, 3.52, 4.0, 4.0]
    """
    ratio = n / max(FIRST, n // 2)
    return n * ratio * ratio


@kernel
def retest(ledger: Ledger, n: int, noise: float) -> None:
    """Test forecasts again if an eighth more pulls of each arm were made since the last test."""
    run, size = ledger.run, 0
    for place in range(ledger.cursor[RACERS]):
        size += 1 - ledger.repeats_scores[ledger.racing[place]]
    if n < FIRST or run[REACH] <= n or size < 2:
        run[TRUST], run[TESTED] = 0.0, n
    elif 8 * n >= 9 * run[TESTED]:
        run[TRUST], run[TESTED] = trust(ledger, n, size, noise), n


@kernel
def trust(ledger: Ledger, n: int, size: int, noise: float) -> float:
    """Return the share of the later change that earlier forecasts got right, from 0 to 1."""
    missed, moved, by_noise, still = 0.0, 0.0, 0.0, 0.0  # the sums, N and M
    for eighths in EIGHTHS:
        n0 = n * eighths // 8
        if n0 < FIRST:
            continue
        a, h0, h1 = n0 // 4, n0 // 8, n // 8
        start, end, step = n0 - 0.5 * (h0 - 1), n - 0.5 * (h1 - 1), step_at(n0)
        near, far = log(start / (n0 - a)), log(end / start)  # between the centers of the means
        shared = note_slopes(ledger, n0, step)
        sd = sqrt(12.0 * noise / (2.0 * a * (4.0 * a * a - 1.0)))  # standard deviation of a slope
        seen, mean_gap, mean_came, unsure = 0, 0.0, 0.0, 0.0
        for place in range(ledger.cursor[RACERS]):
            i = ledger.racing[place]
            if ledger.repeats_scores[i] == 0:
                forecast = forecast_gain(ledger, i, n0, step, shared, near, far)
                early, late = ledger.arm[i][EARLY], ledger.arm[i][LATE]
                unsure += forecast * forecast * relative_variance(early, late, sd, step, far)
                came = mean_up_to(ledger, i, h1, n) - mean_up_to(ledger, i, h0, n0)
                seen += 1
                gap, off = came - forecast - mean_gap, came - mean_came
                mean_gap += gap / seen  # Welford's sums
                mean_came += off / seen
                missed += gap * (came - forecast - mean_gap)
                moved += off * (came - mean_came)
        level = size * noise * (1.0 / h0 + 1.0 / h1)
        by_noise += (unsure + level) * (1.0 - 1.0 / size)
        still += level * (1.0 - 1.0 / size)
    if not moved > 2.0 * still:  # no change beyond noise, so nothing to explain
        return 0.0
    beyond = 1.0 - max(0.0, missed - 2.0 * by_noise) / (moved - still)
    return max(0.0, min(beyond, 2.0 * (1.0 - missed / moved)))


@kernel
def relative_variance(early: float, late: float, sd: float, step: float, far: float) -> float:
    """Return the variance that noise in both slopes adds to a forecast, over its square.

    `sd` is the standard deviation of each slope. The docstring of the module derives the formula
    and says what it leaves out.
    """
    if sd == 0.0:
        return 0.0
    late, early = sd / max(sd, late), sd / max(sd, early)  # relative errors, at most 1
    bend = min(4.0, (early * early + late * late) / (step * step))  # variance of the exponent
    return late * late + far * far * bend / 16.0
