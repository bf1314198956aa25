"""The events of sessions and races: a fixed set of immutable types.

The settings and the events of a session determine it: replaying the events gives an equal session,
bit for bit. A race has more kinds of events, which do not change its session. A journal is the
list of all events in order, and callbacks receive each event when it happens.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from latebloomer._util.text import estimate_against

DROPPED, FAILED, FINISHED = "dropped", "failed", "finished"  # how an arm leaves
# Three of the kinds of a `PullFailed`.
TIMEOUT, INTERRUPTED, LOST = "timeout", "interrupted", "lost"

# --- what changes a session ---


class ScoreReported(NamedTuple):
    """A pull ended with a score.

    A NamedTuple, because there is one per pull and a frozen dataclass takes twice as long.
    """

    arm: int
    score: float  # the score as the learner returned it
    seconds: float = 0.0  # duration of the pull, in seconds
    steps: int | None = None  # steps so far, if a pull is a fraction of a full training
    # What the learner reports in addition, such as a search's scores by metric and fold.
    details: Mapping[str, Any] | None = None


class OtherEvent:
    """An event that is not a score."""

    __slots__ = ()


Event: TypeAlias = ScoreReported | OtherEvent


@dataclass(frozen=True, slots=True)
class BatchIssued(OtherEvent):
    """A policy that decides after every pull has chosen several arms to pull at the same time."""

    size: int  # number of arms whose pulls are then under way
    more: bool = False  # whether pulls of other arms were already under way


@dataclass(frozen=True, slots=True)
class LearnerLeft(OtherEvent):
    """An arm failed or finished; the other arms get the pulls that it would have had."""

    arm: int
    how: str  # FAILED: it cannot win. FINISHED: it keeps its last estimate and can still win.
    why: str = ""


@dataclass(frozen=True, slots=True)
class BudgetReplanned(OtherEvent):
    """The budget changed; the remaining arms get a plan for the remaining pulls.

    If the budget is in seconds, the event also has the levels at which the next arms are dropped.
    With prices, the arm with the largest product of its gap to the leader and its price is
    dropped.
    """

    budget: int  # total pulls
    deciding: int  # pulls that select the winner; the rest trains it further
    why: str = ""
    levels: tuple[int, ...] = ()  # pulls per arm at which one of k, ..., 2 arms is dropped
    prices: tuple[float, ...] = ()  # per arm, the seconds that its next pull costs


@dataclass(frozen=True, slots=True)
class Stopped(OtherEvent):
    """The policy has finished; the pulls spent so far become the budget."""

    why: str = ""
    final: bool = False  # True: the winner is not trained further either


@dataclass(frozen=True, slots=True)
class WinnerSelected(OtherEvent):
    """An arm was selected; it is trained further until `budget` pulls are spent in total."""

    arm: int
    budget: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Joined(OtherEvent):
    """A new arm was announced; it joins the session with the next `Extended`."""

    arm: int  # number of the new arm: the number of arms before it
    name: str
    full_steps: int | None = None  # steps of its full training, if a pull is a fraction of it
    repeats_scores: bool = False  # whether some pulls add no step and repeat its last score


@dataclass(frozen=True, slots=True)
class Extended(OtherEvent):
    """The budget was extended, and the larger one is planned from the start.

    Known scores are reused, so only missing pulls are made. A dropped arm is revived if the new
    plan would still include it at its number of pulls. New arms start.
    """

    budget: int  # total pulls, including those that are spent
    deciding: int  # pulls that select the winner; the rest trains it further
    horizon: int
    revive: bool = True  # False: dropped arms stay dropped
    why: str = ""
    seconds: float | None = None  # new total time, if the race is time-based


# --- further events of a race ---


@dataclass(frozen=True, slots=True)
class Created(OtherEvent):
    """A race was set up."""

    race: str  # a random name that no other race has
    settings: Mapping[str, Any]
    names: tuple[str, ...]  # names of the learners; arm i is the i-th


@dataclass(frozen=True, slots=True)
class ProcessStarted(OtherEvent):
    """A process started or resumed the race."""

    process: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PullFailed(OtherEvent):
    """A pull failed and is not counted; it is tried again, or `LearnerLeft` follows."""

    arm: int
    n: int  # number of the pull of this arm
    kind: str  # exception, score, timeout, restore, lost, died or interrupted
    reason: str
    details: str = ""  # the traceback
    seconds: float = 0.0  # duration of the attempt
    final: bool = False  # True: no retry can help
    # Whether the learner keeps what the failed attempt has trained, because an object cannot be
    # built again. If such a learner is trained again from the start, it repeats these attempts.
    kept: bool = False


@dataclass(frozen=True, slots=True)
class WarningNoted(OtherEvent):
    """A warning was noted, which the verdict shows."""

    arm: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Saved(OtherEvent):
    """A learner's state was saved as a checkpoint, in the folder that follows from arm and n."""

    arm: int
    n: int  # pulls that the state includes
    digest: str  # SHA-256 digest of its files
    size: int  # in bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class ModelKept(OtherEvent):
    """The model that the winner has yielded was saved; the winner is a generator."""

    arm: int
    n: int  # number of pulls after which it was yielded
    digest: str  # SHA-256 of its file
    size: int  # in bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class SaveFailed(OtherEvent):
    """A learner's state could not be saved; the race continues without this checkpoint."""

    arm: int
    n: int  # pulls that the learner has had
    reason: str


@dataclass(frozen=True, slots=True)
class Restored(OtherEvent):
    """A learner was built, or restored to its number of pulls."""

    arm: int
    n: int  # number of its pulls; 0 if it was built
    seconds: float  # duration


@dataclass(frozen=True, slots=True)
class RowsScored(OtherEvent):
    """The sums stored of a learner's scores on each row (`theory.leads.SignSums`)."""

    arm: int
    n: int  # pulls that the learner had
    score: float  # score on the validation rows; higher is better
    rows: int  # number of validation rows
    units: int  # number of groups or blocks that were drawn independently; 0: each row was
    folds: int  # number of folds over which the score is averaged
    step: float  # largest jump of one row's part of the score
    same_rows: int  # fingerprint: equal only for equal rows and units
    sums: tuple[float, ...]  # sums of the centered row scores, each with random signs


@dataclass(frozen=True, slots=True)
class ProgramStarted(OtherEvent):
    """A program was started; the score lines that it prints are the pulls of a learner."""

    arm: int
    pid: int  # process ID
    started: float  # its start in seconds since 1970, because systems reuse process IDs


@dataclass(frozen=True, slots=True)
class Assigned(OtherEvent):
    """An arm was assigned to a trial of another tool, which trains it."""

    arm: int
    trial: str  # name of the trial in that tool
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RaceFinished(OtherEvent):
    """The race has finished, with this verdict."""

    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProcessClosed(OtherEvent):
    """The process that ran the race has closed it."""


# --- events that follow from those above: callbacks receive them, journals omit them ---


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
    """A dropped arm gets pulls again, by the plan of a larger budget."""

    arm: int
    at: int  # pulls of all arms then


# --- reports of a runner for displays only: journals omit them ---


class PullStarted(NamedTuple):
    """A pull has started."""

    arm: int
    n: int  # number of the pull of this arm
    at: float  # start time, by the monotonic clock


class Waiting(NamedTuple):
    """No event has come for a while; the race waits for these arms, if any."""

    arms: tuple[int, ...]


def in_words(event: Event, name: Callable[[int], str]) -> str:
    """Return an event as one line of text that begins with the name of its arm."""
    arm, text = getattr(event, "arm", None), text_of(event)
    failed = " failed" * (getattr(event, "how", "") == FAILED)
    return text if arm is None or not text else f"{name(arm)}{failed}: {text}"


def text_of(event: Event) -> str:
    """Return an event as text without the name of its arm; empty if the event has no text.

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


# The kinds of events that a journal stores, by name.
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
