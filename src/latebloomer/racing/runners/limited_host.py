"""Hosts whose calls may take only so long: in a second thread, or in a process of this machine.

A learner that crashes in compiled code, calls `os._exit` or is killed ends only its own process:
that is the learner's failure, and the race continues.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from math import inf
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from time import perf_counter, sleep
from typing import Any

from latebloomer.racing.checkpoints.saved_states import Restorable
from latebloomer.racing.checkpoints.storage import Storage
from latebloomer.racing.runners.contract import RunnerContext
from latebloomer.racing.runners.learner_host import LearnerHost, PackedLearners, PullReport, Ready
from latebloomer.session import events
from latebloomer.session.events import PullFailed, Saved, SaveFailed, ScoreReported

DOES = {"prepare": "building it", "pull": "a pull", "save": "saving it"}
OUT_OF_TIME = "it was still running when the race's time and its grace period were over"
FORKS = hasattr(os, "fork") and sys.platform != "darwin"  # there, forked libraries crash
CHECK = 1.0  # seconds between two checks whether the race's own process is still there
PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>


class NoAnswer(Exception):
    """A call has no answer: the kind of failure, and why."""


def took_longer(method: str, timeout: float | None) -> tuple[str, str]:
    """Return the kind of failure that a call is that takes longer than `timeout`, and why."""
    return events.TIMEOUT, f"{DOES[method]} took longer than timeout={timeout:g} s"


class LimitedHost(ABC):
    """A host whose calls end: with an answer, or with a failure when their time is over."""

    def __init__(self, arm: int, timeout: float | None) -> None:
        self.arm, self.lost, self.done = arm, False, 0
        self._timeout = timeout

    @abstractmethod
    def _answer(self, limit: float | None, method: str, *args: Any) -> Any:
        """Return the host's answer; raise `NoAnswer` if there is none."""

    @abstractmethod
    def close(self) -> None:
        """Free the learner."""

    def _call(self, limit: float | None, method: str, *args: Any) -> Any:
        began = perf_counter()
        try:
            return self._answer(limit, method, *args)
        except NoAnswer as error:
            (kind, why), took, self.lost = error.args, perf_counter() - began, True
            return PullFailed(self.arm, self.done + 1, kind, why, seconds=took)

    def prepare(self, at: Restorable) -> Ready | PullFailed:
        """Build the learner and bring it to its pulls; each repeated pull has its own time."""
        self.done = at.done
        again = at.done - (at.saved.n if at.saved else 0)
        limit = None if self._timeout is None else self._timeout * (1 + again)
        answer: Ready | PullFailed = self._call(limit, "prepare", at)
        return answer

    def pull(self) -> PullReport:
        """Make one pull."""
        answer: PullReport = self._call(self._timeout, "pull")
        if type(answer) is ScoreReported:
            self.done += 1
        return answer

    def save(self, storage: Storage, pickled: bool) -> Saved | SaveFailed | None:
        """Save the state; None if there is no save and load, and it is not to be pickled."""
        answer: Any = self._call(self._timeout, "save", storage, pickled)
        failed = isinstance(answer, PullFailed)
        return SaveFailed(self.arm, self.done, answer.reason) if failed else answer

    def fetch(self) -> bytes | str:
        """Return the trained learner, pickled; or why that is not available."""
        answer: Any = self._call(None, "fetch")
        return answer.reason if isinstance(answer, PullFailed) else answer

    def yields_only_scores(self) -> bool:
        """Return whether the learner is a generator without a model, which cannot be kept."""
        return self._call(None, "yields_only_scores") is True


# --- in this process ---


class ThreadHost(LimitedHost):
    """A host in this process. A call that takes too long is abandoned with its learner."""

    def __init__(
        self, host: LearnerHost, timeout: float, thread: CallThread, rebuilds: bool
    ) -> None:
        super().__init__(host.arm, timeout)
        self._host, self._thread, self._rebuilds = host, thread, rebuilds
        host.apart = True  # Ctrl-C does not arrive in the thread, and no call may raise there

    @property
    def learner(self) -> Any:
        """The learner itself."""
        return self._host.learner

    def _answer(self, limit: float | None, method: str, *args: Any) -> Any:
        answer = getattr(self._host, method)
        if limit is None:
            return answer(*args)
        try:
            return self._thread.within(limit, lambda: answer(*args))
        except Empty:
            raise NoAnswer(*took_longer(method, self._timeout)) from None

    def _call(self, limit: float | None, method: str, *args: Any) -> Any:
        answer = super()._call(limit, method, *args)
        if self.lost and not self._rebuilds:
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
        """Return what a call returns; raise `Empty` if that takes more than `seconds`."""
        if self._thread is None:
            self._jobs = SimpleQueue()
            self._thread = threading.Thread(target=_make_calls, args=(self._jobs,), daemon=True)
            self._thread.start()
        answer: SimpleQueue[Any] = SimpleQueue()
        self._jobs.put((call, answer))
        try:
            return answer.get(timeout=min(seconds, threading.TIMEOUT_MAX))
        except Empty:
            self._jobs.put(None)  # the thread ends when the abandoned call does
            self._thread = None
            raise

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None


def _make_calls(jobs: SimpleQueue[Any]) -> None:
    while (job := jobs.get()) is not None:
        call, answer = job
        answer.put(call())
        del job, call, answer  # else the learner stays in memory until the next call


# --- in its own process ---


class ChildProcess(LimitedHost):
    """A host in its own process, which ends with the race's process."""

    def __init__(
        self,
        arm: int,
        packed: PackedLearners,
        timeout: float | None,
        context: RunnerContext,
        forker: ThreadPoolExecutor,
    ) -> None:
        super().__init__(arm, timeout)
        self._context = context
        processes: Any = multiprocessing.get_context("fork" if FORKS else "spawn")
        self._line, theirs = processes.Pipe()
        self._process = processes.Process(
            target=_serve, args=(theirs, arm, packed, os.getpid()), daemon=True
        )
        forker.submit(self._process.start).result()
        theirs.close()

    def _answer(self, limit: float | None, method: str, *args: Any) -> Any:
        left = max(self._context.seconds_left(), self._context.grace)
        may_take = min(left, inf if limit is None else limit)
        try:
            self._line.send((method, args))
            if may_take < inf and not self._line.poll(min(may_take, 1e9)):
                late = left == may_take
                raise NoAnswer(
                    *(
                        (events.INTERRUPTED, OUT_OF_TIME)
                        if late
                        else took_longer(method, self._timeout)
                    )
                )
            return self._line.recv()
        except (EOFError, OSError):
            self._process.join()
            raise NoAnswer("died", f"its process {_ending(self._process.exitcode)}") from None

    def close(self) -> None:
        """End the process."""
        self._line.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def make_forker() -> ThreadPoolExecutor:
    """Return the thread that child processes are forked from; it must live as long as they do.

    OpenMP keeps its pool of threads with the thread that used it. A copy of that thread would wait
    for ever for threads that were not copied (LightGBM, XGBoost, scikit-learn, PyTorch); a copy of
    a thread that has computed nothing makes its own pool. And Linux ends the children together
    with the thread that has forked them (`PR_SET_PDEATHSIG`).
    """
    return ThreadPoolExecutor(1, "latebloomer-forker")


def _serve(line: Connection, arm: int, packed: PackedLearners, parent: int) -> None:
    """Answer calls in the learner's process until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the race to handle
    _end_with(parent)
    host = LearnerHost(arm, packed)
    with suppress(EOFError, OSError):
        while True:
            method, args = line.recv()
            line.send(getattr(host, method)(*args))


def _end_with(parent: int) -> None:
    """End this process when the race's process ends, also in the middle of a pull."""
    if sys.platform == "linux":
        with suppress(Exception):  # a C library without prctl: as elsewhere
            if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) == 0:
                if os.getppid() != parent:  # it ended before the call
                    os._exit(1)
                return
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        sleep(CHECK)
    os._exit(1)


def _ending(code: int | None) -> str:
    """Return how a process has ended.

    >>> _ending(3), _ending(-11)
    ('exited with code 3', 'was ended by SIGSEGV')
    """
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"exited with code {code}"
