"""The conventions behind the published numbers: for `as-published` only, never the library's.

Found by running the authors' public code (MIT) and comparing with the published series, cell by
cell. What differs from the text and from this library, by the numbers under which the project's
notes list it:

1. R-UCBE's bonus has 10 a in the place of a;
2. a is a formula that squares a negative bracket (`settings.py`);
3. R-UCBE recommends the largest estimate, without its bonus, as the library does;
4. an arm's n-th pull has mean mu(n - 1), while best arm, gaps and a use mu(T);
5. R-SR and RR-SW read the slot of the newest reward before it is stored, so the first three
   rewards stay in their window sums for ever;
6. one noise vector per trial, indexed by the round, the same for all algorithms; R-SR and SR pull
   the survivors of a sweep in random order and break ties at random;
7. Prob-1 starts with equal probabilities and ranks by a stable sort;
9. the two power-law rules of `published_power_law.py`.

A kernel plays one trial: it fills `n` with the pulls of each arm and returns the recommended one.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.kernel import kernel
from latebloomer.core.recurrences import Sums, grow, projected_mean_of, slide
from latebloomer.problems.curves import Floats

WINDOW = 0.25
TENFOLD = 10.0  # departure 1


class Trial(NamedTuple):
    """What a kernel is given: one trial of one algorithm."""

    means: Floats  # means[i, n]: of arm i after n pulls, n = 0, ..., T (departure 4)
    noise: Floats  # by round (departure 6)
    luck: Floats  # uniform numbers in [0, 1), by round, for algorithms that draw
    ends: Any  # pulls at which the phases of successive rejects end
    exploration: float
    sigma: float
    rho: float


@kernel
def reward(trial: Trial, n: Any, arm: int, t: int) -> float:
    """The reward of round t, counted in `n`."""
    x = trial.means[arm, n[arm]] + trial.noise[t]
    n[arm] += 1
    return x


@kernel
def round_robin(trial: Trial, n: Any) -> int:
    """RR: the largest mean of all rewards."""
    arms = len(n)
    total = np.zeros(arms)
    for t in range(len(trial.noise)):
        total[t % arms] += reward(trial, n, t % arms, t)
    return int(np.argmax(total / n))


@kernel
def add_faulty(sums: Any, kept: Any, i: int, count: int, x: float) -> None:
    """Window sum of arm i with its `count`-th reward x; before that is stored (departure 5)."""
    h = int(WINDOW * count)
    sums[i] += x
    if h == int(WINDOW * (count - 1)):
        sums[i] -= kept[i, count - h - 1]
    kept[i, count - 1] = x


@kernel
def round_robin_window(trial: Trial, n: Any) -> int:
    """RR-SW: the largest mean of a window that keeps the first three rewards."""
    arms, budget = len(n), len(trial.noise)
    sums, kept = np.zeros(arms), np.zeros((arms, budget))
    for t in range(budget):
        i = t % arms
        add_faulty(sums, kept, i, n[i] + 1, reward(trial, n, i, t))
    return int(np.argmax(sums / np.floor(WINDOW * n)))


@kernel
def ucb_e(trial: Trial, n: Any) -> int:
    """UCB-E: the largest mean, after pulling the largest mean plus sqrt(a / n)."""
    mean, bound = np.zeros(len(n)), np.full(len(n), inf)
    for t in range(len(trial.noise)):
        i = int(np.argmax(bound))
        x = reward(trial, n, i, t)
        mean[i] += (x - mean[i]) / n[i]
        bound[i] = mean[i] + sqrt(trial.exploration / n[i])
    return int(np.argmax(mean))


@kernel
def rising_ucbe(trial: Trial, n: Any) -> int:
    """R-UCBE with the tenfold exploration."""
    arms, budget = len(n), len(trial.noise)
    sums, kept = np.zeros((arms, 4)), np.zeros((arms, budget))
    estimate, bound, waiting = np.zeros(arms), np.zeros(arms), arms
    for t in range(budget):
        i = t % arms if waiting > 0 else int(np.argmax(bound))
        x = reward(trial, n, i, t)
        count = n[i]
        kept[i, count - 1] = x
        h = int(WINDOW * count)
        if h < 1:
            continue
        waiting -= int(int(WINDOW * (count - 1)) == 0)
        estimate[i] = project(sums, kept, i, count, h, budget)
        spread = budget - count + h - 1
        bonus = trial.sigma * spread * sqrt(TENFOLD * trial.exploration / h**3)
        bound[i] = estimate[i] + bonus
    return int(np.argmax(estimate))


@kernel
def project(sums: Any, kept: Any, i: int, n: int, h: int, budget: int) -> float:
    """The optimistic estimate of arm i after n pulls, by the paper's own updates."""
    before, x = int(WINDOW * (n - 1)), kept[i, n - 1]
    s = Sums(before, sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3])
    if h > before:
        s = grow(s, n, x, kept[i, n - 2 * h])
    else:
        s = slide(s, n, x, kept[i, n - h - 1], kept[i, n - 2 * h - 1])
    sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3] = s.a, s.b, s.c, s.d
    return projected_mean_of(s, budget)


@kernel
def successive_rejects(trial: Trial, n: Any) -> int:
    """SR: drop the worst mean of all rewards."""
    mean = np.zeros(len(n))
    return rejects(trial, n, mean, np.zeros((0, 0)))


@kernel
def rising_sr(trial: Trial, n: Any) -> int:
    """R-SR: drop the worst mean of a window that keeps the first three rewards."""
    return rejects(trial, n, np.zeros(len(n)), np.zeros((len(n), len(trial.noise))))


@kernel
def rejects(trial: Trial, n: Any, score: Any, kept: Any) -> int:
    """The phases of SR (nothing in `kept`) and R-SR; who is next and who ties is drawn."""
    arms, phase, draws = len(n), 0, 0
    living, sums = np.full(arms, True), np.zeros(arms)
    for t in range(len(trial.noise)):
        i = draw_least(n, living, trial.luck[draws])
        x = reward(trial, n, i, t)
        if len(kept) == 0:
            score[i] += (x - score[i]) / n[i]
        else:
            add_faulty(sums, kept, i, n[i], x)
            h = int(WINDOW * n[i])
            score[i] = sums[i] / h if h > 0 else 0.0
        draws += 1
        if phase < arms - 1 and least(n, living) >= trial.ends[phase]:
            living[draw_least(score, living, trial.luck[draws])] = False
            phase, draws = phase + 1, draws + 1
    return int(np.argmax(living))


@kernel
def least(value: Any, living: Any) -> float:
    """The smallest value of a living arm."""
    low = inf
    for i in range(len(living)):
        if living[i] and value[i] < low:
            low = float(value[i])
    return low


@kernel
def draw_least(value: Any, living: Any, u: float) -> int:
    """One of the living arms of smallest value, drawn by `u`."""
    low, ties = least(value, living), 0
    for i in range(len(living)):
        ties += int(living[i] and value[i] == low)
    place = int(u * ties)
    for i in range(len(living)):
        if living[i] and value[i] == low:
            if place == 0:
                return i
            place -= 1
    return -1


@kernel
def prob_one(trial: Trial, n: Any) -> int:
    """Prob-1: equal probabilities at first, then 1 / (rank (1 + ... + 1/K)), stably ranked."""
    arms, harmonic = len(n), 0.0
    for rank in range(1, arms + 1):
        harmonic += 1.0 / rank
    gain, order, probability = np.zeros(arms), np.arange(arms), np.full(arms, 1.0 / arms)
    for t in range(len(trial.noise)):
        i = draw_arm(probability, trial.luck[t])
        gain[i] += reward(trial, n, i, t) / probability[i]
        sort_stably(gain, order)
        for place in range(arms):
            probability[order[place]] = 1.0 / ((arms - place) * harmonic)
    return int(np.argmax(gain))


@kernel
def draw_arm(probability: Any, u: float) -> int:
    """The first arm whose share of the cumulative probability is above `u`, as NumPy draws."""
    total, below = 0.0, 0.0
    for i in range(len(probability)):
        total += probability[i]
    for i in range(len(probability)):
        below += probability[i]
        if below / total > u:
            return i
    return len(probability) - 1


@kernel
def sort_stably(gain: Any, order: Any) -> None:
    """Arms by increasing gain, equal ones by their number, from a nearly sorted order."""
    for place in range(1, len(order)):
        i, to = order[place], place
        while to > 0 and (
            gain[order[to - 1]] > gain[i] or (gain[order[to - 1]] == gain[i] and order[to - 1] > i)
        ):
            order[to] = order[to - 1]
            to -= 1
        order[to] = i
