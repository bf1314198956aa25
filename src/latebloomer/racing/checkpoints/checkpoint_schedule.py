"""The schedule that decides when the state of a learner is saved."""

from latebloomer.session.events import Event, Saved, SaveFailed, ScoreReported

MOST_LOST = 20.0  # maximum seconds of training of one arm that may be lost, if `every` is None
WORTH = 20.0  # save only after this many times the duration of the last save
LEAST_KEPT = 1.0  # seconds; a released arm with less unsaved training is not saved


class CheckpointSchedule:
    """Track how much training of each arm is not saved yet, from the events of a race.

    >>> schedule = CheckpointSchedule(every=None, arms=1)
    >>> schedule.on_event(ScoreReported(0, 0.5, seconds=15.0)), schedule.is_due(0, n=3)
    (None, False)
    >>> schedule.on_event(ScoreReported(0, 0.5, seconds=15.0)), schedule.is_due(0, n=4)
    (None, True)
    """

    def __init__(self, every: int | None, arms: int, timed: bool = True) -> None:
        self.every = every  # number of pulls of one arm between two checkpoints
        self._timed = timed  # whether unsaved time counts if `every` is None
        self._unsaved = [0.0] * arms  # seconds of training since the latest checkpoint
        self._took = [0.0] * arms  # seconds that the last save took

    def on_event(self, event: Event) -> None:
        """Update the counts after a pull or a saved state."""
        if type(event) is ScoreReported:
            self._unsaved[event.arm] += event.seconds
        elif isinstance(event, Saved | SaveFailed):
            self.note_saved(event.arm, getattr(event, "seconds", 0.0))

    def note_saved(self, arm: int, took: float) -> None:
        """Count from 0 again; a failed save counts, too, so that it is not repeated at once."""
        self._unsaved[arm], self._took[arm] = 0.0, took

    def is_behind(self, arm: int) -> bool:
        """Return whether the arm has trained since its latest checkpoint."""
        return self._unsaved[arm] > 0

    def is_worth_it(self, arm: int) -> bool:
        """Return whether the last save took less than a quarter of the training not saved yet."""
        return self._unsaved[arm] >= 4 * self._took[arm]

    def is_worth_keeping(self, arm: int) -> bool:
        """Return whether to save an arm that leaves memory: a larger budget may revive it."""
        if self.every is not None:
            return self.is_behind(arm)
        return self._timed and self._unsaved[arm] >= max(LEAST_KEPT, 4 * self._took[arm])

    def is_due(self, arm: int, n: int) -> bool:
        """Return whether to save an arm after its n-th pull."""
        if self.every is not None:
            return n % self.every == 0
        return self._timed and self._unsaved[arm] >= max(MOST_LOST, WORTH * self._took[arm])
