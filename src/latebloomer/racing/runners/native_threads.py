"""Limits for the native threads (BLAS, OpenMP) of learners, and warnings if they waste time."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from latebloomer.errors import extra, require

LONG = 3.0  # minimum seconds of pulls before a warning
FAR_ABOVE = 1.5  # warn if processor time exceeds this many times the wall time
BUSY = 1.25  # a machine is busy with this many running or waiting processes per core


class NativeThreads:
    """A limit for the native threads of this process, while learners train.

    Only loaded libraries can be limited, and OpenMP has a limit per thread. So the limit is set
    again after new modules were imported, and in other threads. BLAS is limited only in the race's
    own thread. If `threads` is None, the libraries decide.
    """

    def __init__(self, threads: int | None) -> None:
        self._threads = threads
        self._limits = ExitStack()
        # (thread, number of imported modules) with the limit set.
        self._limited: set[tuple[int, int]] = set()
        if threads is not None:
            whole = isinstance(threads, int) and not isinstance(threads, bool) and threads >= 1
            why = "it is a number of native threads"
            require(whole, "threads", threads, "an integer >= 1", why)
            self._tool = extra("threadpoolctl", "limits of threads", "sklearn")

    def limit(self) -> None:
        """Limit the threads of all loaded libraries for this thread."""
        if self._threads is None:
            return
        place = threading.get_ident(), len(sys.modules)
        if place not in self._limited:
            self._limited.add(place)
            self._limits.enter_context(self._tool.threadpool_limits(self._threads))

    def release(self) -> None:
        """Restore the original numbers of threads."""
        self._limits.close()
        self._limited.clear()


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Limit the native threads of this process inside the block.

    >>> with limited_threads(None):
    ...     pass
    """
    own = NativeThreads(threads)
    own.limit()
    try:
        yield
    finally:
        own.release()


class ThreadWatch:
    """Compare the processor time of pulls with their wall time, and warn at most once.

    >>> watch = ThreadWatch(cores=2, load=lambda: 0.5)
    >>> watch.add(wall=2.0, cpu=3.9), watch.add(wall=2.0, cpu=3.9)
    (None, 'pulls took 7.8 s of processor time in 4 s: native threads of BLAS or OpenMP ...')
    >>> watch.add(wall=2.0, cpu=3.9)
    >>> ThreadWatch(cores=2, load=lambda: 4.6).add(wall=4.0, cpu=3.9)
    'the machine is busy: 4.6 processes for 2 cores, so pulls take longer than they would alone'
    """

    def __init__(self, cores: int | None = None, load: Any = None) -> None:
        self._cores, self._load = cores or os.cpu_count() or 1, load or _load
        self._wall = self._cpu = 0.0
        self._said = False

    def add(self, wall: float, cpu: float) -> str | None:
        """Add the time of a pull; return a warning for the verdict, at most once."""
        if self._said:
            return None
        self._wall += wall
        self._cpu += cpu
        if self._wall < LONG:
            return None
        self._said = True
        load = self._load()
        busy = load > BUSY * self._cores
        if self._cpu > FAR_ABOVE * self._wall:
            where = f" on a busy machine ({load:.1f} processes for {self._cores} cores)" * busy
            return (
                f"pulls took {self._cpu:.3g} s of processor time in {self._wall:.3g} s: native "
                f"threads of BLAS or OpenMP may wait for each other{where}; compare with threads=1"
            )
        if busy:
            text = f"the machine is busy: {load:.1f} processes for {self._cores} cores"
            return f"{text}, so pulls take longer than they would alone"
        return None


def _load() -> float:
    """Return the mean number of running or waiting processes in the last minute; 0 if unknown."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # not available on Windows
        return 0.0
