"""The contract between a race and the runner that makes its pulls.

A runner trains learners and reports events; only the driver decides and writes. The driver
repeatedly gives the runner its orders: which learners may make how many pulls now. The runner
makes some of these pulls in its own way (one pull in this process, or a whole phase at the same
time on a cluster) and yields events as they happen. A runner knows learners but no sessions: a
pull that is missing in the next orders is no longer needed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from math import inf
from typing import Any, ClassVar, NamedTuple, TypeAlias

from latebloomer._util.text import plain_or_text
from latebloomer.errors import LearnerError, need_in, require
from latebloomer.racing.checkpoints.checkpoint_schedule import CheckpointSchedule
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.journal.value_codec import NotPlain, decoded, encoded
from latebloomer.racing.learners.entries import Entry
from latebloomer.session.events import (
    Event,
    PullStarted,
    Saved,
    SaveFailed,
    Waiting,
)

Report: TypeAlias = Event | PullStarted | Waiting
WITHOUT = "or omit max_in_memory to keep all learners in memory"


class Order(NamedTuple):
    """Pulls that a learner may make now."""

    done: int  # number of pulls that the learner has had
    pulls: int  # maximum number of further pulls
    # Whether a phase ends with the last of these pulls: a good time to save.
    ends_phase: bool = False


Orders: TypeAlias = Mapping[int, Order]  # by arm


class RunnerContext(NamedTuple):
    """The data that a runner receives at the start of a race."""

    entries: Sequence[Entry]
    states: SavedStates
    recorded: Callable[[int], list[float]]  # returns the counted scores of an arm so far
    schedule: CheckpointSchedule
    seconds_left: Callable[[], float] = lambda: inf  # seconds until running calls are interrupted
    grace: float = inf  # minimum seconds of a call before it is interrupted
    shown: bool = True  # whether a display needs `PullStarted`


class HandedOver(NamedTuple):
    """A trained learner (None if it is not available), and reports for the race to record."""

    learner: Any
    events: list[Report]


@dataclass(kw_only=True, eq=False, repr=False)
class Runner(ABC):
    """Base class of runners, which train the learners of one race.

    Parameters
    ----------
    timeout : float | None
        Seconds that building, loading or saving a learner, or one pull, may take. A call that
        takes longer counts as failed. Default: no limit.
    retries : int
        Number of times a failed pull is retried before the learner counts as failed, at least 0.
        Default: 1.
    checkpoint_every : int | None
        Number of pulls between two checkpoints of a learner. Default: a learner is saved when the
        training not saved yet took at least 20 s and at least 20 times as long as its last save.
    max_in_memory : int | None
        Maximum number of learners in memory; the others wait in checkpoints. Requires a policy
        with phases. Default: no limit.
    """

    timeout: float | None = None
    retries: int = 1
    checkpoint_every: int | None = None
    max_in_memory: int | None = None

    # Its name in `runner=`; empty for runners that are not part of this library.
    name: ClassVar[str] = ""
    can_lose_learners: ClassVar[bool] = (
        False  # whether learners may be lost while the race continues
    )
    in_phases = False  # True: orders have a whole phase; False: one pull
    interrupts = False  # whether a call that takes too long can be ended
    parallel_pulls = 1  # number of pulls that can be made at the same time
    held = False

    def __post_init__(self) -> None:
        if self.timeout is not None:
            need_in("timeout", self.timeout, "(0, inf)", "it is the seconds that a pull may take")
            self.timeout = float(self.timeout)
        for name, least, why in (
            ("retries", 0, "it is the number of retries of a failed pull"),
            ("checkpoint_every", 1, "it is pulls between checkpoints"),
            ("max_in_memory", 1, "it is a number of learners in memory"),
        ):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            default = value is None and name != "retries"
            require(whole or default, name, value, f"an integer >= {least}", why)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for the journal; `make_runner` reads them."""
        settings = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {"name": self.name or type(self).__qualname__, **settings}

    @property
    def batch_size(self) -> int:
        """Number of learners pulled at the same time if the policy decides after every pull."""
        return self.parallel_pulls

    @property
    def busy(self) -> bool:
        """True if pulls are running that will still be reported."""
        return False

    @abstractmethod
    def start(self, context: RunnerContext) -> None:
        """Receive the learners of a race; raise an error if something cannot work."""

    def aside(self) -> AbstractContextManager[None]:
        """Return a context with the program's own state in force, for its callbacks.

        Only a runner that trains learners in the process of the race must override it.
        """
        return nullcontext()

    @abstractmethod
    def work(self, orders: Orders) -> Iterator[Report]:
        """Make some of the ordered pulls and report each of them.

        When the next report is requested, the race has processed the previous one, and it may have
        discarded or released the arm.
        """

    def hold(self) -> None:
        """Start no more pulls: `work` reports those that are running."""
        self.held = True

    @abstractmethod
    def discard(self, arm: int) -> None:
        """Discard the live state of an arm; its next pull starts from its latest checkpoint."""

    @abstractmethod
    def release(self, arm: int) -> None:
        """Free the resources of an arm that has left the race."""

    @abstractmethod
    def save(self, pulls: Mapping[int, int]) -> Iterator[Saved | SaveFailed]:
        """Save live arms that can be saved; `pulls` has the number of pulls of each."""

    def score_rows(self, arms: Iterable[int]) -> Iterator[Report]:
        """Report the row scores of live arms that have row scores. This is optional."""
        return iter(())

    @abstractmethod
    def learner(self, arm: int, pulls: int) -> HandedOver:
        """Return the trained learner, restored to `pulls` pulls if it is not live.

        Raises
        ------
        LearnerError
            The learner cannot be restored.
        """

    def stop(self) -> None:  # noqa: B027
        """Release all learners, processes and other resources."""


def _plain(value: Any) -> Any:
    """Return a setting as read from a journal; as text if a journal cannot store it."""
    try:
        return decoded(encoded(value))
    except NotPlain:  # a user's own runner, which must be passed again on resume
        return plain_or_text(value)


def cannot_let_go(entry: Entry, why: str) -> LearnerError:
    """Return the error for a learner that cannot leave the memory."""
    return LearnerError(
        f"Learner {entry.name!r} cannot be saved and released ({why}). Pass a function that "
        f"returns an object with save(folder) and load(folder), or a picklable one, {WITHOUT}."
    )
