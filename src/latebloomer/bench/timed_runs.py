"""Races on recorded scores within recorded seconds, like `race(seconds=...)`.

The recorded scores of all pulls are reported to a real race, and its clock advances by their
recorded seconds of training and scoring. A budget is a time: that of a number of full trainings
with average cost.
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

Ways = Mapping[str, Mapping[str, Any]]  # settings of a race by label, including its policy


def race_in_seconds(
    scores: Floats, seconds: Floats, limit: float, policy: Any, **others: Any
) -> RaceState:
    """Run a race on recorded scores and seconds (arm, pull); return its final state.

    A learner finishes before its first nan score.
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

    Each recorded run is used once, at most `draws` runs, with the arms in a random order.
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
    """Return the result of `race_problem` for each problem; fewer if `is_stopped`."""
    costs: list[Floats] = []
    for curves in problems:
        if is_stopped():
            break
        costs.append(race_problem(curves, ways, budgets, draws, seed))
        advance(1)
    return costs
