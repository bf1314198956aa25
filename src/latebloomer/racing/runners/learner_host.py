"""One learner where it is trained: in this process, in a child process or in a Ray actor.

A host answers calls with plain values and never decides anything. An exception of the learner is
an answer too. Only the loss of a process, and a call that takes too long, are seen from outside:
`LimitedHost` makes answers of these.
"""

from __future__ import annotations

import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, NamedTuple

from latebloomer._util.text import printable, reason_of, shortened
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.kept_models import is_bare, pickling
from latebloomer.racing.checkpoints.saved_states import restore
from latebloomer.racing.checkpoints.storage import Storage, Stored, place_of
from latebloomer.racing.learner import (
    Entry,
    as_score,
    can_save,
    steps_of,
    trained,
)
from latebloomer.racing.runners.own_state import OwnStates
from latebloomer.racing.runners.transfer import dumps
from latebloomer.session.events import (
    FINISHED,
    INTERRUPTED,
    TIMEOUT,
    LearnerLeft,
    PullFailed,
    Saved,
    ScoreReported,
)

LONGEST = 12_000  # characters of a traceback that are kept
DOES = {"prepare": "building it", "pull": "a pull", "save": "saving it"}


class Ready(NamedTuple):
    """The learner is restored; the verdict should mention the notes."""

    notes: list[str]
    repeated: int = 0  # pulls that were trained again


class LearnerHost:
    """Builds a learner, trains it and saves it."""

    def __init__(self, arm: int, entry: Entry, states: OwnStates, apart: bool = False) -> None:
        self.arm, self.entry, self.seed = arm, entry, entry.seed
        self._states = states
        self.learner: Any = None
        self.done = 0  # pulls that it has had
        self._apart = apart  # in its own process: Ctrl-C does not arrive here
        self.lost = False  # whether it cannot be used any more

    def prepare(
        self, done: int, saved: Saved | None, recorded: Sequence[float], storage: Storage | None
    ) -> Ready | PullFailed:
        """Build the learner and bring it to `done` pulls."""
        self.done = saved.n if saved else 0
        self._states.enter(self)
        try:
            self.learner, notes, repeated = restore(
                self.entry, done, saved, recorded, storage, self._pull_of
            )
        except BaseException as error:
            return self._failure(done + 1, error, "restore")
        self.done = done
        return Ready(notes, repeated)

    def _pull_of(self, learner: Any) -> Any:
        self._states.enter(self)
        return learner.pull()

    def pull(self) -> ScoreReported | LearnerLeft | PullFailed:
        """Make one pull."""
        self._states.enter(self)
        began = perf_counter()
        try:
            value = self.learner.pull()
        except StopIteration:
            return self._finished()
        except BaseException as error:
            seconds = perf_counter() - began
            return replace(self._failure(self.done + 1, error, "exception"), seconds=seconds)
        seconds = perf_counter() - began
        try:
            score = as_score(value)
        except LearnerError as error:
            return PullFailed(self.arm, self.done + 1, "score", str(error), seconds=seconds)
        self.done += 1
        return ScoreReported(self.arm, score, seconds, steps_of(self.learner))

    def _finished(self) -> LearnerLeft | PullFailed:
        n = self.done
        if n == 0:
            text = "it ended before its first score"
            return PullFailed(self.arm, 1, "score", text, final=True)
        return LearnerLeft(self.arm, FINISHED, f"finished after {n} pull{'s' * (n != 1)}")

    def _failure(self, n: int, error: BaseException, kind: str) -> PullFailed:
        """Return the failure that an exception in the learner's code is; Ctrl-C is none."""
        if isinstance(error, KeyboardInterrupt) and not self._apart:
            raise error
        return failure_of(self.arm, n, error, kind)

    def save(self, storage: Storage, pickled: bool) -> Stored | str | None:
        """Save the state; return why that failed, or None if there is no save and load.

        If `pickled`, a learner without `save` and `load` is pickled.
        """
        if not (pickled or can_save(self.learner)):
            return None
        self._states.enter(self)
        fill = self.learner.save if can_save(self.learner) else pickling(self.learner)
        try:
            return storage.keep(place_of(self.arm, self.done), fill)
        except BaseException as error:  # of the learner's own code, or of the disk
            return self._failure(self.done + 1, error, "save").reason

    def fetch(self) -> bytes | str:
        """Return the trained learner, pickled; or why it cannot be pickled."""
        try:
            return dumps(trained(self.learner))
        except BaseException as error:  # of the learner's own pickling
            return reason_of(error)

    def yields_only_scores(self) -> bool:
        """Return whether the learner is a generator without a model, which cannot be kept."""
        return is_bare(trained(self.learner))

    def close(self) -> None:
        """Free the learner."""
        self.learner = None


def failure_of(arm: int, n: int, error: BaseException, kind: str) -> PullFailed:
    """Return an exception in a learner's code as the failure of its pull `n`."""
    details = shortened("".join(traceback.format_exception(error)), LONGEST)
    return PullFailed(arm, n, kind, reason_of(error), printable(details))


# --- calls that may take only so long ---


OUT_OF_TIME = "it was still running when the race's time and its grace period were over"


class TooLong(Exception):
    """A call takes longer than `timeout`."""


class OutOfTime(Exception):
    """A call still runs when the race's time and its grace period are over."""


class Died(Exception):
    """A learner's process has ended; the text says how."""


class LimitedHost(ABC):
    """A host whose calls end: with an answer, or with a failure when their time is over."""

    def __init__(self, arm: int, timeout: float | None) -> None:
        self.arm, self.lost, self.done = arm, False, 0
        self._timeout = timeout

    @abstractmethod
    def _answer(self, limit: float | None, method: str, *args: Any) -> Any:
        """Return the host's answer; raise `TooLong`, `OutOfTime` or `Died` if there is none."""

    @abstractmethod
    def close(self) -> None:
        """Free the learner."""

    def _call(self, limit: float | None, method: str, *args: Any) -> Any:
        began = perf_counter()
        try:
            return self._answer(limit, method, *args)
        except TooLong:
            kind, why = TIMEOUT, f"{DOES[method]} took longer than timeout={self._timeout:g} s"
        except OutOfTime:
            kind, why = INTERRUPTED, OUT_OF_TIME
        except Died as error:
            kind, why = "died", str(error)
        self.lost, took = True, perf_counter() - began
        return PullFailed(self.arm, self.done + 1, kind, why, seconds=took)

    def prepare(
        self, done: int, saved: Saved | None, recorded: Sequence[float], storage: Storage | None
    ) -> Ready | PullFailed:
        """Build the learner and bring it to `done` pulls; each repeated pull has its own time."""
        self.done = done
        again = done - (saved.n if saved else 0)
        limit = None if self._timeout is None else self._timeout * (1 + again)
        answer: Ready | PullFailed = self._call(limit, "prepare", done, saved, recorded, storage)
        return answer

    def pull(self) -> ScoreReported | LearnerLeft | PullFailed:
        """Make one pull."""
        answer: ScoreReported | LearnerLeft | PullFailed = self._call(self._timeout, "pull")
        if type(answer) is ScoreReported:
            self.done += 1
        return answer

    def save(self, storage: Storage, pickled: bool) -> Stored | str | None:
        """Save the state; return why that failed, or None if there is no save and load."""
        answer: Any = self._call(self._timeout, "save", storage, pickled)
        return answer.reason if isinstance(answer, PullFailed) else answer

    def fetch(self) -> bytes | str:
        """Return the trained learner, pickled; or why that is not available."""
        answer: Any = self._call(None, "fetch")
        return answer.reason if isinstance(answer, PullFailed) else answer

    def yields_only_scores(self) -> bool:
        """Return whether the learner is a generator without a model, which cannot be kept."""
        return self._call(None, "yields_only_scores") is True


class ThreadHost(LimitedHost):
    """A host in this process. A call that takes too long is abandoned with its learner."""

    def __init__(self, host: LearnerHost, timeout: float, thread: CallThread) -> None:
        super().__init__(host.arm, timeout)
        self._host, self._thread = host, thread

    @property
    def learner(self) -> Any:
        """The learner itself."""
        return self._host.learner

    def _answer(self, limit: float | None, method: str, *args: Any) -> Any:
        answer = getattr(self._host, method)
        return (
            answer(*args) if limit is None else self._thread.within(limit, lambda: answer(*args))
        )

    def _call(self, limit: float | None, method: str, *args: Any) -> Any:
        answer = super()._call(limit, method, *args)
        if self.lost and not self._host.entry.rebuilds:
            text = f"{answer.reason}, and it cannot be tried again: the abandoned call still "
            text += "holds the object. Pass a function that builds the learner"
            return replace(answer, reason=text, final=True)
        return answer

    def close(self) -> None:
        """Free the learner; an abandoned call keeps it until it returns."""
        if not self.lost:
            self._host.close()


class CallThread:
    """Makes calls in a second thread and waits for each only so long.

    Python cannot end a thread. A call that takes too long is abandoned: it runs in the background
    until it returns, holding its memory, and its result is discarded. Its thread does not keep the
    program from ending.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def within(self, seconds: float, call: Callable[[], Any]) -> Any:
        """Return what a call returns; raise `TooLong` if that takes more than `seconds`."""
        if self._thread is None:
            self._jobs = SimpleQueue()
            self._thread = threading.Thread(target=_make_calls, args=(self._jobs,), daemon=True)
            self._thread.start()
        answer: SimpleQueue[Any] = SimpleQueue()
        self._jobs.put((call, answer))
        try:
            value, error = answer.get(timeout=min(seconds, threading.TIMEOUT_MAX))
        except Empty:
            self._jobs.put(None)  # the thread ends when the abandoned call does
            self._thread = None
            raise TooLong from None
        if error is not None:
            try:
                raise error
            finally:
                del error, call  # a cycle that would keep the learner in memory
        return value

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None


def _make_calls(jobs: SimpleQueue[Any]) -> None:
    while (job := jobs.get()) is not None:
        call, answer = job
        try:
            answer.put((call(), None))
        except BaseException as error:  # raised again in the thread that waits
            answer.put((None, error))
        del job, call, answer  # else the learner stays in memory until the next call
