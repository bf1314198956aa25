r"""Estimators of one window from running sums, which are updated in O(1) [Mussi24, App. C].

They are for policies that rate an arm after each of its pulls, and for the GPU, on which it is
cheaper to draw past rewards again than to store them: only the rewards that enter and leave the
window are needed. If a reward leaves that is large compared with the remaining sums, the sums
would lose digits. Then they are computed again from the rewards of the window.
"""

from typing import NamedTuple

from latebloomer.core.formulas import window_length
from latebloomer.core.history import reward_at
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Floats, Ledger

# Indices in an arm's row of `S`: a, a - b, c - d, sum of all.
LEVEL, RISE, MOMENT, TOTAL = range(4)
SUMS = 4
LOSS = 2.0**-12  # a sum below this share of a leaving reward has lost 12 of its 53 bits


class Sums(NamedTuple):
    r"""Sums over the window :math:`W = (n-h, n]` and the previous window.

    a is the sum of X_l, b of X_{l-h}, c of l X_l, and d of l X_{l-h}, each over l in W.
    """

    h: int
    a: float
    b: float
    c: float
    d: float


@kernel
def slide(sums: Sums, n: int, new: float, middle: float, old: float) -> Sums:
    """Return updated sums: the n-th reward is `new`, and the window keeps its length h.

    `middle` is X_{n-h}, which moves from the window to the previous window; `old` is X_{n-2h},
    which leaves the previous window.
    """
    h = sums.h
    return Sums(
        h,
        sums.a + new - middle,
        sums.b + middle - old,
        sums.c + n * new - (n - h) * middle,
        sums.d + n * middle - (n - h) * old,
    )


@kernel
def grow(sums: Sums, n: int, new: float, edge: float) -> Sums:
    """Return updated sums: the n-th reward is `new`, and the window grows by one.

    `edge` is X_{n-2h+1} for the new h.

    The new window is the old window and n; the new previous window is the old one and the edge. In
    the paper's update of d, b is the *updated* sum, which already contains the edge.
    """
    h, b = sums.h + 1, sums.b + edge
    return Sums(h, sums.a + new, b, sums.c + n * new, sums.d + (n - h) * edge + b)


@kernel
def projected_mean_of(sums: Sums, horizon: int) -> float:
    """Return the optimistic estimator from the running sums."""
    return (sums.a + (horizon * (sums.a - sums.b) - (sums.c - sums.d)) / sums.h) / sums.h


def follow(rewards: Floats, window: float) -> Sums:
    """Return the running sums after all `rewards`, computed by a plain loop."""
    sums = Sums(0, 0.0, 0.0, 0.0, 0.0)
    for n in range(1, len(rewards) + 1):
        h = window_length(window, n)
        if h > sums.h:
            sums = grow(sums, n, rewards[n - 1], rewards[n - 2 * h])
        elif h > 0:
            sums = slide(sums, n, rewards[n - 1], rewards[n - h - 1], rewards[n - 2 * h - 1])
    return sums


# --- running sums in the ledger ---


@kernel
def remember_window(ledger: Ledger, i: int, n: int, reward: float, window: float) -> None:
    """Store the rewards, and the sums of the policy's window and of the previous window."""
    rewards = ledger.Q[i]
    rewards[n] = reward
    h, before = window_length(window, n), window_length(window, n - 1)
    if h == 0:
        count_alone(ledger, i, n, reward)
    else:
        update_sums(ledger, i, n, reward, h, before, rewards[n - h], rewards[n - h - before])


@kernel
def count_alone(ledger: Ledger, i: int, n: int, reward: float) -> None:
    """Store the sum of all rewards while the window is empty."""
    row = ledger.S[i]
    row[TOTAL] = row[TOTAL] + reward if n > 1 else reward
    row[LEVEL], row[RISE], row[MOMENT] = 0.0, 0.0, 0.0


@kernel
def update_sums(
    ledger: Ledger,
    i: int,
    n: int,
    new: float,
    h: int,
    before: int,
    middle: float,
    edge: float,
) -> None:
    """Update a, a - b and c - d for a window of `h` rewards; it had `before` rewards before.

    `middle` is X_{n-h}, and `edge` is the reward at the beginning of the previous window. `slide`
    and `grow` are combined in one formula without a branch, because the processor would often
    predict a branch wrongly.
    """
    row, slides = ledger.S[i], h == before
    leaves = middle if slides else 0.0
    gain, past = new - leaves, leaves - edge if slides else edge
    level = row[LEVEL] + gain
    rise = row[RISE] + (gain - past)
    grown = 0.0 if slides else level - rise
    row[LEVEL], row[RISE] = level, rise
    row[MOMENT] += n * gain - (n - h) * past - grown
    if abs(level) < LOSS * (abs(middle) + abs(edge)):
        add_again(ledger, i, n, h)


@kernel
def add_again(ledger: Ledger, i: int, n: int, h: int) -> None:
    """Compute the sums again from the rewards of the two windows."""
    level, rise, moment = 0.0, 0.0, 0.0
    for k in range(n - h + 1, n + 1):
        new = reward_at(ledger, i, k)
        step = new - reward_at(ledger, i, k - h)
        level, rise, moment = level + new, rise + step, moment + k * step
    row = ledger.S[i]
    row[LEVEL], row[RISE], row[MOMENT] = level, rise, moment


@kernel
def recent_mean_of_sums(ledger: Ledger, i: int, h: int) -> float:
    """Return `recent_mean` for running sums: of one reward, or of the window.

    While the window is empty, it is the mean of all rewards.
    """
    if h == 1:
        return ledger.last[i]
    return ledger.S[i][TOTAL if h == ledger.n[i] else LEVEL] / h


@kernel
def projected_mean_of_sums(ledger: Ledger, i: int, h: int, horizon: int) -> float:
    """Return `projected_mean` for the window."""
    row = ledger.S[i]
    return (h * row[LEVEL] + (horizon * row[RISE] - row[MOMENT])) / (1.0 * h * h)
