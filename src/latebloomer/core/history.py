r"""The history of an arm: how its rewards are stored, and estimators of its level.

Only this file reads or writes the rewards in a ledger, except for `running_sums.py`, which stores
the sums of one window, and `redrawn_past.py`, which draws rewards again. A policy's `Memory`
selects one `remember_*`, and its kernels call the estimators below [Mussi24, Sec. 3].

Sums lose no digits. After n rewards, `S[2n]` is their rounded sum, and `S[2n + 1]` is the sum of
all rounding errors so far. Both together are exact if rewards span less than :math:`2^{50}`, so
equal windows have equal means. If a reward is too small compared with the sum so far to change it
(a 0.5 after an early 1e16), it begins a new segment, in which the sums start again at 0. `S[1]`
says where the latest segment began, and a negative zero in place of the rounding errors marks the
first reward of each segment. The sum of a window inside the segment is a difference of two sums. A
longer window contains the large reward; its rewards before the segment are added one by one. `Q`
has the sums of pull number times reward in the same form.
"""

from math import copysign

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Floats, Ledger
from latebloomer.core.statistics import second_difference

# --- storing rewards ---


@kernel
def remember_nothing(ledger: Ledger, i: int, n: int, reward: float, window: float) -> None:
    """Store nothing, because the policy's ratings contain what it needs."""


@kernel
def remember_rewards(ledger: Ledger, i: int, n: int, reward: float, window: float) -> None:
    """Store the rewards themselves, in place of Q."""
    ledger.Q[i][n] = reward


@kernel
def remember_total(ledger: Ledger, i: int, n: int, reward: float, window: float) -> None:
    """Store only the sum of all rewards."""
    ledger.S[i][0] = ledger.S[i][0] + reward if n > 1 else reward


@kernel
def remember_beginnings(ledger: Ledger, i: int, n: int, reward: float, window: float) -> None:
    """Store the rounded sums of the first 1, 2, ... rewards.

    They are for ratings that always contain the first reward: compared with a huge first reward,
    the digits of later ones do not matter.
    """
    ledger.S[i][n] = ledger.S[i][n - 1] + reward


@kernel
def remember_sums(ledger: Ledger, i: int, n: int, reward: float, window: float) -> None:
    """Store sums from which the mean of any window and any reward can be computed."""
    S = ledger.S[i]
    before = S[2 * n - 2]
    total = before + reward
    if total == before and reward != 0.0 and n > 1:
        begin_segment(ledger, i, n, reward)
    else:
        part = total - before
        S[2 * n] = total
        lost = S[2 * n - 1] if n > 1 else 0.0
        S[2 * n + 1] = lost + ((before - (total - part)) + (reward - part))


@kernel
def begin_segment(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Start the sums again with the n-th reward."""
    S = ledger.S[i]
    S[2 * n], S[2 * n + 1], S[1] = reward, -0.0, 1.0 * (n - 1)


@kernel
def remember_slopes(ledger: Ledger, i: int, n: int, reward: float, window: float) -> None:
    """Store the sums of `remember_sums`, and the sums of l X_l for the slope of any window."""
    S, Q = ledger.S[i], ledger.Q[i]
    before, moment = S[2 * n - 2], n * reward
    total = before + reward
    if total == before and reward != 0.0 and n > 1:
        begin_segment(ledger, i, n, reward)
        Q[2 * n], Q[2 * n + 1] = moment, 0.0
    else:
        part = total - before
        S[2 * n] = total
        lost = S[2 * n - 1] if n > 1 else 0.0
        S[2 * n + 1] = lost + ((before - (total - part)) + (reward - part))
        before = Q[2 * n - 2]
        total = before + moment
        part = total - before
        Q[2 * n] = total
        Q[2 * n + 1] = Q[2 * n - 1] + ((before - (total - part)) + (moment - part))


@kernel
def place_sum(ledger: Ledger, i: int, before: int, n: int, gain: float) -> None:
    """Enter the sum of rewards `before` + 1 to n in one step, for `remember_sums`."""
    ledger.S[i][2 * n] = ledger.S[i][2 * before] + gain


@kernel
def forget(ledger: Ledger) -> None:
    """Begin a new run in the same memory."""
    for i in range(len(ledger.n)):
        if len(ledger.S[i]) > 1:
            ledger.S[i][1] = 0.0


# --- reading rewards ---


@kernel
def reward_at(ledger: Ledger, i: int, n: int) -> float:
    """Return the n-th reward of arm `i`, from 1 on."""
    S = ledger.S[i]
    lost = S[2 * n + 1]
    if n == 1 or (lost == 0.0 and copysign(1.0, lost) < 0.0):
        return S[2 * n]
    return (S[2 * n] - S[2 * n - 2]) + (lost - S[2 * n - 1])


@kernel
def kept_reward(ledger: Ledger, i: int, n: int) -> float:
    """Return the n-th reward of arm `i` if the rewards themselves are stored."""
    return ledger.Q[i][n]


@kernel
def is_across(ledger: Ledger, i: int, before: int) -> bool:
    """Return whether a window from reward `before` + 1 on begins before the latest segment."""
    start = ledger.S[i][1]
    return start > 0.0 and before <= start


@kernel
def difference(row: Floats, before: int, n: int) -> tuple[float, float]:
    """Return the growth of a row's sums from pull `before` to n, in two parts."""
    new, old = row[2 * n], row[2 * before]
    lost = row[2 * n + 1] - (row[2 * before + 1] if before > 0 else 0.0)
    total = new - old
    part = total - new
    return total, ((new - (total - part)) - (old + part)) + lost


@kernel
def window_sum(ledger: Ledger, i: int, before: int, n: int) -> float:
    """Return the sum of arm `i`'s rewards `before` + 1 to `n`."""
    if is_across(ledger, i, before):
        return sum_across(ledger, i, before, n)
    total, lost = difference(ledger.S[i], before, n)
    return total + lost


@kernel
def sum_across(ledger: Ledger, i: int, before: int, n: int) -> float:
    """Return the sum of a window that may begin before the latest segment of the sums."""
    S, total = ledger.S[i], 0.0
    start = int(S[1])
    for k in range(before + 1, min(n, start) + 1):
        total += reward_at(ledger, i, k)
    if n > start:
        total += S[2 * n] + S[2 * n + 1]
    if before > start:
        total -= S[2 * before] + S[2 * before + 1]
    return total


# --- estimators ---


@kernel
def recent_mean(ledger: Ledger, i: int, h: int) -> float:
    r"""Return the mean of arm `i`'s last `h` rewards: the pessimistic estimator.

    [Mussi24, Eq. (mu_hat)].

    .. math:: \hat\mu(n) = \frac1h \sum_{l=n-h+1}^{n} X_l
    """
    if h == 1:
        return ledger.last[i]
    return window_sum(ledger, i, ledger.n[i] - h, ledger.n[i]) / h


@kernel
def mean_up_to(ledger: Ledger, i: int, h: int, n: int) -> float:
    """Return the mean of arm `i`'s `h` rewards that end with the `n`-th."""
    return window_sum(ledger, i, n - h, n) / h


@kernel
def mean_of_first(ledger: Ledger, i: int, n: int) -> float:
    """Return the mean of the first `n` rewards of arm `i`, for `remember_beginnings`."""
    return ledger.S[i][n] / n


@kernel
def half_means(ledger: Ledger, i: int, half: int) -> tuple[float, float]:
    """Return the means of the first `half` rewards and of the next, for `remember_beginnings`."""
    early, both = ledger.S[i][half], ledger.S[i][2 * half]
    return early / half, (both - early) / half


@kernel
def projected_mean(ledger: Ledger, i: int, h: int, horizon: int) -> float:
    r"""Return the mean of arm `i`'s last `h` rewards, each extrapolated to the horizon.

    It is the optimistic estimator [Mussi24, Eq. (mu_check)], for :math:`1 \le h \le n/2`:

    .. math:: \check\mu^H(n) = \frac1h \sum_{l=n-h+1}^{n}
              \Bigl(X_l + (H-l)\,\frac{X_l - X_{l-h}}{h}\Bigr)

    The cost is O(h) here, and O(1) for the window of `running_sums.py`.
    """
    n, total = ledger.n[i], 0.0
    for k in range(n - h + 1, n + 1):
        new = reward_at(ledger, i, k)
        total += new + (horizon - k) * (new - reward_at(ledger, i, k - h)) / h
    return total / h


@kernel
def newest_bend(ledger: Ledger, i: int) -> float:
    """Return the second difference X_n - 2 X_{n-1} + X_{n-2} of arm `i`, for n >= 3."""
    n = ledger.n[i]
    return second_difference(
        ledger.last[i], reward_at(ledger, i, n - 1), reward_at(ledger, i, n - 2)
    )


@kernel
def mean_of_all(ledger: Ledger, i: int, h: int) -> float:
    """Return the mean of all rewards of arm `i`, for `remember_total`."""
    return ledger.S[i][0] / h


@kernel
def squared_bends(ledger: Ledger, i: int, n: int, m: int) -> float:
    """Return the sum of squared second differences of `m` rewards that end with the n-th."""
    total = 0.0
    old, middle = reward_at(ledger, i, n - m + 1), reward_at(ledger, i, n - m + 2)
    for k in range(n - m + 3, n + 1):
        new = reward_at(ledger, i, k)
        bend = second_difference(new, middle, old)
        total += bend * bend
        old, middle = middle, new
    return total


SPLIT = 2.0**27 + 1.0  # splits the 53 bits of a double into two halves


@kernel
def late_slope(ledger: Ledger, i: int, n: int, m: int) -> float:
    """Return the least-squares slope of arm i's `m` rewards that end with the n-th.

    It is 12 sum (l - mean l) X_l / (m (m^2 - 1)). The two sums nearly cancel if rewards are far
    from 0, so their difference is computed before it is rounded.
    """
    middle = n - 0.5 * (m - 1)
    if is_across(ledger, i, n - m):
        moment = moment_across(ledger, i, n, m, middle)
    else:
        total, total_lost = difference(ledger.S[i], n - m, n)
        moments, moments_lost = difference(ledger.Q[i], n - m, n)
        scaled = SPLIT * total
        high = scaled - (scaled - total)  # the product of `high` and the middle is exact
        moment = (moments - high * middle) - (total - high) * middle
        moment += moments_lost - middle * total_lost
    return 12.0 * moment / (1.0 * m * (m * m - 1))


@kernel
def moment_across(ledger: Ledger, i: int, n: int, m: int, middle: float) -> float:
    """Return the sum of (l - mean l) (X_l - X_n), reward by reward."""
    moment, end = 0.0, reward_at(ledger, i, n)
    for k in range(n - m + 1, n):
        moment += (k - middle) * (reward_at(ledger, i, k) - end)
    return moment
