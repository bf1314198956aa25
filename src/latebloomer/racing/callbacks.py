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

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, TypeAlias

from latebloomer._util.text import brief
from latebloomer.errors import SettingError
from latebloomer.racing.race_state import RaceState
from latebloomer.session.events import Event
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

    id = property(attrgetter("_race.id"), doc="A name that no other race has.")
    settings = property(attrgetter("_race.settings"), doc="Settings of the race.")
    names = property(attrgetter("_race.names"), doc="The learners; arm i is the i-th.")
    spent = property(attrgetter("_race.session.spent"), doc="Pulls so far.")
    budget = property(attrgetter("_race.session.budget"), doc="Total pulls by the plan in force.")
    pulls = property(attrgetter("_race.session.pulls"), doc="Pulls so far, per learner.")
    phase = property(attrgetter("_race.session.phase"), doc="The phase, from 1, and of how many.")
    elapsed = property(attrgetter("_race.elapsed"), doc="Seconds of the race at the last event.")

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


def check_callbacks(callbacks: Any) -> list[Callback]:
    """Return the functions as a list; raise a `SettingError` if they are no functions."""
    listed = [] if callbacks is None else callbacks
    if callable(listed) or not (isinstance(listed, Iterable) and all(map(callable, listed))):
        raise SettingError(
            f"callbacks={brief(callbacks)}, but callbacks must be a list of functions "
            "f(event, view)"
        )
    return list(listed)
