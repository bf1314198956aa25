r"""Certificates: what the rewards so far prove about the arms at the horizon.

**By lines (the default).** Let an arm's curve rise and be concave. In expectation, the mean of any
of its first n rewards is at most mu(H). The least-squares line through its latest m rewards,
evaluated at H, is at least mu(H) in expectation: the residual of a concave curve against the line
is concave, with zero sum and zero first moment over the m pulls, so it cannot be above 0 after
them. Both estimates are linear in the rewards, with noise of standard deviation

.. math:: \frac{\sigma}{\sqrt m} \quad\text{and}\quad
          \sigma\sqrt{\frac1m + \frac{12 (H - l)^2}{m (m^2 - 1)}}, \qquad l = n - \frac{m-1}2.

Both are computed for m = n/4, n/2 and n, at pull counts n that rise by a tenth and are fixed
before the first reward. The line through all n rewards has a third of the noise of the paper's
optimistic estimator with a window of 1/4.

**By the paper's windows (`method="windows"`).** For every arm and every pull count n with a
non-empty window, under Assumption 1,

    pessimistic(n) - width  <=  mu(H)  <=  optimistic(n) + width

fails with probability at most delta / (2 K M) on either side, where M is the number of pull counts
that could occur [Mussi24, Lemmas 1 and 2, with the exact sum of squared weights in place of the
constant 5].
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from latebloomer.core.formulas import first_full, window_length
from latebloomer.core.statistics import noise_margin, pooled_noise
from latebloomer.errors import ArmError, BudgetError, RewardError, need_whole, require
from latebloomer.theory import complexity as cx
from latebloomer.theory.complexity import Floats, Ints
from latebloomer.theory.window_estimates import (
    optimistic_weight,
    pessimistic_weight,
    window_lengths,
)

LINES = "lines"  # the method by lines; the other is by the windows of the paper
METHODS = (LINES, "windows")
SHARES = (0.25, 0.5, 1.0)  # shares of an arm's rewards from which means and lines are computed
DELTA = 0.05  # default probability that some interval fails
STEP = 1.1  # ratio of successive pull counts at which intervals are computed
OPEN = "there is no proof at this budget, as usual for short races"  # text if bounds overlap


def shape_of(maximize: bool) -> str:
    """Return the assumed shape of curves as text, for scores or for losses."""
    return "rise and flatten" if maximize else "fall and flatten"


@dataclass(frozen=True, eq=False)  # `==` of arrays has no single truth value
class Certificate:
    """Intervals for mu_i(horizon) that hold together with probability at least 1 - delta.

    This holds if curves rise and are concave (Assumption 1) and noise is sub-Gaussian with level
    `noise`. If `noise_estimated`, this level was estimated from the same rewards. The intervals
    then use a larger level, which for Gaussian noise is too low with probability at most delta/10;
    they are infinite as long as there are too few rewards for such a level.

    Attributes
    ----------
    lower : Floats
        Lower ends; -inf if an arm has too few rewards.
    upper : Floats
        Upper ends; an upper end is below its lower end if the curve contradicts the assumptions.
    horizon : int
        Number of pulls per arm for which the intervals hold.
    delta : float
        Probability that some interval fails.
    noise : float
        Noise level sigma that was set or estimated.
    noise_estimated : bool
        Whether the noise level was estimated from the same rewards.
    maximize : bool
        False if rewards are losses times -1; then sentences are about the losses.
    lost : frozenset[int]
        Arms that failed. They cannot be kept, so no arm is compared with them.
    """

    lower: Floats
    upper: Floats
    horizon: int
    delta: float
    noise: float
    noise_estimated: bool
    maximize: bool = True
    lost: frozenset[int] = frozenset()

    def certified(self, arm: int) -> bool:
        """Return whether `arm` is proved best at the horizon: its interval is above all others.

        It is not proved if the curve of some arm contradicts the assumptions, or if no other arm
        remains.
        """
        rival = self.rival(arm)
        if rival is None or self.contradicted:
            return False
        return bool(self.lower[arm] > self.upper[rival])

    @property
    def contradicted(self) -> list[int]:
        """Arms whose lower bound is above their upper bound: their curves fall or bend upwards."""
        return [int(i) for i in np.flatnonzero(self.lower > self.upper) if i not in self.lost]

    def rival(self, arm: int) -> int | None:
        """Return the other arm with the highest upper bound; None if all others have failed."""
        if not 0 <= arm < len(self.upper):
            raise ArmError(f"arm {arm}, but there are arms 0 to {len(self.upper) - 1}")
        others = [i for i in range(len(self.upper)) if i != arm and i not in self.lost]
        return max(others, key=lambda i: self.upper[i], default=None)

    def missing(self, arm: int) -> str:
        """Return text: `arm` is certified, or the reason why not, with numbers and conditions."""
        finding, numbers = self.explained(arm, [f"arm {i}" for i in range(len(self.upper))])
        return f"{finding}. {numbers}" if numbers else finding

    def explained(
        self,
        arm: int,
        names: Sequence[str],
        repeats: Collection[int] = (),
        within: tuple[float, float] = (-math.inf, math.inf),
        at: str = "",
        ended: Collection[int] = (),
    ) -> tuple[str, str]:
        """Return two texts: that an arm is certified, or the reason why not; and the numbers.

        The numbers include their conditions. Arms in `repeats` repeat rewards. A bound outside the
        range `within` says nothing. `at` is the horizon as text. Arms in `ended` have been
        trained to the end.
        """
        rival, shape = self.rival(arm), shape_of(self.maximize)
        at = at or f"at {self.horizon:,} pulls"
        if self.contradicted:
            doubted = ", ".join(names[i] for i in self.contradicted)
            doubt = f"the scores of {doubted} contradict the assumptions (curves that {shape})"
            return f"there is no proof: {doubt}", ""
        if rival is None:
            return f"there is no proof: no other learner is left to compare {names[arm]} with", ""
        failed = " and ".join(names[i] for i in sorted(self.lost))
        without = f"; {failed} failed and cannot be kept" if failed else ""
        noise = f"{self.noise:.3g}, as {'estimated' if self.noise_estimated else 'given'}{without}"
        sure, reach = float(self.lower[arm]), float(self.upper[rival])
        share = f"{100 * (1 - self.delta):g} %"
        if sure > reach:
            lead = f"certified to be at least {sure - reach:.4g} ahead of {names[rival]}"
            finding = f"{names[arm]} will stay ahead {at} ({share}, if curves {shape})"
            return finding, f"It is {lead}, with a noise level of {noise}"
        no_bound = self._why_no_bound(arm, rival, names, repeats, within[1], at)
        if no_bound:
            return no_bound, ""
        sign = 1 if self.maximize else -1
        numbers = f"{names[rival]} could reach {sign * reach:.4g} {at}"
        if sure >= within[0]:
            end = "at least" if self.maximize else "at most"
            numbers = f"{numbers}, and {names[arm]} has {end} {sign * sure:.4g}"
        conditions = f"{share}, if curves {shape} and the noise level is {noise}"
        finding = f"{OPEN}: {names[rival]} is the closest rival that the bounds leave open"
        if arm in ended and rival in ended:
            both = f"{names[arm]} and {names[rival]} are both trained to the end"
            finding = (
                f"there is no proof: {both}, and the noise of their scores hides who is ahead"
            )
        return finding, f"By the bounds, {numbers} ({conditions})"

    def _why_no_bound(
        self,
        arm: int,
        rival: int,
        names: Sequence[str],
        repeats: Collection[int],
        highest: float,
        at: str,
    ) -> str:
        """Return why there is no bound for an arm or its rival; empty if there are both."""
        bounds = ((arm, float(self.lower[arm])), (rival, float(self.upper[rival])))
        few = [i for i, bound in bounds if math.isinf(bound)]
        if few and few[0] in repeats:
            why = f"pulls of {names[few[0]]} repeat scores, so their noise is unknown"
            return f"there is no proof: {why}"
        if few:
            return f"{OPEN}: {names[few[0]]} has too few pulls to say anything about scores {at}"
        if self.upper[rival] > highest:
            limit = "because no limit of this score is known"
            cure = "set score_range of the race or its learners"
            return f"there is no proof: nothing bounds {names[rival]} {at}, {limit}; {cure}"
        return ""


def certificate(
    rewards: Sequence[ArrayLike],
    noise: float | None,
    horizon: int,
    window: float = 0.25,
    delta: float = DELTA,
    budget: int | None = None,
    *,
    method: str = LINES,
    score_range: tuple[float, float] | None = None,
    looks: int = 1,
) -> Certificate:
    """Return intervals for each mu_i(horizon) from each arm's rewards in order.

    If the noise is estimated, its own uncertainty is part of the intervals. A `budget` below the
    horizon makes the intervals narrower. If you check several times in order to stop early, set
    the maximum number of checks, `looks`: an estimated noise level must then be large enough at
    every check.

    Parameters
    ----------
    rewards : Sequence[ArrayLike]
        Rewards of each arm, in order.
    noise : float | None
        Sub-Gaussian noise level sigma; None to estimate it.
    horizon : int
        Number of pulls per arm at which arms are compared.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.
    delta : float
        Probability that some interval fails.
    budget : int | None
        Maximum number of pulls that any arm could have had; it must not depend on rewards.
        Default: the horizon.
    method : str
        "lines" or "windows".
    score_range : tuple[float, float] | None
        Lowest and highest possible mean reward, such as (0, 1) for an accuracy. Default: no
        limits.
    looks : int
        Maximum number of checks. Default: 1.

    Returns
    -------
    Certificate
        The intervals of all arms.

    Examples
    --------
    >>> seen = [[0.9] * 60, [0.2] * 60]
    >>> result = certificate(seen, noise=0.01, horizon=100)
    >>> result.lower.round(3), result.upper.round(3), result.certified(0)
    (array([0.894, 0.194]), array([0.925, 0.225]), True)
    >>> result.missing(1)
    'there is no proof at this budget, as usual for short races: arm 0 is the closest rival ...'
    """
    require(method in METHODS, "method", method, "lines or windows", "only these have a proof")
    cx.need(window=window, delta=delta, horizon=horizon)
    need_whole("looks", looks, 1, "the check now is one of them")
    arrays = [_as_rewards(arm, row) for arm, row in enumerate(rewards)]
    require(len(arrays) >= 2, "arms", len(arrays), "at least 2", "one arm has no rival")
    level = pooled_noise(arrays) if noise is None else noise
    cx.need(noise=level)
    most = _most_pulls(arrays, horizon, budget)
    surely, rest = (level, delta) if noise is not None else _covering(arrays, level, delta, looks)
    if method == LINES:
        ends = _by_lines(arrays, most, horizon, surely, rest)
    else:
        counts = _usable_counts(most, window)
        deviations = math.sqrt(2 * math.log(2 * len(arrays) * max(counts, 1) / rest))
        ends = [_interval(x[:most], horizon, window, surely * deviations) for x in arrays]
    lower, upper = (np.array(side, dtype=np.float64) for side in zip(*ends, strict=True))
    if score_range is not None:
        low, high = map(float, score_range)
        why = "it is an interval"
        require(low < high, "score_range", score_range, "(low, high) with low < high", why)
        lower, upper = np.maximum(lower, low), np.minimum(upper, high)
    return Certificate(lower, upper, horizon, delta, level, noise is None)


def _covering(
    arrays: list[Floats], estimate: float, delta: float, looks: int
) -> tuple[float, float]:
    """Return a noise level that is too low with probability delta/10, and the remaining delta.

    The level is infinite if there are too few second differences for such a level.
    """
    margin = noise_margin(delta / 10 / looks, sum(max(0, len(x) - 2) for x in arrays))
    level = estimate * margin if math.isfinite(margin) else math.inf  # 0 times infinity is nan
    return level, delta - delta / 10


# --- by lines ---


def _by_lines(
    arrays: list[Floats], most: int, horizon: int, noise: float, delta: float
) -> list[tuple[float, float]]:
    """Return the intervals of all arms by lines."""
    counts = _judged_counts(most)
    claims = 2 * len(arrays) * len(counts) * len(SHARES)
    scale = noise * math.sqrt(2 * math.log(max(1, claims) / delta))
    return [_line_interval(x[:most], counts, horizon, scale) for x in arrays]


def _judged_counts(most: int) -> Ints:
    """Return the pull counts at which intervals are computed: each a tenth above the last.

    >>> _judged_counts(28).tolist()
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 21, 24, 27, 28]
    """
    counts, n = [], 3
    while n < most:
        counts.append(n)
        n = max(n + 1, math.ceil(STEP * n))
    return np.array([*counts, most], dtype=np.int64)


def _line_interval(
    rewards: Floats, counts: Ints, horizon: int, scale: float
) -> tuple[float, float]:
    """Return one arm's interval: the intersection over all judged counts and shares."""
    counts = counts[counts <= len(rewards)]
    if len(counts) == 0:
        return -math.inf, math.inf
    center = float(np.mean(rewards))
    x = np.concatenate([[0.0], rewards - center])
    S, Q = np.cumsum(x), np.cumsum(np.arange(len(x)) * x)
    lower, upper = -math.inf, math.inf
    for share in SHARES:
        n = counts[(share * counts).astype(np.int64) >= 3]
        m = (share * n).astype(np.int64)
        total, moment = S[n] - S[n - m], Q[n] - Q[n - m]
        middle, spread = n - (m - 1) / 2, m * (m.astype(float) ** 2 - 1) / 12
        ahead = horizon - middle
        mean, slope = total / m, (moment - middle * total) / spread
        below, above = scale / np.sqrt(m), scale * np.sqrt(1 / m + ahead**2 / spread)
        lower = max(lower, float(np.max(mean - below, initial=-math.inf)))
        upper = min(upper, float(np.min(mean + slope * ahead + above, initial=math.inf)))
    return lower + center, upper + center


# --- by the paper's windows ---


def _usable_counts(most: int, window: float) -> int:
    """Return the number of pull counts up to `most` with a non-empty window."""
    return most - first_full(window) + 1 if window_length(window, most) >= 1 else 0


def _interval(rewards: Floats, horizon: int, window: float, scale: float) -> tuple[float, float]:
    """Return one arm's interval: the intersection over all its pull counts."""
    n = np.arange(1, len(rewards) + 1, dtype=np.int64)
    n = n[window_lengths(n, window) > 0]
    if len(n) == 0:
        return -math.inf, math.inf
    pessimistic, optimistic = _estimates(rewards, n, window_lengths(n, window), horizon)
    below = scale * np.sqrt(pessimistic_weight(n, window))
    above = scale * np.sqrt(optimistic_weight(n, horizon, window))
    return float(np.max(pessimistic - below)), float(np.min(optimistic + above))


def _estimates(rewards: Floats, n: Ints, h: Ints, horizon: int) -> tuple[Floats, Floats]:
    """Return pessimistic and optimistic estimates at every n.

    [Mussi24, Eq. (mu_hat), (mu_check)].
    """
    # The weights of each estimate sum to 1, so subtract the mean first: S and Q stay small.
    center = float(np.mean(rewards))
    x = np.concatenate([[0.0], rewards - center])
    S, Q = np.cumsum(x), np.cumsum(np.arange(len(x)) * x)
    recent, weighted = S[n] - S[n - h], Q[n] - Q[n - h]
    before, weighted_before = S[n - h] - S[n - 2 * h], Q[n - h] - Q[n - 2 * h]
    growth = horizon * recent - weighted - ((horizon - h) * before - weighted_before)
    pessimistic = center + recent / h
    return pessimistic, pessimistic + growth / h**2


def _as_rewards(arm: int, row: ArrayLike) -> Floats:
    array = np.asarray(row, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise RewardError(f"rewards of arm {arm} must be a list of finite numbers, one per pull")
    return array


def _most_pulls(arrays: list[Floats], horizon: int, budget: int | None) -> int:
    """Return the largest pull count that the union bound must cover, by horizon and budget."""
    if budget is None:
        return horizon
    cx.need(budget=budget)
    longest = max(len(x) for x in arrays)
    if longest > budget:
        raise BudgetError(f"budget={budget}, but an arm has {longest} rewards already")
    return min(horizon, budget)
