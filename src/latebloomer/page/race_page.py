"""What a page shows of a race, as plain data: the same for the live page and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from latebloomer.page.thinned_curve import ThinnedCurve
from latebloomer.session.learner_view import LearnerView

# States of a race; it has failed if every learner has.
RUNNING, INTERRUPTED, FINISHED, ALL_FAILED = "running", "interrupted", "finished", "failed"


class PageEvent(NamedTuple):
    """Something worth a line."""

    pull: int  # of the race
    text: str
    bad: bool = False


@dataclass(frozen=True)
class Certainty:
    """How certain the result is, and what else follows from the recorded curves."""

    certified: bool
    certificate: str  # what is certified, or what is missing
    contradictions: tuple[str, ...]  # curves that contradict the assumptions
    plateaus: tuple[str, ...]
    false_alarm: float  # how often a contradiction is reported if there is none
    hindsight: tuple[str, ...]  # what other methods would have kept
    half_time: str | None  # learner that led when half of the pulls were spent
    late_bloomer: bool  # whether another learner won
    as_of: int  # pulls that were known


@dataclass(frozen=True, eq=False)
class RacePage:
    """Everything that a race's page shows."""

    state: str  # RUNNING, INTERRUPTED, FINISHED or ALL_FAILED
    best: str | None  # the winner or the leader
    final: bool  # False while another learner may still be selected
    why: str  # the reason in a sentence or two
    learners: Sequence[LearnerView]  # the best first, then by rank
    curves: Mapping[int, ThinnedCurve]  # by the number of the learner
    spent: int
    budget: int
    horizon: int
    higher_is_better: bool
    started: float | None  # seconds since 1970
    seconds: float  # that it has taken
    time_left: str = ""
    selected: tuple[float, int] | None = None  # estimate at the selection, and the winner's pulls
    trained_further: bool = False  # whether the winner was trained after its selection
    levels: Sequence[tuple[int, int]] = ()  # phases to come: learners, and pulls of each
    certainty: Certainty | None = None  # None if it is not known yet
    events: Sequence[PageEvent] = ()  # the latest first
    warnings: Sequence[str] = ()
    record: Sequence[str] = ()  # selection and final score, with all digits
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    resume_code: str | None = None  # None without a journal
