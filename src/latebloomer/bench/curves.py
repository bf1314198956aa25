"""A problem of the bench: recorded curves, the noise of rewards, and the worth of a pick."""

import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from latebloomer.problems.curves import Floats

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Curves:
    """The recorded mean rewards of K arms after 1, ..., L pulls; higher is better.

    Rewards are the curves themselves unless `sd`, `outcomes` or `runs` is set.

    Attributes
    ----------
    group : str
        Name of the set of the problem.
    name : str
        Name of the problem.
    means : Floats
        Mean rewards (arms, pulls).
    sd : Any
        Standard deviation of Gaussian noise: one number, or one per arm and pull.
    outcomes : int
        Number of right-or-wrong outcomes over which a reward is averaged; 0 for none.
    runs : Floats | None
        Recorded runs (arms, runs, pulls), of which the curves are the means. A draw uses the same
        run of all arms, because runs with the same index were trained on the same rows.
    test : Floats | None
        Scores of these runs on test rows, if they were recorded. They are the worth of a pick.
    seconds : Any
        Seconds of each pull (arms, runs or 1, pulls), if they were recorded.
    note : str
        Note for the report about differences from the recorded data.
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
        """Number of arms, K."""
        return len(self.means)

    @property
    def length(self) -> int:
        """Number of recorded pulls of each arm, L, which is the horizon of the bench."""
        return int(self.means.shape[1])

    def pulls_of(self, trainings: float) -> int:
        """Return the pulls T of a budget in full trainings, at least 2."""
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
        """Number of last pulls whose mean is the end of a curve: L/50, and at least 1."""
        return max(1, self.length // 50)

    def tables(self, draws: int, seed: int) -> Floats:
        """Return rewards (draws, arms, pulls), equal for all policies; one draw without noise."""
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
        """Return the recorded run of each draw: all runs in turn, from the seed's run on."""
        return (seed + np.arange(draws)) % self.run_count

    # --- the worth of a pick ---

    def worth(self, pulls: int, run: int = 0) -> Floats:
        """Return the worth of each arm after `pulls` pulls: its test score in `run`.

        Without test scores, it is the mean of the arm's last L/50 mean rewards.
        """
        if self.test is not None:
            return self.test[:, run, pulls - 1]
        return self.means[:, max(0, pulls - self.last) : pulls].mean(axis=1)

    def truth(self, run: int = 0) -> Floats:
        """Return the worth of each arm if it is trained to the end."""
        return self.worth(self.length, run)


class Skipped(NamedTuple):
    """A file or a set that could not be used, and the reason."""

    what: str
    why: str
