"""Where pulls are made. A runner trains learners and reports; the driver alone decides and writes.

Again and again the driver gives the runner its orders: which learners may make how many pulls now.
The runner makes some progress in its own way (one pull here, a whole phase at once on a cluster)
and yields what happened, as it happens. It knows learners and nothing of sessions: what is not
ordered any more the next time is not wanted any more.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, TypeAlias

from latebloomer._util.text import printable, reason_of
from latebloomer.errors import LearnerError, SettingError
from latebloomer.racing.checkpoints.pickled import pickling
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.checkpoints.schedule import CheckpointSchedule
from latebloomer.racing.checkpoints.storage import Storage, Stored
from latebloomer.racing.learner import Entry, Learner, as_score, can_save, steps_of
from latebloomer.session.events import Restored, Saved, ScoreReported, WarningNoted


class TooLong(Exception):
    """A pull took longer than `timeout`; a runner catches it and reports the pull as failed."""

    def __init__(self, timeout: float) -> None:
        super().__init__(f"a pull took longer than timeout={timeout:g} s")


# --- what a runner reports, besides events ---


class LearnerFinished(NamedTuple):
    """The learner has nothing left to train; the pull is not counted."""

    arm: int


class PullFailure(NamedTuple):
    """A pull has failed; it is not counted."""

    arm: int
    kind: str  # exception, score, timeout, restore, lost or died
    reason: str
    details: str = ""
    hopeless: bool = False  # no use to try again
    seconds: float = 0.0  # that the attempt took


class Unsaved(NamedTuple):
    """A learner's state could not be saved; the race goes on without."""

    arm: int
    reason: str


class Waiting(NamedTuple):
    """Nothing has happened for a while; these arms are waited for (none: not worth a word)."""

    arms: tuple[int, ...]


Report: TypeAlias = (
    ScoreReported
    | WarningNoted
    | Restored
    | Saved
    | LearnerFinished
    | PullFailure
    | Unsaved
    | Waiting
)


# --- what it is given ---


class Order(NamedTuple):
    """Pulls that a learner may make now."""

    done: int  # pulls that it has had
    pulls: int  # at most so many more
    ends_phase: bool = False  # whether a phase ends with the last of them: a good time to save


Orders: TypeAlias = Mapping[int, Order]  # by arm


class RunnerContext(NamedTuple):
    """All that a runner is given at the start: who races, what is saved, what was recorded."""

    entries: Sequence[Entry]
    states: SavedStates
    recorded: Callable[[int], list[float]]  # an arm's counted scores so far
    timeout: float | None
    schedule: CheckpointSchedule
    pickles: bool = False  # whether learners without save and load are pickled to be saved


class RunningPull(NamedTuple):
    """A pull that is being made in this process or waited for by it."""

    arm: int
    n: int  # which of the learner's own pulls
    at: float  # by the monotonic clock


class Runner(ABC):
    """Trains the learners of one race."""

    fragile: ClassVar[bool] = False  # whether learners may be lost while the race goes on
    in_phases: ClassVar[bool] = False  # whether its orders are a whole phase, or one pull
    lanes: int = 1  # pulls that can be made at once

    def __init__(self) -> None:
        self.pending: list[WarningNoted | Saved] = []  # to be yielded, or fetched after `learner`
        self.held = False

    @property
    def batch(self) -> int:
        """Learners that are pulled at once for a policy that decides after every pull."""
        return self.lanes

    def with_resident(self, max_in_memory: int) -> Runner:
        """This runner with at most so many learners live at once."""
        raise SettingError(
            f"max_in_memory={max_in_memory} with {type(self).__name__}, but that has no way to let go of "
            "learners: use runner='local' or 'ray', or give it a method with_resident"
        )

    @property
    def under_way(self) -> RunningPull | None:
        """The pull that the race waits for, where pulls are made one by one; read by a thread."""
        return None

    @property
    def busy(self) -> bool:
        """Whether pulls are under way that will still be reported."""
        return False

    @abstractmethod
    def start(self, stage: RunnerContext) -> None:
        """Take the learners; say at once what cannot work."""

    @abstractmethod
    def work(self, orders: Orders) -> Iterator[Report]:
        """Make some of the pulls that are ordered and report each.

        The race has taken notice of a report when the next one is asked for, and may have given
        the arm up (`discard`, `release`) by then.
        """

    def hold(self) -> None:
        """Begin no more pulls: `work` reports those that are being made."""
        self.held = True

    @abstractmethod
    def discard(self, arm: int) -> None:
        """Give up the live state of an arm; its next pull starts from the newest checkpoint."""

    @abstractmethod
    def release(self, arm: int) -> None:
        """Let go of an arm that is out of the race."""

    @abstractmethod
    def save(self, pulls: Mapping[int, int]) -> Iterator[Saved | Unsaved]:
        """Save live arms that can be saved, by the pulls that they have had."""

    @abstractmethod
    def learner(self, arm: int, pulls: int) -> Any:
        """The trained learner, restored to `pulls` pulls where it is not live."""

    def stop(self) -> None:  # noqa: B027
        """Let go of everything."""


def one_pull(
    arm: int, learner: Learner, call: Callable[[Callable[[], Any]], Any]
) -> ScoreReported | LearnerFinished | PullFailure:
    """Pull, and what came of it; only `TooLong` and `KeyboardInterrupt` are raised."""
    began = perf_counter()
    try:
        value = learner.pull() if call is directly else call(learner.pull)
    except StopIteration:
        return LearnerFinished(arm)
    except TooLong:
        raise
    except (Exception, SystemExit) as error:  # a learner that exits fails like any other
        return trouble_of(arm, error, seconds=perf_counter() - began)
    seconds = perf_counter() - began
    try:
        return ScoreReported(arm, as_score(value), seconds, steps_of(learner))
    except LearnerError as error:
        return PullFailure(arm, "score", str(error), seconds=seconds)


def save_learner(learner: Any, storage: Storage, place: str) -> Stored | str:
    """Save a learner; where that fails, why. The error is the learner's own, or the disk's.

    One without `save` and `load` is pickled.
    """
    try:
        return storage.keep(place, learner.save if can_save(learner) else pickling(learner))
    except (Exception, SystemExit) as error:
        return reason_of(error)


def trouble_of(
    arm: int, error: BaseException, kind: str = "exception", seconds: float = 0.0
) -> PullFailure:
    """What an exception in a learner's code becomes."""
    details = printable("".join(traceback.format_exception(error)))
    return PullFailure(arm, kind, reason_of(error), details, seconds=seconds)


def directly(pull: Callable[[], Any]) -> Any:
    """Make a pull with nothing around it."""
    return pull()


def make_runner(runner: str | Runner, isolate: bool = False) -> Runner:
    """The runner that a name means; a runner itself is returned as it is."""
    if isolate and runner != "local":
        raise SettingError(
            f"isolate=True with runner={runner!r}, but it is for runner='local': on Ray every "
            "learner has a process of its own anyway"
        )
    if isolate:
        from latebloomer.racing.runners.isolated import IsolatedRunner

        return IsolatedRunner()
    if isinstance(runner, Runner):
        return runner
    if runner == "local":
        from latebloomer.racing.runners.local import LocalRunner

        return LocalRunner()
    if runner == "ray":
        from latebloomer.racing.runners.ray.ray_runner import RayRunner

        return RayRunner()
    raise SettingError(f"runner={runner!r}, but runner must be 'local', 'ray' or a Runner")
