"""Learners whose training costs differ, compared at the same share or after the same time.

LCDB 1.0 records what training took. A budget is a time: a number of full trainings of a learner of
average cost, and the race has a time budget. By *shares* a pull is a hundredth of a learner's own
full training and costs what that took. By *time* a pull is the same time for all, a hundredth of
the average full training; a learner that is trained in full has finished. The pick is judged by
what it is worth when trained in full.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np

from latebloomer.bench.benchmark import BenchReport
from latebloomer.bench.curve_runs import Played, costs_by_set, lines_of, shuffled
from latebloomer.bench.curve_sets import Curves, lcdb10
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import default_or_named
from latebloomer.problems.curves import Floats
from latebloomer.racing.stopping import PROVISIONAL, TimeBudget
from latebloomer.session import events
from latebloomer.session.session import Session

POLICIES = ("auto", "r-sr", "sh")
TICK = 1e-6  # seconds: no pull is shorter
NOTE = (
    "A budget is a time: a number of full trainings of a learner of average cost. *same share*: "
    "learners are compared at the same share of their own training; *same time*: after the same "
    "time."
)


def bench_times(
    policies: Sequence[str] = POLICIES,
    budgets: Sequence[float] = (1.0, 2.0, 4.0),
    draws: int = 3,
    seed: int = 0,
) -> BenchReport:
    """Compare policies within a time, learners compared at the same share and after the same time.

    The baseline is the first policy with learners at the same share.
    """
    start, problems = time.perf_counter(), list(lcdb10())
    labels = [f"{name}, {unit}" for name, unit in product(policies, UNITS)]
    played = [play_times(curves, policies, budgets, draws, seed) for curves in problems]
    lines = lines_of(costs_by_set(problems, played), labels, budgets, labels[0])
    seconds, drawn = time.perf_counter() - start, f"Draws of real runs: {draws}"
    return BenchReport(lines, [], labels[0], seconds, drawn, [NOTE])


def play_times(
    curves: Curves, policies: Sequence[str], budgets: Sequence[float], draws: int, seed: int
) -> dict[tuple[str, float], Played]:
    """Return what was played on one problem, by (policy with unit, budget)."""
    took = without_start(curves.seconds)
    average = float(took[:, -1].mean())
    tables, order = shuffled(curves, draws, seed)
    found = {}
    for name, unit, budget in product(policies, UNITS, budgets):
        policy = default_or_named(name)
        outcomes = [
            race_in_time(policy, *UNITS[unit](table, took[arms]), budget * average)
            for table, arms in zip(tables, order, strict=True)
        ]
        picks = [arms[pick] for arms, (pick, _) in zip(order, outcomes, strict=True)]
        spent = np.array([spent for _, spent in outcomes]) * curves.length / average
        found[f"{name}, {unit}", budget] = Played(np.array(picks), spent, 0)
    return found


def without_start(seconds: Floats) -> Floats:
    """Return times whose first pull costs as much as an average one.

    Every size was trained from scratch, and the cost of starting is in each time. A race starts
    once; and on a small data set, starting costs more than all that follows.

    >>> without_start(np.array([[2.0, 3.0, 4.0]]))
    array([[0.666..., 1.666..., 2.666...]])
    """
    rise = seconds - seconds[:, :1]
    return np.maximum(rise + rise[:, -1:] / seconds.shape[1], TICK * np.arange(1, len(rise.T) + 1))


def same_share(scores: Floats, seconds: Floats) -> tuple[Floats, Floats]:
    """Return scores and seconds of pulls that are shares of a learner's own training."""
    return scores, np.diff(seconds, prepend=0.0)


def same_time(scores: Floats, seconds: Floats) -> tuple[Floats, Floats]:
    """Return scores and seconds of pulls of equal time; nan after a learner is fully trained."""
    full = seconds[:, -1:]
    length = float(full.mean()) / scores.shape[1]
    starts = length * np.arange(ceil(float(full.max()) / length))
    ends = np.minimum(starts + length, full)
    found = [np.interp(*of) for of in zip(ends, seconds, scores, strict=True)]
    return np.where(starts < full, found, np.nan), ends - starts


UNITS = {"same share": same_share, "same time": same_time}


def race_in_time(
    policy: Policy, scores: Floats, seconds: Floats, limit: float
) -> tuple[int, float]:
    """Race within a time, as `race(seconds=...)` does; return the pick and the time it took.

    Scores and seconds are those of each arm's pulls; an arm has finished where its score is nan.
    """
    arms, horizon = scores.shape
    session = Session(policy, arms, PROVISIONAL * arms, horizon)
    watch: Any = SimpleNamespace(elapsed=0.0, here=0.0)  # shows what recorded pulls have taken
    clock = TimeBudget(limit, arms, watch)
    while not session.over:
        arm = session.ask()
        at = (arm, session.pulls_of(arm))
        if np.isnan(scores[at]):
            session.apply(events.LearnerLeft(arm, events.FINISHED, "trained in full"))
        else:
            reported = events.ScoreReported(arm, float(scores[at]), float(seconds[at]))
            watch.elapsed = watch.here = watch.elapsed + reported.seconds
            session.apply(reported)
            clock.on_event(reported)
        pulls = clock.budget(session)
        if pulls is not None and pulls > session.spent:
            session.apply(events.BudgetReplanned(pulls, pulls))
        elif not session.over and clock.out_of_time(session):
            session.apply(events.Stopped("the time is spent"))
    return session.best_arm, watch.elapsed
