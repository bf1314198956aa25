"""What can happen to a session and to a race: a closed set of plain, frozen facts.

A session is the fold of its events: made with the same settings and given the same events, it is
equal bit for bit. A race adds events of its own, of which a session takes no notice; a journal is
the list of both, in order, and whoever listens to a race is given each as it happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

FAILED, FINISHED = "failed", "finished"  # how an arm leaves
TIMEOUT, INTERRUPTED = "timeout", "interrupted"  # two of the ways in which a pull fails

# --- what changes a session ---


class ScoreReported(NamedTuple):
    """A pull ended with a score.

    A NamedTuple, because there is one per pull and a frozen dataclass takes twice as long.
    """

    arm: int
    score: float  # as the learner returned it
    seconds: float = 0.0  # that the pull took
    steps: int | None = None  # of the learner's own, where a pull is a share of its full training


@dataclass(frozen=True, slots=True)
class BatchIssued:
    """Several arms were handed out to be pulled at once, by a policy that decides every pull."""

    size: int  # arms that may be out then, in all
    more: bool = False  # while others were out


@dataclass(frozen=True, slots=True)
class LearnerLeft:
    """An arm takes no more pulls; what it would have had goes to the others."""

    arm: int
    how: str  # FAILED: it is out. FINISHED: it keeps its place by what it has shown.
    why: str = ""


@dataclass(frozen=True, slots=True)
class BudgetReplanned:
    """There is another budget; the phases to come are fitted to what is left of it."""

    budget: int  # pulls in all
    deciding: int  # those of them that name the best; the rest trains it on
    why: str = ""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The policy is done; the budget is what was spent."""

    why: str = ""
    final: bool = False  # nothing is trained on either


@dataclass(frozen=True, slots=True)
class WinnerSelected:
    """An arm is named the best and trained on, up to `budget` pulls of all arms together."""

    arm: int
    budget: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """A newcomer; the next `Extended` lets it in."""

    arm: int  # its number: the next one
    name: str
    full_steps: int | None = None  # steps of its full training, where a pull is a share of that
    repeats_scores: bool = False  # whether it repeats its last score between its steps


@dataclass(frozen=True, slots=True)
class Extended:
    """There is a larger budget, and it is planned anew from the beginning.

    Rewards so far answer the new plan where it asks for them again. So whoever it would still
    have at its level comes back, and newcomers begin.
    """

    budget: int  # pulls in all, those that are spent among them
    deciding: int  # those of them that name the best; the rest trains it on
    horizon: int
    revive: bool = True  # False: learners that left stay out
    why: str = ""
    seconds: float | None = None  # new total time, if the race is time-based


# --- what else happens in a race ---


@dataclass(frozen=True, slots=True)
class Created:
    """A race was set up."""

    race: str  # a name that no other race has
    settings: Mapping[str, Any]
    names: tuple[str, ...]  # of the learners; arm i is the i-th


@dataclass(frozen=True, slots=True)
class Began:
    """A process took the race up."""

    process: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PullFailed:
    """A pull failed and is not counted; it is made again, or `LearnerLeft` follows."""

    arm: int
    n: int  # in this pull of the arm
    kind: str  # exception, score, timeout, restore, lost, died or interrupted
    reason: str
    details: str = ""  # the traceback
    seconds: float = 0.0  # that the attempt took
    final: bool = False  # whether no retry can help


@dataclass(frozen=True, slots=True)
class WarningNoted:
    """Something that the verdict should mention."""

    arm: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Saved:
    """A learner's state is complete in the storage of checkpoints."""

    arm: int
    n: int  # pulls that are in it
    folder: str
    digest: str  # SHA-256 of its files
    size: int  # in bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class SaveFailed:
    """A learner's state could not be saved; the race continues without that checkpoint."""

    arm: int
    n: int  # pulls that the learner has had
    reason: str


@dataclass(frozen=True, slots=True)
class Restored:
    """A learner was built, or brought back to where it was."""

    arm: int
    n: int  # its pulls; 0 where it was built anew
    seconds: float  # that it took


@dataclass(frozen=True, slots=True)
class Assigned:
    """An arm is a trial of another tool, which trains it."""

    arm: int
    trial: str  # its name there
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Decided:
    """The race is over, with this verdict."""

    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """The process that had taken the race up has let go of it."""


# --- what a runner also reports, for displays alone: it is in no journal ---


class PullStarted(NamedTuple):
    """A pull is being made."""

    arm: int
    n: int  # in this pull of the arm
    at: float  # by the monotonic clock


class Waiting(NamedTuple):
    """Nothing has happened for a while: the race waits for these arms, if there are any."""

    arms: tuple[int, ...]


SessionEvent: TypeAlias = (
    ScoreReported
    | BatchIssued
    | LearnerLeft
    | BudgetReplanned
    | Stopped
    | WinnerSelected
    | Joined
    | Extended
)
RaceEvent: TypeAlias = (
    Created
    | Began
    | PullFailed
    | WarningNoted
    | Saved
    | SaveFailed
    | Restored
    | Assigned
    | Decided
    | Ended
)
Event: TypeAlias = SessionEvent | RaceEvent
