r"""Tests of the assumption that curves rise and flatten.

The guarantees hold for curves that rise and flatten. An arm's latest rewards are divided into m =
4, 8 and 16 blocks of b = floor(n/m) >= 3 pulls with means :math:`M_1, ..., M_m`; an arm with too
few pulls is not tested. If the noise is Gaussian and independent with the same level for all pulls
of the arm,

- a curve that never falls has :math:`E[M_i - M_j] \le 0` for i < j, so
  :math:`(M_i - M_j) / (\sigma\sqrt{2/b})` is at most a standard Gaussian;
- a concave curve has :math:`E[M_{i-1} - 2 M_i + M_{i+1}] \le 0`, so this difference divided by
:math:`\sigma\sqrt{6/b}` is at most a standard Gaussian, too; - if a curve gains at least a
hundredth g of the spread between arms from its third to its last quarter, :math:`E[M_4 - M_3] \ge
g`, and the same holds for :math:`g - (M_4 - M_3)`.

:math:`\sigma` is estimated from the arm's second differences; with k of them, the estimate has
about 18 k / 35 degrees of freedom (they overlap), so Student's quantile replaces the Gaussian
quantile. Bends of the curve only increase the estimate. Each of the K arms and each of the three
kinds of test gets an equal share of `ALARM`, which is divided by the number of comparisons
(Bonferroni). So in a race whose curves meet the assumptions, a false alarm has a probability of at
most 1 %, and in practice much less. `tests/theory/test_curve_tests.py` checks this.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from latebloomer._util.text import quoted
from latebloomer.core.statistics import noise_freedom, pooled_noise, student_tail

Floats = NDArray[np.float64]


ALARM = 0.01  # probability of a false alarm per race
CUTS = (4, 8, 16)
SHORTEST = 3  # pulls per block
# Share of the spread between arms; a smaller gain in a quarter of the pulls is a plateau.
GAIN = 0.01

FALLS, BENDS_UP, PLATEAU = "falls", "bends up", "plateau"


@dataclass(frozen=True)
class Finding:
    """A curve that contradicts an assumption, or has reached a plateau."""

    name: str
    kind: str  # FALLS, BENDS_UP or PLATEAU
    first: int  # first and last pull of the arm between which it shows
    last: int
    amount: float  # fall, bend or gain, in the units of the scores
    deviations: float  # number of standard deviations beyond the allowed value
    maximize: bool = True  # False if scores are losses, which should fall

    @property
    def contradicts(self) -> bool:
        """True if the finding contradicts an assumption; a plateau does not."""
        return self.kind != PLATEAU

    def __str__(self) -> str:
        way, rise, shape = "up", "curves that never fall", "concave curves"
        if not self.maximize:
            way, rise, shape = "down", "losses that never rise", "convex losses"
        assumed, missed = "the guarantees assume", "a late improvement can be missed"
        what, meaning = {
            FALLS: (f"gets worse by {self.amount:.4g}", f"{assumed} {rise}"),
            BENDS_UP: (f"bends {way}wards by {self.amount:.4g}", f"{assumed} {shape}; {missed}"),
            PLATEAU: (
                f"has reached a plateau (gain {self.amount:.2g})",
                "no contradiction, but more pulls of it show nothing new",
            ),
        }[self.kind]
        many = "over 1000" if self.deviations > 1000 else f"{self.deviations:.1f}"
        between = f"between its pulls {self.first} and {self.last}"
        return f"{quoted(self.name)} {what} {between} ({many} standard deviations): {meaning}"


def late(scores: Floats) -> Floats:
    """Return the latest quarter of an arm's scores, at least one."""
    return scores[-max(1, len(scores) // 4) :]


def check_curves(
    names: Sequence[str], rewards: Sequence[Floats], maximize: bool = True
) -> tuple[Finding, ...]:
    """Test the rewards of a race (higher is better) for contradictions of its assumptions.

    `maximize` is False if scores are losses: the text of findings is about scores.
    """
    alarm = ALARM / (3 * max(1, len(names)))
    levels = [float(late(x).mean()) for x in rewards if len(x)] or [0.0]
    return tuple(
        Finding(name, *parts, maximize)
        for name, x in zip(names, rewards, strict=True)
        for parts in _check(x, alarm, max(levels) - min(levels))
    )


def _check(x: Floats, alarm: float, spread: float) -> Iterator[tuple[str, int, int, float, float]]:
    """Yield kind, first and last pull, amount and deviations of each finding."""
    cuts = [m for m in CUTS if len(x) // m >= SHORTEST]
    if not cuts:
        return
    sigma, freedom = pooled_noise([x]), noise_freedom(len(x) - 2)
    pairs, triples = sum(m * (m - 1) // 2 for m in cuts), sum(m - 2 for m in cuts)
    for kind, contrast, comparisons in ((FALLS, _fall, pairs), (BENDS_UP, _bend, triples)):
        peaks = []  # deviations, amount, first and last pull
        for means, b, start in (_blocks(x, m) for m in cuts):
            amount, i, j, variance = contrast(means)
            far = _over(amount, sigma * sqrt(variance / b))
            peaks.append((far, amount, start + i * b + 1, start + j * b))
        deviations, amount, first, last = max(peaks)
        if deviations > student_tail(alarm / comparisons, freedom):
            yield kind, first, last, amount, deviations
    means, b, start = _blocks(x, 4)
    gain, limit, scale = float(means[3] - means[2]), student_tail(alarm, freedom), sqrt(2 / b)
    short = _over(GAIN * spread - gain, sigma * scale)
    falling = _over(-gain, sigma * scale) > limit  # a fall is a separate finding
    if spread > 0 and short > limit and not falling:
        yield PLATEAU, start + 2 * b + 1, start + 4 * b, gain, short


Contrast = tuple[float, int, int, int]  # amount, first block, the one after the last, variance


def _fall(means: Floats) -> Contrast:
    drop = means[:, None] - means[None, :]
    drop[np.tril_indices(len(means))] = -inf
    i, j = divmod(int(np.argmax(drop)), len(means))
    return float(drop[i, j]), i, j + 1, 2


def _bend(means: Floats) -> Contrast:
    bends = np.diff(means, n=2)
    i = int(np.argmax(bends))
    return float(bends[i]), i, i + 3, 6


def _blocks(x: Floats, m: int) -> tuple[Floats, int, int]:
    b = len(x) // m
    start = len(x) - m * b
    return x[start:].reshape(m, b).mean(axis=1), b, start


def _over(amount: float, scale: float) -> float:
    tiny = 1e-12 * max(1.0, abs(amount))  # for curves without noise: rounding is not a finding
    return amount / max(scale, tiny)
