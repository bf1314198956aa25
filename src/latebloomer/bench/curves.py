"""A problem of the bench: recorded curves, how rewards scatter, and what a pick is worth."""

import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from latebloomer.problems.curves import Floats

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Curves:
    """K arms whose mean rewards after 1..L pulls are recorded; higher is better.

    Rewards are the curves themselves unless `sd`, `outcomes` or `runs` is given.

    Attributes
    ----------
    group : str
        Set that the problem belongs to.
    name : str
        Name of the problem.
    means : Floats
        Mean rewards (arms, pulls).
    sd : Any
        Gaussian noise: one standard deviation, or one per arm and pull.
    outcomes : int
        Number of right-or-wrong outcomes that a reward is the mean of; 0 for none.
    runs : Floats | None
        Recorded runs (arms, runs, pulls), whose means the curves are. A draw shows the same run
        of all arms: arms whose runs have the same place were trained on the same rows.
    test : Floats | None
        Scores of these runs on test rows, if they were recorded: what a pick is worth.
    seconds : Any
        Seconds of each pull (arms, runs or 1, pulls), if they were recorded.
    note : str
        For the report: what differs from what was recorded.
    """

    group: str
    name: str
    means: Floats
    sd: Any = None
    outcomes: int = 0
    runs: Floats | None = None
    test: Floats | None = None
    seconds: Any = None
    note: str = ""

    @property
    def arms(self) -> int:
        """K, the number of arms."""
        return len(self.means)

    @property
    def length(self) -> int:
        """L, the number of recorded pulls of each arm: the horizon of the bench."""
        return int(self.means.shape[1])

    def pulls_of(self, trainings: float) -> int:
        """Return T, the pulls of a budget in full trainings, at least two."""
        return max(2, round(trainings * self.length))

    @property
    def noisy(self) -> bool:
        """True if rewards differ from draw to draw."""
        return self.sd is not None or self.outcomes > 0 or self.runs is not None

    @property
    def run_count(self) -> int:
        """Number of recorded runs of each arm."""
        return 1 if self.runs is None else int(self.runs.shape[1])

    @property
    def last(self) -> int:
        """L/50, at least one: the number of last pulls whose mean is the end of a curve."""
        return max(1, self.length // 50)

    def tables(self, draws: int, seed: int) -> Floats:
        """Return rewards (draws, arms, pulls), equal for every policy; one draw if not noisy."""
        if not self.noisy:
            return np.ascontiguousarray(self.means[None])
        if self.runs is not None:
            return self.runs.swapaxes(0, 1)[self.runs_shown(draws, seed)]
        words = (self.group, self.name)
        rng = np.random.default_rng([seed, *(zlib.crc32(word.encode()) for word in words)])
        shape = (draws, *self.means.shape)
        if self.outcomes:
            return rng.binomial(self.outcomes, self.means, shape) / self.outcomes
        return self.means + self.sd * rng.standard_normal(shape)

    def runs_shown(self, draws: int, seed: int) -> Ints:
        """Return the recorded run that each draw shows: all in turn, beginning with the seed's."""
        return (seed + np.arange(draws)) % self.run_count

    # --- what a pick is worth ---

    def worth(self, pulls: int, run: int = 0) -> Floats:
        """Return what each arm is worth after that many pulls: its test score in that run.

        Without test scores: the mean of its last L/50 mean rewards.
        """
        if self.test is not None:
            return self.test[:, run, pulls - 1]
        return self.means[:, max(0, pulls - self.last) : pulls].mean(axis=1)

    def truth(self, run: int = 0) -> Floats:
        """Return what each arm is worth when it is trained to the end."""
        return self.worth(self.length, run)


class Skipped(NamedTuple):
    """A file or a set that could not be used, and why."""

    what: str
    why: str
