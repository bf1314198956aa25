"""Turns: learners that share a process are called one at a time.

They share random numbers, modes of libraries and the standard streams (`process_state.py`), even
if their races run in several threads.
"""

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

PATIENCE = 60.0  # seconds after which a waiting race prints that it waits
WAITING = (
    "a race waits for a learner of another race in this process: they share random numbers and "
    'other state, so they are called one at a time. runner="isolated" trains them at the same '
    "time, and is needed if that learner itself waits for this race"
)


Answer = TypeVar("Answer")


class Turns:
    """A lock that belongs to a thread and that this thread may lend to another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.holder: int | None = None  # ID of the thread that may call learners
        self.lent = False  # whether another thread waits for the holder
        # Races whose learners are being called, one inside the other.
        self.calls: list[object] = []

    def take(self) -> bool:
        """Wait for the turn; return False if this thread already has it."""
        me = threading.get_ident()
        if self.holder == me:
            return False
        if not self._lock.acquire(timeout=PATIENCE):
            warnings.warn(WAITING, RuntimeWarning, stacklevel=2)
            self._lock.acquire()
        self.holder = me
        return True

    def give(self) -> None:
        """Give the turn to other threads."""
        if self.holder == threading.get_ident():
            self.holder = None
            self.calls.clear()
            self._lock.release()

    def during(self, call: Callable[[], Answer]) -> Answer:
        """Return what a call returns; no other thread gets the turn before it has ended."""
        taken = self.take()
        try:
            return call()
        finally:
            if taken:
                self.give()

    def end_call(self, taken: bool) -> None:
        """Record the end of the innermost call, unless abandoned; give the turn if `taken`."""
        if self.holder == threading.get_ident():
            self.calls.pop()
            if taken:
                self.give()

    @contextmanager
    def lent_to(self, thread: int | None) -> Iterator[None]:
        """Return a context in which another thread has the turn of this waiting thread."""
        taken, lent, calls = self.take(), self.lent, len(self.calls)
        self.holder, self.lent = thread, True
        try:
            yield
        finally:  # the call has returned or was abandoned
            self.holder, self.lent = threading.get_ident(), lent
            del self.calls[calls:]
            if taken:
                self.give()

    def after_fork(self) -> None:
        """Start with a new lock in a child process, unless the copied thread has the turn."""
        if self.holder != threading.get_ident():
            self.__init__()  # type: ignore[misc]  # the thread that held the lock was not copied


TURNS = Turns()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TURNS.after_fork)
