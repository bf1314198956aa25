"""What a page shows of a race, as plain data: whoever fills it in, the page is the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from latebloomer.page.thinned_curve import ThinnedCurve

RUNNING, INTERRUPTED, FINISHED = "running", "interrupted", "finished"  # states of a race


class ForecastFan(NamedTuple):
    """What a learner is expected to reach."""

    pull: int  # where it stands now,
    level: float  # with this score
    ahead: float  # the pull that is forecast,
    expected: float  # with this score
    believed: float  # the part of that in which the rule believes


class Level(NamedTuple):
    """A phase to come."""

    learners: int  # the best so many
    pulls: int  # are brought to this level


class PageEvent(NamedTuple):
    """Something worth a line."""

    pull: int  # of the race
    text: str
    bad: bool = False


@dataclass(frozen=True, eq=False)
class LearnerOnPage:
    """One learner's race."""

    arm: int  # its number, which never changes
    name: str
    state: str  # in a word or two
    pulls: int
    score: float  # the last one; nan without any
    estimate: float  # what the policy judged it by
    seconds: float  # of training
    why: str  # when and why it was dropped, or how it ended
    curve: ThinnedCurve
    dropped: bool = False
    failed: bool = False
    lower: float = -inf  # its score at the horizon lies between these;
    upper: float = inf  # lower > upper: the curve contradicts the assumptions
    steps: int | None = None  # of its own, where pulls are shares of a full training
    fan: ForecastFan | None = None
    failures: Sequence[str] = ()  # pulls that failed, in sentences


@dataclass(frozen=True, eq=False)
class Certainty:
    """How sure the verdict is, and what else can be said of it."""

    certified: bool
    certificate: str  # that it is certified, or what is missing
    contradictions: Sequence[str]  # of curves with the assumptions
    plateaus: Sequence[str]
    false_alarm: float  # how often a contradiction is reported where there is none
    hindsight: Sequence[str]  # what other rules would have kept
    half_time: str | None  # who led when half of the pulls were spent
    late_bloomer: bool  # whether that was another one
    as_of: int  # pulls that were known


@dataclass(frozen=True, eq=False)
class RacePage:
    """All that a race's page shows."""

    state: str  # RUNNING, INTERRUPTED or FINISHED
    best: str | None  # who is kept, or leads
    final: bool  # False while the race may still name another
    why: str  # the reason in one sentence
    learners: Sequence[LearnerOnPage]  # the best first, then by rank
    spent: int
    budget: int
    horizon: int
    higher_is_better: bool
    started: float | None  # seconds since 1970
    seconds: float  # that it has taken
    time_left: str = ""
    named: tuple[float, int] | None = None  # what the best was named by, after how many pulls
    delivered: tuple[float, int] | None = None  # what it shows now, after how many pulls
    trained_on: bool = False  # whether it was trained on after it was named
    levels: Sequence[Level] = ()
    belief: str = ""  # in the forecasts, in a sentence
    certainty: Certainty | None = None  # None where too little is known
    happenings: Sequence[PageEvent] = ()  # the newest first
    warnings: Sequence[str] = ()
    record: Sequence[str] = ()  # who was named and what is delivered, to the digit
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    resume_code: str | None = None  # None without a journal
