"""ETC and Rest-Sure as in the published numbers (departure 9 of `published.py`).

After an odd number of pulls the first half has one reward more than the second, but both sums are
divided by the smaller count. Rest-Sure compares arms only when t is a multiple of 30, and its
round number moves only then. At the end of the budget the counter of won comparisons, 0, equals
the number of those wanted, 0, so every arm but the last is dropped where 30 divides T and a sweep
ends there. Where m - |A| + 1 = 0, as in setting A at T = 100, a division by zero stops the
exploration, and the arm is drawn at random.
"""

from __future__ import annotations

from math import inf, log, sqrt
from typing import Any

import numpy as np

from latebloomer.core.kernel import kernel
from latebloomer.paper.as_published import Trial, reward

LARGEST_ALPHA = 1.0
EVERY = 30  # rounds


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
    decay, chosen = decays(budget, rho), -1
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
    decay, active, phase, chosen = decays(budget, rho), np.arange(arms), 1, -1
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
