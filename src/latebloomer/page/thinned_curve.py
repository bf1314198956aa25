"""A curve in few points, however long it grows: equal on the live page and in a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

POINTS = 240  # of a curve, at least, once it is that long; at most twice as many
FEWEST = 24  # of each curve where there are very many
ALL = 6000  # points of all curves together, about
SMOOTHED = 16  # a smoothed curve is the mean of the latest sixteenth: it follows the scores


class Point(NamedTuple):
    """A place on a curve."""

    pull: float
    score: float


def points_for(learners: int) -> int:
    """Return how many points a curve gets on a page with that many curves.

    >>> points_for(9), points_for(100), points_for(1000)
    (240, 60, 24)
    """
    return max(FEWEST, min(POINTS, ALL // max(1, learners)))


class ThinnedCurve:
    """Scores pull by pull, kept as the means of bins that double in width when there are many.

    >>> curve = ThinnedCurve(points=2)
    >>> curve.extend([1.0, 3.0, 5.0, 7.0])
    >>> curve.raw()
    [Point(pull=1.5, score=2.0), Point(pull=3.5, score=6.0)]
    """

    def __init__(self, points: int = POINTS, scores: Iterable[float] = ()) -> None:
        self.points, self.width = points, 1  # pulls in a bin
        self.pulls = 0
        self._means: list[float] = []  # of the bins that are complete
        self._sum = 0.0  # of the one that is not
        self._known: tuple[tuple[int, int], tuple[float, float]] | None = None  # see `bounds`
        self.extend(scores)

    def extend(self, scores: Iterable[float]) -> None:
        """Add the scores of more pulls."""
        for score in scores:
            self.add(score)

    def add(self, score: float) -> None:
        """Add the score of one more pull."""
        self.pulls += 1
        self._sum += score
        if self.pulls % self.width == 0:
            self._means.append(self._sum / self.width)
            self._sum = 0.0
            if len(self._means) == 2 * self.points:
                pairs = zip(self._means[::2], self._means[1::2], strict=True)
                self._means = [0.5 * (a + b) for a, b in pairs]
                self.width *= 2

    def __len__(self) -> int:
        return len(self._means)

    def raw(self, after: int = 0) -> list[Point]:
        """Return the means of the bins after the first `after`, each at the middle of its bin."""
        w = self.width
        return [Point((k + 0.5) * w + 0.5, self._means[k]) for k in range(after, len(self._means))]

    def smoothed(self, after: int = 0) -> list[Point]:
        """Return the mean of the latest sixteenth of the pulls up to each bin's end."""
        return [self._smooth(k) for k in range(after + 1, len(self._means) + 1)]

    def _smooth(self, k: int) -> Point:
        newest = self._means[k - max(1, k // SMOOTHED) : k]
        return Point(float(k * self.width), sum(newest) / len(newest))

    @property
    def end(self) -> Point | None:
        """End of the smoothed curve."""
        return self._smooth(len(self._means)) if self._means else None

    def at(self, pull: int) -> Point | None:
        """Return the smoothed curve at a pull."""
        k = min(len(self._means), max(1, round(pull / self.width)))
        return self._smooth(k) if self._means else None

    def bounds(self) -> tuple[float, float] | None:
        """Return the smallest and largest smoothed score, without its first fifth (an outlier)."""
        now = self.width, len(self._means)
        if not self._means:
            return None
        if self._known is None or self._known[0] != now:
            scores = [point.score for point in self.smoothed(len(self._means) // 5)]
            self._known = now, (min(scores), max(scores))
        return self._known[1]
