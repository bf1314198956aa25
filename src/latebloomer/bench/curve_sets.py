"""What the bench plays on: curves of one group of learners, and how rewards scatter about them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curves:
    """K arms whose mean rewards after 1..L pulls are recorded; higher is better.

    Rewards are the curves themselves where neither `sd` (Gaussian noise, one standard deviation
    for all or one per arm and pull) nor `outcomes` (the mean of that many right-or-wrong outcomes)
    is given.
    """

    group: str  # the set that the problem belongs to
    name: str
    means: Floats  # (arms, pulls)
    sd: Any = None
    outcomes: int = 0

    @property
    def arms(self) -> int:
        return len(self.means)

    @property
    def length(self) -> int:
        """L: pulls that are recorded of each arm; the horizon of the bench."""
        return int(self.means.shape[1])

    @property
    def noisy(self) -> bool:
        return self.sd is not None or self.outcomes > 0

    @property
    def truth(self) -> Floats:
        """What each arm is worth: the mean of its last L/50 pulls, at least one."""
        return self.means[:, -max(1, self.length // 50) :].mean(axis=1)

    def tables(self, draws: int, seed: int) -> Floats:
        """Rewards (draws, arms, pulls), the same for every policy; one draw where none differ."""
        if not self.noisy:
            return np.ascontiguousarray(self.means[None])
        words = (self.group, self.name)
        rng = np.random.default_rng([seed, *(zlib.crc32(word.encode()) for word in words)])
        shape = (draws, *self.means.shape)
        if self.outcomes:
            return rng.binomial(self.outcomes, self.means, shape) / self.outcomes
        return self.means + self.sd * rng.standard_normal(shape)
