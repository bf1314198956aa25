"""Learners that cost unlike: compared at the same share of their training, or after the same time?

LCDB 1.0 records what training took. A budget is a time: so many full trainings of a learner of
average cost, and the race is one by the clock. By *shares* a pull is a hundredth of a learner's
own full training and costs what that took. By *time* a pull is the same time for all, a hundredth
of the average full training; a learner that is trained in full has finished. Whoever is picked is
judged by what it is worth trained in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import NamedTuple, TypeAlias

import numpy as np

from latebloomer.bench.bench_report import decimals, table
from latebloomer.bench.curve_sets import lcdb10_with_times
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import default_or_named
from latebloomer.problems.curves import Floats
from latebloomer.racing.time_budget import PROVISIONAL, TimeBudget
from latebloomer.session.events import (
    FINISHED,
    BudgetReplanned,
    LearnerLeft,
    ScoreReported,
    Stopped,
)
from latebloomer.session.session import Session

POLICIES = ("auto", "r-sr", "sh")
TICK = 1e-6  # seconds: no pull is shorter
SHARES, TIME = "same share", "same time"
Pull: TypeAlias = Callable[[int, int], tuple[float, float] | None]


class TimedCurves(NamedTuple):
    """Scores of K learners and what training them took, at shares of their full training."""

    name: str
    runs: Floats  # (arms, runs, pulls): real runs
    seconds: Floats  # (arms, pulls): of training so far

    @property
    def average(self) -> float:
        """Seconds of a full training, over learners."""
        return float(self.seconds[:, -1].mean())


class Cell(NamedTuple):
    """One policy at one budget, learners compared one way."""

    unit: str
    budget: float  # in full trainings of average cost
    policy: str
    rank_loss: float
    error: float  # one standard error, over data sets
    spent: float  # share of the time


def timed_curves() -> Iterator[TimedCurves]:
    """The data sets of LCDB 1.0, on a linear grid of training rows."""
    for name, runs, seconds in lcdb10_with_times():
        yield TimedCurves(name, runs, without_start(seconds))


def without_start(seconds: Floats) -> Floats:
    """The first pull for the price of an average one.

    Every size was trained from scratch, and what it takes to begin is in each time. A race begins
    once; and where a data set is small, to begin costs more than all that follows.

    >>> without_start(np.array([[2.0, 3.0, 4.0]]))
    array([[0.666..., 1.666..., 2.666...]])
    """
    rise = seconds - seconds[:, :1]
    return np.maximum(rise + rise[:, -1:] / seconds.shape[1], TICK * np.arange(1, len(rise.T) + 1))


def compare_units(
    policies: Sequence[str] = POLICIES,
    budgets: Sequence[float] = (1.0, 2.0, 4.0),
    draws: int = 3,
    seed: int = 0,
) -> list[Cell]:
    """Rank loss of policies within a time, learners compared by shares and by time."""
    cells: dict[tuple[str, float, str], list[tuple[float, float]]] = {}
    for curves in timed_curves():
        truth = curves.runs.mean(axis=1)[:, -1]
        rng = np.random.default_rng([seed, len(truth), curves.runs.shape[1]])
        for _ in range(draws):
            which = rng.integers(curves.runs.shape[1], size=len(truth))
            order = rng.permutation(len(truth))
            scores = curves.runs[order, which[order]]
            seconds = curves.seconds[order]
            for budget in budgets:
                limit = budget * curves.average
                for name in policies:
                    for unit, play in ((SHARES, by_shares), (TIME, by_time)):
                        pick, spent = play(default_or_named(name), scores, seconds, limit)
                        loss = float((truth > truth[order[pick]]).mean())
                        cells.setdefault((unit, budget, name), []).append((loss, spent / limit))
    return [_cell(key, values, draws) for key, values in cells.items()]


def _cell(key: tuple[str, float, str], values: list[tuple[float, float]], draws: int) -> Cell:
    losses, spent = np.array(values).T
    by_set = losses.reshape(-1, draws).mean(axis=1)
    error = float(by_set.std(ddof=1) / np.sqrt(len(by_set))) if len(by_set) > 1 else float("nan")
    return Cell(*key, float(by_set.mean()), error, float(spent.mean()))


def by_shares(policy: Policy, scores: Floats, seconds: Floats, limit: float) -> tuple[int, float]:
    """The pick of a race by the clock whose pulls are shares of a training; the time it took."""

    def pull(arm: int, n: int) -> tuple[float, float]:
        before = float(seconds[arm, n - 2]) if n > 1 else 0.0
        return float(scores[arm, n - 1]), float(seconds[arm, n - 1]) - before

    return by_clock(policy, len(scores), scores.shape[1], limit, pull)


def by_time(policy: Policy, scores: Floats, seconds: Floats, limit: float) -> tuple[int, float]:
    """The pick of a race by the clock whose pulls take the same time, and the time it took."""
    full = seconds[:, -1]
    length = float(full.mean()) / scores.shape[1]

    def pull(arm: int, n: int) -> tuple[float, float] | None:
        before, now = length * (n - 1), min(length * n, float(full[arm]))
        if before >= full[arm]:
            return None
        return float(np.interp(now, seconds[arm], scores[arm])), now - before

    return by_clock(policy, len(scores), ceil(float(full.max()) / length), limit, pull)


class RecordedTime:
    """A stopwatch that shows what recorded pulls have taken."""

    elapsed = 0.0

    @property
    def here(self) -> float:
        return self.elapsed


def by_clock(
    policy: Policy, arms: int, horizon: int, limit: float, pull: Pull
) -> tuple[int, float]:
    """Race within a time, as `race(seconds=...)` does, on recorded scores and times.

    `pull` gives the score and the seconds of an arm's n-th pull, or None where it has finished.
    """
    session = Session(policy, arms, PROVISIONAL * arms, horizon)
    watch = RecordedTime()
    clock = TimeBudget(limit, arms, watch)
    while not session.over:
        arm = session.ask()
        made = pull(arm, session.pulls_of(arm) + 1)
        if made is None:
            session.apply(LearnerLeft(arm, FINISHED, "trained in full"))
        else:
            watch.elapsed += made[1]
            told = ScoreReported(arm, *made)
            session.apply(told)
            clock.on_event(told)
        _keep_time(session, clock)
    return session.best_arm, watch.elapsed


def _keep_time(session: Session, clock: TimeBudget) -> None:
    pulls = clock.budget(session)
    if pulls is not None and pulls > session.spent:
        session.apply(BudgetReplanned(pulls, pulls))
    elif not session.over and clock.out_of_time(session):
        session.apply(Stopped("the time is over"))


def report(cells: Sequence[Cell], draws: int) -> str:
    """A Markdown table, both units side by side."""
    budgets = list(dict.fromkeys(cell.budget for cell in cells))
    found = {(cell.unit, cell.budget, cell.policy): cell for cell in cells}
    header = ["policy"] + [f"{budget:g}: {unit}" for budget in budgets for unit in (SHARES, TIME)]
    rows = []
    for policy in dict.fromkeys(cell.policy for cell in cells):
        row = [policy]
        for budget in budgets:
            for unit in (SHARES, TIME):
                cell = found[unit, budget, policy]
                row.append(f"{decimals(cell.rank_loss)} ± {decimals(cell.error)} "
                           f"({cell.spent:.0%} spent)")  # fmt: skip
        rows.append(row)
    return "\n\n".join([
        "# Learners that cost unlike",
        f"Rank loss (0 is best) on LCDB 1.0 within a time, {draws} draws of real runs. Columns: "
        "the budget in full trainings of average cost, and whether learners are compared at the "
        "same share of their own training or after the same time. ± is one standard error over "
        "data sets.",
        table(header, rows),
    ])  # fmt: skip
