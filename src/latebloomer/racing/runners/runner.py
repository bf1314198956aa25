"""The contract between a race and the runner that makes its pulls.

A runner trains learners and reports events; the driver alone decides and writes. Again and again
the driver gives the runner its orders: which learners may make how many pulls now. The runner
makes some progress in its own way (one pull here, a whole phase at the same time on a cluster) and
yields events as they happen. It knows learners and nothing of sessions: a pull that is not ordered
again the next time is not needed any more.
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

    done: int  # pulls that the learner has had
    pulls: int  # maximum number of further pulls
    ends_phase: bool = False  # whether a phase ends with the last of them: a good time to save


Orders: TypeAlias = Mapping[int, Order]  # by arm


class RunnerContext(NamedTuple):
    """What a runner receives at the start of a race."""

    entries: Sequence[Entry]
    states: SavedStates
    recorded: Callable[[int], list[float]]  # an arm's counted scores so far
    schedule: CheckpointSchedule
    seconds_left: Callable[[], float] = lambda: inf  # until running calls are interrupted
    grace: float = inf  # seconds that a call has at least before it is interrupted
    shown: bool = True  # whether a display waits for `PullStarted`


class HandedOver(NamedTuple):
    """A trained learner, None if it is not available, and what the race should record."""

    learner: Any
    events: list[Report]


@dataclass(kw_only=True, eq=False, repr=False)
class Runner(ABC):
    """Trains the learners of one race; how it does that is set here.

    Parameters
    ----------
    timeout : float | None
        Seconds that building, loading or saving a learner, or one pull, may take. A call that
        takes longer counts as failed. Default: no limit.
    retries : int
        Number of times a failed pull is retried before the learner counts as failed.
    checkpoint_every : int | None
        Save each learner every this many pulls. Default: once 20 s of its training, and 20 times
        the duration of its last save, are unsaved.
    max_in_memory : int | None
        Maximum number of learners in memory; the others wait in checkpoints. Requires a policy
        with phases. Default: no limit.
    """

    timeout: float | None = None
    retries: int = 1
    checkpoint_every: int | None = None
    max_in_memory: int | None = None

    name: ClassVar[str] = ""  # by which `runner=` finds it; empty for runners of others
    can_lose_learners: ClassVar[bool] = (
        False  # whether learners may be lost while the race continues
    )
    in_phases = False  # whether its orders are a whole phase, or one pull
    interrupts = False  # whether a call that takes too long can be ended
    parallel_pulls = 1  # pulls that can be made at the same time
    held = False

    def __post_init__(self) -> None:
        if self.timeout is not None:
            need_in("timeout", self.timeout, "(0, inf)", "it is the seconds that a pull may take")
            self.timeout = float(self.timeout)
        for name, least, why in (
            ("retries", 0, "it is how often a failed pull is retried"),
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
        """Number of learners pulled at the same time for a policy that decides every pull."""
        return self.parallel_pulls

    @property
    def busy(self) -> bool:
        """True if pulls are running that will still be reported."""
        return False

    @abstractmethod
    def start(self, context: RunnerContext) -> None:
        """Take the learners of a race; raise an error if something cannot work."""

    def aside(self) -> AbstractContextManager[None]:
        """Return a context in which the program's own state is in force, as in its callbacks.

        Only a runner that trains learners in the process of the race must do something for it.
        """
        return nullcontext()

    @abstractmethod
    def work(self, orders: Orders) -> Iterator[Report]:
        """Make some of the pulls that are ordered and report each.

        When the next report is requested the race has processed the one before, and may have
        given the arm up (`discard`, `release`).
        """

    def hold(self) -> None:
        """Start no more pulls: `work` reports those that are running."""
        self.held = True

    @abstractmethod
    def discard(self, arm: int) -> None:
        """Give up the live state of an arm; its next pull starts from the latest checkpoint."""

    @abstractmethod
    def release(self, arm: int) -> None:
        """Free what an arm needs that has left the race."""

    @abstractmethod
    def save(self, pulls: Mapping[int, int]) -> Iterator[Saved | SaveFailed]:
        """Save live arms that can be saved, by the pulls that they have had."""

    def score_rows(self, arms: Iterable[int]) -> Iterator[Report]:
        """Report the row scores of live arms that give some. A runner need not do that."""
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
        """Free everything."""


def _plain(value: Any) -> Any:
    """Return a setting as a journal returns it; as text if no journal can keep it."""
    try:
        return decoded(encoded(value))
    except NotPlain:  # of a runner that others wrote, which is passed again
        return plain_or_text(value)


def cannot_let_go(entry: Entry, why: str) -> LearnerError:
    """Return the error for a learner that cannot leave the memory."""
    return LearnerError(
        f"Learner {entry.name!r} cannot be saved and released ({why}). Pass a function that "
        f"returns an object with save(folder) and load(folder), or a picklable one, {WITHOUT}."
    )
