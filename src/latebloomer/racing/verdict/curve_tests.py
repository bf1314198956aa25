r"""Tests whether the observed curves contradict the guarantees: curves that rise and flatten.

The test. An arm's n rewards are cut into m = 4, 8 and 16 blocks of b = floor(n/m) >= 3 pulls (the
newest ones; a shorter arm is not tested), with means :math:`M_1, ..., M_m`. With noise that is
Gaussian, independent and of one level within the arm,

- a curve that never falls has :math:`E[M_i - M_j] \le 0` for i < j, so
  :math:`(M_i - M_j) / (\sigma\sqrt{2/b})` is at most a standard Gaussian;
- a concave curve has :math:`E[M_{i-1} - 2 M_i + M_{i+1}] \le 0`, so that over
  :math:`\sigma\sqrt{6/b}` is too;
- a curve that still gains at least a hundredth of the spread between arms from its third to its
  last quarter has :math:`E[M_4 - M_3] \ge` that, and likewise.

:math:`\sigma` is estimated from the arm's second differences; with k of them the estimate has
about 18 k / 35 degrees of freedom (they overlap), and Student's quantile takes the Gaussian's
place. Bends of the curve only raise it. Each of the K arms and each of the three kinds gets a
share of `ALARM`, divided again by the number of comparisons (Bonferroni): over a whole race whose
curves meet the assumptions a false alarm comes with probability at most 1 %, and in fact much less
often. `tests/racing/test_curve_tests.py` holds it to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from latebloomer.core.statistics import noise_freedom, pooled_noise, student_tail
from latebloomer.racing.verdict.history import Floats

ALARM = 0.01  # chance of a false alarm per race
CUTS = (4, 8, 16)
SHORTEST = 3  # pulls per block
GAIN = 0.01  # of the spread between arms: less in a quarter of the pulls is a plateau

FALLS, BENDS_UP, PLATEAU = "falls", "bends up", "plateau"
MEANING = {  # of scores; of losses, below
    FALLS: "the guarantees assume curves that never fall",
    BENDS_UP: "the guarantees assume concave curves; a late improvement can be missed",
    PLATEAU: "no contradiction, but more pulls of it show nothing new",
}
OF_LOSSES = {
    FALLS: "the guarantees assume losses that never rise",
    BENDS_UP: "the guarantees assume convex losses; a late improvement can be missed",
    PLATEAU: MEANING[PLATEAU],
}


@dataclass(frozen=True)
class Finding:
    """A curve that contradicts an assumption, or has reached a plateau."""

    name: str
    kind: str  # FALLS, BENDS_UP or PLATEAU
    first: int  # the pulls of the arm between which it shows
    last: int
    amount: float  # fall, bend or gain, in the units of the scores
    deviations: float  # how many standard deviations that is beyond what is allowed
    maximize: bool = True  # False if scores are losses, which should fall

    @property
    def contradicts(self) -> bool:
        """True if it contradicts an assumption (a plateau does not)."""
        return self.kind != PLATEAU

    def __str__(self) -> str:
        meaning = MEANING if self.maximize else OF_LOSSES
        many = "over 1000" if self.deviations > 1000 else f"{self.deviations:.1f}"
        return (
            f"{self.name} {self._what()} between its pulls {self.first} and {self.last} "
            f"({many} standard deviations): {meaning[self.kind]}"
        )

    def _what(self) -> str:
        if self.kind == FALLS:
            return f"gets worse by {self.amount:.4g}"
        if self.kind == BENDS_UP:
            return f"bends {'up' if self.maximize else 'down'}wards by {self.amount:.4g}"
        return f"has reached a plateau (gain {self.amount:.2g})"


def check_curves(
    names: Sequence[str], rewards: Sequence[Floats], maximize: bool = True
) -> tuple[Finding, ...]:
    """Test the rewards of a race (higher is better) for contradictions of its assumptions.

    `maximize` tells whether the scores are such too: findings are about the scores.
    """
    alarm = ALARM / (3 * max(1, len(names)))
    spread = _spread(rewards)
    found = [
        f for name, x in zip(names, rewards, strict=True) for f in _check(name, x, alarm, spread)
    ]
    return tuple(replace(finding, maximize=maximize) for finding in found)


def _check(name: str, x: Floats, alarm: float, spread: float) -> list[Finding]:
    if len(x) < CUTS[0] * SHORTEST:
        return []
    sigma, freedom = pooled_noise([x]), noise_freedom(len(x) - 2)
    cuts = [m for m in CUTS if len(x) // m >= SHORTEST]
    pairs = sum(m * (m - 1) // 2 for m in cuts)
    triples = sum(m - 2 for m in cuts)
    found = [
        _strongest(name, FALLS, [_falls(x, m, sigma) for m in cuts], alarm / pairs, freedom),
        _strongest(name, BENDS_UP, [_bends(x, m, sigma) for m in cuts], alarm / triples, freedom),
        _plateau(name, x, sigma, spread, student_tail(alarm, freedom)),
    ]
    return [finding for finding in found if finding is not None]


Peak = tuple[float, float, int, int]  # deviations, amount, first and last pull


def _strongest(
    name: str, kind: str, peaks: list[Peak], alarm: float, freedom: float
) -> Finding | None:
    deviations, amount, first, last = max(peaks)
    if deviations <= student_tail(alarm, freedom):
        return None
    return Finding(name, kind, first, last, amount, deviations)


def _falls(x: Floats, m: int, sigma: float) -> Peak:
    means, b, start = _blocks(x, m)
    drop = means[:, None] - means[None, :]
    drop[np.tril_indices(m)] = -np.inf
    i, j = np.unravel_index(int(np.argmax(drop)), drop.shape)
    amount = float(drop[i, j])
    return (
        _over(amount, sigma * sqrt(2 / b)),
        amount,
        start + int(i) * b + 1,
        start + int(j + 1) * b,
    )


def _bends(x: Floats, m: int, sigma: float) -> Peak:
    means, b, start = _blocks(x, m)
    bends = np.diff(means, n=2)
    i = int(np.argmax(bends))
    amount = float(bends[i])
    return _over(amount, sigma * sqrt(6 / b)), amount, start + i * b + 1, start + (i + 3) * b


def _plateau(name: str, x: Floats, sigma: float, spread: float, limit: float) -> Finding | None:
    means, b, start = _blocks(x, 4)
    gain = float(means[3] - means[2])
    short = _over(GAIN * spread - gain, sigma * sqrt(2 / b))
    if spread <= 0 or short <= limit or _over(-gain, sigma * sqrt(2 / b)) > limit:
        return None  # still gaining for all we know, or falling, which is another finding
    return Finding(name, PLATEAU, start + 2 * b + 1, start + 4 * b, gain, short)


def _blocks(x: Floats, m: int) -> tuple[Floats, int, int]:
    b = len(x) // m
    start = len(x) - m * b
    return x[start:].reshape(m, b).mean(axis=1), b, start


def _over(amount: float, scale: float) -> float:
    tiny = 1e-12 * max(1.0, abs(amount))  # curves without noise: rounding is not a finding
    return amount / max(scale, tiny)


def _spread(rewards: Sequence[Floats]) -> float:
    late = [float(x[-max(1, len(x) // 4) :].mean()) for x in rewards if len(x)]
    return max(late) - min(late) if late else 0.0
