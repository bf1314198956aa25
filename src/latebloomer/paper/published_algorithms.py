"""The algorithms behind the published numbers, for the mode as-published only.

The library's own policies follow the text and are in `policies/`. These kernels were found by
running the authors' public code (MIT) and comparing every cell with the published series. They
differ from the text and from this library in the following points; the numbers are those of the
project's notes:

1. R-UCBE's bonus has 10 a in place of a;
2. a is a formula that squares a negative bracket (`experiments.py`);
3. R-UCBE recommends the largest estimate, without its bonus, as the library does;
4. the n-th pull of an arm has mean mu(n - 1), while the best arm, the gaps and a use mu(T);
5. R-SR and RR-SW read the slot of the latest reward before it is stored, so the first three
   rewards stay in their window sums permanently;
6. one noise vector per trial, indexed by the round, is shared by all algorithms; R-SR and SR pull
   the remaining arms of a sweep in random order and break ties at random;
7. Prob-1 starts with equal probabilities and ranks by a stable sort;
9. ETC and Rest-Sure: after an odd number of pulls the first half has one reward more than the
   second, but both sums are divided by the smaller count. Rest-Sure compares arms only when t is
   a multiple of 30, and its round number moves only then. At the end of the budget the counter of
   won comparisons, 0, equals the number required, 0, so every arm except the last is dropped if
   30 divides T and a sweep ends there. If m - |A| + 1 = 0, as in setting A at T = 100, a division
   by zero stops the exploration, and the arm is drawn at random.

A kernel runs one trial. Its arguments are the setup, the noise and the uniform draws by round, and
an array `n` of zeros. It fills `n` with the pulls of each arm and returns the recommended arm. A
kernel is named like its algorithm: `r_ucbe` is R-UCBE.
"""

from math import inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.formulas import window_length
from latebloomer.core.kernel import numpy_kernel as kernel
from latebloomer.core.running_sums import Sums, grow, projected_mean_of, slide
from latebloomer.paper import WINDOW
from latebloomer.problems.curves import Floats

TENFOLD = 10.0  # departure 1
LARGEST_ALPHA = 1.0  # U of ETC and Rest-Sure
COMPARE_EVERY = 30  # rounds between Rest-Sure's comparisons (departure 9)


class Setup(NamedTuple):
    """The constants that all trials of one algorithm share."""

    means: Floats  # means[i, n]: mean of arm i after n pulls, n = 0, ..., T (departure 4)
    ends: Any  # pulls at which the phases of successive rejects end
    decay: Floats  # s^-rho for s = 0 (never read), 1, ..., T
    exploration: float
    sigma: float
    rho: float


@kernel
def play_trials(setup: Setup, noise: Any, uniforms: Any, recommended: Any, pulls: Any) -> None:
    """Run a trial for each row of `noise` and fill its entry of `recommended` and `pulls`."""
    for trial in range(len(noise)):
        recommended[trial] = algorithm(setup, noise[trial], uniforms[trial], pulls[trial])


@kernel
def algorithm(setup: Setup, noise: Any, uniforms: Any, n: Any) -> int:
    """Take the place of the algorithm with which `play_trials` is compiled."""
    raise NotImplementedError


@kernel
def reward(setup: Setup, noise: Any, n: Any, arm: int, t: int) -> float:
    """Return the reward of round t and count the pull in `n`."""
    x = setup.means[arm, n[arm]] + noise[t]
    n[arm] += 1
    return x


@kernel
def rr(setup: Setup, noise: Any, uniforms: Any, n: Any) -> int:
    """Recommend the arm with the largest mean of all rewards (RR)."""
    arms = len(n)
    total = np.zeros(arms)
    for t in range(len(noise)):
        total[t % arms] += reward(setup, noise, n, t % arms, t)
    return int(np.argmax(total / n))


@kernel
def add_faulty(sums: Any, past: Any, i: int, count: int, x: float) -> None:
    """Add the `count`-th reward x of arm i to its window sum, then store x (departure 5)."""
    h = window_length(WINDOW, count)
    sums[i] += x
    if h == window_length(WINDOW, count - 1):
        sums[i] -= past[i, count - h - 1]
    past[i, count - 1] = x


@kernel
def rr_sw(setup: Setup, noise: Any, uniforms: Any, n: Any) -> int:
    """Recommend the largest mean of a window that keeps the first three rewards (RR-SW)."""
    arms, budget = len(n), len(noise)
    sums, past = np.zeros(arms), np.zeros((arms, budget))
    for t in range(budget):
        i = t % arms
        add_faulty(sums, past, i, n[i] + 1, reward(setup, noise, n, i, t))
    return int(np.argmax(sums / np.floor(WINDOW * n)))


@kernel
def ucb_e(setup: Setup, noise: Any, uniforms: Any, n: Any) -> int:
    """Recommend the largest mean after pulling the largest mean plus sqrt(a / n) (UCB-E)."""
    mean, bound = np.zeros(len(n)), np.full(len(n), inf)
    for t in range(len(noise)):
        i = int(np.argmax(bound))
        x = reward(setup, noise, n, i, t)
        mean[i] += (x - mean[i]) / n[i]
        bound[i] = mean[i] + sqrt(setup.exploration / n[i])
    return int(np.argmax(mean))


@kernel
def r_ucbe(setup: Setup, noise: Any, uniforms: Any, n: Any) -> int:
    """Recommend the largest optimistic estimate; the bonus has ten times a (R-UCBE)."""
    arms, budget = len(n), len(noise)
    sums, past = np.zeros((arms, 4)), np.zeros((arms, budget))
    estimate, bound, waiting = np.zeros(arms), np.zeros(arms), arms
    for t in range(budget):
        i = t % arms if waiting > 0 else int(np.argmax(bound))
        x = reward(setup, noise, n, i, t)
        count = n[i]
        past[i, count - 1] = x
        h = window_length(WINDOW, count)
        if h < 1:
            continue
        waiting -= int(window_length(WINDOW, count - 1) == 0)
        estimate[i] = project(sums, past, i, count, h, budget)
        spread = budget - count + h - 1
        bonus = setup.sigma * spread * sqrt(TENFOLD * setup.exploration / h**3)
        bound[i] = estimate[i] + bonus
    return int(np.argmax(estimate))


@kernel
def project(sums: Any, past: Any, i: int, n: int, h: int, budget: int) -> float:
    """Return the optimistic estimate of arm i after n pulls, by the paper's own updates."""
    before, x = window_length(WINDOW, n - 1), past[i, n - 1]
    s = Sums(before, sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3])
    if h > before:
        s = grow(s, n, x, past[i, n - 2 * h])
    else:
        s = slide(s, n, x, past[i, n - h - 1], past[i, n - 2 * h - 1])
    sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3] = s.a, s.b, s.c, s.d
    return projected_mean_of(s, budget)


@kernel
def sr(setup: Setup, noise: Any, uniforms: Any, n: Any) -> int:
    """Drop the worst mean of all rewards, phase by phase (SR)."""
    return rejects(setup, noise, uniforms, n, np.zeros((0, 0)))


@kernel
def r_sr(setup: Setup, noise: Any, uniforms: Any, n: Any) -> int:
    """Drop the worst mean of a window that keeps the first three rewards (R-SR)."""
    return rejects(setup, noise, uniforms, n, np.zeros((len(n), len(noise))))


@kernel
def rejects(setup: Setup, noise: Any, uniforms: Any, n: Any, past: Any) -> int:
    """Run the phases of SR (`past` is empty) or R-SR; the next arm and ties are drawn."""
    arms, phase, draws = len(n), 0, 0
    living, rating, sums = np.full(arms, True), np.zeros(arms), np.zeros(arms)
    for t in range(len(noise)):
        i = draw_least(n, living, uniforms[draws])
        x = reward(setup, noise, n, i, t)
        if len(past) == 0:
            rating[i] += (x - rating[i]) / n[i]
        else:
            add_faulty(sums, past, i, n[i], x)
            h = window_length(WINDOW, n[i])
            rating[i] = sums[i] / h if h > 0 else 0.0
        draws += 1
        if phase < arms - 1 and n[living].min() >= setup.ends[phase]:
            living[draw_least(rating, living, uniforms[draws])] = False
            phase, draws = phase + 1, draws + 1
    return int(np.argmax(living))


@kernel
def draw_least(value: Any, living: Any, u: float) -> int:
    """Return one of the living arms of smallest value, drawn by `u`."""
    ties = np.flatnonzero(living & (value == value[living].min()))
    return int(ties[int(u * len(ties))])


@kernel
def prob_1(setup: Setup, noise: Any, uniforms: Any, n: Any) -> int:
    """Recommend the largest importance-weighted sum of rewards (Prob-1).

    Probabilities are equal in the first round, then 1 / (rank (1 + ... + 1/K)), ranked stably.
    """
    arms = len(n)
    harmonic = (1.0 / np.arange(1, arms + 1)).sum()
    gain, probability = np.zeros(arms), np.full(arms, 1.0 / arms)
    for t in range(len(noise)):
        i = draw_arm(probability, uniforms[t])
        gain[i] += reward(setup, noise, n, i, t) / probability[i]
        for j in range(arms):
            rank = 1 + ((gain > gain[j]) | ((gain == gain[j]) & (np.arange(arms) > j))).sum()
            probability[j] = 1.0 / (rank * harmonic)
    return int(np.argmax(gain))


@kernel
def draw_arm(probability: Any, u: float) -> int:
    """Return the first arm whose cumulative probability is above `u`, as NumPy draws."""
    total, below = probability.sum(), 0.0
    for i in range(len(probability)):
        below += probability[i]
        if below / total > u:
            return i
    return len(probability) - 1


# --- ETC and Rest-Sure: losses 1 - X that fall like a power law (departure 9) ---


@kernel
def refit(decay: Any, fit: Any, losses: Any, i: int, n: int) -> None:
    """Update the sums of losses and of s^-rho over both halves of arm i, then alpha and beta.

    A row of `fit` has the sums of losses of both halves, the sums of s^-rho of both halves, alpha
    and beta.
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
def losses_at(fit: Any, m: float, rho: float) -> Any:
    """Return the fitted loss of each arm at m pulls; infinite at m = 0 for a falling loss."""
    return fit[:, 5] + fit[:, 4] / m**rho


@kernel
def width(tau: int, arms: int, budget: int, rho: float) -> float:
    """Return CB(tau), with delta = 1/T."""
    scale = 10 * (sqrt(LARGEST_ALPHA) + 1) ** 2 / (rho * (1 - rho))
    ratio = log(float(tau) * arms * budget * budget) / tau
    return scale * (ratio + sqrt(ratio))


@kernel
def sure_winner(loss: Any, sure: float) -> int:
    """Return the arm whose loss is below all others' by more than `sure`, or -1."""
    i = int(np.argmin(loss))
    return i if loss[i] < np.sort(loss)[1] - sure else -1


@kernel
def etc(setup: Setup, noise: Any, uniforms: Any, n: Any) -> int:
    """Recommend the smallest fitted loss after the last complete sweep (ETC)."""
    arms, budget, rho = len(n), len(noise), setup.rho
    losses, fit, loss = np.zeros((arms, budget)), np.zeros((arms, 6)), np.zeros(arms)
    chosen = -1
    for t in range(budget):
        i = t % arms if chosen < 0 else chosen
        x = reward(setup, noise, n, i, t)
        losses[i, n[i] - 1] = 1.0 - x
        refit(setup.decay, fit, losses, i, n[i])
        if chosen < 0 and i == arms - 1:
            loss = losses_at(fit, budget - n[i] * (arms - 1), rho)
            chosen = sure_winner(loss, 2 * width(n[i], arms, budget, rho))
    return int(np.argmin(loss)) if chosen < 0 else chosen


@kernel
def rest_sure(setup: Setup, noise: Any, uniforms: Any, n: Any) -> int:
    """Recommend the smallest of fitted losses read at different pull counts (Rest-Sure)."""
    arms, budget, rho = len(n), len(noise), setup.rho
    losses, fit, loss = np.zeros((arms, budget)), np.zeros((arms, 6)), np.zeros(arms)
    active, phase, chosen = np.arange(arms), 1, -1
    for t in range(budget):
        i = active[t % len(active)] if chosen < 0 else chosen
        x = reward(setup, noise, n, i, t)
        losses[i, n[i] - 1] = 1.0 - x
        refit(setup.decay, fit, losses, i, n[i])
        if chosen >= 0:
            continue
        if i != active[-1]:
            loss[i] = losses_at(fit, budget - n[i] * (arms - 1), rho)[i]
            continue
        m, sure = budget + phase - t - 1, 2 * width(phase, arms, budget, rho)
        loss = losses_at(fit, m, rho)
        chosen = stop_early(fit, loss, len(active), m, sure, rho, uniforms[t])
        if chosen < 0 and (t + 1) % COMPARE_EVERY == 0:
            active = compare(fit, active, phase, m, sure, rho)
            phase += 1
            chosen = active[0] if len(active) == 1 else -1
    return int(np.argmin(loss)) if chosen < 0 else chosen


@kernel
def stop_early(fit: Any, loss: Any, size: int, m: int, sure: float, rho: float, u: float) -> int:
    """Return the sure winner, or any arm if one more sweep seems to cost too much, or -1."""
    winner = sure_winner(loss, sure)
    if winner >= 0:
        return winner
    later = losses_at(fit, m - size + 1, rho).min()
    return int(u * size) if later - sure > loss.min() else -1


@kernel
def compare(fit: Any, active: Any, phase: int, m: int, sure: float, rho: float) -> Any:
    """Return the arms that stay; i is dropped if it won m - phase comparisons with a later j."""
    stays = np.full(len(active), True)
    for place in range(len(active)):
        for other in range(place + 1, len(active)):
            if stays[place]:
                won = comparisons_won(fit, active[place], active[other], phase, m, sure, rho)
                stays[place] = won != m - phase
    return active[stays]


@kernel
def comparisons_won(fit: Any, i: int, j: int, phase: int, m: int, sure: float, rho: float) -> int:
    """Count the s in [phase, m] at which the loss of i exceeds the loss of j by `sure`.

    The difference is monotone in s, so the count is 0 unless it is reached at one of the ends.
    """
    ends = max(excess(fit, i, j, phase, rho), excess(fit, i, j, m, rho))
    won = 0
    if ends > sure:
        for s in range(phase, m + 1):
            won += int(excess(fit, i, j, s, rho) > sure)
    return won


@kernel
def excess(fit: Any, i: int, j: int, s: float, rho: float) -> float:
    """Return the fitted loss of arm i at s pulls less that of arm j."""
    return fit[i, 5] + fit[i, 4] / s**rho - (fit[j, 5] + fit[j, 4] / s**rho)
