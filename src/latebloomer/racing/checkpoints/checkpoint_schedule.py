"""When the state of a learner is worth saving."""

from latebloomer.session.events import Event, Saved, SaveFailed, ScoreReported

MOST_LOST = 20.0  # seconds of training of one arm that may be lost, unless `every` is given
WORTH = 20.0  # and at least this many times the duration of a save
LEAST_KEPT = 1.0  # seconds of training of a released arm: less is trained again


class CheckpointSchedule:
    """Counts what would be lost of each arm; it listens to the events of a race.

    >>> schedule = CheckpointSchedule(every=None, arms=1)
    >>> schedule.on_event(ScoreReported(0, 0.5, seconds=15.0)), schedule.is_due(0, n=3)
    (None, False)
    >>> schedule.on_event(ScoreReported(0, 0.5, seconds=15.0)), schedule.is_due(0, n=4)
    (None, True)
    """

    def __init__(self, every: int | None, arms: int, timed: bool = True) -> None:
        self.every = every  # pulls of one arm between two checkpoints
        self._timed = timed  # whether the time that would be lost counts where `every` is None
        self._unsaved = [0.0] * arms  # seconds of training since the newest checkpoint
        self._took = [0.0] * arms  # what saving took last

    def on_event(self, event: Event) -> None:
        """Take notice of a pull, or of a state that was saved."""
        if type(event) is ScoreReported:
            self._unsaved[event.arm] += event.seconds
        elif isinstance(event, Saved | SaveFailed):
            self.note_saved(event.arm, getattr(event, "seconds", 0.0))

    def note_saved(self, arm: int, took: float) -> None:
        """Count from here; after a failed save too, which is not tried again immediately."""
        self._unsaved[arm], self._took[arm] = 0.0, took

    def is_behind(self, arm: int) -> bool:
        """Return whether the arm has trained since its latest checkpoint."""
        return self._unsaved[arm] > 0

    def is_worth_it(self, arm: int) -> bool:
        """Return whether saving took less than a quarter of the training that it would keep."""
        return self._unsaved[arm] >= 4 * self._took[arm]

    def is_worth_keeping(self, arm: int) -> bool:
        """Return whether to save an arm that is released: a larger budget may revive it."""
        if self.every is not None:
            return self.is_behind(arm)
        return self._timed and self._unsaved[arm] >= max(LEAST_KEPT, 4 * self._took[arm])

    def is_due(self, arm: int, n: int) -> bool:
        """Return whether to save an arm after its n-th pull."""
        if self.every is not None:
            return n % self.every == 0
        return self._timed and self._unsaved[arm] >= max(MOST_LOST, WORTH * self._took[arm])
