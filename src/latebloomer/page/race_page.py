"""The data of a race's page, which are the same for the live page and the report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from latebloomer.session.arm_views import LearnerView

# States of a race; ALL_FAILED means that every learner has failed.
RUNNING, INTERRUPTED, FINISHED, ALL_FAILED = "running", "interrupted", "finished", "failed"


class PageEvent(NamedTuple):
    """An event of the race in one line."""

    pull: int  # number of the pull of the race
    text: str
    bad: bool = False


@dataclass(frozen=True, eq=False)
class RacePage:
    """Everything that a race's page shows."""

    state: str  # RUNNING, INTERRUPTED, FINISHED or ALL_FAILED
    best: str | None  # the winner or the leader
    final: bool  # False as long as another learner may still be selected
    why: str  # the reason in one or two sentences
    learners: Sequence[LearnerView]  # the best first, then by rank
    curves: "Mapping[int, ThinnedCurve]"  # by the number of the learner
    spent: int
    budget: int
    horizon: int
    higher_is_better: bool
    started: float | None  # seconds since 1970
    seconds: float  # duration so far, in seconds
    time_left: str = ""
    waiting: str = ""  # text about a long pull that the race waits for
    selected: tuple[float, int] | None = None  # estimate at the selection, and the winner's pulls
    trained_further: bool = False  # whether the winner was trained after its selection
    levels: Sequence[tuple[int, int]] = ()  # coming phases: (learners, pulls per learner)
    assessed_at: int = 0  # pulls on which the next fields are based; 0: not computed yet
    certified: bool = False
    certificate: str = ""  # sentences that say what is certified or missing
    new_rows: Sequence[str] = ()  # sentences about new rows
    contradictions: Sequence[str] = ()  # curves that contradict the assumptions
    plateaus: Sequence[str] = ()
    false_alarm: float = 0.0  # maximum probability of a false contradiction
    hindsight: Sequence[str] = ()  # sentences about what other methods would have kept
    half_time: str | None = None  # learner that led when half of the pulls were spent
    events: Sequence[PageEvent] = ()  # the latest first
    output: Mapping[str, str] = field(default_factory=dict)  # last lines of logs, by learner
    warnings: Sequence[str] = ()
    record: Sequence[str] = ()  # sentences: selection, final score, why the race ended
    about: Mapping[str, str] = field(default_factory=dict)  # a program's command, values and files
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    resume_code: str | None = None  # None without a journal


# --- curves thinned to few points, equally on the live page and in a report ---

POINTS = 240  # minimum points of a long curve; the maximum is twice this number
FEWEST = 24  # minimum points of each curve if there are very many curves
ALL = 6000  # approximate points of all curves together
SMOOTHED = 16  # a smoothed curve is the mean of the latest 1/16 of the pulls


class Point(NamedTuple):
    """A point of a curve."""

    pull: float
    score: float


def points_for(learners: int) -> int:
    """Return the number of points of each curve on a page with `learners` curves.

    >>> points_for(9), points_for(100), points_for(1000)
    (240, 60, 24)
    """
    return max(FEWEST, min(POINTS, ALL // max(1, learners)))


class ThinnedCurve:
    """A curve as means of bins of pulls, whose width doubles when there are too many bins.

    >>> ThinnedCurve(points=2, scores=[1.0, 3.0, 5.0, 7.0]).raw()
    [Point(pull=1.5, score=2.0), Point(pull=3.5, score=6.0)]
    """

    def __init__(self, points: int = POINTS, scores: Iterable[float] = ()) -> None:
        self.points, self.width = points, 1  # pulls in a bin
        self.pulls = 0
        self._means: list[float] = []  # means of the complete bins
        self._sum = 0.0  # sum of the incomplete bin
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
        """Return the means of bins after the first `after` ones, each at the middle of its bin."""
        w = self.width
        return [Point((k + 0.5) * w + 0.5, self._means[k]) for k in range(after, len(self._means))]

    def smoothed(self, after: int = 0) -> list[Point]:
        """Return the mean of the latest sixteenth of the pulls up to each bin's end."""
        return [self._smooth(k) for k in range(after + 1, len(self._means) + 1)]

    def _smooth(self, k: int) -> Point:
        newest = self._means[k - max(1, k // SMOOTHED) : k]
        return Point(float(k * self.width), sum(newest) / len(newest))

    def at(self, pull: int) -> Point:
        """Return the smoothed curve at a pull."""
        return self._smooth(min(len(self._means), max(1, round(pull / self.width))))

    @property
    def end(self) -> Point:
        """End of the smoothed curve."""
        return self._smooth(len(self._means))
