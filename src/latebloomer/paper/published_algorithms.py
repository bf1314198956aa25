"""The algorithms behind the published numbers: for `as-published` only, never the library's.

Found by running the authors' public code (MIT) and comparing with the published series, cell by
cell. What differs from the text and from this library, by the numbers under which the project's
notes list it:

1. R-UCBE's bonus has 10 a in the place of a;
2. a is a formula that squares a negative bracket (`experiments.py`);
3. R-UCBE recommends the largest estimate, without its bonus, as the library does;
4. an arm's n-th pull has mean mu(n - 1), while best arm, gaps and a use mu(T);
5. R-SR and RR-SW read the slot of the newest reward before it is stored, so the first three
   rewards stay in their window sums for ever;
6. one noise vector per trial, indexed by the round, the same for all algorithms; R-SR and SR pull
   the survivors of a sweep in random order and break ties at random;
7. Prob-1 starts with equal probabilities and ranks by a stable sort;
9. ETC and Rest-Sure: after an odd number of pulls the first half has one reward more than the
   second, but both sums are divided by the smaller count. Rest-Sure compares arms only when t is
   a multiple of 30, and its round number moves only then. At the end of the budget the counter of
   won comparisons, 0, equals the number of those wanted, 0, so every arm but the last is dropped
   where 30 divides T and a sweep ends there. Where m - |A| + 1 = 0, as in setting A at T = 100, a
   division by zero stops the exploration, and the arm is drawn at random.

A kernel plays one trial: it fills `n` with the pulls of each arm and returns the recommended one.
"""

from __future__ import annotations

from math import inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.estimators import Sums, grow, projected_mean_of, slide, window_length
from latebloomer.core.kernel import numpy_kernel as kernel
from latebloomer.paper.experiments import WINDOW
from latebloomer.problems.curves import Floats

TENFOLD = 10.0  # departure 1
LARGEST_ALPHA = 1.0  # of ETC and Rest-Sure
EVERY = 30  # rounds between Rest-Sure's comparisons (departure 9)


class Trial(NamedTuple):
    """What a kernel is given: one trial of one algorithm."""

    means: Floats  # means[i, n]: of arm i after n pulls, n = 0, ..., T (departure 4)
    noise: Floats  # by round (departure 6)
    luck: Floats  # uniform numbers in [0, 1), by round, for algorithms that draw
    ends: Any  # pulls at which the phases of successive rejects end
    decay: Floats  # s^-rho for s = 0 (never read), 1, ..., T
    exploration: float
    sigma: float
    rho: float


@kernel
def play_trials(frame: Trial, noise: Any, luck: Any, recommended: Any, pulls: Any) -> None:
    """A trial for each row of `noise`: an entry of `recommended` and a row of `pulls` each."""
    for number in range(len(noise)):
        trial = Trial(
            frame.means, noise[number], luck[number], frame.ends, frame.decay, frame.exploration,
            frame.sigma, frame.rho,
        )  # fmt: skip
        recommended[number] = algorithm(trial, pulls[number])


@kernel
def algorithm(trial: Trial, n: Any) -> int:
    """In the place of the algorithm that `play_trials` is compiled for."""
    raise NotImplementedError


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
def add_faulty(sums: Any, past: Any, i: int, count: int, x: float) -> None:
    """Window sum of arm i with its `count`-th reward x; before that is stored (departure 5)."""
    h = window_length(WINDOW, count)
    sums[i] += x
    if h == window_length(WINDOW, count - 1):
        sums[i] -= past[i, count - h - 1]
    past[i, count - 1] = x


@kernel
def round_robin_window(trial: Trial, n: Any) -> int:
    """RR-SW: the largest mean of a window that keeps the first three rewards."""
    arms, budget = len(n), len(trial.noise)
    sums, past = np.zeros(arms), np.zeros((arms, budget))
    for t in range(budget):
        i = t % arms
        add_faulty(sums, past, i, n[i] + 1, reward(trial, n, i, t))
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
    sums, past = np.zeros((arms, 4)), np.zeros((arms, budget))
    estimate, bound, waiting = np.zeros(arms), np.zeros(arms), arms
    for t in range(budget):
        i = t % arms if waiting > 0 else int(np.argmax(bound))
        x = reward(trial, n, i, t)
        count = n[i]
        past[i, count - 1] = x
        h = window_length(WINDOW, count)
        if h < 1:
            continue
        waiting -= int(window_length(WINDOW, count - 1) == 0)
        estimate[i] = project(sums, past, i, count, h, budget)
        spread = budget - count + h - 1
        bonus = trial.sigma * spread * sqrt(TENFOLD * trial.exploration / h**3)
        bound[i] = estimate[i] + bonus
    return int(np.argmax(estimate))


@kernel
def project(sums: Any, past: Any, i: int, n: int, h: int, budget: int) -> float:
    """The optimistic estimate of arm i after n pulls, by the paper's own updates."""
    before, x = window_length(WINDOW, n - 1), past[i, n - 1]
    s = Sums(before, sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3])
    if h > before:
        s = grow(s, n, x, past[i, n - 2 * h])
    else:
        s = slide(s, n, x, past[i, n - h - 1], past[i, n - 2 * h - 1])
    sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3] = s.a, s.b, s.c, s.d
    return projected_mean_of(s, budget)


@kernel
def successive_rejects(trial: Trial, n: Any) -> int:
    """SR: drop the worst mean of all rewards."""
    return rejects(trial, n, np.zeros((0, 0)))


@kernel
def rising_sr(trial: Trial, n: Any) -> int:
    """R-SR: drop the worst mean of a window that keeps the first three rewards."""
    return rejects(trial, n, np.zeros((len(n), len(trial.noise))))


@kernel
def rejects(trial: Trial, n: Any, past: Any) -> int:
    """The phases of SR (nothing in `past`) and R-SR; who is next and who ties is drawn."""
    arms, phase, draws = len(n), 0, 0
    living, rating, sums = np.full(arms, True), np.zeros(arms), np.zeros(arms)
    for t in range(len(trial.noise)):
        i = draw_least(n, living, trial.luck[draws])
        x = reward(trial, n, i, t)
        if len(past) == 0:
            rating[i] += (x - rating[i]) / n[i]
        else:
            add_faulty(sums, past, i, n[i], x)
            h = window_length(WINDOW, n[i])
            rating[i] = sums[i] / h if h > 0 else 0.0
        draws += 1
        if phase < arms - 1 and least(n, living) >= trial.ends[phase]:
            living[draw_least(rating, living, trial.luck[draws])] = False
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


# --- ETC and Rest-Sure: losses 1 - X that fall like a power law (departure 9) ---


@kernel
def refit(decay: Any, fit: Any, losses: Any, i: int, n: int) -> None:
    """Sums of losses and of s^-rho over both halves of arm i, then its alpha and beta.

    A row of `fit`: first sum, second sum, first s^-rho, second s^-rho, alpha, beta.
    """
    h, row, x = n // 2, fit[i], losses[i, n - 1]
    row[1] += x
    row[3] += decay[n]
    if n % 2:
        passed = losses[i, n - h - 1]
        row[0] += passed
        row[1] -= passed
        row[2] += decay[n - h]
        row[3] -= decay[n - h]
    if h > 0:
        first, second = row[0] / h, row[1] / h
        row[4] = h * (first - second) / (row[2] - row[3])
        row[5] = first - row[2] * row[4] / h


@kernel
def decays(budget: int, rho: float) -> Any:
    """s^-rho for s = 0 (never read), 1, ..., T."""
    table = np.zeros(budget + 1)
    for s in range(1, budget + 1):
        table[s] = s**-rho
    return table


@kernel
def loss_at(fit: Any, i: int, m: float, rho: float) -> float:
    """The fitted loss of arm i at m pulls; infinite at m = 0 for a falling loss."""
    return fit[i, 5] + fit[i, 4] / m**rho


@kernel
def width(tau: int, arms: int, budget: int, rho: float) -> float:
    """CB(tau), with delta = 1/T."""
    scale = 10 * (sqrt(LARGEST_ALPHA) + 1) ** 2 / (rho * (1 - rho))
    ratio = log(float(tau) * arms * budget * budget) / tau
    return scale * (ratio + sqrt(ratio))


@kernel
def sure_winner(loss: Any, sure: float) -> int:
    """The arm whose loss is below all others' by more than `sure`, or -1."""
    i, others = int(np.argmin(loss)), inf
    for j in range(len(loss)):
        if j != i:
            others = min(others, loss[j])
    return i if loss[i] < others - sure else -1


@kernel
def explore_then_commit(trial: Trial, n: Any) -> int:
    """ETC: the smallest fitted loss after the last complete sweep."""
    arms, budget, rho = len(n), len(trial.noise), trial.rho
    losses, fit, loss = np.zeros((arms, budget)), np.zeros((arms, 6)), np.zeros(arms)
    decay, chosen = trial.decay, -1
    for t in range(budget):
        i = t % arms if chosen < 0 else chosen
        x = reward(trial, n, i, t)
        losses[i, n[i] - 1] = 1.0 - x
        refit(decay, fit, losses, i, n[i])
        if chosen < 0 and i == arms - 1:
            for j in range(arms):
                loss[j] = loss_at(fit, j, budget - n[i] * (arms - 1), rho)
            chosen = sure_winner(loss, 2 * width(n[i], arms, budget, rho))
    return int(np.argmin(loss)) if chosen < 0 else chosen


@kernel
def rest_sure(trial: Trial, n: Any) -> int:
    """Rest-Sure: the smallest of fitted losses that were read at different pull counts."""
    arms, budget, rho = len(n), len(trial.noise), trial.rho
    losses, fit, loss = np.zeros((arms, budget)), np.zeros((arms, 6)), np.zeros(arms)
    decay, active, phase, chosen = trial.decay, np.arange(arms), 1, -1
    for t in range(budget):
        i = active[t % len(active)] if chosen < 0 else chosen
        x = reward(trial, n, i, t)
        losses[i, n[i] - 1] = 1.0 - x
        refit(decay, fit, losses, i, n[i])
        if chosen >= 0:
            continue
        if i != active[-1]:
            loss[i] = loss_at(fit, i, budget - n[i] * (arms - 1), rho)
            continue
        m, sure = budget + phase - t - 1, 2 * width(phase, arms, budget, rho)
        for j in range(arms):
            loss[j] = loss_at(fit, j, m, rho)
        chosen = stop_exploring(trial, fit, loss, len(active), m, sure, trial.luck[t])
        if chosen < 0 and (t + 1) % EVERY == 0:
            active = compare(fit, active, phase, m, sure, rho)
            phase += 1
            chosen = active[0] if len(active) == 1 else -1
    return int(np.argmin(loss)) if chosen < 0 else chosen


@kernel
def stop_exploring(
    trial: Trial, fit: Any, loss: Any, size: int, m: int, sure: float, u: float
) -> int:
    """The sure winner, or any arm where one more sweep seems to cost too much, or -1."""
    winner = sure_winner(loss, sure)
    if winner >= 0:
        return winner
    later = inf
    for j in range(len(loss)):
        later = min(later, loss_at(fit, j, m - size + 1, trial.rho))
    return int(u * size) if later - sure > loss.min() else -1


@kernel
def compare(fit: Any, active: Any, phase: int, m: int, sure: float, rho: float) -> Any:
    """The arms that stay: i goes if for a later j the comparisons won equal m - phase."""
    stays = np.full(len(active), True)
    for place in range(len(active)):
        for other in range(place + 1, len(active)):
            if stays[place]:
                won = comparisons_won(fit, active[place], active[other], phase, m, sure, rho)
                stays[place] = won != m - phase
    return active[stays]


@kernel
def comparisons_won(fit: Any, i: int, j: int, phase: int, m: int, sure: float, rho: float) -> int:
    """For how many s in [phase, m] the loss of i is above that of j by more than `sure`.

    The difference is monotone in s, so none where it is not at either end.
    """
    ends = max(
        loss_at(fit, i, phase, rho) - loss_at(fit, j, phase, rho),
        loss_at(fit, i, m, rho) - loss_at(fit, j, m, rho),
    )
    if ends <= sure:
        return 0
    won = 0
    for s in range(phase, m + 1):
        won += int(loss_at(fit, i, s, rho) - loss_at(fit, j, s, rho) > sure)
    return won
