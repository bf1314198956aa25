"""The view of a race that callbacks get."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from inspect import iscoroutinefunction, isgeneratorfunction
from typing import Any, TypeAlias

from latebloomer import errors
from latebloomer._util.text import brief, one_line
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.session import events
from latebloomer.session.arm_views import LearnerView

Callback: TypeAlias = Callable[[events.Event, "RaceView"], Any]


class RaceView:
    """The current state of a race, for callbacks, which can also stop it or reserve time.

    Parameters
    ----------
    race : RaceState
        State of the race.
    events : Callable[[], Iterable[events.Event]]
        Function that returns all events, including those of earlier processes.
    """

    stop_reason: str | None = None  # set if a callback has asked to stop the race
    reserved = 0.0  # seconds of a time budget that a callback reserves for work after the race

    def __init__(self, race: RaceState, events: Callable[[], Iterable[events.Event]]) -> None:
        self._race, self._events = race, events

    @property
    def id(self) -> str:
        """Random name that no other race has."""
        return self._race.id

    @property
    def settings(self) -> Settings:
        """Settings of the race."""
        return self._race.settings

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the learners; arm i is the i-th."""
        return self._race.names

    @property
    def spent(self) -> int:
        """Number of pulls so far."""
        return self._race.session.spent

    @property
    def budget(self) -> int:
        """Total number of pulls by the plan in force."""
        return self._race.session.budget

    @property
    def pulls(self) -> tuple[int, ...]:
        """Number of pulls so far, per learner."""
        return self._race.session.pulls

    @property
    def phase(self) -> tuple[int, int]:
        """Number of the current phase, from 1, and number of phases."""
        return self._race.session.phase

    @property
    def elapsed(self) -> float:
        """Seconds that the race had taken at the last event."""
        return self._race.elapsed

    def standings(self) -> list[LearnerView]:
        """Return all learners: the best, the others by their estimates, then failed ones."""
        return self._race.learners()

    def events(self) -> list[events.Event]:
        """Return all events so far, in order, including those of earlier processes."""
        return list(self._events())

    def reserve(self, seconds: float) -> None:
        """Reserve part of a time budget for work after the race; the plan uses the rest."""
        errors.need_in("seconds", seconds, "[0, inf)", "the race ends that much earlier")
        self.reserved = float(seconds)

    def stop(self, reason: str) -> None:
        """End the race after the running pull; the verdict uses all scores until then."""
        self.stop_reason = one_line(str(reason)) or "a callback stopped it"


def check_callbacks(callbacks: Any) -> list[Callback]:
    """Return the functions as a list; raise a `SettingError` if they are not functions."""
    listed = None
    with suppress(TypeError):  # `callbacks` cannot be iterated over
        listed = [] if callbacks is None else list(callbacks)
    if listed is None or callable(callbacks) or not all(map(callable, listed)):
        needed = "a list of functions f(event, view)"
        raise errors.SettingError(f"callbacks={brief(callbacks)}, but callbacks must be {needed}")
    for function in listed:
        if iscoroutinefunction(function) or isgeneratorfunction(function):
            raise errors.SettingError(
                f"callbacks=[{brief(function)}]: a call of an async function or of a generator "
                "function runs none of its code. Give a plain function"
            )
    return listed
