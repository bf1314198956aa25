"""The contract between a race and the runner that makes its pulls.

A runner trains learners and reports events; the driver alone decides and writes. Again and again
the driver gives the runner its orders: which learners may make how many pulls now. The runner
makes some progress in its own way (one pull here, a whole phase at the same time on a cluster) and
yields events as they happen. It knows learners and nothing of sessions: a pull that is not ordered
again the next time is not needed any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, ClassVar, NamedTuple, TypeAlias

from latebloomer.errors import SettingError, need_number, require
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.checkpoints.schedule import CheckpointSchedule
from latebloomer.racing.learner import Entry
from latebloomer.session.events import (
    LearnerLeft,
    PullFailed,
    PullStarted,
    Restored,
    Saved,
    SaveFailed,
    ScoreReported,
    Waiting,
    WarningNoted,
)

Report: TypeAlias = (
    ScoreReported
    | PullFailed
    | LearnerLeft
    | PullStarted
    | Restored
    | Saved
    | SaveFailed
    | WarningNoted
    | Waiting
)


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

    name: ClassVar[str] = ""  # by which `runner=` finds it; empty for runners of others
    fragile: ClassVar[bool] = False  # whether learners may be lost while the race continues
    in_phases: bool = False  # whether its orders are a whole phase, or one pull
    lanes: int = 1  # pulls that can be made at the same time
    held: bool = False

    def __init__(
        self,
        *,
        timeout: float | None = None,
        retries: int = 1,
        checkpoint_every: int | None = None,
        max_in_memory: int | None = None,
    ) -> None:
        if timeout is not None:
            need_number("timeout", timeout)
            require(0 < timeout < inf, "timeout", timeout, "above 0 and finite",
                    "it is the number of seconds that one pull may take")  # fmt: skip
        _need_whole("retries", retries, 0, "it is how often a failed pull is retried")
        if checkpoint_every is not None:
            _need_whole("checkpoint_every", checkpoint_every, 1, "it is pulls between checkpoints")
        if max_in_memory is not None:
            _need_whole("max_in_memory", max_in_memory, 1, "it is a number of learners in memory")
        self.timeout, self.retries = timeout, retries
        self.checkpoint_every, self.max_in_memory = checkpoint_every, max_in_memory

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for the journal; `make_runner` reads them."""
        return {
            "name": self.name or type(self).__qualname__,
            "timeout": self.timeout,
            "retries": self.retries,
            "checkpoint_every": self.checkpoint_every,
            "max_in_memory": self.max_in_memory,
        }

    @property
    def batch(self) -> int:
        """Number of learners pulled at the same time for a policy that decides every pull."""
        return self.lanes

    @property
    def interrupts(self) -> bool:
        """True if a call that takes too long can be ended."""
        return self.fragile

    @property
    def busy(self) -> bool:
        """True if pulls are running that will still be reported."""
        return False

    @abstractmethod
    def start(self, context: RunnerContext) -> None:
        """Take the learners of a race; raise an error if something cannot work."""

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


def _need_whole(name: str, value: Any, least: int, why: str) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value >= least, name, value, f"an integer >= {least}", why)


def make_runner(runner: str | Runner) -> Runner:
    """Return the runner that a short form means; a runner itself is returned unchanged."""
    if isinstance(runner, Runner):
        return runner
    if runner in ("local", "isolated"):
        return recorded_runner({"name": "local", "isolate": runner == "isolated"})
    if runner == "ray":
        return recorded_runner({"name": "ray"})
    raise SettingError(
        f"runner={runner!r}, but runner must be 'local', 'isolated', 'ray' or a Runner such as "
        "LocalRunner(timeout=60)"
    )


def recorded_runner(settings: Mapping[str, Any]) -> Runner:
    """Return a runner with the settings that `Runner.as_dict` gave."""
    values = dict(settings)
    name = values.pop("name")
    if name == "local":
        from latebloomer.racing.runners.local import LocalRunner

        return LocalRunner(**values)
    if name == "ray":
        from latebloomer.racing.runners.ray.ray_runner import RayRunner

        return RayRunner(**values)
    raise SettingError(
        f"This race was run by {name}, which is not a runner of this library: pass it again with "
        "resume(..., runner=...), or resume with runner='local'."
    )
