"""Interruption of Python code after a time limit."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Python instructions until an error sent to a thread arrives there; a few are enough.
INSTRUCTIONS = 100


class TimeIsOver(Exception):
    """Raised in code whose time limit is over."""


@contextmanager
def interrupted_after(seconds: float | None) -> Iterator[None]:
    """Raise `TimeIsOver` inside the block after `seconds`, at its next Python instruction.

    Compiled code is interrupted when it returns. With None there is no limit.

    >>> from itertools import count
    >>> with interrupted_after(0.01):
    ...     for n in count():
    ...         pass
    Traceback (most recent call last):
    latebloomer._util.interrupts.TimeIsOver
    """
    if seconds is None:
        yield
        return
    thread, lock = ctypes.c_ulong(threading.get_ident()), threading.Lock()
    is_open, interrupted = [True], []

    def interrupt() -> None:
        with lock:
            if is_open:
                interrupted.append(True)
                # Python's C interface to raise an error in another thread.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TimeIsOver))

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            is_open.clear()
        # An error that was just raised must arrive here, and not in code after the block. (The
        # interface could cancel it, but then Python 3.11 can no longer profile.)
        for _ in range(INSTRUCTIONS if interrupted else 0):
            pass
