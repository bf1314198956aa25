"""What a page shows of a race, as plain data: whoever fills it in, the page is the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

POINTS = 240  # of a curve that are drawn; longer ones are averaged in bins


@dataclass(frozen=True, eq=False)
class LearnerOnPage:
    """One learner's race."""

    name: str
    pulls: int
    score: float  # the last one; nan without any
    estimate: float  # what the policy judged it by
    lower: float  # its score at the horizon lies between these;
    upper: float  # lower > upper: the curve contradicts the assumptions
    why: str  # when and why it was dropped, or how it ended
    dropped: bool
    failed: bool
    scores: Floats  # pull by pull

    def curve(self) -> tuple[Floats, Floats]:
        """Pulls and scores to draw, with not too many points."""
        return thin(self.scores)


@dataclass(frozen=True, eq=False)
class RacePage:
    """All that a race's page shows."""

    winner: str
    final: bool  # False while the race may still name another
    summary: Sequence[str]  # in sentences
    named_estimate: float  # what the winner was named the best by,
    named_pulls: int  # after so many pulls of its own
    delivered_score: float  # what the winner shows now,
    delivered_pulls: int  # after so many pulls
    trained_on: bool  # whether it was trained on after it was named
    spent: int
    horizon: int
    half_time: str | None  # who led when half of the pulls were spent
    late_bloomer: bool  # whether that was another one
    certified: bool
    certificate: str  # that it is certified, or what is missing
    higher_is_better: bool
    learners: Sequence[LearnerOnPage]  # the winner first, then by rank
    contradictions: Sequence[str]  # of curves with the assumptions
    plateaus: Sequence[str]
    false_alarm: float  # how often a contradiction is reported where there is none
    hindsight: Sequence[str]  # what other rules would have picked
    warnings: Sequence[str]
    settings: Mapping[str, str]
    versions: Mapping[str, str]
    resume_code: str | None  # None without a journal


def thin(scores: Floats) -> tuple[Floats, Floats]:
    """At most `POINTS` bin means of a curve and the pulls they stand for.

    >>> thin(np.array([1.0, 3.0]))
    (array([1., 2.]), array([1., 3.]))
    """
    pulls = np.arange(1.0, len(scores) + 1)
    if len(scores) <= POINTS:
        return pulls, scores
    edges = np.linspace(0, len(scores), POINTS + 1).astype(int)
    width = np.diff(edges)
    means = [np.add.reduceat(values, edges[:-1]) / width for values in (pulls, scores)]
    return means[0], means[1]
