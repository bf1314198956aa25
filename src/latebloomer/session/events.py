"""What can happen to a session and to a race: a closed set of frozen types.

A session is determined by its settings and its events: replaying them gives an equal session, bit
for bit. A race has further events, which leave a session unchanged. A journal is the list of both,
in order, and callbacks receive each event when it happens.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from latebloomer._util.text import estimate_against

DROPPED, FAILED, FINISHED = "dropped", "failed", "finished"  # how an arm leaves
# Three of the ways in which a pull fails.
TIMEOUT, INTERRUPTED, LOST = "timeout", "interrupted", "lost"

# --- what changes a session ---


class ScoreReported(NamedTuple):
    """A pull ended with a score.

    A NamedTuple, because there is one per pull and a frozen dataclass takes twice as long.
    """

    arm: int
    score: float  # as the learner returned it
    seconds: float = 0.0  # duration of the pull
    steps: int | None = None  # steps of the learner, if a pull is a share of its full training
    # What else the learner reports: a search's scores by metric and fold, its best score so far.
    details: Mapping[str, Any] | None = None


class OtherEvent:
    """An event that is not a score."""

    __slots__ = ()


Event: TypeAlias = ScoreReported | OtherEvent


@dataclass(frozen=True, slots=True)
class BatchIssued(OtherEvent):
    """A policy that decides after every pull chose several arms to pull at the same time."""

    size: int  # number of arms whose pulls are then under way
    more: bool = False  # whether pulls of some arms were under way before


@dataclass(frozen=True, slots=True)
class LearnerLeft(OtherEvent):
    """An arm takes no more pulls; the other arms get the pulls that it would have had."""

    arm: int
    how: str  # FAILED: it cannot win. FINISHED: it keeps its last estimate and can still win.
    why: str = ""


@dataclass(frozen=True, slots=True)
class BudgetReplanned(OtherEvent):
    """The budget changed; the arms that are left get a plan for the pulls that are left.

    A race in seconds also says at which pulls of each arm the next ones are dropped. With prices,
    the arm goes that has the largest gap to the leader times its price.
    """

    budget: int  # total pulls
    deciding: int  # pulls that select the winner; the rest trains it further
    why: str = ""
    levels: tuple[int, ...] = ()  # pulls of each of k, ..., 2 arms when one is dropped
    prices: tuple[float, ...] = ()  # seconds of the next pull, by arm


@dataclass(frozen=True, slots=True)
class Stopped(OtherEvent):
    """The policy has finished; the budget is what was spent."""

    why: str = ""
    final: bool = False  # whether the winner is not trained further either


@dataclass(frozen=True, slots=True)
class WinnerSelected(OtherEvent):
    """An arm was selected and is trained further, up to `budget` pulls of all arms together."""

    arm: int
    budget: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Joined(OtherEvent):
    """A new arm; the next `Extended` admits it."""

    arm: int  # its number: the next one
    name: str
    full_steps: int | None = None  # steps of its full training, if a pull is a share of it
    repeats_scores: bool = False  # whether it repeats its last score between its steps


@dataclass(frozen=True, slots=True)
class Extended(OtherEvent):
    """The budget was extended, and the larger one is planned from the start.

    Known scores are reused, so only missing pulls are made. A dropped arm is revived if the new
    plan would still include it at its number of pulls, and new arms start.
    """

    budget: int  # total pulls, including those that are spent
    deciding: int  # pulls that select the winner; the rest trains it further
    horizon: int
    revive: bool = True  # False: dropped arms stay dropped
    why: str = ""
    seconds: float | None = None  # new total time, if the race is time-based


# --- what else happens in a race ---


@dataclass(frozen=True, slots=True)
class Created(OtherEvent):
    """A race was set up."""

    race: str  # a name that no other race has
    settings: Mapping[str, Any]
    names: tuple[str, ...]  # of the learners; arm i is the i-th


@dataclass(frozen=True, slots=True)
class ProcessStarted(OtherEvent):
    """A process started or resumed the race."""

    process: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PullFailed(OtherEvent):
    """A pull failed and is not counted; it is made again, or `LearnerLeft` follows."""

    arm: int
    n: int  # number of the pull of this arm
    kind: str  # exception, score, timeout, restore, lost, died or interrupted
    reason: str
    details: str = ""  # the traceback
    seconds: float = 0.0  # duration of the attempt
    final: bool = False  # whether no retry can help
    # Whether the learner keeps what the attempt has trained: an object cannot be built again.
    # A learner that is trained again from the start repeats such attempts.
    kept: bool = False


@dataclass(frozen=True, slots=True)
class WarningNoted(OtherEvent):
    """Something that the verdict should mention."""

    arm: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Saved(OtherEvent):
    """A learner's state was saved as a checkpoint, at the place that follows from arm and n."""

    arm: int
    n: int  # pulls that the state includes
    digest: str  # SHA-256 of its files
    size: int  # in bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class ModelKept(OtherEvent):
    """The model that the winner, a generator, has yielded was saved."""

    arm: int
    n: int  # pulls after which it was yielded
    digest: str  # SHA-256 of its file
    size: int  # in bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class SaveFailed(OtherEvent):
    """A learner's state could not be saved; the race continues without that checkpoint."""

    arm: int
    n: int  # pulls that the learner has had
    reason: str


@dataclass(frozen=True, slots=True)
class Restored(OtherEvent):
    """A learner was built, or restored to its number of pulls."""

    arm: int
    n: int  # its pulls; 0 if it was built
    seconds: float  # duration


@dataclass(frozen=True, slots=True)
class RowsScored(OtherEvent):
    """What is kept of a learner's scores on each validation row (`theory.leads.SignSums`)."""

    arm: int
    n: int  # pulls that the learner had
    score: float  # on the validation rows; higher is better
    rows: int  # number of validation rows
    units: int  # groups or blocks that were drawn independently; 0: the rows
    folds: int  # folds that the score is the mean of
    step: float  # largest jump of the part of one row
    same_rows: int  # equal for two learners only if their rows and units are
    sums: tuple[float, ...]  # of the centered row scores with random signs


@dataclass(frozen=True, slots=True)
class ProgramStarted(OtherEvent):
    """A program was started, of which a learner's pulls are the lines that it prints."""

    arm: int
    pid: int  # number of its process
    started: float  # seconds since 1970 at which the process began: numbers are used again


@dataclass(frozen=True, slots=True)
class Assigned(OtherEvent):
    """An arm is a trial of another tool, which trains it."""

    arm: int
    trial: str  # name of the trial there
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RaceFinished(OtherEvent):
    """The race has finished, with this verdict."""

    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProcessClosed(OtherEvent):
    """The process that ran the race has closed it."""


# --- what follows from the events above: it is announced like them and is in no journal ---


@dataclass(frozen=True, slots=True)
class Dropped(OtherEvent):
    """The policy dropped an arm, by the numbers of this comparison."""

    arm: int
    at: int  # pulls of all arms then
    estimate: float
    rival: str  # arm that it was compared with
    rival_estimate: float


@dataclass(frozen=True, slots=True)
class Revived(OtherEvent):
    """A dropped arm takes pulls again, by the plan of a larger budget."""

    arm: int
    at: int  # pulls of all arms then


# --- what a runner also reports, for displays alone: it is in no journal ---


class PullStarted(NamedTuple):
    """A pull is being made."""

    arm: int
    n: int  # number of the pull of this arm
    at: float  # by the monotonic clock


class Waiting(NamedTuple):
    """Nothing has happened for a while: the race waits for these arms, if there are any."""

    arms: tuple[int, ...]


def in_words(event: Event, name: Callable[[int], str]) -> str:
    """Return what has happened in one line, after the name of the arm."""
    arm, text = getattr(event, "arm", None), text_of(event)
    failed = " failed" * (getattr(event, "how", "") == FAILED)
    return text if arm is None or not text else f"{name(arm)}{failed}: {text}"


def text_of(event: Event) -> str:
    """Return what an event says, without its arm; empty if it has no text.

    >>> text_of(Dropped(0, at=40, estimate=0.5, rival="b", rival_estimate=0.75))
    'dropped at race pull 40: estimate 0.5, versus 0.75 for b'
    """
    match event:
        case PullFailed():
            return f"pull {event.n} failed ({event.reason})"
        case Dropped():
            against = estimate_against(event.estimate, event.rival, event.rival_estimate)
            return f"dropped at race pull {event.at:,}: {against}"
        case Revived():
            return f"revived at race pull {event.at:,}"
    return str(getattr(event, "text", "") or getattr(event, "why", ""))


# Every kind of event that a journal keeps, by its name.
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        ScoreReported,
        BatchIssued,
        LearnerLeft,
        BudgetReplanned,
        Stopped,
        WinnerSelected,
        Joined,
        Extended,
        Created,
        ProcessStarted,
        PullFailed,
        WarningNoted,
        Saved,
        ModelKept,
        SaveFailed,
        Restored,
        RowsScored,
        ProgramStarted,
        Assigned,
        RaceFinished,
        ProcessClosed,
    )
}
