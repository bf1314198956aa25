"""The window that `AdaptiveRejects` rates arms by: long where noise rules, short where slopes do.

A mean of h rewards has noise sigma^2/h and lags by (h - 1)/2 pulls of slope. Over arms whose
slopes have variance V the sum of the two, sigma^2/h + V h^2/4, is least at h^3 = 2 sigma^2/V.
Noise and slopes are read from what `remember_rises` keeps, so that they keep their digits.
"""

from __future__ import annotations

from latebloomer.core.estimators import recent_mean
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import RACERS, Ledger
from latebloomer.core.statistics import noise_variance, second_difference

NOISE_PULLS = 3  # pulls from which noise can be told from slope: one second difference
WINDOW = 0  # the cell of `Ledger.pool` with the window that the survivors were last rated by


@kernel
def late_mean(ledger: Ledger, i: int, h: int) -> float:
    """Mean of arm i's last h rewards, at most its later half (that half where h is 0)."""
    n = ledger.n[i]
    if n < NOISE_PULLS:
        return recent_mean(ledger, i, n)
    half = n // 2
    return recent_mean(ledger, i, min(h, half) if h > 0 else half)


@kernel
def complete(ledger: Ledger, i: int, n: int) -> bool:
    """Whether arm i has had all n pulls of the phase.

    A learner that ended before is made to look as if at the horizon, but its rewards are fewer.
    """
    return ledger.n[i] == n and len(ledger.S[i]) > n


@kernel
def count_complete(ledger: Ledger, n: int) -> int:
    """How many racing arms have had all n pulls of the phase."""
    size = 0
    for place in range(ledger.cursor[RACERS]):
        if complete(ledger, ledger.racing[place], n):
            size += 1
    return size


@kernel
def best_window(ledger: Ledger, n: int, size: int, noise: float) -> int:
    """The h in [1, n/2] that minimises sigma^2/h + V h^2/4 over the `size` complete arms."""
    half = n // 2
    m = max(NOISE_PULLS, half)
    own = 12.0 * noise / (1.0 * m * (m * m - 1))  # the noise of a slope
    spread = slope_variance(ledger, n, m, size) - own
    if not spread * half * half * half > 2.0 * noise:  # also where the spread is not positive
        return half
    return max(1, min(half, int((2.0 * noise / spread) ** (1.0 / 3.0) + 0.5)))


@kernel
def late_noise(ledger: Ledger, n: int, size: int) -> float:
    """The variance of the noise in the later half of the complete arms' n pulls (all below 6)."""
    m = n if n < 2 * NOISE_PULLS else n // 2
    total = 0.0
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if complete(ledger, i, n) and ledger.repeats_scores[i] == 1:
            size -= 1
        elif complete(ledger, i, n):
            old, middle = rise(ledger, i, n - m + 1), rise(ledger, i, n - m + 2)
            for k in range(n - m + 3, n + 1):
                new = rise(ledger, i, k)
                bend = second_difference(new, middle, old)
                total += bend * bend
                old, middle = middle, new
    return noise_variance(total, size * (m - 2)) if size > 0 else 0.0


@kernel
def rise(ledger: Ledger, i: int, n: int) -> float:
    """The n-th reward of arm i minus its first."""
    return (ledger.Q[i][n] - ledger.Q[i][n - 1]) / n if n > 1 else 0.0


@kernel
def slope_variance(ledger: Ledger, n: int, m: int, size: int) -> float:
    """Variance, over the complete arms, of the least-squares slopes of their last m pulls."""
    seen, mean, squares = 0, 0.0, 0.0
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if complete(ledger, i, n):
            s = late_slope(ledger, i, n, m)
            seen += 1
            step = s - mean  # Welford's sums: no difference of large numbers
            mean += step / seen
            squares += step * (s - mean)
    return squares / size


@kernel
def late_slope(ledger: Ledger, i: int, n: int, m: int) -> float:
    """Least-squares slope of arm i's last m rewards: 12 sum (l - mean l) X_l / (m (m^2 - 1))."""
    S, Q = ledger.S[i], ledger.Q[i]
    middle = n - 0.5 * (m - 1)
    before = Q[n - m] if n > m else 0.0  # in Q[0] is the first reward
    moment = (Q[n] - before) - middle * (S[n] - S[n - m] - m * Q[0])
    return 12.0 * moment / (1.0 * m * (m * m - 1))
