"""The contract between a race and the runner that makes its pulls.

A runner trains learners and reports events; the driver alone decides and writes. Again and again
the driver gives the runner its orders: which learners may make how many pulls now. The runner
makes some progress in its own way (one pull here, a whole phase at the same time on a cluster) and
yields events as they happen. It knows learners and nothing of sessions: a pull that is not ordered
again the next time is not needed any more.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import isgeneratorfunction
from math import inf
from typing import Any, ClassVar, NamedTuple, TypeAlias

from latebloomer.errors import LearnerError, SettingError, need_in, require
from latebloomer.racing.checkpoints.saved_states import CheckpointSchedule, SavedStates
from latebloomer.racing.learner import Entry
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Event, PullStarted, Saved, SaveFailed, Waiting
from latebloomer.session.session import Session

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
    fragile: ClassVar[bool] = False  # whether learners may be lost while the race continues
    in_phases = False  # whether its orders are a whole phase, or one pull
    interrupts = False  # whether a call that takes too long can be ended
    lanes = 1  # pulls that can be made at the same time
    held = False

    def __post_init__(self) -> None:
        if self.timeout is not None:
            need_in("timeout", self.timeout, "(0, inf)", "it is the seconds that a pull may take")
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
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"name": self.name or type(self).__qualname__, **settings}

    @property
    def batch_size(self) -> int:
        """Number of learners pulled at the same time for a policy that decides every pull."""
        return self.lanes

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


def make_runner(runner: str | Runner) -> Runner:
    """Return the runner that a short form means; a runner itself is returned unchanged."""
    if isinstance(runner, Runner):
        return runner
    if runner in ("local", "ray"):
        return recorded_runner({"name": runner})
    if runner == "isolated":
        return recorded_runner({"name": "local", "isolate": True})
    needed = "'local', 'isolated', 'ray' or a Runner such as LocalRunner(timeout=60)"
    raise SettingError(f"runner={runner!r}, but runner must be {needed}")


def recorded_runner(settings: Mapping[str, Any]) -> Runner:
    """Return a runner with the settings that `Runner.as_dict` gave."""
    from latebloomer.racing.runners.local import LocalRunner
    from latebloomer.racing.runners.ray_runner import RayRunner

    values = dict(settings)
    name = values.pop("name")
    if name in ("local", "ray"):
        return LocalRunner(**values) if name == "local" else RayRunner(**values)
    way = "Pass it again with resume(..., runner=...), or resume with runner='local'."
    raise SettingError(f"This race was run by {name}, not by a runner of this library. {way}")


# --- few learners in memory ---


def check_memory_limit(
    most: int | None, entries: Sequence[Entry], session: Session, settings: Settings
) -> None:
    """Raise an error if these learners cannot be raced with at most `most` of them in memory.

    A policy with phases fixes how many pulls each learner makes before the next decision, so they
    can be made learner by learner. The others wait in their checkpoints.
    """
    if most is None or most >= len(entries):
        return
    given, policy, wrong = f"max_in_memory={most}", session.policy, ""
    if session.decides_every_pull or policy.decides_after_sweeps():
        after = "pull" if session.decides_every_pull else "sweep"
        wrong = f"needs a policy with phases (auto, r-sr): {policy!r} decides after every {after}"
    elif settings.seconds is not None:
        wrong = f"cannot be combined with seconds={settings.seconds:g}, only with budget=..."
    if wrong:
        raise SettingError(f"{given} {wrong}. Change that, {WITHOUT}.")
    for entry in entries:
        if not entry.rebuilds:
            said = f"{given}, but learner {entry.name!r} is an object, which is in memory anyway"
            raise LearnerError(f"{said}. Pass a function that builds it, {WITHOUT}.")
        if isgeneratorfunction(entry.given):
            raise cannot_let_go(entry, "it is a generator")


def cannot_let_go(entry: Entry, why: str) -> LearnerError:
    """Return the error for a learner that cannot leave the memory."""
    return LearnerError(
        f"Learner {entry.name!r} cannot be saved and released ({why}). Pass a function that "
        f"returns an object with save(folder) and load(folder), or a picklable one, {WITHOUT}."
    )
