"""Races on recorded scores within recorded seconds, as `race(seconds=...)` runs them.

Scores and seconds of every pull, training and scoring, go through a real session with a clock that
only they move. A budget is a time: a number of full trainings of average cost.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from latebloomer.bench.costs import Cost, cost
from latebloomer.bench.curves import Curves
from latebloomer.policies.registry import default_or_named, is_auto
from latebloomer.problems.curves import Floats
from latebloomer.racing.race_clock import RaceClock
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.session.events import FINISHED, Created, LearnerLeft, ScoreReported

Ways = Mapping[str, Mapping[str, Any]]  # by label, settings of a race: its policy and others


def race_in_seconds(
    scores: Floats, seconds: Floats, limit: float, policy: Any, **others: Any
) -> RaceState:
    """Race on recorded scores and seconds (arm, pull); return the race at its end.

    A learner has finished where its score is nan.
    """
    arms, horizon = scores.shape
    chosen = default_or_named(policy)
    settings = Settings(chosen, None, limit, horizon, auto=is_auto(policy), **others)
    state = RaceState(Created("bench", settings.as_dict(), tuple(map(str, range(arms)))), chosen)
    session, clock = state.session, RaceClock(state, now=lambda: state.elapsed)
    while not session.over:
        arm = session.ask()
        at = (arm, session.pulls_of(arm))
        if np.isnan(scores[at]):
            state.apply(LearnerLeft(arm, FINISHED, "trained in full"))
        else:
            state.elapsed += float(seconds[at])
            state.apply(ScoreReported(arm, float(scores[at]), float(seconds[at])))
        while (due := clock.event_due()) is not None:
            state.apply(due)
    return state


def race_problem(
    curves: Curves, ways: Ways, budgets: Sequence[float], draws: int, seed: int
) -> Floats:
    """Return the mean costs (way, budget, measure) of a problem; budgets in full trainings.

    Each recorded run is raced on once, `draws` of them at most, with the arms in a random order.
    """
    draws = min(draws, curves.run_count)
    runs, tables = curves.runs_shown(draws, seed), curves.tables(draws, seed)
    rng = np.random.default_rng([seed, curves.arms, curves.length])
    costs = np.empty((draws, len(ways), len(budgets), len(Cost._fields)))
    for draw, run in enumerate(runs.tolist()):
        order = rng.permutation(curves.arms)
        seconds = curves.seconds[:, run % curves.seconds.shape[1]]
        mean, ends = (
            float(seconds.sum(axis=1).mean()),
            tables[draw][:, -curves.last :].mean(axis=1),
        )
        for row, settings in enumerate(ways.values()):
            for column, trainings in enumerate(budgets):
                limit = trainings * mean
                state = race_in_seconds(tables[draw][order], seconds[order], limit, **settings)
                best = state.session.best_arm
                trained, spent = state.session.pulls_of(best), state.elapsed / limit
                costs[draw, row, column] = cost(
                    curves, run, ends, int(order[best]), trained, spent, 0.0
                )
    return costs.mean(axis=0)


def race_all(
    problems: Sequence[Curves],
    ways: Ways,
    budgets: Sequence[float],
    draws: int,
    seed: int,
    advance: Callable[[int], None] = lambda _: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[Floats]:
    """Return `race_problem` of each problem, one after the other; fewer if it is stopped."""
    costs: list[Floats] = []
    for curves in problems:
        if is_stopped():
            break
        costs.append(race_problem(curves, ways, budgets, draws, seed))
        advance(1)
    return costs
