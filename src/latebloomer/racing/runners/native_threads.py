"""How many native threads (of BLAS and OpenMP) learners may use, and whether they wait in vain."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from latebloomer.errors import extra, require

LONG = 3.0  # seconds of pulls before anything is said
FAR_ABOVE = 1.5  # times the wall time of pulls that their processor time is
BUSY = 1.25  # processes per core that are running or waiting


class NativeThreads:
    """A limit for the native threads of this process, while learners train.

    A library is limited once it is loaded, and OpenMP counts by thread, so the limit is set again
    after new modules and in other threads. BLAS takes it from one thread only: the race's own.
    None: the libraries decide.
    """

    def __init__(self, threads: int | None) -> None:
        self._threads = threads
        self._limits = ExitStack()
        self._limited: set[tuple[int, int]] = set()  # by thread, and the number of modules
        if threads is not None:
            whole = isinstance(threads, int) and not isinstance(threads, bool) and threads >= 1
            why = "it is a number of native threads"
            require(whole, "threads", threads, "an integer >= 1", why)
            self._tool = extra("threadpoolctl", "limits of threads", "sklearn")

    def limit(self) -> None:
        """Limit the threads of all libraries that are loaded, as this thread sees them."""
        if self._threads is None:
            return
        place = threading.get_ident(), len(sys.modules)
        if place not in self._limited:
            self._limited.add(place)
            self._limits.enter_context(self._tool.threadpool_limits(self._threads))

    def release(self) -> None:
        """Give the libraries back the threads that they had."""
        self._limits.close()
        self._limited.clear()


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Limit the native threads of this process for some time.

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
    """Compares the processor time of pulls with their wall time, and says once what is wrong.

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
        """Take in the time of a pull; return what the verdict should mention, at most once."""
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
    """Return how many processes run or wait, over the last minute; 0 if it is not known."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # not on Windows
        return 0.0
