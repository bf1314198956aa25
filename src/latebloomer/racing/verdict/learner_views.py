"""The learners of a race, as everything that shows one sees them."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan

from latebloomer.racing.race_state import RaceState
from latebloomer.session.events import FAILED, FINISHED
from latebloomer.session.learner_view import (
    DROPPED,
    LEADING,
    NOT_SELECTED,
    RACING,
    WINNER,
    Decision,
    ForecastView,
    LearnerView,
)
from latebloomer.session.reasons import Standing
from latebloomer.session.session import Session

Intervals = Mapping[int, tuple[float, float]]  # of each learner's score at the horizon


def learner_views(race: RaceState, intervals: Intervals) -> list[LearnerView]:
    """Return a view of every learner: the best first, then the dropped, the last one first."""
    session = race.session
    best = session.best_arm if any(session.pulls_of(i) for i in session.racing) else None
    failures: dict[int, list[str]] = {}
    for one in race.failures:
        failures.setdefault(one.arm, []).append(f"pull {one.n} failed: {one.reason}")
    rows = session.standings()
    rows.sort(key=lambda row: (row.arm != best, session.departure(row.arm) == FAILED))
    return [_view(race, row, best, intervals, tuple(failures.get(row.arm, ()))) for row in rows]


def _view(
    race: RaceState, row: Standing, best: int | None, intervals: Intervals,
    failures: tuple[str, ...],
) -> LearnerView:  # fmt: skip
    session, arm = race.session, row.arm
    left = race.departures.get(arm)
    lower, upper = intervals.get(arm, (-inf, inf))
    return LearnerView(
        arm=arm, name=row.name, state=_state(session, arm, best), pulls=row.pulls,
        score=race.last_scores.get(arm, nan), forecast=_forecast(session, row),
        estimate=row.estimate, rule=session.policy.name, decision=_decision(session, arm),
        left_at=row.left_at, left_why="" if left is None else left.why,
        seconds=race.seconds[arm], steps=race.steps[arm] if race.shares else None,
        full_pulls=race.settings.pulls_per_training, lower=lower, upper=upper, failures=failures,
    )  # fmt: skip


def _state(session: Session, arm: int, best: int | None) -> str:
    final = session.winner is not None or (session.over and not session.selection_pending)
    if arm == best:
        return WINNER if final else LEADING
    how = session.departure(arm)
    if how == FAILED:
        return FAILED
    if arm not in session.racing and how is None:
        return DROPPED
    return FINISHED if how == FINISHED else NOT_SELECTED if final else RACING


def _decision(session: Session, arm: int) -> Decision | None:
    if session.pulls_of(arm) == 0:
        return None
    told = session.explain(arm)
    rival = None if told.rival is None else session.names[told.rival]
    bar = nan if told.rival_rating is None else told.rival_rating
    return Decision(told.at, told.pulls, rival, bar)


def _forecast(session: Session, row: Standing) -> ForecastView | None:
    seen = session.forecast(row.arm)
    if seen is None:
        return None
    level = row.estimate - seen.belief * seen.gain
    score = level + seen.gain if seen.belief else nan
    return ForecastView(score, seen.ahead, seen.belief, level, seen.tested // 2, seen.tested)
