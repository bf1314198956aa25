"""When a learner's state is worth saving."""

from __future__ import annotations

LOSS = 20.0  # seconds of training of one arm that may be lost, unless `every` is given
WORTH = 20.0  # and at least so many times what saving takes


class Saving:
    """Counts what would be lost of each arm.

    >>> saving = Saving(every=None, arms=1)
    >>> saving.trained(0, 15.0), saving.due(0, n=3)
    (None, False)
    >>> saving.trained(0, 15.0), saving.due(0, n=4)
    (None, True)
    """

    def __init__(self, every: int | None, arms: int, timed: bool = True) -> None:
        self.every = every  # pulls of one arm between two checkpoints
        self._timed = timed  # whether the time that would be lost counts where `every` is None
        self._unsaved = [0.0] * arms  # seconds of training since the newest checkpoint
        self._took = [0.0] * arms  # what saving took last

    def trained(self, arm: int, seconds: float) -> None:
        self._unsaved[arm] += seconds

    def saved(self, arm: int, took: float) -> None:
        self._unsaved[arm], self._took[arm] = 0.0, took

    def behind(self, arm: int) -> bool:
        """Whether an arm has trained since its newest checkpoint."""
        return self._unsaved[arm] > 0

    def final_rating(self, arm: int) -> bool:
        """Whether saving took less than a quarter of the training that it would keep now."""
        return self._unsaved[arm] >= 4 * self._took[arm]

    def due(self, arm: int, n: int) -> bool:
        """Whether to save an arm after its n-th pull."""
        if self.every is not None:
            return n % self.every == 0
        return self._timed and self._unsaved[arm] >= max(LOSS, WORTH * self._took[arm])
