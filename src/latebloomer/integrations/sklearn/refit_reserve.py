"""The time of a race in seconds that is kept to refit its winner."""

from collections import defaultdict
from collections.abc import Collection
from math import inf
from statistics import median
from time import perf_counter

from latebloomer.racing.callbacks import RaceView
from latebloomer.session.arm_views import LearnerView
from latebloomer.session.events import Event, ScoreReported

MOST = 0.5  # of the time, at most: the race needs the rest to find the winner
LAST = 2  # learners left, of which each may still win
LOOKS = 100  # looks at the reserve in a race: each is an event that plans again


class RefitReserve:
    """Keeps time to refit the winner on all rows, as a callback of the race.

    It keeps what the leader's full training takes at the median pace of its pulls; of the last
    two learners, the dearer one's. A pull of the race also scores, so this is rather too much:
    measured, refits take .6 to .7 of it.

    Parameters
    ----------
    seconds : float
        Time of the search.
    ratio : float
        Rows of the refit for each row that a step of the race trains on.
    in_one_step : collection of str, optional
        Names of the learners whose first pull is all of their training.
    """

    def __init__(self, seconds: float, ratio: float, in_one_step: Collection[str] = ()) -> None:
        self.seconds, self._ratio, self._in_one_step = seconds, ratio, in_one_step
        self._times: dict[int, list[float]] = defaultdict(list)  # of the pulls of each arm
        self._looked_at = -inf
        self._elapsed, self._as_of = 0.0, perf_counter()  # of the race at its latest pull

    def __call__(self, event: Event, view: RaceView) -> None:
        """Take note of a pull, and reserve time."""
        if not isinstance(event, ScoreReported):
            return
        self._elapsed, self._as_of = view.elapsed, perf_counter()
        # The first time also the pulls of earlier processes.
        for pull in [event] if self._times else view.events():
            if isinstance(pull, ScoreReported):
                self._times[pull.arm].append(pull.seconds)
        if view.elapsed - self._looked_at >= self.seconds / LOOKS:
            view.reserve(min(MOST * self.seconds, self._needed(view)))
            self._looked_at = view.elapsed

    def seconds_left(self) -> float:
        """Return the time left of the search now; below 0 if it is over."""
        return self.seconds - self._elapsed - (perf_counter() - self._as_of)

    def _needed(self, view: RaceView) -> float:
        leader, *others = view.standings()
        racing = [one for one in others if not one.left]
        last = [leader, *racing] if len(racing) < LAST else [leader]
        return max(self._full_training(one) for one in last)

    def _full_training(self, one: LearnerView) -> float:
        """Return the seconds of a learner's training on all rows; 0 before its first pull."""
        times = self._times.get(one.arm)
        pulls = 1 if one.name in self._in_one_step else one.full_pulls or one.pulls
        return self._ratio * pulls * median(times) if times else 0.0
