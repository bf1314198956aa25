"""Callbacks of scikit-learn (from 1.9 on), such as its progress bar, told of a search's tasks.

A search is a task of two: the race, whose own tasks are its pulls, and the refit. A callback that
asks to stop after a pull stops the race. Older versions have no callbacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from latebloomer.racing.callbacks import Callback, RaceView, check_callbacks
from latebloomer.session.events import Event, ScoreReported

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9
    Method = TypeVar("Method", bound=Callable[..., Any])

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Method) -> Method:
        """The method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "FitTasks", "with_callbacks"]


class FitTasks:
    """The tasks of one `fit`, for those who watch it."""

    def __init__(self, search: Any, X: Any, y: Any) -> None:
        self._watched = {"estimator": search, "X": X, "y": y}
        self._root: Any = None
        self._race: Any = None
        begin = getattr(search, "_init_callback_context", None)  # for those who write estimators
        if begin is not None:
            self._root = begin(max_subtasks=1 + bool(search.refit))
            self._root.call_on_fit_task_begin(**self._watched)

    def listeners(self, own: Sequence[Callback] | None) -> list[Callback]:
        """The callbacks of the race: the user's own, and one for those of scikit-learn."""
        watched = getattr(self._watched["estimator"], "_skl_callbacks", None)
        return [*check_callbacks(own), *([self._after_event] if watched else [])]

    def _after_event(self, event: Event, view: RaceView) -> None:
        if not isinstance(event, ScoreReported):
            return
        if self._race is None:
            left = None if view.settings.seconds is not None else view.budget - view.spent + 1
            self._race = self._begin(self._root, "race", left)
        pull = self._begin(self._race, f"pull of {view.names[event.arm]}", 0)
        if pull.call_on_fit_task_end(**self._watched):
            view.stop("a callback of scikit-learn asked for it")

    def _begin(self, parent: Any, name: str, subtasks: int | None) -> Any:
        task = parent.subcontext(task_name=name, max_subtasks=subtasks)
        return task.call_on_fit_task_begin(**self._watched)

    def refit(self, train: Callable[[], Any]) -> Any:
        """Train the winner, as a task."""
        self._end_race()
        if self._root is None:
            return train()
        task = self._begin(self._root, "refit-with-best-params", 0)
        trained = train()
        task.call_on_fit_task_end(**self._watched)
        return trained

    def _end_race(self) -> None:
        if self._race is not None:
            self._race.call_on_fit_task_end(**self._watched)
            self._race = None

    def end(self) -> None:
        """All is done."""
        self._end_race()
        if self._root is not None:
            self._root.call_on_fit_task_end(**self._watched)
