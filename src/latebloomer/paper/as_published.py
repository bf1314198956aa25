"""Plays the published conventions trial by trial, for `as-published`, and counts as they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.kernel import lower
from latebloomer.core.phases import phase_lengths
from latebloomer.errors import extra
from latebloomer.paper import published_algorithms as published
from latebloomer.paper.experiments import Setting
from latebloomer.paper.figure import Row
from latebloomer.paper.modes import AS_PUBLISHED
from latebloomer.paper.published_algorithms import Trial
from latebloomer.problems.curves import Floats
from latebloomer.theory.complexity import TIE, best_arms

KERNELS: dict[str, Callable[[Trial, Any], int]] = {
    "RR": published.round_robin,
    "RR-SW": published.round_robin_window,
    "UCB-E": published.ucb_e,
    "R-UCBE": published.rising_ucbe,
    "SR": published.successive_rejects,
    "R-SR": published.rising_sr,
    "Prob-1": published.prob_one,
    "ETC": published.explore_then_commit,
    "Rest-Sure": published.rest_sure,
}
ORDERED = ("SR", "R-SR", "Rest-Sure")  # what draws an order, or one arm of several
ORDER_STREAM = 1  # what the authors drew from an unseeded generator: ours is [trial, this]
REST_SURE_RHO = 0.8
ROUNDS_OF_BATCH = 100_000  # that are drawn before they are played: a few MB


class Outcome(NamedTuple):
    """Recommended arms and pulls of one algorithm, by trial."""

    recommended: Any  # (trials,)
    pulls: Any  # (trials, arms)


@cache
def compiled(name: str) -> Any:
    """`play_trials` for an algorithm, compiled once for all processes."""
    return lower(published.play_trials, _jit(), algorithm=KERNELS[name])


@cache
def _decays() -> Any:
    return lower(published.decays, _jit())


@cache
def _jit() -> Any:
    numba = extra("numba", "the published conventions", "sim")
    return numba.njit(cache=True, nogil=True, error_model="numpy")


def play(
    setting: Setting, algorithms: dict[str, tuple[str, float]], budget: int, trials: int
) -> dict[str, Outcome]:
    """Trials 0, 1, ... of each series, given as name: (algorithm, factor of its a)."""
    means = setting.published_means(budget)
    made = {
        series: Outcome(np.zeros(trials, np.int64), np.zeros((trials, len(means)), np.int64))
        for series in algorithms
    }
    prepared = {
        series: (compiled(name), _frame(setting, name, factor, means, budget))
        for series, (name, factor) in algorithms.items()
    }
    first, ordered = 0, any(name in ORDERED for name, _ in algorithms.values())
    for noise, legacy, order in _batches(_luck(setting, budget, trials, ordered), budget):
        at = slice(first, first + len(noise))
        for series, (name, _) in algorithms.items():
            kernel, frame = prepared[series]
            luck = legacy if name == "Prob-1" else order
            kernel(frame, noise, luck, made[series].recommended[at], made[series].pulls[at])
        first = at.stop
    return made


def _batches(luck: Iterator[tuple[Floats, Floats, Floats]], budget: int) -> Iterator[list[Floats]]:
    """The luck of many trials at a time, a row each: calling compiled code takes a while."""
    while some := list(islice(luck, max(1, ROUNDS_OF_BATCH // budget))):
        yield [np.array(rows) for rows in zip(*some, strict=True)]


def _frame(setting: Setting, name: str, factor: float, means: Floats, budget: int) -> Trial:
    """What all trials of a series have in common."""
    a = setting.ucbe_exploration if name == "UCB-E" else setting.exploration
    rho = REST_SURE_RHO if name == "Rest-Sure" else setting.rho
    empty = np.zeros(0)
    ends = np.array(phase_lengths(len(means), budget))
    decay = _decays()(budget, rho)
    return Trial(means, empty, empty, ends, decay, factor * a(budget), setting.sigma, rho)


def _luck(
    setting: Setting, budget: int, trials: int, ordered: bool = True
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """By trial: noise, the uniforms that follow it in the same stream, and uniforms of ours.

    The recorded curves of IMDB have no noise, and nothing was seeded there. Ours take as long as
    the rest: they are left out unless `ordered`.
    """
    recorded, stream = setting.name == "imdb", np.random.RandomState()
    for trial in range(trials):
        stream.seed(trial)
        noise = np.zeros(budget) if recorded else stream.normal(0, setting.sigma, budget)
        ours = _uniforms(trial, 2 * budget) if ordered else noise
        yield noise, stream.random_sample(budget), ours


def _uniforms(trial: int, count: int) -> Floats:
    return np.random.default_rng([trial, ORDER_STREAM]).random(count)


def rows(
    setting: Setting, algorithms: dict[str, tuple[str, float]], budget: int, trials: int
) -> list[Row]:
    """The tidy rows of one budget; intervals are mean +- round(2 sd / sqrt(trials), 2)."""
    means = setting.published_means(budget)
    best = int(best_arms(means, TIE)[budget])
    against = best if setting.scored is None else setting.scored(budget)
    found = play(setting, algorithms, budget, trials)
    return [
        _row(series, algorithms[series][1], setting, budget, outcome, means, best, against)
        for series, outcome in found.items()
    ]


def _row(
    series: str,
    factor: float,
    setting: Setting,
    budget: int,
    outcome: Outcome,
    means: Floats,
    best: int,
    against: int,
) -> Row:
    chosen, trials = outcome.recommended, len(outcome.recommended)
    wrong = chosen != against
    regrets = means[best, budget] - means[chosen, outcome.pulls[np.arange(trials), chosen]]
    half_error = round(2 * float(wrong.std()) / trials**0.5, 2)
    half_regret = 2 * float(regrets.std()) / trials**0.5
    error, regret, pulls = float(wrong.mean()), float(regrets.mean()), outcome.pulls[:, best]
    half_pulls = 2 * float(pulls.std()) / trials**0.5
    return Row(
        series, budget, setting.sigma, error, error - half_error, error + half_error,
        regret, regret - half_regret, regret + half_regret, trials, AS_PUBLISHED,
        float(pulls.mean()), best, int(np.bincount(chosen).argmax()), factor, "",
        float(pulls.mean()) - half_pulls, float(pulls.mean()) + half_pulls,
    )  # fmt: skip
