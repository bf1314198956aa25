"""A host that trains its learner in a separate process of this machine.

A learner that crashes in compiled code, calls `os._exit` or is killed ends only that process.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from math import inf
from multiprocessing.connection import Connection
from time import sleep
from typing import Any

from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.runners.learner_host import Call, LearnerHost
from latebloomer.racing.runners.native_threads import NativeThreads
from latebloomer.racing.runners.packing import PackedLearners, hand_over, unpack
from latebloomer.racing.runners.runner import HandedOver, Report, Runner, RunnerContext
from latebloomer.racing.runners.time_limits import OUT_OF_TIME, LimitedHost, NoAnswer, took_longer
from latebloomer.session import events
from latebloomer.session.events import PullFailed

FORKS = hasattr(os, "fork") and sys.platform != "darwin"  # on macOS, forked libraries crash
CHECK = 1.0  # seconds between two checks that the race's process still runs
PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>


class ChildProcess(LimitedHost):
    """A host in a child process, which ends when the race's process ends."""

    def __init__(
        self,
        arm: int,
        packed: PackedLearners,
        runner: Runner,
        race: RunnerContext,
        forker: Forker,
        threads: int | None = None,
    ) -> None:
        super().__init__(arm, runner.timeout)
        self._race, self._packed = race, packed
        processes: Any = multiprocessing.get_context("fork" if FORKS else "spawn")
        self._line, theirs = processes.Pipe()
        self._process = processes.Process(
            target=_serve, args=(theirs, arm, packed, os.getpid(), threads), daemon=True
        )
        forker.submit(self._process.start).result()
        theirs.close()

    def hand_over(self, states: SavedStates, pickled: bool, reports: list[Report]) -> HandedOver:
        fetched: Any = self._call(None, Call.FETCH)
        fetched = fetched.reason if isinstance(fetched, PullFailed) else fetched
        entry, saving = unpack(self._packed)[self.arm], partial(self.save, states.storage, pickled)
        return hand_over(states, entry, self.arm, self.done, fetched, saving, reports)

    def note_pulls(self, pulls: int | None) -> None:
        """Do nothing: the child process trains a copy of the object."""

    def _answer(self, limit: float | None, call: Call, *args: Any) -> Any:
        remaining = max(self._race.seconds_left(), self._race.grace)
        may_take = min(remaining, inf if limit is None else limit)
        try:
            self._line.send((call, args))
            if may_take < inf and not self._line.poll(min(may_take, 1e9)):
                if remaining == may_take:
                    raise NoAnswer(events.INTERRUPTED, OUT_OF_TIME)
                raise NoAnswer(*took_longer(call, self._timeout))
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


class Forker(ThreadPoolExecutor):
    """The thread from which child processes are forked; it must live as long as they do.

    OpenMP ties its pool of threads to the thread that used it. After a fork, a copy of that thread
    would wait forever for threads that were not copied (LightGBM, XGBoost, scikit-learn, PyTorch).
    A copy of a thread that has computed nothing creates its own pool. In addition, Linux ends
    child processes when the thread that forked them ends (`PR_SET_PDEATHSIG`).
    """

    def __init__(self) -> None:
        super().__init__(1, "latebloomer-forker")


def _serve(
    line: Connection, arm: int, packed: PackedLearners, parent: int, threads: int | None
) -> None:
    """Answer calls in the learner's process until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the race's process handles Ctrl-C
    _end_with(parent)
    host = LearnerHost(arm, packed, threads=NativeThreads(threads))
    with suppress(EOFError, OSError):
        while True:
            call, args = line.recv()
            line.send(getattr(host, call.method)(*args))


def _end_with(parent: int) -> None:
    """End this process when the race's process ends, even in the middle of a pull."""
    if sys.platform == "linux":
        with suppress(Exception):  # a C library without prctl: the watching thread does it
            if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) == 0:
                if os.getppid() != parent:  # the race's process ended before the call
                    os._exit(1)
                return
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        sleep(CHECK)
    os._exit(1)


def _ending(code: int | None) -> str:
    """Return text that says how a process ended.

    >>> _ending(3), _ending(-11)
    ('exited with code 3', 'was ended by SIGSEGV')
    """
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"exited with code {code}"
