"""What the rewards seen so far prove about the arms at the horizon.

For every arm and every pull count n with a non-empty window, under Assumption 1,

    pessimistic(n) - width  <=  mu(H)  <=  optimistic(n) + width

fails with probability at most delta / (2 K M) on either side, M being the number of pull counts
that could occur [Mussi24, Lemmas 1 and 2, with the exact sum of squared weights in place of the
constant 5]. By the union bound all of them hold together with probability 1 - delta, whichever
arms were pulled and whenever one looks; so each arm's intervals may be intersected over n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.core.estimators import first_full, window_length
from latebloomer.core.statistics import pooled_noise
from latebloomer.errors import ArmError, BudgetError, RewardError, need_whole, require
from latebloomer.theory.inputs import (
    Floats,
    Ints,
    need_budget,
    need_delta,
    need_noise,
    need_window,
)
from latebloomer.theory.widths import optimistic_weight, pessimistic_weight, window_lengths


@dataclass(frozen=True, eq=False)  # arrays have no single truth value to compare by
class Certificate:
    """Intervals for mu_i(horizon) that hold together with probability at least 1 - delta.

    The statement assumes curves that rise and are concave (Assumption 1) and sub-Gaussian noise
    of level `noise`. If `noise_estimated`, that level was read off the same rewards: the
    probability is then approximate, and on few rewards optimistic.
    """

    lower: Floats  # -inf where an arm has too few rewards to say anything
    upper: Floats
    horizon: int
    delta: float
    noise: float
    noise_estimated: bool

    def certified(self, arm: int) -> bool:
        """Whether `arm` is proved best at the horizon: its interval lies above all the others."""
        rival = self.rival(arm)
        return bool(self.lower[arm] > self.upper[rival])

    def rival(self, arm: int) -> int:
        """The other arm that could reach highest."""
        if not 0 <= arm < len(self.upper):
            raise ArmError(f"arm {arm}, but there are arms 0 to {len(self.upper) - 1}")
        return max((i for i in range(len(self.upper)) if i != arm), key=lambda i: self.upper[i])

    def missing(self, arm: int) -> str:
        """A sentence: that `arm` is certified, or what stands in the way."""
        rival = self.rival(arm)
        sure, reach = float(self.lower[arm]), float(self.upper[rival])
        return f"{self._finding(arm, sure, rival, reach)}; {self._condition()}"

    def _finding(self, arm: int, sure: float, rival: int, reach: float) -> str:
        at = f"at {self.horizon} pulls"
        if sure > reach:
            ahead = f"at least {sure - reach:.4g} ahead of arm {rival}"
            return f"certified: arm {arm} is best {at}, {ahead}"
        if math.isinf(sure):
            return f"not certified: arm {arm} has too few rewards for any lower bound"
        if math.isinf(reach):
            return f"not certified: arm {rival} has too few rewards for any upper bound"
        return (
            f"not certified: arm {rival} may reach {reach:.4g} {at}, {reach - sure:.4g} above the "
            f"{sure:.4g} that arm {arm} is sure of"
        )

    def _condition(self) -> str:
        level = "itself an estimate" if self.noise_estimated else "as given"
        return (
            f"with probability {1 - self.delta:g} if curves rise and are concave "
            f"and the noise level is {self.noise:.4g} ({level})"
        )


def certificate(
    rewards: Sequence[ArrayLike],
    noise: float | None,
    horizon: int,
    window: float = 0.25,
    delta: float = 0.05,
    budget: int | None = None,
) -> Certificate:
    """Intervals for each mu_i(horizon) from each arm's rewards in the order they came.

    `noise` is the sub-Gaussian level sigma, or None to estimate it. `budget`, the most pulls any
    arm could have had, makes the intervals narrower where it is below the horizon; it must not
    depend on rewards.

    >>> seen = [[0.9] * 60, [0.2] * 60]
    >>> result = certificate(seen, noise=0.01, horizon=100)
    >>> result.lower.round(3), result.upper.round(3), result.certified(0)
    (array([0.889, 0.189]), array([0.957, 0.257]), True)
    >>> result.missing(1)
    'not certified: arm 0 may reach 0.9569 at 100 pulls, 0.76... above the 0.18... that arm 1 ...'
    """
    need_window(window)
    need_delta(delta)
    need_budget(horizon, "horizon")
    need_whole("horizon", horizon)
    arrays = [_as_rewards(arm, given) for arm, given in enumerate(rewards)]
    require(len(arrays) >= 2, "arms", len(arrays), "at least 2", "one arm has no rival")
    level = pooled_noise(arrays) if noise is None else noise
    need_noise(level)
    most = _most_pulls(arrays, horizon, budget)
    counts = _usable_counts(most, window)
    deviations = math.sqrt(2 * math.log(2 * len(arrays) * max(counts, 1) / delta))
    ends = [_interval(x[:most], horizon, window, level * deviations) for x in arrays]
    lower, upper = (np.array(side, dtype=np.float64) for side in zip(*ends, strict=True))
    return Certificate(lower, upper, horizon, delta, level, noise is None)


def _usable_counts(most: int, window: float) -> int:
    """How many pull counts up to `most` have a window with a reward in it."""
    if window_length(window, most) < 1:
        return 0
    return most - first_full(window) + 1


def _interval(rewards: Floats, horizon: int, window: float, scale: float) -> tuple[float, float]:
    """One arm's interval: the intersection over the pull counts so far."""
    n = np.arange(1, len(rewards) + 1, dtype=np.int64)
    n = n[window_lengths(n, window) > 0]
    if len(n) == 0:
        return -math.inf, math.inf
    pessimistic, optimistic = _estimates(rewards, n, window_lengths(n, window), horizon)
    below = scale * np.sqrt(pessimistic_weight(n, window))
    above = scale * np.sqrt(optimistic_weight(n, horizon, window))
    return float(np.max(pessimistic - below)), float(np.min(optimistic + above))


def _estimates(rewards: Floats, n: Ints, h: Ints, horizon: int) -> tuple[Floats, Floats]:
    """Pessimistic and optimistic estimates at every n [Mussi24, Eq. (mu_hat), (mu_check)]."""
    # The weights of each sum to 1, so the mean can be taken out: S and Q stay small.
    centre = float(np.mean(rewards))
    x = np.concatenate([[0.0], rewards - centre])
    S, Q = np.cumsum(x), np.cumsum(np.arange(len(x)) * x)
    recent, weighted = S[n] - S[n - h], Q[n] - Q[n - h]
    before, weighted_before = S[n - h] - S[n - 2 * h], Q[n - h] - Q[n - 2 * h]
    growth = horizon * recent - weighted - ((horizon - h) * before - weighted_before)
    pessimistic = centre + recent / h
    return pessimistic, pessimistic + growth / h**2


def _as_rewards(arm: int, given: ArrayLike) -> Floats:
    array = np.asarray(given, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise RewardError(f"rewards of arm {arm} must be a list of finite numbers, one per pull")
    return array


def _most_pulls(arrays: list[Floats], horizon: int, budget: int | None) -> int:
    """Pull counts that the union bound must cover: up to the horizon, or fewer by the budget."""
    if budget is None:
        return horizon
    need_budget(budget)
    need_whole("budget", budget)
    longest = max(len(x) for x in arrays)
    if longest > budget:
        raise BudgetError(f"budget={budget}, but an arm has {longest} rewards already")
    return min(horizon, budget)
