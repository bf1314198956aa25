r"""The length of the window: long if noise dominates, short if slopes dominate.

A mean of h rewards has noise :math:`\sigma^2/h` and lags by (h - 1)/2 pulls of slope. A lag that
all arms share is harmless. If the slopes of the arms have variance V, the sum of noise and lag,
:math:`\sigma^2/h + V h^2/4`, is smallest at :math:`h^3 = 2 \sigma^2/V`.
"""

from latebloomer.core.history import late_slope, recent_mean, squared_bends
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import RACERS, Ledger
from latebloomer.core.statistics import noise_variance

NOISE_PULLS = 3  # pulls needed to separate noise from slope: one second difference
WINDOW = 0  # cell of `Ledger.run`: the window of the latest rating of the racing arms


@kernel
def late_mean(ledger: Ledger, i: int, h: int) -> float:
    """Return the mean of arm i's last h rewards, limited to its later half; h = 0 is that half."""
    n = ledger.n[i]
    if n < NOISE_PULLS:
        return recent_mean(ledger, i, n)
    half = n // 2
    return recent_mean(ledger, i, min(h, half) if h > 0 else half)


@kernel
def best_window(ledger: Ledger, n: int, noise: float) -> int:
    """Return the h in [1, n/2] that minimizes sigma^2/h + V h^2/4 over the racing arms.

    The result is 0 below 3 pulls, because noise cannot be separated from slopes.
    """
    if n < NOISE_PULLS:
        return 0
    half = n // 2
    m = max(NOISE_PULLS, half)
    own = 12.0 * noise / (1.0 * m * (m * m - 1))  # noise variance of a slope
    spread = slope_variance(ledger, n, m) - own
    if not spread * half * half * half > 2.0 * noise:  # true, too, if the spread is not positive
        return half
    return max(1, min(half, int((2.0 * noise / spread) ** (1.0 / 3.0) + 0.5)))


@kernel
def late_noise(ledger: Ledger, n: int) -> float:
    """Return the noise variance in the later half of the racing arms' n pulls (in all if n < 6).

    Arms that repeat their rewards between their steps do not count. The result is 0 below 3 pulls.
    """
    if n < NOISE_PULLS:
        return 0.0
    m = n if n < 2 * NOISE_PULLS else n // 2
    size, total = 0, 0.0
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if ledger.repeats_scores[i] == 0:
            size += 1
            total += squared_bends(ledger, i, n, m)
    return noise_variance(total, size * (m - 2)) if size > 0 else 0.0


@kernel
def slope_variance(ledger: Ledger, n: int, m: int) -> float:
    """Return the variance, over racing arms, of the least-squares slopes of their last m pulls."""
    size, mean, squares = ledger.cursor[RACERS], 0.0, 0.0
    for place in range(size):
        s = late_slope(ledger, ledger.racing[place], n, m)
        step = s - mean  # Welford's sums avoid differences of large numbers
        mean += step / (place + 1)
        squares += step * (s - mean)
    return squares / size
