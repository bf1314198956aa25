"""Hosts with time limits: each call ends with an answer or with a failure."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from math import inf
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any

from latebloomer.racing.checkpoints.saved_states import Restorable, SavedStates
from latebloomer.racing.checkpoints.storage import Storage
from latebloomer.racing.runners.learner_host import Call, Host, LearnerHost, PullReport, Ready
from latebloomer.racing.runners.runner import HandedOver, Report
from latebloomer.racing.runners.turns import TURNS
from latebloomer.session import events
from latebloomer.session.events import PullFailed, Saved, SaveFailed, ScoreReported

OUT_OF_TIME = "it was still running when the race's time and its grace period were over"


class NoAnswer(Exception):
    """A call without an answer; its arguments are the kind of failure and the reason."""


def took_longer(call: Call, timeout: float | None) -> tuple[str, str]:
    """Return the kind of failure and the reason for a call that takes longer than `timeout`."""
    return events.TIMEOUT, f"{call.words} took longer than timeout={timeout:g} s"


class LimitedHost(Host):
    """A host whose calls end with an answer, or with a failure when their time is over."""

    def __init__(self, arm: int, timeout: float | None) -> None:
        self.arm, self.lost, self.done = arm, False, 0
        self._timeout = timeout

    @abstractmethod
    def _answer(self, limit: float | None, call: Call, *args: Any) -> Any:
        """Return the host's answer; raise `NoAnswer` if there is none."""

    def _call(self, limit: float | None, call: Call, *args: Any) -> Any:
        began = perf_counter()
        try:
            return self._answer(limit, call, *args)
        except NoAnswer as error:
            (kind, why), took, self.lost = error.args, perf_counter() - began, True
            return PullFailed(self.arm, self.done + 1, kind, why, seconds=took)

    def prepare(self, at: Restorable) -> Ready | PullFailed:
        """Build and restore the learner; each repeated pull has its own time limit."""
        self.done = at.done
        again = at.done - (at.saved.n if at.saved else 0)
        limit = None if self._timeout is None else self._timeout * (1 + again)
        return self._call(limit, Call.RESTORE, at)

    def pull(self) -> PullReport:
        answer: PullReport = self._call(self._timeout, Call.PULL)
        if type(answer) is ScoreReported:
            self.done += 1
        return answer

    def save(self, storage: Storage, pickled: bool) -> Saved | SaveFailed | None:
        answer: Any = self._call(self._timeout, Call.SAVE, storage, pickled)
        failed = isinstance(answer, PullFailed)
        return SaveFailed(self.arm, self.done, answer.reason) if failed else answer

    def score_rows(self) -> events.RowsScored | events.WarningNoted | None:
        answer: Any = self._call(self._timeout, Call.SCORE_ROWS)
        if isinstance(answer, PullFailed):
            return events.WarningNoted(self.arm, f"its row scores are left out ({answer.reason})")
        return answer

    def yields_only_scores(self) -> bool:
        return self._call(None, Call.ASK_WHETHER_BARE) is True


class ThreadHost(LimitedHost):
    """A host in this process; a call that takes too long is abandoned with its learner."""

    def __init__(
        self, host: LearnerHost, timeout: float, thread: CallThread, rebuilds: bool
    ) -> None:
        super().__init__(host.arm, timeout)
        self._host, self._thread, self._rebuilds = host, thread, rebuilds
        host.apart = True  # Ctrl-C does not reach the thread, and no call may raise an error there

    def hand_over(self, states: SavedStates, pickled: bool, reports: list[Report]) -> HandedOver:
        return self._host.hand_over(states, pickled, reports)

    def note_pulls(self, pulls: int | None) -> None:
        self._host.note_pulls(pulls)

    def _answer(self, limit: float | None, call: Call, *args: Any) -> Any:
        answer = getattr(self._host, call.method)
        if limit is None:
            return answer(*args)
        try:
            return self._thread.within(limit, lambda: answer(*args))
        except Empty:
            raise NoAnswer(*took_longer(call, self._timeout)) from None

    def _call(self, limit: float | None, call: Call, *args: Any) -> Any:
        answer = super()._call(limit, call, *args)
        if self.lost:
            last_output = self._host.give_up()
            answer = replace(answer, reason=f"{answer.reason}{last_output}")
        if self.lost and not self._rebuilds:
            text = f"{answer.reason}, and it cannot be tried again: the abandoned call still "
            text += "holds the object. Pass a function that builds the learner"
            return replace(answer, reason=text, final=True)
        return answer

    def close(self) -> None:
        """Release the learner; an abandoned call holds it until the call returns."""
        if not self.lost:
            self._thread.within(inf, self._host.close)


class CallThread:
    """Make calls in a second thread, and wait for each only for a limited time.

    Python cannot end a thread. A call that takes too long is abandoned: it continues in the
    background until it returns, uses its memory until then, and its result is discarded. Its
    thread does not prevent the program from ending.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def within(self, seconds: float, call: Callable[[], Any]) -> Any:
        """Return the result of a call; raise `Empty` if the call takes more than `seconds`."""
        if self._thread is None:
            self._jobs = SimpleQueue()
            self._thread = threading.Thread(target=_make_calls, args=(self._jobs,), daemon=True)
            self._thread.start()
        answer: SimpleQueue[Any] = SimpleQueue()
        try:
            with TURNS.lent_to(self._thread.ident):  # the time starts when the call gets its turn
                self._jobs.put((call, answer))
                value, error = answer.get(timeout=min(seconds, threading.TIMEOUT_MAX))
        except Empty:
            self._jobs.put(None)  # the thread ends when the abandoned call ends
            self._thread = None
            raise
        if error is not None:
            raise error
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
        except BaseException as error:  # pass it to the waiting thread
            answer.put((None, error))
        del job, call, answer  # else the learner stays in memory until the next call
