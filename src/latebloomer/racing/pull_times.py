"""The durations of pulls, from the seconds that a journal records."""

from collections import deque

from latebloomer.session.events import PullFailed, Restored, ScoreReported

NEWEST = 8  # number of latest pulls of an arm from which its price is computed


class PullTimes:
    """The seconds of pulls and other work, computed only from events, so that a replay agrees."""

    def __init__(self, arms: int) -> None:
        self.by_arm = [0.0] * arms  # seconds of all counted pulls, by arm
        self.training = 0.0  # seconds of all counted pulls of all arms
        self.other = 0.0  # seconds of failed pulls, and of building learners during the race
        self.longest_pull = 0.0
        self._newest = [deque[float](maxlen=NEWEST) for _ in range(arms)]

    def admit(self, arms: int) -> None:
        """Add places for arms that have joined; `arms` is the new total."""
        for _ in range(arms - len(self.by_arm)):
            self.by_arm.append(0.0)
            self._newest.append(deque(maxlen=NEWEST))

    def add_pull(self, event: ScoreReported, pulls: int) -> None:
        """Add a counted pull of an arm that has now had `pulls` pulls.

        The first pull of an arm is often slow, so it counts only until there is a second one.
        """
        arm, seconds = event.arm, event.seconds
        if pulls == 2:
            self._newest[arm].clear()
        self._newest[arm].append(seconds)
        self.by_arm[arm] += seconds
        self.training += seconds
        self.longest_pull = max(self.longest_pull, seconds)

    def add_other(self, event: PullFailed | Restored) -> None:
        """Add time that was spent but is not part of a pull's price."""
        self.other += event.seconds

    def price(self, arm: int) -> float:
        """Return the expected seconds of an arm's next pull: the mean of its latest ones, or 0."""
        newest = self._newest[arm]
        return sum(newest) / len(newest) if newest else 0.0
