r"""What the recorded curves of a race show: half-time, assumptions, and what others would keep.

The test of assumptions. The guarantees are for curves that rise and flatten. An arm's n rewards
are cut into m = 4, 8 and 16 blocks of b = floor(n/m) >= 3 pulls (the newest ones; a shorter arm
is not tested), with means :math:`M_1, ..., M_m`. With noise that is Gaussian, independent and of
one level within the arm,

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

Hindsight. A race does not train every arm as far as another method would have. So each method is
replayed with the largest budget for which all that it requests was recorded, and that budget is
stated. Halving follows its policy's plan and ASHA its policy's rule for rungs, from rung to rung:
pull by pull, as in a session, it would take minutes for thousands of learners.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, repeat, takewhile
from math import inf, sqrt
from operator import mul

import numpy as np
from numpy.typing import NDArray

from latebloomer.core.statistics import noise_freedom, pooled_noise, student_tail
from latebloomer.policies.rungs import is_cut
from latebloomer.policies.window_ratings import SuccessiveHalving
from latebloomer.session.events import FAILED, FINISHED
from latebloomer.session.session import Session

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class History:
    """Every counted pull of a race, in order; scores as the learners returned them."""

    names: tuple[str, ...]
    arms: NDArray[np.int64]  # the arm of each pull
    scores: Floats
    sign: float  # 1 if higher is better, -1 if lower is

    @classmethod
    def of(cls, session: Session, empty: bool = False) -> "History":
        """Return the scores of a session; none, if only its names and its sign are needed."""
        reported = [] if empty else session.history
        pulls = np.fromiter(reported, dtype=[("arm", np.int64), ("score", np.float64)])
        return cls(session.names, pulls["arm"], pulls["score"], 1.0 if session.maximize else -1.0)

    def upto(self, pulls: int) -> "History":
        """Return the first pulls of the race."""
        return History(self.names, self.arms[:pulls], self.scores[:pulls], self.sign)

    @cached_property
    def by_arm(self) -> list[Floats]:
        """Scores of each arm, pull by pull."""
        order = np.argsort(self.arms, kind="stable")
        counts = np.bincount(self.arms, minlength=len(self.names))
        return np.split(self.scores[order], np.cumsum(counts)[:-1])

    def rewards(self) -> list[Floats]:
        """Return every arm's scores with the sign that makes higher better."""
        return [self.sign * scores for scores in self.by_arm]

    def leader_at(self, half: int, swept: bool, without: Collection[int] = ()) -> int | None:
        """Return the arm that led after `half` pulls of the race; None before.

        Arms are ranked by the mean of their latest quarter; those in `without` failed and count
        for nothing. If arms are swept evenly, the pulls of each up to the level at which the half
        is reached count, so that the order within a sweep, which a parallel runner does not keep,
        makes no difference.
        """
        if len(self.arms) < half:
            return None
        rewards = self.rewards()
        pulls = np.bincount(self.arms[:half], minlength=len(self.names)).tolist()
        if swept:
            pulls = [_level([len(x) for x in rewards], half)] * len(rewards)
        early = {i: x[:n] for i, (x, n) in enumerate(zip(rewards, pulls, strict=True))}
        means = {i: late(x).mean() for i, x in early.items() if len(x) and i not in without}
        return max(means, key=lambda i: means[i], default=None)


def late(scores: Floats) -> Floats:
    """Return the latest quarter of an arm's scores, at least one."""
    return scores[-max(1, len(scores) // 4) :]


def _level(lengths: list[int], pulls: int) -> int:
    """Return the largest level to which all arms can be trained with that many pulls.

    >>> _level([4, 9, 9], 13)  # 4 + 4 + 4 pulls; the next level takes 14
    4
    """
    levels = range(1, max(lengths, default=0) + 1)
    return bisect_right(levels, pulls, key=lambda n: sum(min(n, have) for have in lengths))


# --- do the curves meet the assumptions? ---

ALARM = 0.01  # chance of a false alarm per race
CUTS = (4, 8, 16)
SHORTEST = 3  # pulls per block
GAIN = 0.01  # of the spread between arms: less in a quarter of the pulls is a plateau

FALLS, BENDS_UP, PLATEAU = "falls", "bends up", "plateau"


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
        way, rise, shape = "up", "curves that never fall", "concave curves"
        if not self.maximize:
            way, rise, shape = "down", "losses that never rise", "convex losses"
        assumed, missed = "the guarantees assume", "a late improvement can be missed"
        what, meaning = {
            FALLS: (f"gets worse by {self.amount:.4g}", f"{assumed} {rise}"),
            BENDS_UP: (f"bends {way}wards by {self.amount:.4g}", f"{assumed} {shape}; {missed}"),
            PLATEAU: (f"has reached a plateau (gain {self.amount:.2g})",
                      "no contradiction, but more pulls of it show nothing new"),
        }[self.kind]  # fmt: skip
        many = "over 1000" if self.deviations > 1000 else f"{self.deviations:.1f}"
        between = f"between its pulls {self.first} and {self.last}"
        return f"{self.name} {what} {between} ({many} standard deviations): {meaning}"


def check_curves(
    names: Sequence[str], rewards: Sequence[Floats], maximize: bool = True
) -> tuple[Finding, ...]:
    """Test the rewards of a race (higher is better) for contradictions of its assumptions.

    `maximize` tells whether the scores are such too: findings are about the scores.
    """
    alarm = ALARM / (3 * max(1, len(names)))
    levels = [float(late(x).mean()) for x in rewards if len(x)] or [0.0]
    return tuple(
        Finding(name, *found, maximize)
        for name, x in zip(names, rewards, strict=True)
        for found in _check(x, alarm, max(levels) - min(levels))
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
    falling = _over(-gain, sigma * scale) > limit  # which is another finding
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
    tiny = 1e-12 * max(1.0, abs(amount))  # curves without noise: rounding is not a finding
    return amount / max(scale, tiny)


# --- what Successive Halving and ASHA would have kept ---

ETA = 4  # ASHA's reduction factor in Ray Tune and Optuna
TRIES = 400  # budgets that are tried, evenly spaced
NEARLY = 0.95  # of the race's pulls: then the budgets count as equal


@dataclass(frozen=True)
class Hindsight:
    """What another method keeps on the recorded curves."""

    rule: str
    pick: str | None  # None if the recorded curves do not suffice
    pulls: int  # that it spends
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class Unknown(Exception):
    """A value is needed that was not recorded."""


@dataclass(frozen=True, eq=False)
class Curve:
    """The recorded rewards of one arm, and how it left."""

    rewards: Floats
    left: str | None

    def at(self, n: int) -> float:
        """Return the reward of pull n; the last one of a finished arm, -inf of a failed one."""
        if n <= len(self.rewards):
            return float(self.rewards[n - 1])
        if self.left == FINISHED:
            return float(self.rewards[-1])
        if self.left == FAILED:
            return -inf
        raise Unknown

    def cost(self, n: int) -> int:
        """Return the pulls that training it to n takes."""
        return min(n, len(self.rewards)) if self.left else n


def hindsight(
    names: Sequence[str], rewards: Sequence[Floats], budget: int, left: Sequence[str | None]
) -> tuple[Hindsight, ...]:
    """Replay both methods; `rewards` are such that higher is better."""
    known = list(map(Curve, rewards, left))
    return halving(names, known, budget), asha(names, known, budget)


def halving(names: Sequence[str], known: Sequence[Curve], budget: int) -> Hindsight:
    """Replay Successive Halving by the latest value; arms are resumed, not restarted."""
    rule = SuccessiveHalving()

    def replay(total: int) -> tuple[int, int]:
        """Return the arm that is kept and the pulls that this takes."""
        plan = rule.plan(len(names), total)
        crew, level, pulls = list(range(len(known))), 0, 0
        for k, n in zip(plan.keep.tolist(), plan.upto.tolist(), strict=True):
            if level:
                values = {i: known[i].at(level) for i in crew}
                crew = sorted(sorted(crew, key=lambda i: (-values[i], i))[:k])
            for i in crew:
                known[i].at(n)
                pulls += known[i].cost(n) - known[i].cost(level)
            level = n
        return crew[0], pulls

    totals = _downwards(rule.smallest_budget(len(names))[0], budget)
    return _largest("Successive Halving (eta 2)", names, budget, totals, replay)


def asha(names: Sequence[str], known: Sequence[Curve], budget: int) -> Hindsight:
    """Replay ASHA as tuners ship it: one worker, arms in the given order, rungs at 1, 4, 16, ...

    At a rung an arm continues if it is in the top quarter of those that reached it so far.
    """
    label = f"ASHA (eta {ETA}, grace 1, one worker, learners in this order)"

    @cache  # ends between the same two rungs have the same ones
    def cuts(rungs: tuple[int, ...]) -> list[float] | None:
        """Return the rung at which each arm is stopped, or infinity; None for all: unknown."""
        seen: dict[int, list[float]] = {n: [] for n in rungs}  # the values at each rung, sorted
        try:
            return [_cut(curve, seen) for curve in known]
        except Unknown:
            return None

    def replay(end: int) -> tuple[int, int]:
        rungs = takewhile(lambda n: n < end, accumulate(repeat(ETA), mul, initial=1))
        found = cuts(tuple(rungs))  # at 1, 4, 16, ... below the end
        if found is None:
            raise Unknown
        stops = [(curve, int(min(end, cut))) for curve, cut in zip(known, found, strict=True)]
        latest = [curve.at(n) for curve, n in stops]
        return latest.index(max(latest)), sum(curve.cost(n) for curve, n in stops)

    ends = _downwards(1, max(len(curve.rewards) for curve in known))
    return _largest(label, names, budget, ends, replay, ", each up to {},")


def _cut(curve: Curve, rungs: dict[int, list[float]]) -> float:
    for n, seen in rungs.items():
        value = curve.at(n)
        insort(seen, value)
        if is_cut(len(seen) - bisect_right(seen, value), len(seen), ETA):
            return n
    return inf


def _downwards(least: int, most: int) -> Iterable[int]:
    step = max(1, (most - least) // TRIES)
    return [*range(most, least, -step), least] if most >= least else []


def _largest(
    rule: str, names: Sequence[str], budget: int, sizes: Iterable[int],
    replay: Callable[[int], tuple[int, int]], each: str = "",
) -> Hindsight:  # fmt: skip
    """Return what a method keeps with the first size for which the curves suffice.

    `replay` returns, for a size, the arm that is kept and the pulls.
    """
    for size in sizes:
        with suppress(Unknown):
            pick, pulls = replay(size)
            if pulls > budget:
                continue
            nearly = pulls >= NEARLY * budget
            short = "" if nearly else f" of {budget} (as far as curves were recorded)"
            text = f"{rule} with {pulls} pulls{short}{each.format(size)} would have kept "
            return Hindsight(rule, names[pick], pulls, text + names[pick])
    return Hindsight(rule, None, 0, f"{rule}: unknown, because it needs more than was recorded")
