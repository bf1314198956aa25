"""The part of a budget in seconds that is reserved to refit the winner."""

from collections import defaultdict
from collections.abc import Collection
from math import inf
from statistics import median
from time import perf_counter

from latebloomer.racing.callbacks import RaceView
from latebloomer.session.arm_views import LearnerView
from latebloomer.session.events import Event, ScoreReported

MOST = 0.5  # maximum share of the time: the race needs the rest to find the winner
LAST = 2  # with this many learners left, reserve for the more expensive one
LOOKS = 100  # maximum updates of the reserve in a race, because each update makes a new plan


class RefitReserve:
    """Reserve time to refit the winner on all rows, as a callback of the race.

    The reserve is the time of the leader's full training at the median pace of its pulls; when two
    learners are left, it is the time of the more expensive one. The reserve is too large rather
    than too small, because a pull of the race also scores: refits took .6 to .7 of it in our
    measurements.

    Parameters
    ----------
    seconds : float
        Total time of the search, in seconds.
    ratio : float
        Number of rows of the refit divided by the number of training rows in the race.
    in_one_step : collection of str, optional
        Names of the learners whose first pull is their whole training. Default: none.
    """

    def __init__(self, seconds: float, ratio: float, in_one_step: Collection[str] = ()) -> None:
        self.seconds, self._ratio, self._in_one_step = seconds, ratio, in_one_step
        self._times: dict[int, list[float]] = defaultdict(list)  # seconds of the pulls of each arm
        self._looked_at = -inf
        # Time of the race at its latest pull, and the clock then.
        self._elapsed, self._as_of = 0.0, perf_counter()

    def __call__(self, event: Event, view: RaceView) -> None:
        """Record the time of a pull, and update the reserve."""
        if not isinstance(event, ScoreReported):
            return
        self._elapsed, self._as_of = view.elapsed, perf_counter()
        # The first call also reads the pulls of earlier processes.
        for pull in [event] if self._times else view.events():
            if isinstance(pull, ScoreReported):
                self._times[pull.arm].append(pull.seconds)
        if view.elapsed - self._looked_at >= self.seconds / LOOKS:
            view.reserve(min(MOST * self.seconds, self._needed(view)))
            self._looked_at = view.elapsed

    def seconds_left(self) -> float:
        """Return the seconds that the search has left; below 0 if it has used more."""
        return self.seconds - self._elapsed - (perf_counter() - self._as_of)

    def _needed(self, view: RaceView) -> float:
        leader, *others = view.standings()
        racing = [row for row in others if not row.departed]
        last = [leader, *racing] if len(racing) < LAST else [leader]
        return max(self._full_training(row) for row in last)

    def _full_training(self, row: LearnerView) -> float:
        """Return the expected seconds to train a learner on all rows; 0 before its first pull."""
        times = self._times.get(row.arm)
        pulls = 1 if row.name in self._in_one_step else row.full_pulls or row.pulls
        return self._ratio * pulls * median(times) if times else 0.0
