"""The learners of a race, as everything that shows one sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

from latebloomer.racing.race_state import RaceState
from latebloomer.session.learner_view import LearnerView

Intervals = Mapping[int, tuple[float, float]]  # of each learner's score at the horizon


def learner_views(race: RaceState, intervals: Intervals) -> list[LearnerView]:
    """Return a view of every learner, by rank, with what a session does not know of it."""
    failures: dict[int, list[str]] = {}
    for one in race.failures:
        failures.setdefault(one.arm, []).append(f"pull {one.n} failed: {one.reason}")
    known = race.settings.learner_settings or {}
    views = []
    for view in race.session.standings():
        lower, upper = intervals.get(view.arm, (-inf, inf))
        views.append(
            replace(
                view, seconds=race.seconds[view.arm], lower=lower, upper=upper,
                steps=race.steps[view.arm] if race.shares else None,
                full_pulls=race.settings.pulls_per_training,
                failures=tuple(failures.get(view.arm, ())),
                settings=(
                    race.trials[view.arm].config
                    if view.arm in race.trials
                    else known.get(view.name, {})
                ),
            )
        )  # fmt: skip
    return views
