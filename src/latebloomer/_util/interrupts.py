"""Python code that is interrupted when its time is over."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INSTRUCTIONS = 100  # of Python, within which an error for a thread arrives there: a few do


class TimeIsOver(Exception):
    """Raised in code that has run for as long as it may."""


@contextmanager
def interrupted_after(seconds: float | None) -> Iterator[None]:
    """Raise `TimeIsOver` in the block if it runs for longer, at its next Python instruction.

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
                # Python's interface for an error in another thread.
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
        # An error that was raised a moment ago arrives here, not in what comes after the block.
        # (To take it back, as that interface can, leaves Python 3.11 unable to profile.)
        for _ in range(INSTRUCTIONS if interrupted else 0):
            pass
