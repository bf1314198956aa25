"""What users' functions see of a race."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

from latebloomer import errors
from latebloomer._util.text import brief, one_line
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.session import events
from latebloomer.session.arm_views import LearnerView

Callback: TypeAlias = Callable[[events.Event, "RaceView"], Any]


class RaceView:
    """A race as it stands, to be read; it can also be stopped, or keep some of its time.

    Parameters
    ----------
    race : RaceState
        The state that is read.
    events : Callable[[], Iterable[events.Event]]
        Gives all that has happened, in earlier processes too.
    """

    stop_reason: str | None = None  # why a callback wants the race to end
    reserved = 0.0  # seconds of a time budget that a callback keeps for what comes after the race

    def __init__(self, race: RaceState, events: Callable[[], Iterable[events.Event]]) -> None:
        self._race, self._events = race, events

    @property
    def id(self) -> str:
        """A name that no other race has."""
        return self._race.id

    @property
    def settings(self) -> Settings:
        """Settings of the race."""
        return self._race.settings

    @property
    def names(self) -> tuple[str, ...]:
        """The learners; arm i is the i-th."""
        return self._race.names

    @property
    def spent(self) -> int:
        """Pulls so far."""
        return self._race.session.spent

    @property
    def budget(self) -> int:
        """Total pulls by the plan in force."""
        return self._race.session.budget

    @property
    def pulls(self) -> tuple[int, ...]:
        """Pulls so far, per learner."""
        return self._race.session.pulls

    @property
    def phase(self) -> tuple[int, int]:
        """The phase, from 1, and of how many."""
        return self._race.session.phase

    @property
    def elapsed(self) -> float:
        """Seconds of the race at the last event."""
        return self._race.elapsed

    def standings(self) -> list[LearnerView]:
        """Return all learners: the best, those in the race by their estimate, then the others."""
        return self._race.learners()

    def events(self) -> list[events.Event]:
        """Return all events so far, in order, those of earlier processes included."""
        return list(self._events())

    def reserve(self, seconds: float) -> None:
        """Keep this much of a time budget for what comes after the race; plan with the rest."""
        self.reserved = seconds

    def stop(self, reason: str) -> None:
        """End the race after the running pull; the verdict is by what is known then."""
        self.stop_reason = one_line(str(reason)) or "a callback asked for it"


def check_callbacks(callbacks: Any) -> list[Callback]:
    """Return the functions as a list; raise a `SettingError` if they are no functions."""
    listed = None
    with suppress(TypeError):  # it cannot be iterated over
        listed = [] if callbacks is None else list(callbacks)
    if listed is None or callable(callbacks) or not all(map(callable, listed)):
        needed = "a list of functions f(event, view)"
        raise errors.SettingError(f"callbacks={brief(callbacks)}, but callbacks must be {needed}")
    return listed
