"""What a user's own function sees of a race: every event, and the race as it stands.

::

    def note(event, view):
        if isinstance(event, ScoreReported):
            print(view.names[event.arm], event.score, view.spent)
            if event.score > 0.99:
                view.stop("good enough")

    race(learners, budget=2000, callbacks=[note])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from latebloomer._util.text import brief, reason_of
from latebloomer.errors import SettingError
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Event, WarningNoted
from latebloomer.session.learner_view import LearnerView

Callback: TypeAlias = Callable[[Event, "RaceView"], Any]


class RaceView:
    """A race as it stands, to be read; it can also be stopped, or keep some of its time.

    Parameters
    ----------
    race : RaceState
        The state that is read.
    events : Callable[[], Iterable[Event]]
        Gives all that has happened, in earlier processes too.
    """

    stop_reason: str | None = None  # why a callback wants the race to end
    reserved = 0.0  # seconds of a time budget that a callback keeps for what comes after the race

    def __init__(self, race: RaceState, events: Callable[[], Iterable[Event]]) -> None:
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
        """The phase being played, from 1, and how many there are."""
        return self._race.session.phase

    @property
    def elapsed(self) -> float:
        """Seconds of the race when the latest event was written."""
        return self._race.elapsed

    def standings(self) -> list[LearnerView]:
        """Return all learners: the best, those in the race by their estimate, then the others."""
        return self._race.learners()

    def events(self) -> list[Event]:
        """Return all events so far, in order, those of earlier processes included."""
        return list(self._events())

    def reserve(self, seconds: float) -> None:
        """Keep this much of a time budget for what comes after the race; plan with the rest."""
        self.reserved = seconds

    def stop(self, reason: str) -> None:
        """End the race after the running pull; the verdict is by what is known then."""
        self.stop_reason = str(reason) or "a callback asked for it"


def tell(
    callbacks: Sequence[Callback], event: Event, view: RaceView, failed: set[int]
) -> list[WarningNoted]:
    """Hand on an event; return what to note of functions that failed for the first time.

    An exception in one is a warning, once, never the race's end.
    """
    notes = []
    for place, callback in enumerate(callbacks):
        try:
            callback(event, view)
        except Exception as error:  # a user's own code
            if place not in failed:
                failed.add(place)
                name = getattr(callback, "__name__", type(callback).__name__)
                what = f"{type(event).__name__} ({reason_of(error)})"
                text = f"the callback {name} failed on {what}; the race went on"
                notes.append(WarningNoted(None, text))
    return notes


def check_callbacks(callbacks: Any) -> list[Callback]:
    """Return the functions as a list; raise a `SettingError` if they are no functions."""
    listed = [] if callbacks is None else callbacks
    if callable(listed) or not (isinstance(listed, Iterable) and all(map(callable, listed))):
        raise SettingError(
            f"callbacks={brief(callbacks)}, but callbacks must be a list of functions "
            "f(event, view)"
        )
    return list(listed)
