"""Time-based races: how many pulls fit into the time that is left.

The first sweep measures a pull; then the budget in pulls is `spent + time left / pull length`, and
it is set again when a phase ends or when the forecast is off by more than 2 %. Each new budget is
an event, so that a replay needs no clock. The time of earlier processes counts; the time that a
resume takes to restore learners does not.
"""

from __future__ import annotations

from math import inf
from time import perf_counter

from latebloomer.session.events import Event, PullFailed, Restored, ScoreReported
from latebloomer.session.session import Session

PROVISIONAL = 1000  # pulls per arm, until the first sweep has been measured
SLACK = 0.02  # a forecast this close to the time given stays
PAUSE = 0.01  # of the time given, at least, between two plans within a phase
TICK = 1e-7  # no pull is shorter, in seconds
NEWEST = 8  # latest pulls of an arm that tell how long its next one takes
GRACE = 0.1  # of the time given, after its end, until calls that can be interrupted are
LEAST_GRACE = 1.0  # seconds


def grace_of(seconds: float | None) -> float:
    """Return the seconds after the end of a time budget until running calls are interrupted."""
    return inf if seconds is None else max(LEAST_GRACE, GRACE * seconds)


class Stopwatch:
    """Seconds of a race, over all processes that took it up, by a clock that is never set."""

    def __init__(self, before: float = 0.0) -> None:
        self._before = before  # spent by earlier processes
        self._began = perf_counter()

    @property
    def here(self) -> float:
        """Seconds in this process."""
        return perf_counter() - self._began

    @property
    def elapsed(self) -> float:
        """Seconds of the race so far."""
        return self._before + (perf_counter() - self._began)

    def pause(self, seconds: float) -> None:
        """Take time out that is not the race's: restoring learners."""
        self._began += seconds


class TimeBudget:
    """Measures pulls and decides when to plan again or to stop."""

    def __init__(self, seconds: float, arms: int, watch: Stopwatch, lanes: int = 1) -> None:
        self.seconds, self.watch = seconds, watch
        self.reserved = 0.0  # seconds kept for what comes after the race
        self._lanes = lanes  # pulls that can be made at the same time
        self._length = [0.0] * arms
        self._count = [0] * arms
        self._pulling = self._not_pulling = 0.0
        self._pulls = 0
        self._all_tried = False
        self._planned_at = -seconds
        self._phase: tuple[int, int] | None = None

    def until(self, seconds: float) -> None:
        """Set a new end time and re-plan from now on."""
        self.seconds, self._planned_at, self._phase = seconds, -seconds, None

    def recall(self, arm: int, seconds: float, count: int) -> None:
        """Take over what an earlier process has measured."""
        self._length[arm], self._count[arm] = seconds, count

    def on_event(self, event: Event) -> None:
        """Learn from pulls; building and failing are time spent, not the price of a pull."""
        if type(event) is ScoreReported:
            self.note(event.arm, event.seconds)
        elif isinstance(event, PullFailed | Restored):
            self._not_pulling += event.seconds / self._lanes

    def note(self, arm: int, seconds: float) -> None:
        """Learn from a pull. The first of an arm is often slow, so the second replaces it."""
        count = self._count[arm] = self._count[arm] + 1
        share = 1.0 if count <= 2 else max(1 / NEWEST, 1 / (count - 1))
        self._length[arm] += share * (seconds - self._length[arm])
        self._pulling += seconds / self._lanes
        self._pulls += 1

    def pull_length(self, arms: list[int]) -> float:
        """Return the seconds per pull, with what is between pulls, over arms pulled evenly."""
        lanes = min(self._lanes, len(arms)) or 1
        known = [self._length[i] / lanes for i in arms if self._count[i]] or [self._mean()]
        between = (self.watch.here - self._pulling - self._not_pulling) / max(1, self._pulls)
        return max(TICK, sum(known) / len(known) + max(0.0, between))

    def _mean(self) -> float:
        return self._pulling / max(1, self._pulls)

    def left(self) -> float:
        """Return the seconds until the end."""
        return self.seconds - self.reserved - self.watch.elapsed

    def out_of_time(self, session: Session) -> bool:
        """Return whether another pull would end further from the end time than stopping now.

        Never before each arm has had its first pull, or has failed.
        """
        if not self._swept(session):
            return False
        arms = session.trainable if session.over else [session.ask()]
        return self.left() < self.pull_length(arms) / 2

    def budget(self, session: Session) -> int | None:
        """Return the total pulls that fit, if the plan needs another number; else None."""
        arms = session.trainable
        if not arms or not (self._swept(session) or session.winner is not None):
            return None
        fits = self.forecast(session, arms)
        if session.over:
            return fits if fits > session.spent else None
        if not self._due(session, fits):
            return None
        self._planned_at, self._phase = self.watch.elapsed, session.phase
        return None if fits == self._planned(session) else max(fits, session.spent)

    def forecast(self, session: Session, arms: list[int]) -> int:
        """Return the total pulls if these arms have the time that is left."""
        return session.spent + max(0, round(self.left() / self.pull_length(arms)))

    def _planned(self, session: Session) -> int:
        return session.deciding_budget if session.winner is None else session.budget

    def _swept(self, session: Session) -> bool:
        """Return whether each arm has had a pull, or has failed."""
        if not self._all_tried:
            arms = range(len(session.names))
            self._all_tried = all(
                session.pulls_of(i) or session.departure(i) is not None for i in arms
            )
        return self._all_tried

    def _due(self, session: Session, fits: int) -> bool:
        if self._phase is None or session.phase[0] != self._phase[0]:
            return _is_even(session)
        waited = self.watch.elapsed - self._planned_at >= PAUSE * self.seconds
        off = abs(fits - self._planned(session)) > SLACK * fits
        return waited and off and _is_even(session)


def _is_even(session: Session) -> bool:
    """Return whether the arms that take pulls have had equally many, or need not have."""
    return session.decides_every_pull or len({*map(session.pulls_of, session.trainable)}) <= 1
