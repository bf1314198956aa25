"""What loggers share: the events of a race, sorted into what people look at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from latebloomer.racing.callbacks import RaceView
from latebloomer.session import events

__all__ = ["RaceLogger"]


class RaceLogger(ABC):
    """A callback that writes a race elsewhere: `race(..., callbacks=[logger])`.

    Your own logger has `begin`, `score` and `decide`, and may have `note` and `end`. If a logger
    fails, the race notes a warning and does not call it again: a server that is gone would cost
    its time-out at every pull.

    Examples
    --------
    >>> from latebloomer import race
    >>> class Best(RaceLogger):
    ...     def begin(self, view):
    ...         self.best = 0.0
    ...     def score(self, arm, pull, score, view):
    ...         self.best = max(self.best, score)
    ...     def decide(self, summary, view):
    ...         print(f"{summary['name']}, and the best score was {self.best}")
    >>> learners = {"a": lambda: iter([0.1, 0.2, 0.3]), "b": lambda: iter([0.4, 0.5, 0.6])}
    >>> verdict = race(learners, 4, journal=None, progress=False, callbacks=[Best()])
    b, and the best score was 0.5
    """

    def __init__(self) -> None:
        self._failed: str | None = None  # the race in which it failed

    def __call__(self, event: events.Event, view: RaceView) -> None:
        if self._failed == view.id:
            return
        try:
            self._take(event, view)
        except Exception:
            self._failed = view.id
            raise  # the race notes it

    def _take(self, event: events.Event, view: RaceView) -> None:
        match event:
            case events.Began():
                self.begin(view)
            case events.ScoreReported():
                self.score(event.arm, view.pulls[event.arm], event.score, view)
            case events.LearnerLeft():
                self.note(event.arm, f"{event.how}: {event.why}" if event.why else event.how, view)
            case events.PullFailed():
                self.note(event.arm, f"a pull failed ({event.reason})", view)
            case events.WarningNoted():
                self.note(event.arm, event.text, view)
            case events.Decided():
                self.decide(event.summary, view)
            case events.Ended():
                self.end(view)

    @abstractmethod
    def begin(self, view: RaceView) -> None:
        """Prepare for a race, at its start or when it is resumed."""

    @abstractmethod
    def score(self, arm: int, pull: int, score: float, view: RaceView) -> None:
        """Log the score of a learner's pull, by the number of the pull."""

    def note(self, arm: int | None, text: str, view: RaceView) -> None:  # noqa: B027
        """Log what happened to a learner, or to the race if `arm` is None."""

    @abstractmethod
    def decide(self, summary: Mapping[str, Any], view: RaceView) -> None:
        """Log the verdict of a race that has finished."""

    def end(self, view: RaceView) -> None:  # noqa: B027
        """Release what `begin` opened; the race may not have finished."""


class WriterPerLearner(RaceLogger):
    """A logger that opens a writer at the first pull of each learner."""

    def begin(self, view: RaceView) -> None:
        self._writers: dict[int, Any] = {}

    def end(self, view: RaceView) -> None:
        for writer in self._writers.values():
            self._close(writer)
        self._writers = {}

    def _writer(self, arm: int, view: RaceView) -> Any:
        if arm not in self._writers:
            self._writers[arm] = self._open(arm, view)
        return self._writers[arm]

    @abstractmethod
    def _open(self, arm: int, view: RaceView) -> Any:
        """Return the writer of a learner."""

    @abstractmethod
    def _close(self, writer: Any) -> None:
        """Close a writer."""


def settings_in_words(view: RaceView) -> dict[str, str]:
    """Return the settings of a race as text, by name."""
    asked = view.settings.as_dict() | {"policy": view.settings.rule, "race": view.id}
    asked.pop("learner_settings")  # long, and about learners
    return {name: str(value) for name, value in asked.items() if value is not None}
